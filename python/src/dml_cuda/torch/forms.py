"""Which form an RNN with lengths runs in. Only lengths on the host can choose: to look at those on a GPU is to wait."""

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


# Nanoseconds, fitted to random configurations on an H100 and on two cores of an EPYC (benches/record): for a call, and
# for each pass and segment, distinct length, step of a pass with cuDNN's standard algorithm, step of one with a
# persistent algorithm, 1000 multiplications, 1000 numbers of gates, 1000 weights that steps read, and 1000 weights.
# The keys: whether on a GPU, whether with gradients, and the form.
COSTS = {
    (True, False, "packed"): (3.77e5, 1.54e5, 2.61e4, 1.51e4, 0, 0, 0, 0.399, 2.56),
    (True, False, "kept"): (8.29e5, 2.4e5, 0, 1.17e4, 4.05, 0, 31, 4.53, 0),
    (True, False, "theirs"): (1.23e6, 2.42e5, 1.68e4, 1.19e4, 264, 0, 35.6, 4.54, 0),
    (True, True, "packed"): (1.52e6, 3.29e5, 1.63e5, 3.76e4, 0, 0, 10.5, 1.31, 0),
    (True, True, "kept"): (1.48e6, 1e6, 926, 3.08e4, 813, 0, 13.2, 3.92, 47.2),
    (True, True, "theirs"): (2.83e6, 5.7e5, 1.26e5, 3.8e4, 6.88e3, 0, 18.8, 4.05, 0),
    (False, False, "packed"): (2.29e4, 9.27e4, 3.78e4, 1.53e4, 0, 8.6, 6.89e3, 150, 689),
    (False, False, "kept"): (1.09e5, 2.05e5, 3.38e4, 5.28e3, 0, 9.4, 1.66e3, 15.5, 1.87e3),
    (False, False, "theirs"): (1.9e5, 2.63e5, 4.11e4, 6.1e3, 0, 9.65, 1.56e3, 0, 1.82e3),
    (False, True, "packed"): (8.55e4, 0, 9.49e4, 1.48e5, 0, 30, 2.91e4, 726, 895),
    (False, True, "kept"): (1.38e5, 6.72e5, 4.19e4, 5.8e3, 0, 39.1, 4.59e3, 32.2, 3.72e3),
    (False, True, "theirs"): (5.05e5, 7.21e5, 9.04e4, 1.39e4, 0, 35.3, 5.95e3, 0, 2.37e3),
}
_MARGIN = 1.2  # by which the estimate for packing must be larger
_SEGMENTS = (1, 2, 4, 8)  # on a CPU


class Sizes:
    """What the costs of a call depend on. distinct: how many lengths there are."""

    def __init__(self, rnn: torch.nn.RNNBase, width: int, longest: int, distinct: int) -> None:
        hidden, directions = rnn.hidden_size, 1 + rnn.bidirectional
        self.passes, gates = rnn.num_layers * directions, hidden * {"LSTM": 4, "GRU": 3}.get(rnn.mode, 1)
        inner = (rnn.num_layers - 1) * (rnn.proj_size or hidden) * directions
        self.weights = gates * (width + inner + rnn.num_layers * hidden) * directions / 1e3
        self.steps, self.gates, self.distinct = longest * self.passes, gates / 1e3, distinct
        self.read = self.steps * self.gates * hidden

    def features(self, area: int, cuts: int, is_fast: bool) -> tuple[float, ...]:
        """How many of what COSTS lists. area: the rows that are computed."""
        standard, persistent = (0, self.steps) if is_fast else (self.steps, 0)
        of_area = area * self.weights, area * self.passes * self.gates
        return (1, self.passes * cuts, self.distinct, standard, persistent, *of_area, self.read, self.weights)


def area_of(cuts: list[tuple[int, int]]) -> int:
    return sum((end - begin) * active for begin, (end, active) in zip([0, *(end for end, _ in cuts)], cuts))


def form(rnn: torch.nn.RNNBase, x: torch.Tensor, steps: int, lengths: Any, is_kept: bool) -> str | int:
    """The form of a call: "whole" is PyTorch's padded call, for sequences that all have T steps; "packed" is PyTorch's
    packed call; and a number is that of the segments of time. is_kept: the padded batch is at hand."""
    if lengths is None or is_form_chosen("two_passes") is not None or not lengths.any():
        return 1
    is_trained, shortest = torch.is_grad_enabled(), lengths.min()
    can_pack = shortest > 0
    # Only oneDNN's LSTMs gain by being padded on a CPU.
    is_onednn = rnn.mode == "LSTM" and not rnn.proj_size and x.dtype == torch.float32 and torch.backends.mkldnn.enabled
    if shortest == steps and (is_kept or x.is_cuda or is_onednn):
        return "whole"
    # With one long sequence among short ones the memory of training would grow on a GPU, and on a CPU inference would
    # spend its time on padding.
    sparse = {(True, True): 0.25, (False, False): 0.1}.get((x.is_cuda, is_trained), 0)
    if can_pack and ((sparse and lengths.mean() < sparse * steps) or not (x.is_cuda or is_onednn)):
        return "packed"
    batch, width, way = len(lengths), x.shape[-1], "kept" if is_kept else "theirs"
    is_fast = x.is_cuda and (is_small(rnn, x) or is_persistent(rnn, x, width, batch))
    sizes = Sizes(rnn, width, steps, min(steps, batch))

    def estimate(way: str, *found: Any) -> float:
        return sum(map(operator.mul, sizes.features(*found), COSTS[x.is_cuda, is_trained, way]))

    if x.is_cuda:  # short calls spend no time on their lengths
        cost, count = estimate(way, steps * batch, 1, is_fast), 1
        if can_pack and estimate("packed", steps * batch, 1, False) < _MARGIN * cost:
            return "packed"
        sizes.distinct = len(set(lengths.tolist()))
    else:
        falling = np.sort(lengths)[::-1]
        sizes = Sizes(rnn, width, int(falling[0]), len(set(falling.tolist())))
        cuts = [cuts_of(falling, count) for count in _SEGMENTS]
        cost, count = min(
            (estimate(way, area_of(cut), len(cut), False), n) for cut, n in zip(cuts, _SEGMENTS, strict=True)
        )
    is_packed = can_pack and estimate("packed", int(lengths.sum()), 1, False) < _MARGIN * cost
    return "packed" if is_packed else count
