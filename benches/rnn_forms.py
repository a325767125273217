#!/usr/bin/env python3
"""Times bidirectional RNNs over padded sequences on a GPU: packed, as BidirectionalRNN, as PyTorch's own call without
lengths, and in a CUDA graph in two passes and in the form that BidirectionalRNN chooses. Prints Markdown. `small` runs
everything once, at a small size, also without a GPU.

Usage: PYTHONPATH=python/src python3 benches/rnn_forms.py [small]"""

import copy
import itertools
import os
import sys
from unittest import mock

import dml_cuda.torch as dt
import torch
from torch_times import DEVICE, host_times, timed

# T, B, F, states, layers. Those drawn are of `random.seed(76)`.
CHOSEN = [(64, 16, 128, 128, 1), (256, 64, 512, 512, 1), (1000, 128, 256, 256, 1), (4000, 32, 64, 64, 1)]
CHOSEN += [(500, 16, 80, 320, 2), (200, 8, 512, 1024, 1), (50, 1, 512, 512, 1)]
DRAWN = [(142, 194, 40, 144, 2), (1030, 5, 368, 216, 1), (43, 110, 40, 568, 1), (31, 10, 672, 568, 2)]
DRAWN += [(679, 6, 104, 80, 3), (1412, 2, 48, 856, 3)]
if sys.argv[1:] == ["small"]:
    CHOSEN, DRAWN = [(8, 4, 3, 5, 1)], []


def times(kind, size, dtype, is_eager):
    steps, batch, features, states, layers = size
    rnn = kind(features, states, layers, bidirectional=True).to(DEVICE, dtype)
    plain, module = copy.deepcopy(rnn), dt.BidirectionalRNN(rnn)
    plain.flatten_parameters()
    x = torch.randn(steps, batch, features, device=DEVICE, dtype=dtype)
    lengths = torch.randint(1, steps + 1, (batch,), device=DEVICE)

    def packed():
        of_rnn = torch.nn.utils.rnn
        output, _ = plain(of_rnn.pack_padded_sequence(x, lengths.cpu(), enforce_sorted=False))
        return of_rnn.pad_packed_sequence(output, total_length=steps)[0]

    def trained(call):
        def step():
            # None lets the graph allocate gradients, as zero_grad does.
            for part in (x, *plain.parameters(), *rnn.parameters()):
                part.grad = None
            call().sum().backward()

        return step

    ours = lambda: module(x, lengths)[0]
    for with_gradients in (False, True):
        for one in (rnn, plain):
            one.train(with_gradients)
        x.requires_grad_(with_gradients)
        calls = [packed, ours, lambda: plain(x)[0]]
        packed_, ours_, without = map(trained, calls) if with_gradients else calls
        with torch.set_grad_enabled(with_gradients):
            if is_eager:
                yield from host_times([packed_, ours_], 1, 3, whole=True)
                continue
            yield timed([without], 3)
            with mock.patch.dict(os.environ, DML_CUDA_RNN="two_passes"):
                yield timed([ours_], 3)
            yield timed([ours_], 3)


for is_eager, head in (
    (False, "captured: without lengths | two passes | as chosen | with gradients: without lengths | two passes | as chosen"),
    (True, "eager: packed | BidirectionalRNN | with gradients: packed | BidirectionalRNN"),
):
    head = f"| bidirectional, [T, B, F], states, layers | {head} |"
    print(head, "|" + " --- |" * (head.count("|") - 1), sep="\n")
    for kind, size in itertools.product((torch.nn.LSTM, torch.nn.GRU), CHOSEN if is_eager else CHOSEN + DRAWN):
        for dtype in (torch.float16, torch.float32):
            case = f"{kind.__name__} {list(size[:3])}, {size[3]}, {size[4]}, {str(dtype)[6:]}"
            print(f"| {case} |", *(f"{time:.0f} |" for time in times(kind, size, dtype, is_eager)), flush=True)
    print()
