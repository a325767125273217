#!/usr/bin/env python3
"""Times RNNs over sequences of random lengths: packed by PyTorch, and this library's module by each way to give it
lengths. Prints Markdown, and the figures that the rule in `dml_cuda.torch.rnn_choice` is held to. Without a GPU it
times two threads of the CPU.

Usage: PYTHONPATH=python/src python3 benches/rnn.py PART... where PART is one of
  sizes          the LSTMs of README.md, in both directions and in one
  fills          on a CPU, LSTMs by how full a batch is
  random=SEED:N  random configurations in the form that is chosen, and which are slower than packing in both of two runs
  forms=SEED:N   random configurations in every form, as comma-separated values
  memory         the peak memory of training steps on a GPU
  small          everything once, at a small size"""

import copy
import itertools
import math
import os
import random
import re
import statistics
import sys
import time
from unittest import mock

import dml_cuda.torch as dt
import torch
from dml_cuda.torch import packing, rnn_choice
from torch.nn.utils import rnn as pytorch
from torch_times import DEVICE, GPU, synchronize

SIZES = [
    (64, 16, 128, 128),
    (256, 64, 512, 512),
    (1000, 128, 256, 256),
    (4000, 32, 64, 64),
]
FILLS = [
    (256, 32, 80, 128),
    (50, 16, 64, 64),
    (40, 32, 768, 256),
    (100, 32, 256, 256),
    (20, 64, 512, 1024),
]


def times(calls, rounds):
    """Milliseconds of each call. The calls take turns, so that a change of the machine's speed meets all of them."""

    def once(call):
        synchronize()
        start = time.perf_counter()
        call()
        synchronize()
        return (time.perf_counter() - start) * 1e3

    rounds = [[once(call) for call in calls] for _ in range(rounds + 1)]
    return [statistics.median(of) for of in zip(*rounds[1:])]


def lengths_of(draw, steps, batch, fill):
    """Lengths with a mean of about fill of T. The first has all steps."""
    lengths = [
        max(1, min(steps, round(steps * draw.random() ** (1 / fill - 1))))
        for _ in range(batch)
    ]
    lengths[0] = steps
    draw.shuffle(lengths)
    return torch.tensor(lengths)


class Case:
    """An RNN and its input. The methods that `steps` takes are ways to run it."""

    def __init__(
        self,
        kind,
        size,
        dtype,
        fill,
        training,
        layers=1,
        both=True,
        draw=None,
        **options,
    ):
        steps, batch, features, hidden = size
        self.lengths = lengths_of(draw or random.Random(1), steps, batch, fill)
        torch.manual_seed(0)
        plain = getattr(torch.nn, kind)(
            features, hidden, layers, bidirectional=both, **options
        ).to(DEVICE, dtype)
        self.plain, self.ours = (
            plain.train(training),
            dt.convert_rnns(copy.deepcopy(plain)),
        )
        self.ours.flatten_parameters()  # a copy on a GPU has no layout
        self.x = torch.randn(
            *size[:3], device=DEVICE, dtype=dtype, requires_grad=training
        )
        self.on_device, self.training = self.lengths.to(DEVICE), training
        mode = "training" if training else "inference"
        kind, filled = (
            options.get("nonlinearity", kind),
            f"{self.lengths.float().mean() / steps:.0%}",
        )
        self.name = f"{kind}, {layers}, {1 + both}, {list(size[:3])}, {hidden}, {str(dtype)[6:]}, {filled}, {mode}"

    def packed(self):
        """PyTorch's way, with lengths on the host."""
        return self._packed(pytorch, self.plain)

    def theirs(self):
        return self._packed(pytorch, self.ours)

    def kept(self):
        return self._packed(dt, self.ours)

    def _packed(self, of, rnn):
        return of.pad_packed_sequence(
            rnn(of.pack_padded_sequence(self.x, self.lengths, enforce_sorted=False))[0]
        )[0]

    def padded(self):
        return self.ours(self.x, lengths=self.on_device)[0]

    def host(self):
        return self.ours(self.x, lengths=self.lengths)[0]

    def full(self):
        """PyTorch's call without lengths, of this package's class."""
        return self.ours(self.x)[0]

    def full_plain(self):
        return self.plain(self.x)[0]

    def steps(self, *names):
        """Calls, or training steps, by the names of methods."""

        def made(call):
            def step():
                for part in (self.x, *self.plain.parameters(), *self.ours.parameters()):
                    part.grad = None
                call().sum().backward()

            return step if self.training else torch.no_grad()(call)

        return [made(getattr(self, name)) for name in names]


def forcing(segments, call):
    """The call padded, in a number of segments of time, where its lengths are on the host."""
    form = "padded" if segments == 1 else "segments"

    def forced():
        with (
            mock.patch.object(
                rnn_choice,
                "form",
                lambda rnn, x, batch, is_kept: "padded" if batch is None else form,
            ),
            mock.patch.object(rnn_choice, "SEGMENTS", segments),
            mock.patch.object(packing, "keeps", lambda *_: True),
        ):
            return call()

    return forced


def show(name, values, digits=2):
    print(f"| {name} |", *(f"{value:.{digits}f} |" for value in values), flush=True)


def head(*columns):
    print("\n|", " | ".join(columns), "|\n|" + " --- |" * len(columns))


def sum_up(name, ratios):
    mean = statistics.geometric_mean(ratios)
    print(
        f"\n{name}: geometric mean {mean:.2f}, {min(ratios):.2f} to {max(ratios):.2f}",
        flush=True,
    )


def sizes(small):
    ways = ["packed", "theirs", "kept", "padded", "host", "full_plain", "full"]
    head("LSTM, layers, directions, [T, B, F], H, dtype, filled, mode", *ways)
    gains, plain = {}, []
    dtypes = (torch.float16, torch.float32) if GPU else (torch.float32,)
    for both, size, dtype, training in itertools.product(
        (True, False), small or SIZES, dtypes, (False, True)
    ):
        case = Case("LSTM", size, dtype, 0.5, training, both=both)
        found = times(case.steps(*ways), 1 if small else 5 if size[0] < 1000 else 3)
        show(case.name, found, 3)
        of_mode = f"{1 + both} directions, {'training' if training else 'inference'}: packing / ours with our pack"
        gains.setdefault(of_mode, []).append(found[0] / found[2])
        plain.append(found[6] / found[5])
    for of_mode, ratios in gains.items():
        sum_up(of_mode, ratios)
    sum_up("plain calls over PyTorch's class", plain)


def fills(small):
    head(
        "LSTM, layers, directions, [T, B, F], H, dtype, filled, mode",
        "packed",
        "ours",
        "packed / ours",
    )
    gains = {"inference": [], "training": []}
    options = itertools.product(
        small or FILLS, (True, False), (0.25, 0.5, 0.75), (False, True)
    )
    for size, both, fill, training in options:
        case = Case("LSTM", size, torch.float32, fill, training, both=both)
        found = times(case.steps("packed", "kept"), 1 if small else 3)
        gains["training" if training else "inference"].append(found[0] / found[1])
        show(case.name, [*found, found[0] / found[1]])
    for mode, ratios in gains.items():
        sum_up(f"{mode}: packing / ours", ratios)


def drawn(draw):
    """A random configuration that takes no longer than a fraction of a second."""
    power = lambda low, high: round(
        math.exp(draw.uniform(math.log(low), math.log(high)))
    )  # noqa: E731
    work = steps = math.inf
    while work > (4e11 if GPU else 1.2e10) or steps > (2500 if GPU else 800):
        size = [power(8, 1200 if GPU else 300), power(1, 256 if GPU else 96)]
        multiple = draw.choice((1, 8, 64, 128)) if GPU else 1
        size += [
            max(multiple, power(16, 1024) // multiple * multiple) for _ in range(2)
        ]
        kind, layers = (
            draw.choice(("LSTM", "LSTM", "GRU", "RNN", "relu")),
            draw.choice((1, 1, 2)),
        )
        both, training = draw.random() < 0.5, draw.random() < 0.5
        steps = size[0] * layers * (1 + both)
        work = steps * size[1] * size[3] * (size[2] + size[3]) * 4
    fill = draw.choice((0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99))
    kind, options = ("RNN", {"nonlinearity": "relu"}) if kind == "relu" else (kind, {})
    dtype = draw.choice((torch.float16, torch.float32)) if GPU else torch.float32
    return Case(kind, size, dtype, fill, training, layers, both, draw, **options)


def random_cases(seed, count):
    """The chosen form against packing. What is slower is timed again."""
    draw, slower, worst = random.Random(seed), 0, math.inf
    gains = {"inference": [], "training": []}
    what = "kind, layers, directions, [T, B, F], H, dtype, filled, mode; way"
    head(f"{count} of seed {seed}: {what}", "packed / ours", "again", "packed")
    for _ in range(count):
        case, way, ratios = drawn(draw), draw.choice(("theirs", "kept", "host")), []
        packed_times = []
        for rounds in (5, 9):
            packed, ours = times(case.steps("packed", way), rounds)
            packed_times.append(packed)
            ratios.append(packed / ours)
            if packed / ours > 0.97:
                break
        gains["training" if case.training else "inference"].append(ratios[0])
        worst = min(worst, max(ratios))
        slower += max(ratios) < 1 / 1.05
        again = f"{ratios[1]:.2f}" if len(ratios) > 1 else ""
        cells = f"{ratios[0]:.2f} | {again} | {min(packed_times):.3f}"
        print(f"| {case.name}; {way} | {cells} |", flush=True)
    print(
        f"\n{slower} of {count} are slower by over 5 % in both runs, the worst by {1 / worst:.2f}"
    )
    for mode, ratios in gains.items():
        if ratios:
            sum_up(f"packed / ours, {mode}", ratios)


def every_form(seed, count):
    draw = random.Random(seed)
    forms_of = {
        "theirs": (1,) if GPU else (1, 4),
        "kept": (1,) if GPU else (1, 2, 4, 8),
    }
    columns = [f"{way} {form}" for way, counts in forms_of.items() for form in counts]
    print(
        "kind;layers;directions;T;B;F;H;dtype;fill;mode;packed;"
        + ";".join(columns)
        + ";lengths"
    )
    for _ in range(count):
        case = drawn(draw)
        packed, *ways = case.steps("packed", *forms_of)
        forced = [
            forcing(form, call)
            for call, counts in zip(ways, forms_of.values())
            for form in counts
        ]
        fields = case.name.replace("[", "").replace("]", "").split(", ")
        fields += [f"{one:.3f}" for one in times([packed, *forced], 3)]
        print(
            ";".join([*fields, " ".join(map(str, case.lengths.tolist()))]), flush=True
        )


def memory(small):
    head(
        "LSTM, layers, directions, [T, B, F], H, dtype, filled, mode",
        "packed, MiB",
        "ours",
        "without lengths",
        "ours / packed",
    )
    for size, both, fill in itertools.product(
        small or SIZES[1:], (True, False), (0.2, 0.3, 0.5, 0.9)
    ):
        case = Case("LSTM", size, torch.float16, fill, True, both=both)
        peaks = []
        for step in case.steps("packed", "kept", "full"):
            step(), synchronize()
            case.x.grad = None
            before = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            step(), synchronize()
            peaks.append((torch.cuda.max_memory_allocated() - before) / 2**20)
        show(case.name, [*peaks, peaks[1] / peaks[0]])


PARTS = {"sizes": sizes, "fills": fills, "memory": memory}
WITH_OPTIONS = {"random": random_cases, "forms": every_form}


def is_part(text):
    """Whether an argument is a part, with a seed and a number above 0 if it takes them."""
    name, _, options = text.partition("=")
    if name in WITH_OPTIONS:
        return re.fullmatch(r"\d+:[1-9]\d*", options) is not None
    return not options and name in (*PARTS, "small")


def main(parts):
    if not all(map(is_part, parts)):
        sys.exit(__doc__)
    if not GPU:
        torch.set_num_threads(int(os.environ.get("THREADS", "2")))
    where = (
        torch.cuda.get_device_name()
        if GPU
        else f"{torch.get_num_threads()} threads of a CPU"
    )
    print(f"PyTorch {torch.__version__}, {where}; times are in milliseconds")
    for part in parts:
        name, _, options = part.partition("=")
        if name == "small":
            small = [(8, 4, 3, 5)]
            sizes(small), fills(small), random_cases(1, 2), every_form(1, 2)
            if GPU:
                memory(small)
        elif options:
            WITH_OPTIONS[name](*map(int, options.split(":")))
        else:
            PARTS[name]([])


if __name__ == "__main__":
    main(sys.argv[1:] or ["sizes"])
