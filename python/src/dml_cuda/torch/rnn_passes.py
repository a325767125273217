"""RNNs over padded batches: each layer in passes without lengths, in which nothing that comes after the end of a
sequence reaches it."""

import contextlib
import warnings
from typing import Any

import torch

from .padded_reversal import reverse_batch
from .operators import VERSION, is_tracing
from .packing import padding_of, without_sign
from .rnn_choice import forced_form, is_float16, is_persistent, most_hidden

_PASSES = {
    "LSTM": torch.lstm,
    "GRU": torch.gru,
    "RNN_TANH": torch.rnn_tanh,
    "RNN_RELU": torch.rnn_relu,
}
_FREEZING = ("LSTM", "RNN_RELU")


def _is_one_pass(rnn: torch.nn.RNNBase, layer: int, x: torch.Tensor, size: int) -> bool:
    """Whether both directions of a layer run in one pass. cuDNN then runs them at the same time, but multiplies twice
    as many inputs, half of the weights being zeros. On an H200 (benches/record) that is faster in captured calls, with
    and without gradients, where two passes would have cuDNN's standard algorithm: PyTorch asks for a persistent one if
    the states are few, and for an LSTM or RNN in float16 if sizes are multiples. With the latter only batches below 64,
    and a batch of 128 with 256 states, are faster in two passes. The multiplications must be few, fewer where tensor
    cores do not take the dtype, and so must the states in half precision. Short sequences do not pay for the weights
    that each call puts together. Eager calls wait for the host, and gain nothing."""
    if not rnn.bidirectional or is_tracing() or torch.compiler.is_exporting():
        return False  # programs without Python have reversals
    forced = forced_form()
    if forced is not None:
        return forced == "one_pass"
    is_captured = (
        x.is_cuda
        and torch.cuda.is_current_stream_capturing()
        and torch.backends.cudnn.enabled
    )
    if not is_captured or torch.cuda.get_device_capability(x.device) != (9, 0):
        return False  # other GPUs are not measured
    steps, batch, features = x.shape
    features, hidden = 2 * size if layer else features, rnn.hidden_size
    if is_persistent(rnn, x, features, batch) and (
        batch < 64 or (batch, hidden) == (128, 256)
    ):
        return False
    if hidden <= most_hidden(rnn, x):
        return False
    is_double = x.dtype == torch.float64
    is_half = is_float16(x) or x.dtype == torch.bfloat16
    is_exact = not is_half and (is_double or not _has_tf32())
    most, most_states = 1 << (23 if is_exact else 26), 1024 if is_half else 2048
    is_little = batch * hidden * max(features, hidden) <= most and hidden <= most_states
    return is_little and steps >= max(16, hidden * (2 * features + hidden) >> 16)


def _has_tf32() -> bool:
    # From 2.9 on allow_tf32 is an error for programs that set the precision by its newer name.
    precision = getattr(torch.backends.cudnn.rnn, "fp32_precision", None)
    return torch.backends.cudnn.allow_tf32 if precision is None else precision == "tf32"


def _alignments(
    step: torch.Tensor, ends: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The rows of x, [T, B, 2], that make [x aligned left, x aligned right], and the rows of a bidirectional output
    that also align its backward half left. Aligning rotates a sequence by its length."""
    steps, batch = len(step), ends.shape[1]
    lane, lanes = (
        torch.arange(size, device=step.device) for size in (batch, 2 * batch)
    )
    shift = ends * torch.arange(2, device=step.device)
    right = torch.add(lane[:, None], (step + shift) % steps, alpha=batch)
    return right, torch.add(
        lanes.view(batch, 2), (step - shift) % steps, alpha=2 * batch
    )


def _aligned(x: torch.Tensor, size: int, rows: torch.Tensor) -> torch.Tensor:
    return (
        x.reshape(-1, size)
        .index_select(0, rows.flatten())
        .view(*rows.shape[:2], 2 * size)
    )


def _freezing(
    rnn: torch.nn.RNNBase, like: torch.Tensor, width: int, is_half: bool
) -> torch.Tensor:
    """The weights of further input features, which are 1 in the padding and 0 elsewhere. There an LSTM's input gate
    then is exactly 0 and its forget gate exactly 1, so that the cell stays as the sequence left it. An RNN with ReLU,
    whose states could grow without bound, has a state of 0."""
    is_lstm, hidden = rnn.mode == "LSTM", rnn.hidden_size
    closed = (
        -1e4
        if is_lstm
        else -torch.finfo(torch.float16 if is_half else like.dtype).max / 2
    )
    columns = like.new_full((len(like), width), closed / width)
    if is_lstm:
        columns.narrow(0, hidden, hidden).fill_(-closed / width)
    return columns


class _Block(torch.autograd.Function):  # type: ignore[misc]
    """The weights of a pass in one block of memory, in cuDNN's order: the matrices before the biases, which cuDNN also
    has for ``bias=False``. Each weight is made of pieces side by side. The block is made in each call, because many
    things change weights and no version, such as a graph with an optimizer's step."""

    @staticmethod
    def forward(counts: list[int], *pieces: torch.Tensor) -> tuple[torch.Tensor, ...]:
        given = iter(pieces)
        parts = [[next(given) for _ in range(count)] for count in counts]
        order = sorted(range(len(parts)), key=lambda i: -parts[i][0].dim())
        sizes = [sum(piece.numel() for piece in part) for part in parts]
        unused = 0 if parts[order[-1]][0].dim() == 1 else 4 * len(pieces[0])
        block = pieces[0].new_empty(sum(sizes) + unused)
        if unused:
            block[-unused:].zero_()
        found, at = [block] * len(parts), 0
        sources: list[torch.Tensor] = []
        targets: list[torch.Tensor] = []
        for i in order:
            rows, width = (
                parts[i][0].shape[:-1],
                sum(piece.shape[-1] for piece in parts[i]),
            )
            found[i] = block.as_strided(
                (*rows, width), (width, 1)[-1 - len(rows) :], at
            )
            at += sizes[i]
            if len(parts[i]) > 1:
                torch.cat(parts[i], 1, out=found[i])
            else:  # one kernel copies all of these
                sources += parts[i]
                targets.append(found[i])
        torch._foreach_copy_(targets, sources)
        return tuple(found)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.counts, *pieces = inputs
        ctx.widths = [piece.shape[-1] for piece in pieces]

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        found: list[torch.Tensor] = []
        at = 0
        for count, gradient in zip(ctx.counts, gradients, strict=True):
            widths = ctx.widths[at : at + count]
            found += gradient.split(widths, 1) if count > 1 else [gradient]
            at += count
        return None, *(
            part if needed else None
            for part, needed in zip(found, ctx.needs_input_grad[1:], strict=True)
        )


def _joined(weights: list[list[torch.Tensor]], is_block: bool) -> list[torch.Tensor]:
    """The weights of a pass, each of pieces side by side."""
    if is_block:
        pieces = [piece for part in weights for piece in part]
        counts = [len(part) for part in weights]
        return list(
            (_Block.apply if torch.is_grad_enabled() else _Block.forward)(
                counts, *pieces
            )
        )
    return [torch.cat(part, 1) if len(part) > 1 else part[0] for part in weights]


def _in_one(states: list[torch.Tensor]) -> torch.Tensor:
    """The states of all passes. The backward pass of one may keep them."""
    return (
        torch.cat(states) if len(states) > 1 or torch.is_grad_enabled() else states[0]
    )


def run_padded(
    rnn: torch.nn.RNNBase,
    x: torch.Tensor,
    lengths: torch.Tensor,
    hx: Any,
    cuts: list[tuple[int, int]] | None = None,
    is_clean: bool = False,
    fills: bool = True,
    has_empty: bool = True,
) -> tuple[torch.Tensor, Any]:
    """Runs x, [T, B, F]. cuts: (end, active sequences) of segments of time, for lengths in falling order. is_clean: the
    padding is finite. fills: the output has zeros in its padding, and rnn's memory layout, and not [T, B, features].
    has_empty: a length may be 0."""
    is_lstm, hidden, count = rnn.mode == "LSTM", rnn.hidden_size, 1 + rnn.bidirectional
    steps, batch, _ = x.shape
    size, all_weights = rnn.proj_size or hidden, rnn.all_weights
    if isinstance(steps, torch.SymInt) and (
        VERSION < (2, 15) or rnn.mode.startswith("RNN")
    ):
        words = "the exported program has a fixed T: this PyTorch writes out the loop of the RNN"
        warnings.warn(
            f"{words}. PyTorch 2.15 has while loops for LSTMs and GRUs", stacklevel=2
        )
    # The backward pass keeps a copy: lengths may change. One in pageable memory is read before the call returns.
    is_recorded = is_tracing() or torch.compiler.is_exporting()
    is_copied = not is_clean and (
        torch.is_grad_enabled() or is_recorded or lengths.device != x.device
    )
    lengths = lengths.to(torch.int64, copy=is_copied and not x.is_cuda).to(
        x.device, non_blocking=True
    )
    if x.is_cuda:
        lengths = without_sign(lengths)  # a copy
    of_lanes, padding = lengths[None, :, None], padding_of(x, lengths)
    ends_at = of_lanes.clamp(1, steps)
    once = [_is_one_pass(rnn, layer, x, size) for layer in range(rnn.num_layers)]
    freezes, is_half = rnn.mode in _FREEZING, is_float16(x)
    if not is_clean and (
        freezes or torch.is_grad_enabled() or is_recorded or any(once)
    ):
        # Padding comes last and cannot change an output. But a NaN there would reach the gradients of the weights. A
        # trace must not depend on whether gradients are on: PyTorch checks it without.
        x = torch.where(padding, 0.0, x)
    x = x.contiguous()
    if hx is None:
        states = [
            x.new_zeros(len(all_weights), batch, of_state)
            for of_state in ([hidden, size] if size != hidden else [size])
        ]
        states = [states[-1], states[0]] if is_lstm else states[-1:]
    else:
        states = list(hx) if is_lstm else [hx]
    # Autograd's functions of Python are not in a trace.
    is_block = x.is_cuda and torch.backends.cudnn.enabled and not is_recorded
    last = (ends_at - 1).expand(1, batch, size)
    if any(once):
        step = torch.arange(steps, device=x.device)[:, None, None]
        if x.is_cpu:
            reverse_batch(padding, lengths, of_lanes, 0)  # refuses negative lengths
        right, left = _alignments(step, ends_at)

    def run(
        k: int,
        x: torch.Tensor,
        weights: list[list[torch.Tensor]],
        is_both: bool = False,
    ) -> list[torch.Tensor]:
        """The outputs of pass k, over one layer in one direction, or in both, and an LSTM's cell states."""
        initial = [state[k : k + 1 + is_both].contiguous() for state in states]
        # CPU autocast gives a packed LSTM float32, a padded one the lower precision, or an error of the processor.
        is_exact = is_lstm and not rnn.proj_size and x.is_cpu
        is_exact = is_exact and x.dtype == weights[0][0].dtype == torch.float32
        # PyTorch's own layout is that of a pass if there is but one.
        joined = _joined(
            weights, is_block and (is_both or freezes or len(all_weights) > 1)
        )
        outputs: list[torch.Tensor] = []
        cells: list[torch.Tensor] = []
        begin = 0
        with (
            torch.autocast("cpu", enabled=False)
            if is_exact
            else contextlib.nullcontext()
        ):
            for end, active in cuts or [(steps, batch)]:
                if cuts:
                    cells.insert(0, initial[-1][:, active:])
                    initial = [state[:, :active].contiguous() for state in initial]
                output, *initial = _PASSES[rnn.mode](
                    x[begin:end, :active] if cuts else x,
                    initial if is_lstm else initial[0],
                    joined,
                    rnn.bias,
                    1,
                    0.0,
                    rnn.training,
                    is_both,
                    False,
                )
                outputs.append(
                    torch.nn.functional.pad(output, (0, 0, 0, batch - active))
                    if cuts
                    else output
                )
                begin = end
        if begin < steps:
            outputs.append(output.new_zeros(steps - begin, batch, output.shape[2]))
        whole = torch.cat(outputs) if cuts else outputs[0]
        return [whole, torch.cat([initial[-1], *cells], 1) if cuts else initial[-1]]

    ends, cells = [], []
    for layer in range(rnn.num_layers):
        if layer and rnn.dropout:
            x = torch.nn.functional.dropout(x, rnn.dropout, rnn.training)
        k, features = count * layer, x.shape[2]
        of_layer = [
            [[weight] for weight in weights] for weights in all_weights[k : k + count]
        ]
        if once[layer]:
            x, zeros = _aligned(x, features, right), torch.zeros_like(all_weights[k][0])
            of_layer[0][0].append(zeros)
            of_layer[1][0].insert(0, zeros)
            if freezes:  # backward, the padding comes first
                x = torch.cat(
                    [
                        x,
                        *(
                            flag.expand(steps, batch, 4)
                            for flag in (padding, padding.flip(0))
                        ),
                    ],
                    2,
                )
                freezing = _freezing(rnn, zeros, 4, is_half)
                none = torch.zeros_like(freezing)
                of_layer[0][0] += [freezing, none]
                of_layer[1][0] += [none, freezing]
            both, cell = run(k, x, of_layer[0] + of_layer[1], True)
            parts = [_aligned(both, size, left)]
            ends += [parts[0][:, :, :size].gather(0, last), parts[0][:1, :, size:]]
            cells.append(cell)
        else:
            if freezes:
                # With few states the algorithm does not depend on the input's size, forward and backward.
                is_wide = (
                    x.is_cuda
                    and hidden > (128 if is_lstm else 256)
                    and is_persistent(rnn, x, features, batch)
                )
                width = 128 if is_wide else 8
                x = torch.cat([x, padding.expand(steps, batch, width)], 2)
                freezing = _freezing(rnn, all_weights[k][0], width, is_half)
                for weights in of_layer:
                    weights[0].append(freezing)
            parts = []
            for direction, weights in enumerate(of_layer):
                output, cell = run(
                    k + direction,
                    reverse_batch(x, lengths, of_lanes, 0) if direction else x,
                    weights,
                )
                cells.append(cell)
                parts.append(
                    reverse_batch(output, lengths, of_lanes, 0) if direction else output
                )
                ends.append(parts[1][:1] if direction else output.gather(0, last))
        is_last = fills and layer == rnn.num_layers - 1
        if is_last and rnn.batch_first:
            parts = [part.transpose(0, 1) for part in parts]
        if len(parts) > 1:
            x = torch.cat(parts, 2)
        else:
            # The backward pass keeps the output of a pass.
            own = (
                torch.clone
                if torch.is_grad_enabled() or is_recorded
                else torch.Tensor.contiguous
            )
            x = (
                own(parts[0], memory_format=torch.contiguous_format)
                if is_last
                else parts[0]
            )
    h_n = _in_one(ends)
    if has_empty:
        h_n = torch.where(of_lanes < 1, states[0].to(h_n.dtype), h_n)
    if fills:
        x = x.masked_fill_(padding.transpose(0, 1) if rnn.batch_first else padding, 0)
    return x, (h_n, _in_one(cells)) if is_lstm else h_n
