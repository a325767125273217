"""A bidirectional layer in one pass, for which no sequence is reversed by a kernel of its own.

PyTorch's call over both directions runs backward from the last step, where the padding of short sequences is. So the
reverse half gets its own copy of x, in which every sequence is *aligned right*: rotated in time by its length, so that
the padding comes first in time and last for this direction. With features a, b, c and padding -:

    t                     0  1  2  3  4
    aligned left          a  b  c  -  -     the forward half reads these features, from t = 0
    aligned right         -  -  a  b  c     the reverse half reads these features, from t = 4

Both copies are the features of one input that is twice as wide. A weight of a direction has zeros for the features of
the other direction. The reverse half's output is rotated back. `rnn_passes.py` asks for each layer."""

from typing import NamedTuple

import torch

from .operators import is_traced_or_exported
from .rnn_choice import forced_form, is_float16, is_persistent, most_hidden
from .rnn_pass import LayerOutput, PaddedCall, freezing_weights

# The further features by which the padding freezes the states of a direction.
_FREEZING_WIDTH = 4


def is_one_pass(rnn: torch.nn.RNNBase, layer: int, x: torch.Tensor) -> bool:
    """Whether both directions of a layer run in one pass. x: [T, B, F], the input of the first layer.

    cuDNN then runs them at the same time, but multiplies twice as many inputs, half of the weights being zeros. On an
    H200 (benches/record) that is faster in captured calls, with and without gradients, where two passes would have
    cuDNN's standard algorithm: PyTorch asks for a persistent one if the hidden size is small, and for an LSTM or RNN in
    float16 if sizes are multiples. With the latter only batches below 64, and a batch of 128 with a hidden size of 256,
    are faster in two passes. Eager calls wait for the host, and gain nothing."""
    if not rnn.bidirectional or is_traced_or_exported():
        return False  # programs without Python have reversals
    forced = forced_form()
    if forced is not None:
        return forced == "one_pass"
    if not _is_captured(x) or torch.cuda.get_device_capability(x.device) != (9, 0):
        return False  # other GPUs are not measured
    steps, batch, features = x.shape
    hidden = rnn.hidden_size
    if layer:
        features = 2 * (rnn.proj_size or hidden)
    if hidden <= most_hidden(rnn, x):
        return False
    is_fast_in_two = batch < 64 or (batch, hidden) == (128, 256)
    if is_fast_in_two and is_persistent(rnn, x, features, batch):
        return False
    # Short sequences do not pay for the weights that each call puts together.
    weights_of_a_gate = hidden * (2 * features + hidden)
    is_long = steps >= max(16, weights_of_a_gate >> 16)
    return is_long and _multiplies_little(batch, hidden, features, x)


def _is_captured(x: torch.Tensor) -> bool:
    return (
        x.is_cuda
        and torch.cuda.is_current_stream_capturing()
        and torch.backends.cudnn.enabled
    )


def _multiplies_little(batch: int, hidden: int, features: int, x: torch.Tensor) -> bool:
    """Whether the multiplications are few and the hidden size is small. The limit of the multiplications is lower where
    tensor cores do not take the dtype. The limit of the hidden size is lower in half precision."""
    is_half = is_float16(x) or x.dtype == torch.bfloat16
    is_exact = not is_half and (x.dtype == torch.float64 or not _has_tf32())
    most = 1 << (23 if is_exact else 26)
    largest_hidden = 1024 if is_half else 2048
    return batch * hidden * max(features, hidden) <= most and hidden <= largest_hidden


def _has_tf32() -> bool:
    # From 2.9 on allow_tf32 is an error for programs that set the precision by its newer name.
    precision = getattr(torch.backends.cudnn.rnn, "fp32_precision", None)
    return torch.backends.cudnn.allow_tf32 if precision is None else precision == "tf32"


class Alignment(NamedTuple):
    """Row numbers that align sequences by one copy. A row is the features of one step of one sequence."""

    inputs: torch.Tensor
    """The rows of x, [T, B, 2], that make x aligned left and right, side by side."""
    outputs: torch.Tensor
    """The rows of a bidirectional output, [T, B, 2], that make it aligned left in both halves."""


def alignment_of(call: PaddedCall) -> Alignment:
    """The alignment of a call's sequences. Aligning rotates a sequence by its length."""
    device, batch = call.padding.device, call.batch
    step = torch.arange(call.steps, device=device)[:, None, None]
    sequence = torch.arange(batch, device=device)[:, None]
    half = torch.arange(2 * batch, device=device).view(batch, 2)
    shift = call.ends_at * torch.arange(2, device=device)
    right, left = (step + shift) % call.steps, (step - shift) % call.steps
    return Alignment(
        torch.add(sequence, right, alpha=batch), torch.add(half, left, alpha=2 * batch)
    )


def _aligned(x: torch.Tensor, size: int, rows: torch.Tensor) -> torch.Tensor:
    """[T, B, 2 * size] of these rows of x, which has `size` elements a row."""
    found = x.reshape(-1, size).index_select(0, rows.flatten())
    return found.view(*rows.shape[:2], 2 * size)


def layer_in_one_pass(
    call: PaddedCall, layer: int, x: torch.Tensor, alignment: Alignment
) -> LayerOutput:
    """Runs both directions of a layer of x, [T, B, F]."""
    rnn, size = call.rnn, call.size
    forward, reverse = call.weights_of(2 * layer), call.weights_of(2 * layer + 1)
    zeros = torch.zeros_like(forward[0][0])
    forward[0].append(zeros)
    reverse[0].insert(0, zeros)
    is_half = is_float16(x)
    x = _aligned(x, x.shape[2], alignment.inputs)
    if call.freezes:
        # In x aligned right, the padding comes first.
        flags = [
            padding.expand(call.steps, call.batch, _FREEZING_WIDTH)
            for padding in (call.padding, call.padding.flip(0))
        ]
        x = torch.cat([x, *flags], 2)
        freezing = freezing_weights(rnn, zeros, _FREEZING_WIDTH, is_half)
        none = torch.zeros_like(freezing)
        forward[0] += [freezing, none]
        reverse[0] += [none, freezing]
    both, cells = call.run(2 * layer, x, forward + reverse, is_both=True)
    output = _aligned(both, size, alignment.outputs)
    ends = [call.end_of(output[:, :, :size]), output[:1, :, size:]]
    return LayerOutput([output], ends, [cells])
