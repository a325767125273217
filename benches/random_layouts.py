#!/usr/bin/env python3
"""Times reversals of random layouts, for which no kernel was tuned, next to a gather by torch.compile and a copy of the
same bytes.

Usage: PYTHONPATH=python/src python3 benches/random_layouts.py OUT.csv SEED... [--count N] [--without-gather]
       [--large | --small]

A seed is a set of --count layouts (260) of at most 128 MiB, but a tenth are larger, of at most 4 GiB. OUT.csv is the
record: a row for each layout, with microseconds of calls that CUDA graphs replay with a cold L2 cache. `default`,
`measured` (select=measure) and `generic` (specialize=never) are this library's, copying, and `in place` after a name
is the same in place. `wrong` counts results that differ from the gather's. Several processes compile gathers, and one
at a time uses the GPU. --large draws large layouts alone. --small has tensors of at most 8 KiB, for a machine without a GPU, whose times say nothing."""

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

from drawn_layouts import LARGE, SMALL, USUAL, draw, span

# Bytes of all tensors that take turns: three times the L2 cache of an H100.
CACHES = 160 << 20
MODES = {"default": "", "measured": "select=measure", "generic": "specialize=never"}
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


class Bench:
    """The tensors and the calls of layouts, in one process."""

    def __init__(self, gathers):
        os.environ.update(
            DML_CUDA_COMPILE_OPTIONS="", TORCHINDUCTOR_COMPILE_THREADS="1"
        )
        import torch
        import torch_times

        import dml_cuda

        self.torch, self.times, self.reversal = torch, torch_times, dml_cuda
        self.is_on_gpu = torch_times.DEVICE != "cpu"
        config = torch._dynamo.config
        config.recompile_limit = config.accumulated_recompile_limit = 1 << 20
        self.compiled = None
        if gathers:
            self.compiled = torch.compile(self.gathered, dynamic=False)

    def gathered(self, x, lengths, axis, out):
        return out.copy_(self.times.gather(x, lengths, axis))

    def memory(self, of):
        """A tensor as plain memory: the operators of PyTorch allocate what they return, with strides of their own."""
        if not self.is_on_gpu:
            return of.numpy()
        plain = type("Memory", (), {})()
        plain.__cuda_array_interface__ = of.__cuda_array_interface__
        return plain

    def tensors(self, n, row):
        """Several inputs and outputs of a layout, which together do not fit the L2 cache, the lengths, and the axis."""
        torch, device = self.torch, self.times.DEVICE
        _, _, width, sizes, axis, in_strides, out_strides, of_lengths = row
        elements = [span(sizes, in_strides), span(sizes, out_strides)]
        sets = -(-CACHES // (2 * width * max(elements)))
        sets = 1 if sets == 1 else max(3, min(64, sets))
        torch.manual_seed(n)
        kind = getattr(torch, {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}[width])
        xs, outs = [], []
        for _ in range(sets):
            values = torch.randint(
                0, 127, (elements[0],), device=device, dtype=torch.uint8
            )
            xs.append(values.to(kind).as_strided(sizes, in_strides))
        for _ in range(sets):
            zeros = torch.zeros(elements[1], dtype=kind, device=device)
            outs.append(zeros.as_strided(sizes, out_strides))
        lengths = torch.randint(
            0, sizes[axis] + 1, of_lengths, device=device, dtype=torch.int32
        )
        shape = [1 if d == axis else size for d, size in enumerate(sizes)]
        return xs, outs, lengths.expand(shape), axis

    def compile_gather(self, n, row):
        (x, *_), (out, *_), lengths, axis = self.tensors(n, row)
        self.times.synchronize()
        return lambda: self.compiled(x, lengths, axis, out)

    def measure(self, n, row):
        """The times of a layout by name, and how many results were wrong."""
        xs, outs, lengths, axis = self.tensors(n, row)
        expected = self.gathered(xs[0], lengths, axis, self.torch.empty_like(outs[0]))
        calls = {"copy": self.copies(xs)}
        if self.compiled is not None:
            calls["gather"] = [
                lambda x=x, out=out: self.compiled(x, lengths, axis, out)
                for x, out in zip(xs, outs)
            ]
        wrong = 0
        for mode in MODES:
            calls[mode] = [
                self.reversing(x, out, lengths, axis, mode) for x, out in zip(xs, outs)
            ]
            outs[0].zero_()
            wrong += self.is_wrong(calls[mode][0], outs[0], expected)
            if row[5] == row[6]:
                x = self.torch.empty_strided(
                    xs[0].shape, xs[0].stride(), dtype=xs[0].dtype, device=xs[0].device
                ).copy_(xs[0])
                in_place = self.reversing(x, x, lengths, axis, mode)
                wrong += self.is_wrong(in_place, x, expected)
                calls[f"{mode} in place"] = [
                    self.reversing(x, x, lengths, axis, mode) for x in xs
                ]
        return self.best_times(n, calls), wrong

    def reversing(self, x, out, lengths, axis, mode):
        def call():
            stream = None
            if self.is_on_gpu:
                stream = self.torch.cuda.current_stream().cuda_stream
            self.reversal.reverse_subsequences(
                self.memory(x),
                self.memory(lengths),
                axis,
                out=self.memory(out),
                stream=stream,
                compile_options=MODES[mode],
            )

        return call

    def is_wrong(self, call, out, expected):
        call()
        self.times.synchronize()
        return not self.torch.equal(out, expected)

    def copies(self, xs):
        """Plain copies of the same bytes."""
        calls = []
        for x in xs:
            a, b = (
                self.torch.empty(x.numel(), dtype=x.dtype, device=x.device)
                for _ in range(2)
            )
            calls.append(lambda a=a, b=b: a.copy_(b))
        return calls

    def best_times(self, n, calls):
        """The better of two medians, because places in memory differ. The calls take turns."""
        found = {}
        for name, of in 2 * list(calls.items()):
            try:
                found[name] = min(found.get(name, math.inf), self.times.timed(of))
            except Exception as error:
                print(f"layout {n}, {name}: {str(error)[:80]}", file=sys.stderr)
        return found


def work(rows, numbers, gathers, ready, turn, results):
    """Times the layouts of those numbers. Without a turn it only compiles."""
    bench = Bench(gathers)
    for n in numbers if gathers else ():
        with turn:
            compiling = bench.compile_gather(n, rows[n])
        try:
            compiling()
        except Exception as error:
            print(f"layout {n} has no gather: {str(error)[:80]}", file=sys.stderr)
    ready.wait()
    for n in numbers:
        with turn:
            found, wrong = bench.measure(n, rows[n])
            results.put((n, wrong, found))


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
    rows = drawn(options)
    table = []
    for row in rows:
        texts = ["x".join(map(str, of)) if isinstance(of, list) else of for of in row]
        table.append(dict(zip(LAYOUT, texts)))
    # What is timed is written.
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit("ended before all layouts were timed")
    )
    wrong = 0
    file = open(options.out, "x", newline="")
    try:
        for n, differ, found in run(rows, options.workers, not options.without_gather):
            table[n].update({name: f"{time:.3f}" for name, time in found.items()})
            wrong += differ
    finally:
        head = f"{machine()}, wrong: {wrong}"
        with file:
            file.write(f"# {head}\n")
            writer = csv.DictWriter(file, LAYOUT + TIMES)
            writer.writeheader()
            writer.writerows(table)
        print(f"{head}, seeds {' '.join(map(str, options.seed))}\n")
        summary(table)
    sys.exit(wrong > 0)


def drawn(options):
    """The layouts of all seeds."""
    rows = []
    for seed in options.seed:
        r = random.Random(seed)
        for _ in range(options.count):
            powers = LARGE if r.random() < 0.1 else USUAL
            if options.large:
                powers = LARGE
            if options.small:
                powers = SMALL
            rows.append([seed, *draw(r, powers)])
    return rows


def machine():
    import torch

    name = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    return f"{name}, PyTorch {torch.__version__}, {datetime.date.today()}"


if __name__ == "__main__":
    main()
