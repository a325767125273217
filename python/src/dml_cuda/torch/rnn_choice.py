"""How an RNN with lengths runs a batch. `rnn.py` asks for each call, and `packing.py` for each pack that it makes.

    whole      PyTorch's padded call, where every sequence has all steps
    packed     PyTorch's packed call
    padded     `run_padded` over the padded batch
    segments   `run_padded` in segments of time, each with the sequences that are still active

Only lengths on the host can choose: to look at lengths on a GPU is to wait for it, so they run padded.

The choice is a rule, and no estimate of times. On a GPU, padding pays where cuDNN has an algorithm for padded input
that it does not have for packed input, and in training, whose steps take up to twice as long over packed input. On a
CPU, padding pays for oneDNN's LSTMs, because packing calls them once a step. benches/results.md links the times that
the constants come from."""

import logging
import os
import weakref
from typing import Any, NamedTuple

import numpy as np
import torch

from .operators import watched

# Batches of at most this number of steps are packed: what a padded call does once takes longer than their steps. `rule`
# excepts batches that have an empty sequence, and whole batches, unless oneDNN runs them as an LSTM.
SHORT = 15
# PyTorch's packs on a GPU need more steps: a dozen launches pad them before the call and pack them after it.
SHORT_PACK = 40
# Below this share of filled rows, training on a GPU is packed, because memory grows with the padded batch.
SPARSE = 0.25
# A padded pass of oneDNN's computes this number of padding rows in each step for less than a packed call's overhead.
# Without gradients, batches of fewer sequences are packed: their steps are too small for oneDNN on some processors. In
# training on a GPU, RNNs without a faster algorithm for padded input are packed as well.
FEW_ROWS = 8
# More segments of time compute less padding, and each costs a call, and a copy of the weights' gradients in training.
SEGMENTS = 4
# The largest batch for which cuDNN's algorithm for few hidden units is faster with its largest hidden size.
LARGEST_BATCH = 128

_LOGGER = logging.getLogger("dml_cuda.torch")
_logged: weakref.WeakKeyDictionary[torch.nn.Module, set[str]] = (
    weakref.WeakKeyDictionary()
)


def forced_form() -> str | None:
    """The form that the environment forces, if it forces one."""
    forced = os.environ.get("DML_CUDA_RNN")
    if forced not in (None, "packed", "one_pass", "two_passes"):
        raise ValueError(
            f"the environment variable DML_CUDA_RNN is `{forced}`, but must be `packed`, `one_pass` or `two_passes`"
        )
    return forced


def is_float16(x: torch.Tensor) -> bool:
    """Whether cuDNN computes in float16."""
    return x.dtype == torch.float16 or (
        x.is_cuda and torch.is_autocast_enabled("cuda") and x.dtype != torch.float64
    )


def most_hidden(rnn: torch.nn.RNNBase, x: torch.Tensor) -> int:
    """The largest hidden size for which PyTorch asks cuDNN for the persistent algorithm for few hidden units. 0: for
    none."""
    if x.dtype == torch.float64 or rnn.proj_size:
        return 0
    return 384 if rnn.mode.startswith("RNN") else 192


def is_persistent(
    rnn: torch.nn.RNNBase, x: torch.Tensor, features: int, batch: int
) -> bool:
    """Whether PyTorch asks cuDNN for a persistent algorithm because of the sizes of a pass: the hidden size and the
    features are multiples of 128 and the batch is one of 8, within limits."""
    if not is_float16(x) or rnn.mode == "GRU" or rnn.proj_size:
        return False
    hidden = rnn.hidden_size
    is_multiple = hidden % 128 == features % 128 == batch % 8 == 0
    return is_multiple and hidden <= 1024 and batch <= 128


class Batch(NamedTuple):
    """What a choice depends on of a batch whose lengths are on the host."""

    steps: int
    """T."""
    size: int
    """B."""
    rows: int
    """The sum of the lengths."""
    has_empty: bool
    """Whether a sequence has no step, which packing rejects."""

    @classmethod
    def of(cls, steps: int, lengths: list[int]) -> "Batch":
        return cls(steps, len(lengths), sum(lengths), min(lengths) < 1)

    @property
    def is_whole(self) -> bool:
        return self.rows == self.steps * self.size


def may_choose(x: torch.Tensor, lengths: torch.Tensor) -> bool:
    """Whether lengths may choose: not if they are on a GPU, or what records or transforms the call must not depend on
    them. A mode of functions, such as a default device, records nothing that Python chooses."""
    if not lengths.is_cpu or x.is_meta:
        return False
    if x.is_cuda and torch.cuda.is_current_stream_capturing():
        return False
    return not watched(x, lengths, by_function_modes=False)


def on_host(x: torch.Tensor, lengths: torch.Tensor) -> Any:
    """The lengths as a list, at most T; None if they must not choose."""
    if not may_choose(x, lengths):
        return None
    host, steps = lengths.tolist(), x.size(0)  # len(x) takes a microsecond
    if host and max(host) > steps:
        return [min(length, steps) for length in host]
    return host


class Segment(NamedTuple):
    """A stretch of time, from the end of the one before. The sequences are in falling order of their lengths."""

    end: int
    """The step after its last one."""
    active: int
    """The number of sequences that have a step in it."""


def segments_of(falling: list[int]) -> list[Segment]:
    """The segments that end at quantiles of falling lengths."""
    ends = {falling[len(falling) * k // SEGMENTS] for k in range(SEGMENTS)} - {0}
    rising = np.array(falling[::-1])
    segments = []
    begin = 0
    for end in sorted(ends):
        ended = int(rising.searchsorted(begin, "right"))
        segments.append(Segment(end, len(rising) - ended))
        begin = end
    return segments


def _has_few_padding_rows(batch: Batch) -> bool:
    return batch.steps * batch.size - batch.rows <= FEW_ROWS * batch.steps


def may_gain(x: torch.Tensor, batch: Batch, is_kept: bool) -> bool:
    """Whether any RNN runs such a batch padded. Without gradients an LSTM on a CPU is packed where each step would
    compute much padding or has few sequences: packed calls then have little overhead."""
    if batch.steps <= (SHORT if is_kept or not x.is_cuda else SHORT_PACK):
        return False
    with_gradients = torch.is_grad_enabled()
    if x.is_cuda:
        is_sparse = with_gradients and batch.rows < SPARSE * batch.steps * batch.size
        return x.dtype != torch.float64 and not is_sparse
    is_onednn = x.dtype == torch.float32 and torch.backends.mkldnn.enabled
    return is_onednn and (
        with_gradients or (batch.size >= FEW_ROWS and _has_few_padding_rows(batch))
    )


def has_faster_pass(rnn: torch.nn.RNNBase, x: torch.Tensor, batch: int) -> bool:
    """Whether a padded pass has an algorithm that a packed one does not have: cuDNN's for few hidden units and its
    persistent ones, and on a CPU oneDNN's LSTM over all steps. For few units cuDNN's time grows with the batch."""
    if not x.is_cuda:
        return rnn.mode == "LSTM" and not rnn.proj_size
    hidden, most = rnn.hidden_size, most_hidden(rnn, x)
    is_small = hidden <= most and hidden * batch <= most * LARGEST_BATCH
    return is_small or is_persistent(rnn, x, x.shape[-1], batch)


def trains_faster(x: torch.Tensor, batch: Batch, is_kept: bool) -> bool:
    """Whether a training step on a GPU is faster padded, whatever the RNN is: over a packed batch it takes up to twice as
    long. PyTorch's packs would have to be padded first."""
    is_measured = x.dtype == torch.float32 or is_float16(x)
    has_many = is_kept and batch.size >= FEW_ROWS
    return x.is_cuda and is_measured and has_many and torch.is_grad_enabled()


def rule(
    rnn: torch.nn.RNNBase, x: torch.Tensor, batch: Batch | None, is_kept: bool
) -> str:
    """The form of a call. batch: None if lengths cannot choose. is_kept: the padded batch is at hand.

    Packing is what users had, so it runs wherever padding is not known to be faster. On a CPU, large padding runs in
    segments: in training because a packed call's backward pass takes several times as long as its forward one, and
    without gradients only if a sequence is empty, which packing rejects."""
    forced = forced_form()
    if batch is None or forced in ("one_pass", "two_passes"):
        return "padded"
    if forced == "packed":
        return "padded" if batch.has_empty else "packed"
    has_faster = has_faster_pass(rnn, x, batch.size)
    # A whole batch that is kept runs without packing. Only oneDNN's LSTM over few steps takes longer than packing.
    is_short_lstm = not x.is_cuda and has_faster and batch.steps <= SHORT
    if batch.is_whole and (is_kept or has_faster) and not is_short_lstm:
        return "whole"
    pays = has_faster or trains_faster(x, batch, is_kept)
    if not batch.has_empty and not (pays and may_gain(x, batch, is_kept)):
        return "packed"
    if x.is_cuda or not has_faster or not batch.rows or _has_few_padding_rows(batch):
        return "padded"
    return "segments"


def keeps(x: torch.Tensor, batch: Batch) -> bool:
    """Whether a pack of x, [T, B, ...], keeps the padded batch for RNNs that may run it."""
    forced = forced_form()
    if forced is not None:
        return forced != "packed"
    return batch.is_whole or may_gain(x, batch, True)


def form(
    rnn: torch.nn.RNNBase, x: torch.Tensor, batch: Batch | None, is_kept: bool
) -> str:
    """The form of a call by the rule. The logger says it once for each module and form."""
    chosen = rule(rnn, x, batch, is_kept)
    if _LOGGER.isEnabledFor(logging.DEBUG):
        _log_once(rnn, chosen, batch)
    return chosen


def _log_once(rnn: torch.nn.RNNBase, chosen: str, batch: Batch | None) -> None:
    forms = _logged.setdefault(rnn, set())
    if chosen in forms:
        return
    forms.add(chosen)
    given = "lengths that must not choose"
    if batch is not None:
        given = f"T={batch.steps}, B={batch.size}, {batch.rows} rows filled"
    _LOGGER.debug("%s runs %s: %s", rnn, chosen, given)
