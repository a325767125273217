#!/usr/bin/env python3
"""Times calls of dml_cuda.torch: reversals in CUDA graphs next to a gather, compiled and eager, and small calls, which
the host limits, next to PyTorch's own operators. Prints Markdown. `small` runs everything once.

Usage: PYTHONPATH=python/src python3 benches/torch_calls.py [small]"""

import itertools
import sys

import dml_cuda.torch as dt
import torch
from torch_times import DEVICE, gather, host_times, timed

SMALL = sys.argv[1:] == ["small"]
if sys.argv[1:] and not SMALL:
    sys.exit(__doc__)
# [B, T, F], reversed along T.
SIZES = [(64, 2048, 1024), (64, 512, 1024), (32, 128, 512), (8, 64, 128)]


def reversals():
    """The time of a call in a CUDA graph. Large tensors take turns, so that the L2 cache does not have them."""
    print(
        "| [B, T, F], along T, µs | dml_cuda.torch | compiled gather | eager gather |"
    )
    print("| --- | --- | --- | --- |")
    compiled = torch.compile(gather, dynamic=False)
    ways = (dt.reverse_subsequences, compiled, gather)
    dtypes = (torch.float16, torch.float32)
    for shape, dtype in itertools.product([(4, 8, 3)] if SMALL else SIZES, dtypes):
        x = torch.randn(shape, device=DEVICE, dtype=dtype)
        count = max(3, min(60, (1 << 27) // (x.element_size() * x.numel())))
        sets = []
        for _ in range(count):
            lengths = torch.randint(0, shape[1] + 1, (shape[0], 1, 1), device=DEVICE)
            sets.append((x.clone(), lengths))
        times = []
        for way in ways:
            calls = [lambda of=of, way=way: way(*of, 1) for of in sets]
            times.append(min(timed(calls) for _ in range(2)))
        name = f"{list(shape)} {str(dtype)[6:]}"
        print(f"| {name} |", *(f"{time:.1f} |" for time in times), flush=True)
    print()


def small_calls():
    x, lengths = torch.randn(8, 64, device=DEVICE), torch.full((8, 1), 5, device=DEVICE)
    of_batch, gradient, tracked = (
        lengths[:, 0].contiguous(),
        torch.ones_like(x),
        x.clone().requires_grad_(),
    )
    flip, reverse = (
        lambda x: x.flip(1),
        lambda x: dt.reverse_subsequences(x, lengths, 1),
    )

    def backward(call):
        tracked.grad = None
        call(tracked).backward(gradient)

    calls = {
        "x + x": lambda: x + x,
        "x.flip(1)": lambda: flip(x),
        "x.add_(1)": lambda: x.add_(1),
        "reverse_subsequences": lambda: reverse(x),
        "reverse_subsequences_": lambda: dt.reverse_subsequences_(x, lengths, 1),
        "reverse_padded_sequence": lambda: dt.reverse_padded_sequence(
            x, of_batch, batch_first=True
        ),
        "the operator dml_cuda::reverse_subsequences_ alone": lambda: (
            torch.ops.dml_cuda.reverse_subsequences_.default(x, lengths, 1)
        ),
        "the gather, eager": lambda: gather(x, lengths, 1),
        "x.flip(1) and its backward": lambda: backward(flip),
        "reverse_subsequences and its backward": lambda: backward(reverse),
        "torch.func.jvp of x.flip(1)": lambda: torch.func.jvp(flip, (x,), (gradient,)),
        "torch.func.jvp of reverse_subsequences": lambda: torch.func.jvp(
            reverse, (x,), (gradient,)
        ),
    }
    print("| host time of a call, [8, 64] float32 | µs |\n| --- | --- |")
    for name, microseconds in zip(
        calls, host_times(calls.values(), *((1, 1) if SMALL else (1000, 9)))
    ):
        print(f"| {name} | {microseconds:.2f} |")


reversals()
small_calls()
