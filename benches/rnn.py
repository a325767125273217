#!/usr/bin/env python3
"""Times RNNs over sequences of random lengths: packed by PyTorch, and this library's module by each way to give it
lengths. Prints Markdown, and the figures that the rules in `dml_cuda.torch.forms` are held to. Without a GPU it times
two threads of the CPU. BASELINE names the folder of an older version of the Python package, whose BidirectionalRNN is
timed in the same run.

Usage: PYTHONPATH=python/src python3 benches/rnn.py PART... where PART is one of
  sizes          the LSTMs of README.md, in both directions and in one
  fills          on a CPU, LSTMs by how full a batch is
  random=SEED:N  random configurations in the form that is chosen, slower than packing in both of two runs
  rules=SEED:N   random configurations in every form, as comma-separated values
  memory         the peak memory of training steps on a GPU
  small          everything once, at a small size"""

import copy
import itertools
import math
import os
import random
import statistics
import sys
import time
from unittest import mock

old = None
if "BASELINE" in os.environ:
    sys.path.insert(0, os.environ["BASELINE"])
    import dml_cuda.torch as old

    sys.path.pop(0)
    for name in [name for name in sys.modules if name.partition(".")[0] == "dml_cuda"]:
        del sys.modules[name]
import dml_cuda.torch as dt
import torch
from dml_cuda.torch import forms
from torch.nn.utils import rnn as pytorch
from torch_times import DEVICE, GPU, synchronize

SIZES = [(64, 16, 128, 128), (256, 64, 512, 512), (1000, 128, 256, 256), (4000, 32, 64, 64)]
FILLS = [(256, 32, 80, 128), (50, 16, 64, 64), (40, 32, 768, 256), (100, 32, 256, 256), (20, 64, 512, 1024)]


def times(calls, rounds):
    """Milliseconds of each call. The calls take turns, so that a change of the machine's speed meets all of them."""
    found = [[] for _ in calls]
    for n in range(rounds + 1):
        for one, call in zip(found, calls):
            synchronize()
            start = time.perf_counter()
            call()
            synchronize()
            if n:
                one.append((time.perf_counter() - start) * 1e3)
    return [statistics.median(one) if one else math.nan for one in found]


def lengths_of(draw, steps, batch, fill):
    """Lengths with a mean of about fill of T. The first has all steps."""
    power = 1 / fill - 1
    lengths = [max(1, min(steps, round(steps * draw.random() ** power))) for _ in range(batch)]
    lengths[0] = steps
    draw.shuffle(lengths)
    return torch.tensor(lengths)


class Case:
    def __init__(self, kind, size, dtype, lengths, training, layers=1, both=True, **options):
        steps, batch, features, hidden = size
        torch.manual_seed(0)
        plain = getattr(torch.nn, kind)(features, hidden, layers, bidirectional=both, **options).to(DEVICE, dtype)
        self.plain, self.ours = plain.train(training), dt.convert_rnns(copy.deepcopy(plain))
        self.ours.flatten_parameters()  # a copy on a GPU has no layout
        self.old = old.BidirectionalRNN(copy.deepcopy(plain)) if old and both else None
        self.x = torch.randn(steps, batch, features, device=DEVICE, dtype=dtype, requires_grad=training)
        self.lengths, self.on_device, self.training = lengths, lengths.to(DEVICE), training

    def packed(self):
        """PyTorch's way, with lengths on the host."""
        return pytorch.pad_packed_sequence(
            self.plain(pytorch.pack_padded_sequence(self.x, self.lengths, enforce_sorted=False))[0]
        )[0]

    def theirs(self):
        return pytorch.pad_packed_sequence(
            self.ours(pytorch.pack_padded_sequence(self.x, self.lengths, enforce_sorted=False))[0]
        )[0]

    def kept(self):
        return dt.pad_packed_sequence(
            self.ours(dt.pack_padded_sequence(self.x, self.lengths, enforce_sorted=False))[0]
        )[0]

    def padded(self):
        return self.ours(self.x, lengths=self.on_device)[0]

    def host(self):
        return self.ours(self.x, lengths=self.lengths)[0]

    def before(self):
        return self.old(self.x, self.on_device)[0] if self.old else None

    def full(self):
        """PyTorch's call without lengths, of this package's class."""
        return self.ours(self.x)[0]

    def full_plain(self):
        return self.plain(self.x)[0]

    def steps(self, *names):
        """Calls, or training steps, by the names of methods."""

        def made(call):
            def step():
                for part in (
                    self.x,
                    *self.plain.parameters(),
                    *self.ours.parameters(),
                    *(self.old.parameters() if self.old else ()),
                ):
                    part.grad = None
                found = call()
                if found is not None:
                    found.sum().backward()

            def infer():
                with torch.no_grad():
                    call()

            return step if self.training else infer

        return [made(getattr(self, name)) for name in names]


def forced(form):
    """A form for calls whose lengths are on the host."""
    return mock.patch.object(forms, "form", lambda rnn, x, steps, lengths, is_kept: 1 if lengths is None else form)


def forcing(form, call):
    def run():
        with forced(form):
            call()

    return run


def show(name, values, digits=2):
    print(f"| {name} |", *(f"{value:.{digits}f} |" for value in values), flush=True)


def mean(values):
    return statistics.geometric_mean(values) if values else math.nan


def sizes(small):
    ways = ["packed", "theirs", "kept", "padded", "host", "full_plain", "full", "before"]
    print("\n| LSTM, directions, [T, B, F], H, dtype, mode |", " | ".join(ways), "|\n|" + " --- |" * (len(ways) + 1))
    gains, over, plain = {}, {}, []
    dtypes = (torch.float16, torch.float32) if GPU else (torch.float32,)
    for both, size, dtype, training in itertools.product((True, False), small or SIZES, dtypes, (False, True)):
        lengths = lengths_of(random.Random(1), *size[:2], 0.5)
        case = Case("LSTM", size, dtype, lengths, training, both=both)
        found = times(case.steps(*ways), 1 if small else 5 if size[0] < 1000 else 3)
        show(
            f"{1 + both}, {list(size[:3])}, {size[3]}, {str(dtype)[6:]}, {'training' if training else 'inference'}",
            found,
            3,
        )
        gains.setdefault((1 + both, training), []).append(found[0] / found[2])
        if both and old:
            over[f"{list(size[:3])} {str(dtype)[6:]} {'training' if training else 'inference'}"] = found[3] / found[7]
        plain.append(found[6] / found[5])
    for (count, training), ratios in gains.items():
        print(
            f"\n{count} directions, {'training' if training else 'inference'}: packing / ours with our pack: geometric mean {mean(ratios):.2f}, worst {min(ratios):.2f}"
        )
    if over:
        print(
            f"\nwith c_n over BidirectionalRNN without: worst {max(over, key=over.get)}: {max(over.values()):.2f}; mean {mean(list(over.values())):.2f}"
        )
        print("\n" + "; ".join(f"{name}: {value:.2f}" for name, value in over.items()))
    print(f"\nplain calls over PyTorch's class: {min(plain):.2f} to {max(plain):.2f}, mean {mean(plain):.3f}")


def fills(small):
    print("\n| LSTM, directions, [T, B, F], H, filled, mode | packed | ours | packed / ours |\n|" + " --- |" * 4)
    gains = {}
    for size, both, fill, training in itertools.product(
        small or FILLS, (True, False), (0.25, 0.5, 0.75), (False, True)
    ):
        case = Case("LSTM", size, torch.float32, lengths_of(random.Random(1), *size[:2], fill), training, both=both)
        found = times(case.steps("packed", "kept"), 1 if small else 3)
        gains.setdefault(training, []).append(found[0] / found[1])
        show(
            f"{1 + both}, {list(size[:3])}, {size[3]}, {fill:.0%}, {'training' if training else 'inference'}",
            [*found, found[0] / found[1]],
        )
    for training, ratios in gains.items():
        print(
            f"\n{'training' if training else 'inference'}: packing / ours: geometric mean {mean(ratios):.2f}, worst {min(ratios):.2f}"
        )


def drawn(draw):
    """A random configuration that takes no longer than a fraction of a second."""
    while True:
        power = lambda low, high: round(math.exp(draw.uniform(math.log(low), math.log(high))))
        steps, batch = power(8, 1200 if GPU else 250), power(1, 256 if GPU else 64)
        multiple = draw.choice((1, 8, 64, 128)) if GPU else 1
        features, hidden = (max(multiple, power(16, 1024 if GPU else 512) // multiple * multiple) for _ in range(2))
        kind, layers, both = (
            draw.choice(("LSTM", "LSTM", "GRU", "RNN", "relu")),
            draw.choice((1, 1, 2)),
            draw.random() < 0.5,
        )
        work = steps * batch * hidden * (features + hidden) * 4 * layers * (1 + both)
        if work <= (4e11 if GPU else 4e9) and steps * layers * (1 + both) < 2500:
            break
    options = {"nonlinearity": "relu"} if kind == "relu" else {}
    dtype = draw.choice((torch.float16, torch.float32)) if GPU else torch.float32
    lengths = lengths_of(draw, steps, batch, draw.choice((0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99)))
    training = draw.random() < 0.5
    name = f"{kind}, {layers}, {1 + both}, {[steps, batch, features]}, {hidden}, {str(dtype)[6:]}, {lengths.float().mean() / steps:.0%}, {'training' if training else 'inference'}"
    return name, Case(
        "RNN" if kind == "relu" else kind,
        (steps, batch, features, hidden),
        dtype,
        lengths,
        training,
        layers,
        both,
        **options,
    )


def random_cases(seed, count):
    """The chosen form against packing: slower in both of two runs."""
    draw = random.Random(seed)
    print(
        f"\n| {count} of seed {seed}: kind, layers, directions, [T, B, F], H, dtype, filled, mode; way | packed / ours, twice | |\n|"
        + " --- |" * 3
    )
    slower, gains, worst = 0, [], math.inf
    for _ in range(count):
        name, case = drawn(draw)
        way = draw.choice(("theirs", "kept", "host"))
        ratios = []
        for rounds in (5, 9):
            a, b = times(case.steps("packed", way), rounds)
            ratios.append(a / b)
            if a / b > 0.97:
                break
        gains.append(ratios[0])
        worst = min(worst, max(ratios))
        if max(ratios) < 1 / 1.05:
            slower += 1
            show(f"{name}; {way}", ratios)
    print(
        f"\n{slower} of {count} are slower by over 5 % in both runs, the worst by {1 / worst:.2f}; packed / ours: mean {mean(gains):.2f}, {min(gains):.2f} to {max(gains):.2f}",
        flush=True,
    )


def rules(seed, count, seconds):
    draw, start = random.Random(seed), time.perf_counter()
    counts = (1,) if GPU else (1, 2, 4, 8)
    print("kind;layers;directions;T;B;F;H;dtype;fill;mode;packed;theirs;" + ";".join(f"kept {n}" for n in counts))
    for _ in range(count):
        if time.perf_counter() - start > seconds:
            break
        name, case = drawn(draw)
        packed, theirs, kept = case.steps("packed", "theirs", "kept")
        found = times([packed, forcing(1, theirs), *(forcing(n, kept) for n in counts)], 3)
        print(
            ";".join([*name.replace("[", "").replace("]", "").split(", "), *(f"{one:.3f}" for one in found)]),
            flush=True,
        )


def memory(small):
    print(
        "\n| LSTM, directions, [T, B, F], H, filled | packed, MiB | ours | without lengths | ours / packed |\n|"
        + " --- |" * 5
    )
    for size, both, fill in itertools.product(small or SIZES[1:], (True, False), (0.2, 0.3, 0.5, 0.9)):
        case = Case("LSTM", size, torch.float16, lengths_of(random.Random(1), *size[:2], fill), True, both=both)
        peaks = []
        for step in case.steps("packed", "kept", "full"):
            step(), synchronize()
            case.x.grad = None
            before = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            step(), synchronize()
            peaks.append((torch.cuda.max_memory_allocated() - before) / 2**20)
        show(f"{1 + both}, {list(size[:3])}, {size[3]}, {fill:.0%}", [*peaks, peaks[1] / peaks[0]])


def main(parts):
    if not GPU:
        torch.set_num_threads(int(os.environ.get("THREADS", "2")))
    print(
        f"PyTorch {torch.__version__}, {torch.cuda.get_device_name() if GPU else f'{torch.get_num_threads()} threads of a CPU'}, milliseconds"
    )
    for part in parts:
        name, _, options = part.partition("=")
        seed, _, rest = options.partition(":")
        count, _, seconds = rest.partition(":")
        if name == "small":
            small = [(8, 4, 3, 5)]
            sizes(small), fills(small), random_cases(1, 2), rules(1, 2, 60)
            if GPU:
                memory(small)
        elif name in ("random", "rules"):
            (
                random_cases(int(seed), int(count))
                if name == "random"
                else rules(int(seed), int(count), float(seconds or 1e9))
            )
        else:
            {"sizes": sizes, "fills": fills, "memory": memory}[name]([])


if __name__ == "__main__":
    main(sys.argv[1:] or ["sizes"])
