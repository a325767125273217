"""A pass: one call of PyTorch's RNN, over one layer of a padded batch, in one direction or in both.

`rnn_passes.py` makes the passes of a layer in two passes, `rnn_one_pass.py` those of a layer in one. A pass knows no
lengths, and computes the padding like any other step:

                     t = 0   1   2   3   4
    sequence 0           x   x   x   x   x
    sequence 1           x   x   x   -   -     in the forward direction, a pass ends in two steps of padding

Padding comes last, so it changes no output of its sequence. It would change a final state. A final hidden state is
therefore taken from the output. An LSTM's final cell state is not in the output, so its cells are *frozen*: further
input features, which are 1 in the padding, close the input gate and open the forget gate (`freezing_weights`). They
also hold the state of an RNN with ReLU at 0. With segments, a pass calls PyTorch once for each stretch of time, with
the sequences that are still active, and computes less padding."""

import contextlib
from typing import Any, NamedTuple

import torch

from .rnn_choice import Segment

_CALLS = {
    "LSTM": torch.lstm,
    "GRU": torch.gru,
    "RNN_TANH": torch.rnn_tanh,
    "RNN_RELU": torch.rnn_relu,
}


class LayerOutput(NamedTuple):
    """What a layer computes."""

    parts: list[torch.Tensor]
    """Outputs that lie side by side: [T, B, size] for each direction, or one of [T, B, 2 * size]."""
    ends: list[torch.Tensor]
    """The final hidden state of each direction, [1, B, size]."""
    cells: list[torch.Tensor]
    """An LSTM's final cell states, [1, B, hidden] for each direction, or one of [2, B, hidden]. A GRU or an RNN has
    none: its tensors here are not to be used, because steps of padding may have changed them."""


class PaddedCall:
    """A call of an RNN with a padded batch: what its passes share."""

    def __init__(
        self,
        rnn: torch.nn.RNNBase,
        lengths: torch.Tensor,
        padding: torch.Tensor,
        states: list[torch.Tensor],
        segments: list[Segment] | None,
        is_recorded: bool,
    ) -> None:
        """lengths: [B], int64. padding: [T, B, 1], true in the padding. states: the initial hidden states and, for an
        LSTM, its initial cell states, [passes, B, size]. is_recorded: the call is traced or exported."""
        self.rnn = rnn
        self.weights = rnn.all_weights
        self.size = rnn.proj_size or rnn.hidden_size
        self.lengths = lengths
        self.lengths_by_row = lengths[None, :, None]
        self.padding = padding
        self.steps, self.batch, _ = padding.shape
        # The step after each sequence's last one, [1, B, 1]. An empty sequence also has a step, because an index must exist.
        self.ends_at = self.lengths_by_row.clamp(1, self.steps)
        self._last = (self.ends_at - 1).expand(1, self.batch, self.size)
        self.states = states
        self.segments = segments
        self.freezes = rnn.mode in ("LSTM", "RNN_RELU")
        # Autograd's functions of Python are not in a trace.
        self.has_blocks = (
            padding.is_cuda and torch.backends.cudnn.enabled and not is_recorded
        )

    def weights_of(self, k: int) -> list[list[torch.Tensor]]:
        """The weights of pass k, each as a list of pieces that lie side by side. The first is that of the input."""
        return [[weight] for weight in self.weights[k]]

    def end_of(self, output: torch.Tensor) -> torch.Tensor:
        """The final hidden state of a pass in the forward direction with this output."""
        return output.gather(0, self._last)

    def run(
        self,
        k: int,
        x: torch.Tensor,
        weights: list[list[torch.Tensor]],
        is_both: bool = False,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Runs pass k, or with is_both the passes k and k + 1. Returns the output and an LSTM's final cell states. For
        a GRU or an RNN the second result is not to be used."""
        states = [state[k : k + 1 + is_both].contiguous() for state in self.states]
        # PyTorch's own layout is that of a pass if there is but one.
        is_own_layout = not is_both and not self.freezes and len(self.weights) == 1
        joined = _joined(weights, self.has_blocks and not is_own_layout)
        with self._precision(x, weights[0][0]):
            if self.segments:
                return self._run_segments(self.segments, x, states, joined, is_both)
            output, states = self._call(x, states, joined, is_both)
        return output, states[-1]

    def _run_segments(
        self,
        segments: list[Segment],
        x: torch.Tensor,
        states: list[torch.Tensor],
        weights: list[torch.Tensor],
        is_both: bool,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        outputs: list[torch.Tensor] = []
        ended: list[torch.Tensor] = []
        begin = 0
        for end, active in segments:
            ended.insert(0, states[-1][:, active:])
            states = [state[:, :active].contiguous() for state in states]
            output, states = self._call(x[begin:end, :active], states, weights, is_both)
            rows_of_padding = (0, 0, 0, self.batch - active)
            outputs.append(torch.nn.functional.pad(output, rows_of_padding))
            begin = end
        if begin < self.steps:
            rest = (self.steps - begin, self.batch, outputs[0].shape[2])
            outputs.append(outputs[0].new_zeros(rest))
        return torch.cat(outputs), torch.cat([states[-1], *ended], 1)

    def _call(
        self,
        x: torch.Tensor,
        states: list[torch.Tensor],
        weights: list[torch.Tensor],
        is_both: bool,
    ) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """Calls PyTorch once. Returns the output and the final states, those of cells last."""
        rnn = self.rnn
        output, *states = _CALLS[rnn.mode](
            x,
            states if rnn.mode == "LSTM" else states[0],
            weights,
            rnn.bias,
            1,  # layer
            0.0,  # dropout
            rnn.training,
            is_both,
            False,  # the batch is not first
        )
        return output, states

    def _precision(self, x: torch.Tensor, weight: torch.Tensor) -> Any:
        """Returns a context that turns CPU autocast off for float32 LSTMs, because autocast leaves a packed LSTM in
        float32, but gives a padded one the lower precision, or an error of the processor."""
        is_exact = self.rnn.mode == "LSTM" and not self.rnn.proj_size and x.is_cpu
        if is_exact and x.dtype == weight.dtype == torch.float32:
            return torch.autocast("cpu", enabled=False)
        return contextlib.nullcontext()


def freezing_weights(
    rnn: torch.nn.RNNBase, like: torch.Tensor, width: int, is_half: bool
) -> torch.Tensor:
    """The weights of further input features, which are 1 in the padding and 0 elsewhere. There an LSTM's input gate
    then is exactly 0 and its forget gate exactly 1, so that the cell stays as the sequence left it. An RNN with ReLU,
    whose states could grow without bound, has a state of 0.

    like: the weight of the input. width: the number of further features. is_half: cuDNN computes in float16."""
    if rnn.mode != "LSTM":
        dtype = torch.float16 if is_half else like.dtype
        return like.new_full((len(like), width), -torch.finfo(dtype).max / 2 / width)
    closed = -1e4 / width
    columns = like.new_full((len(like), width), closed)
    # An LSTM's rows are those of the input gate, the forget gate, the cell and the output gate.
    forget_gate = columns.narrow(0, rnn.hidden_size, rnn.hidden_size)
    forget_gate.fill_(-closed)
    return columns


def _joined(weights: list[list[torch.Tensor]], is_block: bool) -> list[torch.Tensor]:
    """The weights of a pass, each of pieces side by side."""
    if not is_block:
        return [torch.cat(part, 1) if len(part) > 1 else part[0] for part in weights]
    pieces = [piece for part in weights for piece in part]
    counts = [len(part) for part in weights]
    make = _Block.apply if torch.is_grad_enabled() else _Block.forward
    return list(make(counts, *pieces))


class _Block(torch.autograd.Function):  # type: ignore[misc]
    """The weights of a pass in one block of memory, in cuDNN's order: the matrices before the biases, which cuDNN also
    has for ``bias=False``. Each weight is made of pieces side by side. The block is made in each call, because many
    things change weights and no version, such as a graph with an optimizer's step."""

    @staticmethod
    def forward(counts: list[int], *pieces: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """counts: the number of pieces of each weight. pieces: those of all weights."""
        given = iter(pieces)
        parts = [[next(given) for _ in range(count)] for count in counts]
        order = sorted(range(len(parts)), key=lambda i: -parts[i][0].dim())
        sizes = [sum(piece.numel() for piece in part) for part in parts]
        has_biases = parts[order[-1]][0].dim() == 1
        # cuDNN has two biases for each direction, and a pass has at most two directions.
        most_biases = 4
        unused = 0 if has_biases else most_biases * len(pieces[0])
        block = pieces[0].new_empty(sum(sizes) + unused)
        if unused:
            block[-unused:].zero_()
        found, at = [block] * len(parts), 0
        # One kernel copies all weights of one piece.
        sources: list[torch.Tensor] = []
        targets: list[torch.Tensor] = []
        for i in order:
            rows = parts[i][0].shape[:-1]
            width = sum(piece.shape[-1] for piece in parts[i])
            strides = (width, 1) if rows else (1,)
            found[i] = block.as_strided((*rows, width), strides, at)
            at += sizes[i]
            if len(parts[i]) > 1:
                torch.cat(parts[i], 1, out=found[i])
            else:
                sources += parts[i]
                targets.append(found[i])
        torch._foreach_copy_(targets, sources)
        return tuple(found)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keeps what the gradients of the pieces are cut by."""
        ctx.counts, *pieces = inputs
        ctx.widths = [piece.shape[-1] for piece in pieces]

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        """The gradient of a piece is its part of that of the weight."""
        found: list[torch.Tensor] = []
        at = 0
        for count, gradient in zip(ctx.counts, gradients, strict=True):
            widths = ctx.widths[at : at + count]
            found += gradient.split(widths, 1) if count > 1 else [gradient]
            at += count
        needs = ctx.needs_input_grad[1:]
        return None, *(
            part if needed else None for part, needed in zip(found, needs, strict=True)
        )
