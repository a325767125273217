#!/usr/bin/env python3
"""Times small calls of dml_cuda.torch, which the host limits, next to PyTorch's own operators. Prints Markdown. `small`
runs everything once.

Usage: PYTHONPATH=python/src python3 benches/torch_host.py [small]"""

import sys

import dml_cuda.torch as dt
import torch
from torch_times import DEVICE, gather, host_times

SMALL = sys.argv[1:] == ["small"]


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


small_calls()
