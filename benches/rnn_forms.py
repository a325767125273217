#!/usr/bin/env python3
"""Times bidirectional RNNs in CUDA graphs by form: PyTorch's own call without lengths, two passes, and the form that a
module with lengths chooses; two passes also with a gather in place of this library's kernel. benches/rnn.py has eager
calls. Prints Markdown. `small` runs everything once, at a small size, also without a GPU.

Usage: PYTHONPATH=python/src python3 benches/rnn_forms.py [small]"""

import itertools
import os
import sys
from unittest import mock

import dml_cuda.torch as dt
import torch
from dml_cuda.torch import rnn_passes
from torch_times import DEVICE, gather, timed

SMALL = sys.argv[1:] == ["small"]
# T, B, F, states, layers. `random.seed(76)` drew the second list.
CHOSEN = [
    (64, 16, 128, 128, 1),
    (256, 64, 512, 512, 1),
    (1000, 128, 256, 256, 1),
    (4000, 32, 64, 64, 1),
]
CHOSEN += [(500, 16, 80, 320, 2), (200, 8, 512, 1024, 1), (50, 1, 512, 512, 1)]
DRAWN = [
    (142, 194, 40, 144, 2),
    (1030, 5, 368, 216, 1),
    (43, 110, 40, 568, 1),
    (31, 10, 672, 568, 2),
]
DRAWN += [(679, 6, 104, 80, 3), (1412, 2, 48, 856, 3)]
if SMALL:
    CHOSEN, DRAWN = [(8, 4, 3, 5, 1)], []


def calls_of(kind, size, dtype, lengths):
    """Without gradients and with them: PyTorch's call without lengths, and the module's with lengths."""
    steps, batch, features, states, layers = size
    module = kind(features, states, layers, bidirectional=True).to(DEVICE, dtype)
    x = torch.randn(steps, batch, features, device=DEVICE, dtype=dtype)

    def trained(call):
        def step():
            # None lets a graph allocate gradients, as zero_grad does.
            for part in (x, *module.parameters()):
                part.grad = None
            call().sum().backward()

        return step

    calls = [lambda: module(x)[0], lambda: module(x, lengths=lengths)[0]]
    for with_gradients in (False, True):
        module.train(with_gradients)
        x.requires_grad_(with_gradients)
        with torch.set_grad_enabled(with_gradients):
            yield [trained(call) for call in calls] if with_gradients else calls


def times_by_form(kind, size, dtype):
    lengths = torch.randint(1, size[0] + 1, size[1:2], device=DEVICE)
    for without, ours in calls_of(kind, size, dtype, lengths):
        yield timed([without], 3)
        with mock.patch.dict(os.environ, DML_CUDA_RNN="two_passes"):
            with mock.patch.object(
                rnn_passes,
                "reverse_batch",
                lambda x, _, of_lanes, dim: gather(x, of_lanes, dim),
            ):
                gathered = timed([ours], 3)
            yield timed([ours], 3)
        yield timed([ours], 3)
        yield gathered


columns = [
    f"{mode}{form}"
    for mode in ("", "with gradients: ")
    for form in ("without lengths", "two passes", "as chosen", "with a gather")
]
print(
    "| bidirectional, [T, B, F], states, layers |",
    " | ".join(columns),
    "|\n|" + " --- |" * 9,
)
for kind, size, dtype in itertools.product(
    (dt.LSTM, dt.GRU), CHOSEN + DRAWN, (torch.float16, torch.float32)
):
    case = f"{kind.__name__} {list(size[:3])}, {size[3]}, {size[4]}, {str(dtype)[6:]}"
    print(
        f"| {case} |",
        *(f"{time:.0f} |" for time in times_by_form(kind, size, dtype)),
        flush=True,
    )
