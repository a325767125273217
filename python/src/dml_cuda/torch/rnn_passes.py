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
    fills: bool = True,
    has_empty: bool = True,
) -> tuple[torch.Tensor, Any]:
    """Runs x, [T, B, F]. Returns the output and the final states, as the module does.

    hx: the initial states, as the module takes them. segments: for lengths in falling order. is_clean: the padding is
    finite. fills: the output has zeros in its padding, and rnn's memory layout, and not [T, B, features]. has_empty: a
    length may be 0."""
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
    if any(in_one_pass):
        if x.is_cpu:  # a reversal refuses negative lengths
            reverse_batch(padding, lengths, call.lengths_by_row, 0)
        alignment = alignment_of(call)
    ends: list[torch.Tensor] = []
    cells: list[torch.Tensor] = []
    for layer in range(rnn.num_layers):
        if layer and rnn.dropout:
            x = torch.nn.functional.dropout(x, rnn.dropout, rnn.training)
        if in_one_pass[layer]:
            found = layer_in_one_pass(call, layer, x, alignment)
        else:
            found = _layer(call, layer, x)
        ends += found.ends
        cells += found.cells
        if fills and layer == rnn.num_layers - 1:
            x = _output(rnn, found.parts, is_recorded)
        else:
            x = found.parts[0] if len(found.parts) == 1 else torch.cat(found.parts, 2)
    h_n = _in_one(ends)
    if has_empty:
        h_n = torch.where(call.lengths_by_row < 1, states[0].to(h_n.dtype), h_n)
    if fills:
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
    # Lengths may change after the call. In pageable memory they are read before the call returns.
    is_copied = not is_clean and (
        torch.is_grad_enabled() or is_recorded or lengths.device != x.device
    )
    lengths = lengths.to(torch.int64, copy=is_copied and not x.is_cuda)
    lengths = lengths.to(x.device, non_blocking=True)
    return without_sign(lengths) if x.is_cuda else lengths  # the former is a copy


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


def _freezing_width(call: PaddedCall, x: torch.Tensor) -> int:
    """The number of features by which the padding freezes states: cuDNN's algorithm for large hidden sizes takes only
    multiples of 128. With a small hidden size the algorithm does not depend on the input's size."""
    largest_small = 128 if call.rnn.mode == "LSTM" else 256
    is_large = x.is_cuda and call.rnn.hidden_size > largest_small
    if is_large and is_persistent(call.rnn, x, x.shape[2], call.batch):
        return 128
    return 8


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
