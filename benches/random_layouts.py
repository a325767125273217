#!/usr/bin/env python3
"""Times reversals of random layouts, for which no kernel was tuned, next to a gather by torch.compile and a copy of the
same bytes.

Usage: PYTHONPATH=python/src python3 benches/random_layouts.py OUT.csv SEED... [--count N] [--without-gather]
       [--large | --small]

A seed is a set of --count layouts (260) of at most 128 MiB, but a tenth are larger, of at most 4 GiB. OUT.csv is the record: a row for each layout, with
microseconds of calls that CUDA graphs replay with a cold L2 cache. `default`, `measured` (select=measure) and
`generic` (specialize=never) are this library's, copying, and `in place` behind a name is the same in place.
`wrong` counts results that differ from the gather's. Several processes compile gathers, and one at a time uses the GPU.
--large draws large layouts alone. --small has tensors of at most 8 KiB, for a machine without a GPU, whose times say nothing."""

import argparse
import csv
import datetime
import math
import multiprocessing
import os
import random
import signal
import statistics
import sys

# Bytes of a tensor as powers of two: the least and the most.
USUAL, LARGE, SMALL = (9, 27), (27, 32), (9, 13)
# Bytes of all tensors that take turns: three times the L2 cache of an H100.
CACHES = 160 << 20
MODES = {"default": "", "measured": "select=measure", "generic": "specialize=never"}
# How often each kind is drawn.
KINDS = {
    "block": 5,
    "block time first": 2,
    "lanes": 4,
    "side": 3,
    "side alone": 2,
    "between": 2,
    "transposed in": 2,
    "transposed out": 1,
    "padded block": 2,
    "padded lanes": 1,
    "padded side": 1,
    "sliced": 1,
    "any": 2,
}
LAYOUT = [
    "seed",
    "kind",
    "width",
    "sizes",
    "axis",
    "in_strides",
    "out_strides",
    "length_sizes",
]
TIMES = [
    "copy",
    "gather",
    *(name + place for name in MODES for place in ("", " in place")),
]


def packed(sizes, order=None):
    """The strides of a tensor whose memory has the dimensions in that order, outermost first."""
    strides, elements = [0] * len(sizes), 1
    for d in reversed(list(order or range(len(sizes)))):
        strides[d], elements = elements, elements * sizes[d]
    return strides


def draw(r, powers):
    """A layout of a random kind, whose bytes are between two powers of two: its columns of `LAYOUT` but the seed."""

    def size(
        least, largest
    ):  # evenly by its logarithm, often a power of two, a multiple of 8 or one of 100
        value, how = (
            2 ** r.uniform(math.log2(least), math.log2(largest + 0.99)),
            r.random(),
        )
        if how < 0.3:
            value = 2 ** round(math.log2(value))
        elif how < 0.5:
            value = 8 * max(1, round(value / 8))
        elif how < 0.6 and value >= 60:
            value = 100 * round(value / 100)
        return max(least, min(largest, int(value)))

    kind, width = (
        r.choices(list(KINDS), KINDS.values())[0],
        r.choice([1, 2, 2, 4, 4, 8]),
    )
    n = max(64, int(2 ** r.uniform(*powers)) // width)
    longest = 40 if r.random() < 0.2 else 65536
    time = lambda largest: size(2, max(2, min(largest, longest)))  # noqa: E731
    features = lambda largest: size(
        1, max(1, min(largest, 16 if r.random() < 0.25 else 4096))
    )  # noqa: E731
    axis, order, padded = 1, None, kind.removeprefix("padded ")
    if padded == "lanes":
        t = size(2, min(n, longest if longest == 40 else 1 << 22))
        sizes = [max(1, n // t), t]
        lengths = [sizes[0], 1]
    elif kind == "side alone":
        t = time(n // 2)
        axis, sizes = 0, [t, max(1, n // t)]
        lengths = [1, sizes[1]]
    elif kind == "between":
        d, h = features(n // 8), size(2, 64)
        t = time(max(2, n // d // h))
        sizes = [max(1, n // (t * d * h)), t, h, d]
        lengths = [sizes[0], 1, r.choice([1, h]), 1]
    elif kind == "any":
        rank = r.randint(2, 5)
        sizes, left = [1] * rank, n
        for d in range(rank):
            sizes[d] = size(1, max(1, int(3 * left ** (1 / (rank - d)))))
            left = max(1, left // sizes[d])
        axis = r.randrange(rank)
        sizes[axis] = max(2, sizes[axis])
        lengths = [
            1 if d == axis or r.random() < 0.4 else value
            for d, value in enumerate(sizes)
        ]
    else:
        d = (
            size(8, max(8, min(4096, n // 8)))
            if kind.startswith("transposed")
            else features(n // 2)
        )
        t = time(max(2, n // d))
        sizes = [max(1, n // (t * d)), t, d]
        lengths = [sizes[0], 1, 1]
        if padded == "side" or kind.startswith("transposed") and r.random() < 0.5:
            lengths[2] = d
        if kind == "block time first":
            axis, sizes, lengths = 0, [t, sizes[0], d], [1, sizes[0], 1]
    in_strides, out_strides = packed(sizes), packed(sizes)
    if kind.startswith("transposed"):
        order = packed(sizes, r.choice([[0, 2, 1], [2, 0, 1], [1, 2, 0], [2, 1, 0]]))
        in_strides, out_strides = (
            (order, out_strides) if kind == "transposed in" else (in_strides, order)
        )
    elif kind.startswith("padded"):
        multiple = r.choice([1, 1, 8, 32])
        pitch = -(-(sizes[-1] + r.choice([1, 3, 8, 16, 64])) // multiple) * multiple
        which = r.choice(["in", "out", "both"])
        rows = packed([*sizes[:-1], pitch])
        in_strides, out_strides = (
            (rows if which != "out" else in_strides),
            (rows if which != "in" else out_strides),
        )
    elif kind == "sliced":
        if r.random() < 0.5:
            in_strides = [2 * stride for stride in in_strides]
        else:
            in_strides = packed([*sizes[:-1], sizes[-1] * r.choice([2, 3])])
    elif kind == "any":
        orders = [list(range(len(sizes))) for _ in range(2)]
        for order, often in zip(orders, (0.5, 0.3)):
            if r.random() < often:
                r.shuffle(order)
        in_strides, out_strides = (packed(sizes, order) for order in orders)
    spans = [
        sum((size - 1) * stride for size, stride in zip(sizes, strides))
        for strides in (in_strides, out_strides)
    ]
    # A tensor with gaps may have more elements than DirectML counts.
    if (
        max(spans) > 2**32 - 2
        or not 0.7 * 2 ** powers[0] <= math.prod(sizes) * width <= 1.3 * 2 ** powers[1]
    ):
        return draw(r, powers)
    return [kind, width, sizes, axis, in_strides, out_strides, lengths]


def work(rows, numbers, gathers, ready, turn, results):
    """Times the layouts of those numbers. Without a turn it only compiles."""
    os.environ.update(DML_CUDA_COMPILE_OPTIONS="", TORCHINDUCTOR_COMPILE_THREADS="1")
    import torch
    from torch_times import DEVICE, gather, synchronize, timed

    import dml_cuda

    class Memory:
        """A tensor as plain memory: the operators of PyTorch allocate what they return, with strides of their own."""

        def __init__(self, of):
            self.__cuda_array_interface__ = of.__cuda_array_interface__

    def stream():
        return torch.cuda.current_stream().cuda_stream

    if DEVICE == "cpu":
        Memory, stream = torch.Tensor.numpy, lambda: None

    def gathered(x, lengths, axis, out):
        return out.copy_(gather(x, lengths, axis))

    torch._dynamo.config.recompile_limit = (
        torch._dynamo.config.accumulated_recompile_limit
    ) = 1 << 20
    types = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    compiled = torch.compile(gathered, dynamic=False)

    def tensors(n):
        _, _, width, sizes, axis, in_strides, out_strides, of_lengths = rows[n]
        span = lambda strides: (
            1 + sum((size - 1) * stride for size, stride in zip(sizes, strides))
        )  # noqa: E731
        elements = [span(in_strides), span(out_strides)]
        sets = -(-CACHES // (2 * width * max(elements)))
        sets = 1 if sets == 1 else max(3, min(64, sets))
        torch.manual_seed(n)
        kind = types[width]
        new = lambda n: torch.randint(
            0, 127, (n,), device=DEVICE, dtype=torch.uint8
        ).to(kind)  # noqa: E731
        xs = [new(elements[0]).as_strided(sizes, in_strides) for _ in range(sets)]
        outs = [
            torch.zeros(elements[1], dtype=kind, device=DEVICE).as_strided(
                sizes, out_strides
            )
            for _ in range(sets)
        ]
        lengths = torch.randint(
            0, sizes[axis] + 1, of_lengths, device=DEVICE, dtype=torch.int32
        )
        return (
            xs,
            outs,
            lengths.expand([1 if d == axis else size for d, size in enumerate(sizes)]),
            axis,
        )

    if gathers:
        for n in numbers:
            with turn:
                (x, *_), (out, *_), lengths, axis = tensors(n)
                synchronize()
            try:
                compiled(x, lengths, axis, out)
            except Exception as error:
                print(f"layout {n} has no gather: {str(error)[:80]}", file=sys.stderr)
    ready.wait()
    for n in numbers:
        with turn:
            found, wrong = {}, 0
            xs, outs, lengths, axis = tensors(n)
            expected = gathered(xs[0], lengths, axis, torch.empty_like(outs[0]))
            given = Memory(lengths), axis

            def reverse(x, out, mode, given=given):
                options = {"stream": stream(), "compile_options": MODES[mode]}
                dml_cuda.reverse_subsequences(
                    Memory(x), *given, out=Memory(out), **options
                )

            plain = [
                torch.empty(xs[0].numel(), dtype=xs[0].dtype, device=DEVICE)
                for _ in range(2 * len(xs))
            ]
            calls = {
                "copy": [
                    lambda a=a, b=b: a.copy_(b) for a, b in zip(plain[::2], plain[1::2])
                ]
            }
            if gathers:
                calls["gather"] = [
                    lambda x=x, out=out: compiled(x, lengths, axis, out)
                    for x, out in zip(xs, outs)
                ]
            for mode in MODES:
                outs[0].zero_()
                reverse(xs[0], outs[0], mode)
                synchronize()
                wrong += not torch.equal(outs[0], expected)
                calls[mode] = [
                    lambda x=x, out=out, mode=mode: reverse(x, out, mode)
                    for x, out in zip(xs, outs)
                ]
                if rows[n][5] == rows[n][6]:
                    x = torch.empty_strided(
                        xs[0].shape, xs[0].stride(), dtype=xs[0].dtype, device=DEVICE
                    ).copy_(xs[0])
                    reverse(x, x, mode)
                    synchronize()
                    wrong += not torch.equal(x, expected)
                    calls[f"{mode} in place"] = [
                        lambda x=x, mode=mode: reverse(x, x, mode) for x in xs
                    ]
            # The better of two medians, because places in memory differ. The calls take turns.
            for name, of in 2 * list(calls.items()):
                try:
                    found[name] = min(found.get(name, math.inf), timed(of))
                except Exception as error:
                    print(f"layout {n}, {name}: {str(error)[:80]}", file=sys.stderr)
            calls = plain = None
            results.put((n, wrong, found))
            del xs, outs, lengths, expected


def run(rows, workers, gathers):
    """The times of all layouts, by number."""
    spawn = multiprocessing.get_context("spawn")
    ready, turn, results = spawn.Barrier(workers), spawn.Lock(), spawn.Queue()
    started = []
    for k in range(workers):
        arguments = (rows, range(k, len(rows), workers), gathers, ready, turn, results)
        started.append(spawn.Process(target=work, args=arguments, daemon=True))
        started[-1].start()
    for _ in rows:
        while True:
            try:
                yield results.get(timeout=5)
                break
            except (
                Exception
            ):  # queue.Empty: of the module queue, which spawn's has no name for
                if any(process.exitcode for process in started):
                    sys.exit("a process ended")


def summary(rows):
    """A summary of the times, in Markdown."""
    both = lambda a, b: [
        (float(row[a]), float(row[b])) for row in rows if row.get(a) and row.get(b)
    ]  # noqa: E731
    mean = lambda ratios: math.exp(statistics.fmean(map(math.log, ratios)))  # noqa: E731
    print(
        "| | layouts | geometric mean | slower | least |\n| --- | --- | --- | --- | --- |"
    )
    for a, b in [("gather", name) for name in MODES] + [
        ("generic", "default"),
        ("generic in place", "default in place"),
        ("default", "measured"),
    ]:
        of = both(a, b)
        if of:
            slower = statistics.fmean(y > 1.02 * x and y > x + 0.2 for x, y in of)
            print(
                f"| {a} / {b} | {len(of)} | {mean([x / y for x, y in of]):.3f} | {slower:.1%} by 2 % and 0.2 µs | {min(x / y for x, y in of):.2f} |"
            )
    for name in MODES:
        of = [(x, y) for x, y in both(name, f"{name} in place") if x >= 2]
        if of:
            slower = statistics.fmean(y > 1.1 * x for x, y in of)
            ratios = [x / y for x, y in of]
            print(
                f"| {name} / in place, of 2 µs or more | {len(of)} | {mean(ratios):.3f} | {slower:.1%} by 10 % | {min(ratios):.2f} |"
            )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out")
    parser.add_argument("seed", type=int, nargs="+")
    parser.add_argument("--count", type=int, default=260)
    parser.add_argument("--without-gather", action="store_true")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--large", action="store_true")
    sizes.add_argument("--small", action="store_true")
    parser.add_argument("--workers", type=int, default=min(12, os.cpu_count() or 1))
    options = parser.parse_args()
    rows = []
    for seed in options.seed:
        r = random.Random(seed)
        for _ in range(options.count):
            usual = LARGE if r.random() < 0.1 else USUAL
            rows.append(
                [
                    seed,
                    *draw(
                        r, LARGE if options.large else SMALL if options.small else usual
                    ),
                ]
            )
    table = [
        dict(
            zip(
                LAYOUT,
                ["x".join(map(str, of)) if isinstance(of, list) else of for of in row],
            )
        )
        for row in rows
    ]
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit("ended before all layouts were timed")
    )  # what is timed is written
    wrong = 0
    file = open(options.out, "x", newline="")
    try:
        for n, differ, found in run(rows, options.workers, not options.without_gather):
            table[n].update({name: f"{time:.3f}" for name, time in found.items()})
            wrong += differ
    finally:
        import torch

        name = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
        told = [
            name,
            f"PyTorch {torch.__version__}",
            f"{datetime.date.today()}",
            f"wrong: {wrong}",
        ]
        with file:
            file.write(f"# {', '.join(told)}\n")
            writer = csv.DictWriter(file, LAYOUT + TIMES)
            writer.writeheader()
            writer.writerows(table)
        print(f"{', '.join(told)}, seeds {' '.join(map(str, options.seed))}\n")
        summary(table)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
