"""Which form an RNN with lengths runs in. Only lengths on the host can choose: to look at those on a GPU is to wait."""

import functools
import math
import operator
from typing import Any

import numpy as np
import torch

from .operators import watched
from .padded import chosen_form, is_persistent, is_small


def on_host(x: torch.Tensor, lengths: torch.Tensor) -> Any:
    """The lengths as a list, at most T; None if they are on a GPU, or what records or transforms the call must not
    depend on them."""
    if not lengths.is_cpu or x.is_meta or (x.is_cuda and torch.cuda.is_current_stream_capturing()):
        return None
    if watched(x, lengths):
        return None
    host, steps = lengths.tolist(), len(x)
    return [min(length, steps) for length in host] if host and max(host) > steps else host


def cuts_of(falling: Any, count: int) -> list[tuple[int, int]]:
    """The ends of segments at quantiles of falling lengths, with the sequences that are active in each."""
    ends = sorted({falling[len(falling) * k // count] for k in range(count)} - {0})
    rising = np.array(falling[::-1])
    return [(end, len(rising) - int(rising.searchsorted(begin, "right"))) for begin, end in zip([0, *ends], ends)]


# Nanoseconds, fitted to random configurations on an H200 and on two cores of an EPYC (benches/record): for a call; for
# each pass, further segment of a pass, distinct length, slow step and fast step; for 1000 multiplications, numbers of
# gates, weights that steps read, weights, and weights of further segments; and for 1000 numbers of the padded batch.
# The keys: whether on a GPU, whether with gradients, and the form. On a CPU the form counts only for LSTMs.
COSTS = {
    (True, False, "packed"): (2.87e5, 1.14e5, 0, 1.67e4, 1.26e4, 1.34e4, 0, 0, 1.1, 0, 0, 0),
    (True, False, "kept"): (3.76e5, 2.44e5, 0, 0, 1.25e4, 355, 0, 13, 1.27, 17.9, 0, 0),
    (True, False, "theirs"): (4.41e5, 2.36e5, 0, 2.2e4, 1.06e4, 1.17e3, 0, 2.65, 1.03, 0, 0, 0),
    (True, True, "packed"): (1.44e6, 2.99e5, 0, 1.29e5, 2.95e4, 3.18e4, 0, 77.6, 0, 25.6, 0, 0),
    (True, True, "kept"): (1.06e6, 9.31e5, 0, 3.55e3, 2.2e4, 560, 0, 49.7, 6.64, 51.1, 0, 0),
    (True, True, "theirs"): (1.83e6, 5.77e5, 0, 1.33e5, 2.48e4, 6.23e3, 0, 30.4, 0.614, 0, 0, 0),
    (False, False, "packed"): (1.51e5, 1.26e5, 0, 6.94e3, 1.89e4, 1e4, 13.2, 3.78e3, 162, 77.8, 0, 1.43e3),
    (False, False, "kept"): (6.01e4, 3.59e5, 1.36e5, 0, 3.78e3, 3.62e3, 8.99, 1.64e3, 5.97, 820, 582, 2.93e3),
    (False, False, "theirs"): (1.24e5, 3.94e5, 1.29e5, 1.44e3, 3.91e3, 3.3e3, 9.03, 1.6e3, 7.81, 711, 635, 3.36e3),
    (False, True, "packed"): (0, 8.49e4, 0, 0, 1.64e5, 1.33e5, 39.9, 1.43e4, 910, 0, 0, 6.87e3),
    (False, True, "kept"): (0, 1.01e6, 3.87e5, 0, 7.48e3, 4.26e3, 26.8, 4.05e3, 104, 2.16e3, 2.27e3, 7.97e3),
    (False, True, "theirs"): (1.12e5, 9.62e5, 4.53e5, 7.3e3, 6.82e3, 4.33e3, 27.1, 5.33e3, 82.5, 2.15e3, 2.44e3, 9.9e3),
}  # fmt: skip
_LOOKING = 3e4  # nanoseconds of looking at lengths
_SEGMENTS = (1, 2, 4, 8)  # on a CPU


class Call:
    """What the costs of a call depend on. sizes: as `_sizes_of` gives them. longest: steps that are computed. distinct:
    how many lengths there are. fast: how many steps are fast, on a GPU those with a persistent algorithm, on a CPU
    those with a single active sequence."""

    def __init__(self, sizes: tuple[Any, ...], batch: int, longest: int, distinct: int, fast: int) -> None:
        mode, hidden, layers, is_both, projection, width, *self.kind = sizes
        directions = 1 + is_both
        self.passes, gates = layers * directions, hidden * {"LSTM": 4, "GRU": 3}.get(mode, 1)
        inner = (layers - 1) * (projection or hidden) * directions
        self.weights = gates * (width + inner + layers * hidden) * directions / 1e3
        self.longest, self.distinct, self.fast, self.gates = longest, distinct, fast, gates / 1e3
        self.read = longest * self.passes * self.gates * hidden
        self.numbers = longest * batch * (width + hidden * self.passes) / 1e3

    def nanoseconds(self, form: str, area: int, segments: int = 1) -> float:
        """area: the rows that are computed."""
        steps = (self.longest - self.fast) * self.passes, self.fast * self.passes
        of_area = area * self.weights, area * self.passes * self.gates
        fixed = 1, self.passes, self.passes * (segments - 1), self.distinct
        counts = *fixed, *steps, *of_area, self.read, self.weights, self.weights * (segments - 1), self.numbers
        return sum(map(operator.mul, counts, COSTS[(*self.kind, form)]))


def _sizes_of(rnn: Any, x: torch.Tensor) -> tuple[Any, ...]:
    of_rnn = rnn.mode, rnn.hidden_size, rnn.num_layers, rnn.bidirectional, rnn.proj_size
    return *of_rnn, x.shape[-1], x.is_cuda, torch.is_grad_enabled()


def _margin(is_on_gpu: bool, form: str) -> float:
    """By how much the estimate for packing must be larger."""
    return 1.2 if not is_on_gpu else 1.1 if form == "kept" else 1.5


def area_of(cuts: list[tuple[int, int]]) -> int:
    return sum((end - begin) * active for begin, (end, active) in zip([0, *(end for end, _ in cuts)], cuts))


def gains_by_padding(rnn: torch.nn.RNNBase, x: torch.Tensor) -> bool:
    """Whether a padded call may be faster than a packed one: on a CPU only oneDNN's LSTMs are."""
    if x.is_cuda or chosen_form() is not None:
        return True
    is_onednn = rnn.mode == "LSTM" and not rnn.proj_size and x.dtype == torch.float32
    return is_onednn and bool(torch.backends.mkldnn.enabled)


def is_surely_packed(
    rnn: torch.nn.RNNBase, x: torch.Tensor, steps: int, batch: int, rows: int, distinct: int, is_kept: bool
) -> bool:
    """Whether a packed call is faster whatever the lengths are, so that short calls spend no time on them. rows: the
    sum of the lengths. distinct: how many there are. On a GPU the costs depend on nothing else."""
    # cuDNN's algorithm for few states is as slow as others where they are many and batches large.
    is_fast = is_small(rnn, x) and (batch <= 64 or rnn.hidden_size <= (256 if rnn.mode.startswith("RNN") else 128))
    is_fast = x.is_cuda and (is_fast or is_persistent(rnn, x, x.shape[-1], batch))
    least, of_row, of_length = _advantage_of_packing(_sizes_of(rnn, x), steps, batch, is_fast, is_kept)
    return least + of_row * rows + of_length * distinct > 0


@functools.lru_cache(1024)
def _advantage_of_packing(
    sizes: tuple[Any, ...], steps: int, batch: int, is_fast: bool, is_kept: bool
) -> tuple[float, float, float]:
    """By how many nanoseconds a packed call is faster: at least, with each row more, and with each distinct length
    more. Estimates are linear."""
    is_on_gpu, way = sizes[-2], "kept" if is_kept else "theirs"

    def advantage(rows: int, distinct: int) -> float:
        call = Call(sizes, batch, steps, distinct, steps if is_fast else 0)
        padded = _margin(is_on_gpu, way) * call.nanoseconds(way, steps * batch if is_on_gpu else rows)
        return padded + (0 if is_on_gpu else _LOOKING) - call.nanoseconds("packed", rows)

    least = advantage(0, 0)
    return least, advantage(1, 0) - least, advantage(0, 1) - least


def form(rnn: torch.nn.RNNBase, x: torch.Tensor, steps: int, lengths: Any, is_kept: bool) -> str | int:
    """The form of a call: "whole" is PyTorch's padded call, for sequences that all have T steps; "packed" is PyTorch's
    packed call; and a number is that of the segments of time. lengths: a list. is_kept: the padded batch is at
    hand."""
    if not lengths or chosen_form() is not None:
        return 1
    shortest, batch = min(lengths), len(lengths)
    if shortest == steps and (is_kept or gains_by_padding(rnn, x)):
        return "whole"
    can_pack, rows, distinct = shortest > 0, sum(lengths), len(set(lengths))
    # With one long sequence among short ones the memory of training would grow on a GPU.
    is_sparse = x.is_cuda and torch.is_grad_enabled() and rows < 0.25 * steps * batch
    if can_pack and (
        is_sparse or not gains_by_padding(rnn, x) or is_surely_packed(rnn, x, steps, batch, rows, distinct, is_kept)
    ):
        return "packed"
    if x.is_cuda or not rows:
        return 1
    falling = sorted(lengths, reverse=True)
    longest, way = falling[0], "kept" if is_kept else "theirs"
    alone = longest - falling[1] if batch > 1 else longest
    call = Call(_sizes_of(rnn, x), batch, longest, distinct, alone)
    cost, count = math.inf, 1
    for more in _SEGMENTS:
        cuts = cuts_of(falling, more)
        found = call.nanoseconds(way, area_of(cuts), len(cuts))
        if found >= cost:
            break
        cost, count = found, more
    is_packed = can_pack and call.nanoseconds("packed", rows) < _margin(False, way) * cost
    return "packed" if is_packed else count
