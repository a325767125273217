#!/usr/bin/env python3
"""Times compiled programs with a reversal among other operators: with this library, with a gather in its place, and
with the operator, or custom call, that the compiler cannot look into. Prints Markdown.

Usage: PYTHONPATH=python/src python3 benches/compiled.py torch|jax [small] [WORD...], only the rows whose names contain
a WORD. `small` shortens every dimension to 8, for the CPU.
PyTorch's times are medians of replayed CUDA graphs, the best of three graphs each, because places in memory differ by
up to a tenth.
JAX's are measured with the host's clock."""

import statistics
import sys
import time
from unittest import mock

# Layout, shape, axis, shape of the lengths: programs, each with the bytes of an element. 1 is u8, 2 and 4 are floats.
TORCH = """rows 64,2048,1024 1 64,1,1: alone 2, after 1 2 4, before 2, both 2 4, residual 2 4, cat 2, sum 2, twice 2
rows 64,200,512 1 64,1,1: alone 4, after 1 2 4, both 2, residual 4, training 2, dynamic 2
rows 16,64,256 1 16,1,1: after 2
odd-rows 64,500,29 1 64,1,1: after 2, both 1
time-first 512,64,512 0 1,64,1: both 2, cat 4
lanes 512,2048 1 512,1: after 1 4
lanes 16384,8192 1 16384,1: after 1 2
lanes 1000000,6 1 1000000,1: both 4
side-by-side 64,512,1024 1 64,1,1024: after 1 2 4, both 1 2 4
side-by-side 4,600,1024 1 4,1,1024: after 2
side-by-side 1,1500,6000 1 1,1,6000: after 2
side-by-side 20,700,333 1 20,1,333: after 1, both 2"""
JAX = """rows 64,2048,1024 1 64,1,1: alone 2 4, after 1 2, both 2 4, residual 2, cat 2
lanes 16384,8192 1 16384,1: both 2
side-by-side 64,512,1024 1 64,1,1024: after 2, both 1
rows 64,64,512 1 64,1,1: scan 2
rows 8,64 1 8,1: plus 4, alone 4"""
SMALL, WORDS = (
    "small" in sys.argv[2:],
    [word for word in sys.argv[2:] if word != "small"],
)
PROGRAMS = {  # of a reversal, x, and the library
    "plus": lambda r, x, xp: x + 1,  # without one: the host's time of a call
    "alone": lambda r, x, xp: r(x),
    "before": lambda r, x, xp: r(x + 1),
    "after": lambda r, x, xp: r(x) * 2 + 1,
    "dynamic": lambda r, x, xp: r(x) * 2 + 1,  # with dynamic shapes
    "both": lambda r, x, xp: r(x + 1) * 2,
    "residual": lambda r, x, xp: x + r(x),
    "cat": lambda r, x, xp: xp.concatenate((x * 2, r(x * 3)), -1),
    "sum": lambda r, x, xp: r(x).sum(1),
    "twice": lambda r, x, xp: r(r(x + 1) * 2) + 1,
    "training": lambda r, x, xp: xp.autograd.grad((r(x * 2) * x).sum(), x)[0],
    "scan": lambda r, x, xp: xp.concatenate((scanned(x), r(scanned(r(x)))), -1),
}


def scanned(x):
    """The computation of a simple recurrent network along axis 1."""
    import jax

    return jax.lax.scan(
        lambda h, of: 2 * (jax.numpy.tanh(h + of),), x[:, 0], x.swapaxes(0, 1)
    )[1].swapaxes(0, 1)


def times_of_torch(name, width, shape, dim, of):
    import dml_cuda.torch
    import torch
    from dml_cuda.torch import inductor
    from torch_times import DEVICE, gather, timed

    torch._inductor.config.fx_graph_cache = (
        torch._inductor.config.autotune_local_cache
    ) = False
    torch._functorch.config.enable_autograd_cache = False
    dtype = {1: torch.uint8, 2: torch.float16, 4: torch.float32}[width]
    make = lambda: (
        torch.randint(0, 9, shape, device=DEVICE)
        .to(dtype)
        .requires_grad_(name == "training")
    )
    count = max(3, min(60, (1 << 27) // (width * torch.Size(shape).numel())))
    sets = [
        (make(), torch.randint(0, shape[dim] + 1, of, device=DEVICE))
        for _ in range(count)
    ]
    times, results, ours = [], [], dml_cuda.torch.reverse_subsequences
    for r, rule in (
        (ours, inductor.is_fused),
        (gather, None),
        (ours, lambda *_: False),
    ):
        torch._dynamo.reset()
        program = torch.compile(
            lambda x, n: PROGRAMS[name](lambda x: r(x, n, dim), x, torch),
            dynamic=name == "dynamic",
        )
        with mock.patch.object(inductor, "is_fused", rule):
            results.append(program(*sets[0]))
        times.append(
            min(timed([lambda s=s: program(*s) for s in sets]) for _ in range(3))
        )
        assert torch.equal(results[-1], results[0]), name
    return times


def times_of_jax(name, width, shape, axis, of):
    import jax
    from dml_cuda.jax import reverse_subsequences
    from jax import numpy as jnp

    def gather(x, n, axis):
        t = jnp.arange(x.shape[axis]).reshape(
            [-1 if d == axis else 1 for d in range(x.ndim)]
        )
        return jnp.take_along_axis(x, jnp.where(t < n, n - 1 - t, t), axis)

    def time_of(program):
        start = time.perf_counter()
        jax.block_until_ready([program(*one) for one in sets])
        return (time.perf_counter() - start) / len(sets) * 1e6

    random = lambda k, shape, most: jax.random.randint(
        jax.random.key(k), shape, 0, most
    )
    sets = [
        (
            random(k, shape, 9).astype({1: "uint8", 2: "float16", 4: "float32"}[width]),
            random(k, of, shape[axis] + 1),
        )
        for k in range(8)
    ]
    call = lambda x, n, axis: reverse_subsequences(x, n, axis, implementation="kernel")
    programs = [
        jax.jit(lambda x, n, r=r: PROGRAMS[name](lambda x: r(x, n, axis), x, jnp))
        for r in (reverse_subsequences, gather, call)
    ]
    assert all(
        (program(*sets[0]) == programs[0](*sets[0])).all() for program in programs
    ), name
    return map(
        statistics.median,
        zip(*([time_of(program) for program in programs] for _ in range(15))),
    )


def main(times_of, table):
    print(
        "| program | this library, µs | gather | operator | to the better |\n| --- | --- | --- | --- | --- |"
    )
    for layout, programs in (line.split(": ") for line in table.splitlines()):
        group, *numbers = layout.split()
        shape, (dim,), of = (
            [min(int(n), 8 if SMALL else sys.maxsize) for n in part.split(",")]
            for part in numbers
        )
        pairs = [name.split() for name in programs.split(", ")]
        for name, width in (
            (name, int(width)) for name, *widths in pairs for width in widths
        ):
            row = f"{name}, {group} {shape} {'u' if width == 1 else 'f'}{8 * width}"
            if not WORDS or any(word in row for word in WORDS):
                ours, *others = times_of(name, width, shape, dim, of)
                print(
                    "|",
                    row,
                    "|",
                    *(f"{time:.1f} |" for time in (ours, *others)),
                    f"{ours / min(others):.2f} |",
                    flush=True,
                )


main(*{"torch": (times_of_torch, TORCH), "jax": (times_of_jax, JAX)}[sys.argv[1]])
