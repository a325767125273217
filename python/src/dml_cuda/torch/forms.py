"""Which form an RNN with lengths runs in. Only lengths on the host can choose: to look at those on a GPU is to wait."""

import math
import operator
from typing import Any

import numpy as np
import torch

from .operators import watched
from .padded import is_form_chosen, is_persistent, is_small


def on_host(x: torch.Tensor, lengths: torch.Tensor) -> Any:
    """The lengths as an array, at most T; None if they are on a GPU, or what records or transforms the call must not
    depend on them."""
    is_captured = x.is_cuda and torch.cuda.is_current_stream_capturing()
    if not lengths.is_cpu or x.is_meta or is_captured or watched(x, lengths):
        return None
    return np.minimum(lengths.detach().numpy(), len(x)).astype(np.int64)


def cuts_of(falling: Any, count: int) -> list[tuple[int, int]]:
    """The ends of segments at quantiles of falling lengths, with the sequences that are active in each."""
    ends = sorted({int(falling[len(falling) * k // count]) for k in range(count)} - {0})
    rising = falling[::-1]
    return [(end, len(rising) - int(rising.searchsorted(begin, "right"))) for begin, end in zip([0, *ends], ends)]


# Nanoseconds, fitted to random configurations on an H100 and on two cores of an EPYC (benches/record): for a call; for
# each pass, further segment of a pass, distinct length, slow step and fast step; for 1000 multiplications, numbers of
# gates, weights that steps read, weights, and weights of further segments; and for 1000 numbers of the padded batch.
# The keys: whether on a GPU, whether with gradients, and the form. On a CPU the form counts only for LSTMs.
COSTS = {
    (True, False, "packed"): (3.77e5, 1.54e5, 0, 2.61e4, 1.51e4, 1.51e4, 0, 0, 0.399, 2.56, 0, 0),
    (True, False, "kept"): (8.29e5, 2.4e5, 0, 0, 1.17e4, 4.05, 0, 31, 4.53, 0, 0, 0),
    (True, False, "theirs"): (1.23e6, 2.42e5, 0, 1.68e4, 1.19e4, 264, 0, 35.6, 4.54, 0, 0, 0),
    (True, True, "packed"): (1.52e6, 3.29e5, 0, 1.63e5, 3.76e4, 3.76e4, 0, 10.5, 1.31, 0, 0, 0),
    (True, True, "kept"): (1.48e6, 1e6, 0, 926, 3.08e4, 813, 0, 13.2, 3.92, 47.2, 0, 0),
    (True, True, "theirs"): (2.83e6, 5.7e5, 0, 1.26e5, 3.8e4, 6.88e3, 0, 18.8, 4.05, 0, 0, 0),
    (False, False, "packed"): (1.51e5, 1.26e5, 0, 6.94e3, 1.89e4, 1e4, 13.2, 3.78e3, 162, 77.8, 0, 1.43e3),
    (False, False, "kept"): (6.01e4, 3.59e5, 1.36e5, 0, 3.78e3, 3.62e3, 8.99, 1.64e3, 5.97, 820, 582, 2.93e3),
    (False, False, "theirs"): (1.24e5, 3.94e5, 1.29e5, 1.44e3, 3.91e3, 3.3e3, 9.03, 1.6e3, 7.81, 711, 635, 3.36e3),
    (False, True, "packed"): (0, 8.49e4, 0, 0, 1.64e5, 1.33e5, 39.9, 1.43e4, 910, 0, 0, 6.87e3),
    (False, True, "kept"): (0, 1.01e6, 3.87e5, 0, 7.48e3, 4.26e3, 26.8, 4.05e3, 104, 2.16e3, 2.27e3, 7.97e3),
    (False, True, "theirs"): (1.12e5, 9.62e5, 4.53e5, 7.3e3, 6.82e3, 4.33e3, 27.1, 5.33e3, 82.5, 2.15e3, 2.44e3, 9.9e3),
}  # fmt: skip
_MARGIN = 1.2  # by which the estimate for packing must be larger
_LOOKING = 1e5  # nanoseconds of looking at lengths
_SEGMENTS = (1, 2, 4, 8)  # on a CPU


class Call:
    """What the costs of a call depend on. longest: steps that are computed. distinct: how many lengths there are. fast:
    how many steps are fast, on a GPU those with a persistent algorithm, on a CPU those with a single active
    sequence."""

    def __init__(self, rnn: Any, x: torch.Tensor, batch: int, longest: int, distinct: int, fast: int) -> None:
        hidden, directions, width = rnn.hidden_size, 1 + rnn.bidirectional, x.shape[-1]
        self.passes, gates = rnn.num_layers * directions, hidden * {"LSTM": 4, "GRU": 3}.get(rnn.mode, 1)
        inner = (rnn.num_layers - 1) * (rnn.proj_size or hidden) * directions
        self.weights = gates * (width + inner + rnn.num_layers * hidden) * directions / 1e3
        self.longest, self.distinct, self.fast, self.gates = longest, distinct, fast, gates / 1e3
        self.read = longest * self.passes * self.gates * hidden
        self.numbers = longest * batch * (width + hidden * self.passes) / 1e3
        self.kind = x.is_cuda, torch.is_grad_enabled()

    def nanoseconds(self, form: str, area: int, segments: int = 1) -> float:
        """area: the rows that are computed."""
        steps = (self.longest - self.fast) * self.passes, self.fast * self.passes
        of_area = area * self.weights, area * self.passes * self.gates
        fixed = 1, self.passes, self.passes * (segments - 1), self.distinct
        counts = *fixed, *steps, *of_area, self.read, self.weights, self.weights * (segments - 1), self.numbers
        return sum(map(operator.mul, counts, COSTS[(*self.kind, form)]))


def area_of(cuts: list[tuple[int, int]]) -> int:
    return sum((end - begin) * active for begin, (end, active) in zip([0, *(end for end, _ in cuts)], cuts))


def gains_by_padding(rnn: torch.nn.RNNBase, x: torch.Tensor) -> bool:
    """Whether a padded call may be faster than a packed one: on a CPU only oneDNN's LSTMs are."""
    is_onednn = rnn.mode == "LSTM" and not rnn.proj_size and x.dtype == torch.float32 and torch.backends.mkldnn.enabled
    return bool(x.is_cuda or is_onednn or is_form_chosen("two_passes") is not None)


def is_surely_packed(rnn: torch.nn.RNNBase, x: torch.Tensor, steps: int, batch: int, rows: int, is_kept: bool) -> bool:
    """Whether a packed call is faster whatever the lengths are, so that short calls spend no time on them. rows: the
    sum of the lengths."""
    if is_form_chosen("two_passes") is not None:
        return False
    is_fast = x.is_cuda and (is_small(rnn, x) or is_persistent(rnn, x, x.shape[-1], batch))
    call = Call(rnn, x, batch, steps, min(steps, batch), steps if is_fast else 0)
    padded = call.nanoseconds("kept" if is_kept else "theirs", steps * batch if x.is_cuda else rows)
    return call.nanoseconds("packed", rows) < _MARGIN * padded + _LOOKING


def form(rnn: torch.nn.RNNBase, x: torch.Tensor, steps: int, lengths: Any, is_kept: bool) -> str | int:
    """The form of a call: "whole" is PyTorch's padded call, for sequences that all have T steps; "packed" is PyTorch's
    packed call; and a number is that of the segments of time. is_kept: the padded batch is at hand."""
    if lengths is None or is_form_chosen("two_passes") is not None or not len(lengths):
        return 1
    shortest, batch, can_gain = lengths.min(), len(lengths), gains_by_padding(rnn, x)
    if shortest == steps and (is_kept or can_gain):
        return "whole"
    can_pack = shortest > 0
    if can_pack and not can_gain:
        return "packed"
    rows = int(lengths.sum())
    # With one long sequence among short ones the memory of training would grow on a GPU.
    is_sparse = x.is_cuda and torch.is_grad_enabled() and rows < 0.25 * steps * batch
    if can_pack and (is_sparse or is_surely_packed(rnn, x, steps, batch, rows, is_kept)):
        return "packed"
    if not rows:
        return 1
    falling = np.sort(lengths)[::-1]
    longest, distinct, way = int(falling[0]), len(set(falling.tolist())), "kept" if is_kept else "theirs"
    if x.is_cuda:
        is_fast = is_small(rnn, x) or is_persistent(rnn, x, x.shape[-1], batch)
        call = Call(rnn, x, batch, steps, distinct, steps if is_fast else 0)
        cost, count = call.nanoseconds(way, steps * batch), 1
    else:
        alone = longest - int(falling[1]) if batch > 1 else longest
        call = Call(rnn, x, batch, longest, distinct, alone)
        cost = math.inf
        for more in _SEGMENTS:
            cuts = cuts_of(falling, more)
            found = call.nanoseconds(way, area_of(cuts), len(cuts))
            if found >= cost:
                break
            cost, count = found, more
    is_packed = can_pack and call.nanoseconds("packed", rows) < _MARGIN * cost
    return "packed" if is_packed else count
