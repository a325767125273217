"""RNNs over padded batches: each layer in passes without lengths, in which nothing that comes after the end of a
sequence reaches it.

`rnn.py` calls `run_padded` for the forms "padded" and "segments" of `rnn_choice.py`. The pass of the reverse direction
reads its sequences reversed, so that they begin with their last steps and end in padding like those of the forward
direction:

    x           a  b  c  -  -        forward direction
    reversed    c  b  a  -  -        reverse direction, whose output is reversed again

That is a layer in two passes. `rnn_one_pass.py` runs both directions in one pass where that is faster."""

import warnings
from typing import Any

import torch

from .operators import VERSION, is_traced_or_exported
from .packed_rows import padding_of, without_sign
from .padded_reversal import reverse_batch
from .rnn_choice import Segment, is_float16, is_persistent
from .rnn_one_pass import alignment_of, is_one_pass, layer_in_one_pass
from .rnn_pass import LayerOutput, PaddedCall, freezing_weights


def run_padded(
    rnn: torch.nn.RNNBase,
    x: torch.Tensor,
    lengths: torch.Tensor,
    hx: Any,
    segments: list[Segment] | None = None,
    is_clean: bool = False,
    is_final: bool = True,
    has_empty: bool = True,
) -> tuple[torch.Tensor, Any]:
    """Runs x, [T, B, F]. Returns the output and the final states, as the module does.

    hx: the initial states, as the module takes them. segments: for lengths in falling order. is_clean: the padding is
    finite. is_final: the output is what the module returns: zeros in the padding, and [B, T, features] if batch_first.
    Else it is [T, B, features], with any values in the padding. has_empty: a length may be 0."""
    _warn_of_a_fixed_loop(rnn, x)
    is_recorded = is_traced_or_exported()
    in_one_pass = [is_one_pass(rnn, layer, x) for layer in range(rnn.num_layers)]
    lengths = _lengths_near(x, lengths, is_clean, is_recorded)
    padding = padding_of(x, lengths)
    states = _initial_states(rnn, x, hx)
    call = PaddedCall(rnn, lengths, padding, states, segments, is_recorded)
    # Padding comes last and cannot change an output. But a NaN there would reach the gradients of the weights. A trace
    # must not depend on whether gradients are on: PyTorch checks it without.
    reaches = call.freezes or torch.is_grad_enabled() or is_recorded or any(in_one_pass)
    if reaches and not is_clean:
        x = torch.where(padding, 0.0, x)
    x = x.contiguous()
    alignment = None
    if any(in_one_pass):
        _refuse_negative_lengths(call)
        alignment = alignment_of(call)
    ends: list[torch.Tensor] = []
    cells: list[torch.Tensor] = []
    for layer in range(rnn.num_layers):
        if layer and rnn.dropout:
            x = torch.nn.functional.dropout(x, rnn.dropout, rnn.training)
        if alignment is not None and in_one_pass[layer]:
            found = layer_in_one_pass(call, layer, x, alignment)
        else:
            found = _layer(call, layer, x)
        ends += found.ends
        cells += found.cells
        if is_final and layer == rnn.num_layers - 1:
            x = _output(rnn, found.parts, is_recorded)
        else:
            x = found.parts[0] if len(found.parts) == 1 else torch.cat(found.parts, 2)
    h_n = _in_one(ends)
    if has_empty:
        h_n = torch.where(call.lengths_by_row < 1, states[0].to(h_n.dtype), h_n)
    if is_final:
        x = x.masked_fill_(padding.transpose(0, 1) if rnn.batch_first else padding, 0)
    return x, (h_n, _in_one(cells)) if rnn.mode == "LSTM" else h_n


def _warn_of_a_fixed_loop(rnn: torch.nn.RNNBase, x: torch.Tensor) -> None:
    """Warns if an exported program accepts any T in its signature but has a loop of fixed length."""
    is_dynamic = isinstance(x.shape[0], torch.SymInt)
    if is_dynamic and (VERSION < (2, 15) or rnn.mode.startswith("RNN")):
        words = "the exported program has a fixed T: this PyTorch writes out the loop of the RNN"
        warnings.warn(
            f"{words}. PyTorch 2.15 has while loops for LSTMs and GRUs", stacklevel=3
        )


def _lengths_near(
    x: torch.Tensor, lengths: torch.Tensor, is_clean: bool, is_recorded: bool
) -> torch.Tensor:
    """The lengths as int64 where x is, in memory that nothing changes if a backward pass or a program keeps them."""
    if x.is_cuda:
        # Lengths may change after the call. A copy to a GPU reads pageable memory before it returns, but pinned memory
        # later. A captured or recorded call reads pinned lengths whenever it runs.
        is_copied = not is_recorded and _are_pinned(lengths)
    else:
        is_copied = not is_clean and (
            torch.is_grad_enabled() or is_recorded or lengths.device != x.device
        )
    lengths = lengths.to(torch.int64, copy=is_copied)
    lengths = lengths.to(x.device, non_blocking=True)
    return without_sign(lengths) if x.is_cuda else lengths  # the former is a copy


def _are_pinned(lengths: torch.Tensor) -> bool:
    """Whether lengths are in pinned memory of the host, and no graph is captured that would read them in each replay."""
    if not lengths.is_cpu or not lengths.is_pinned():
        return False
    return not torch.cuda.is_current_stream_capturing()


def _refuse_negative_lengths(call: PaddedCall) -> None:
    """Refuses negative lengths on the host, as the reversals of a layer in two passes do."""
    if call.padding.is_cpu:
        reverse_batch(call.padding, call.lengths, call.lengths_by_row, 0)


def _initial_states(rnn: torch.nn.RNNBase, x: torch.Tensor, hx: Any) -> list[Any]:
    """The hidden states that the passes begin with, [passes, B, size], and for an LSTM the cell states."""
    is_lstm = rnn.mode == "LSTM"
    if hx is not None:
        return list(hx) if is_lstm else [hx]
    passes, batch = rnn.num_layers * (1 + rnn.bidirectional), x.shape[1]
    states = x.new_zeros(passes, batch, rnn.hidden_size)
    if not is_lstm:
        return [states]
    if not rnn.proj_size:
        return [states, states]
    return [x.new_zeros(passes, batch, rnn.proj_size), states]


def _layer(call: PaddedCall, layer: int, x: torch.Tensor) -> LayerOutput:
    """Runs a layer of x, [T, B, F], in a pass for each direction."""
    directions = 1 + call.rnn.bidirectional
    passes = range(directions * layer, directions * (layer + 1))
    weights = [call.weights_of(k) for k in passes]
    if call.freezes:
        width = _freezing_width(call, x)
        freezing = freezing_weights(call.rnn, weights[0][0][0], width, is_float16(x))
        for of_pass in weights:
            of_pass[0].append(freezing)
        x = torch.cat([x, call.padding.expand(call.steps, call.batch, width)], 2)
    output, cells = call.run(passes[0], x, weights[0])
    found = LayerOutput([output], [call.end_of(output)], [cells])
    if call.rnn.bidirectional:
        x = reverse_batch(x, call.lengths, call.lengths_by_row, 0)
        output, cells = call.run(passes[1], x, weights[1])
        output = reverse_batch(output, call.lengths, call.lengths_by_row, 0)
        found.parts.append(output)
        found.ends.append(output[:1])
        found.cells.append(cells)
    return found


# The largest hidden sizes for which cuDNN's algorithm does not depend on the input's size.
_SMALL_LSTM, _SMALL_RNN = 128, 256
# The number of features by which the padding freezes states. cuDNN's persistent algorithm for larger hidden sizes takes
# only multiples of the second.
_FREEZING_WIDTH, _PERSISTENT_FREEZING_WIDTH = 8, 128


def _freezing_width(call: PaddedCall, x: torch.Tensor) -> int:
    """The number of features by which the padding freezes states: it keeps the algorithm that cuDNN has without them."""
    largest_small = _SMALL_LSTM if call.rnn.mode == "LSTM" else _SMALL_RNN
    is_large = x.is_cuda and call.rnn.hidden_size > largest_small
    if is_large and is_persistent(call.rnn, x, x.shape[2], call.batch):
        return _PERSISTENT_FREEZING_WIDTH
    return _FREEZING_WIDTH


def _output(
    rnn: torch.nn.RNNBase, parts: list[torch.Tensor], is_recorded: bool
) -> torch.Tensor:
    """The output of the last layer in the module's memory layout, in memory that nothing else keeps."""
    if rnn.batch_first:
        parts = [part.transpose(0, 1) for part in parts]
    if len(parts) > 1:
        return torch.cat(parts, 2)
    # The backward pass keeps the output of a pass.
    if torch.is_grad_enabled() or is_recorded:
        return parts[0].clone(memory_format=torch.contiguous_format)
    return parts[0].contiguous(memory_format=torch.contiguous_format)


def _in_one(states: list[torch.Tensor]) -> torch.Tensor:
    """The states of all passes. The backward pass of one may keep them."""
    if len(states) > 1 or torch.is_grad_enabled():
        return torch.cat(states)
    return states[0]
