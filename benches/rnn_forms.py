#!/usr/bin/env python3
"""Times bidirectional RNNs over padded sequences. By how full a batch is: packed, as BidirectionalRNN with a gather in
place of this library's kernel, and as it is, without a GPU on one thread of the CPU. On a GPU also by form: packed, as
PyTorch's own call without lengths, and in a CUDA graph in two passes and in the form that BidirectionalRNN chooses.
Prints Markdown. `small` runs everything once, at a small size, also without a GPU.

Usage: PYTHONPATH=python/src python3 benches/rnn_forms.py [small]"""

import copy
import itertools
import os
import sys
from unittest import mock

import dml_cuda.torch as dt
import torch
from dml_cuda.torch import rnn as _rnn
from torch_times import DEVICE, GPU, gather, host_times, timed

SMALL = sys.argv[1:] == ["small"]
# T, B, F, states, layers. Those drawn are of `random.seed(76)`.
EAGER = [(64, 16, 128, 128, 1), (256, 64, 512, 512, 1), (1000, 128, 256, 256, 1), (4000, 32, 64, 64, 1)]
CHOSEN = [*EAGER, (500, 16, 80, 320, 2), (200, 8, 512, 1024, 1), (50, 1, 512, 512, 1)]
DRAWN = [(142, 194, 40, 144, 2), (1030, 5, 368, 216, 1), (43, 110, 40, 568, 1), (31, 10, 672, 568, 2)]
DRAWN += [(679, 6, 104, 80, 3), (1412, 2, 48, 856, 3)]
ON_CPU = [(256, 32, 80, 128, 1), (50, 16, 64, 64, 1)]
if SMALL:
    EAGER, CHOSEN, DRAWN, ON_CPU = [(8, 4, 3, 5, 1)], [(8, 4, 3, 5, 1)], [], [(8, 4, 3, 5, 1)]


def calls_of(kind, size, dtype, lengths):
    """Without gradients and with them: the call packed, with a gather, of this library, and without lengths."""
    steps, batch, features, states, layers = size
    rnn = kind(features, states, layers, bidirectional=True).to(DEVICE, dtype)
    plain, module = copy.deepcopy(rnn), dt.BidirectionalRNN(rnn)
    plain.flatten_parameters()
    x = torch.randn(steps, batch, features, device=DEVICE, dtype=dtype)

    def packed():
        of_rnn = torch.nn.utils.rnn
        output, _ = plain(of_rnn.pack_padded_sequence(x, lengths.cpu(), enforce_sorted=False))
        return of_rnn.pad_packed_sequence(output, total_length=steps)[0]

    def gathered():
        with mock.patch.object(_rnn, "reverse_batch", lambda x, _, of_lanes, dim: gather(x, of_lanes, dim)):
            return module(x, lengths)[0]

    def trained(call):
        def step():
            # None lets a graph allocate gradients, as zero_grad does.
            for part in (x, *plain.parameters(), *rnn.parameters()):
                part.grad = None
            call().sum().backward()

        return step

    calls = [packed, gathered, lambda: module(x, lengths)[0], lambda: plain(x)[0]]
    for with_gradients in (False, True):
        for one in (rnn, plain):
            one.train(with_gradients)
        x.requires_grad_(with_gradients)
        with torch.set_grad_enabled(with_gradients):
            yield [trained(call) for call in calls] if with_gradients else calls


def by_fill():
    """The longest sequence fills T."""
    print("| bidirectional, [T, B, F], states | filled, % | | packed, µs | BidirectionalRNN with a gather | BidirectionalRNN | times packing's |\n|" + " --- |" * 7)
    kinds, dtypes, fills, sizes = (torch.nn.LSTM, torch.nn.GRU), [torch.float32], (0.11, 0.25, 0.5, 0.75, 1), ON_CPU
    if GPU:
        kinds, dtypes, fills, sizes = kinds[:1], (torch.float16, torch.float32), [0.5], EAGER
    for size, kind, dtype, fill in itertools.product(sizes, kinds, dtypes, fills):
        lengths = (size[0] * (torch.arange(1, size[1] + 1, device=DEVICE) / size[1]) ** (1 / fill - 1)).long().clamp(1)
        n, rounds = max(1, 32 // (1 + size[0] // 100)) if GPU else 1, 1 if SMALL else 5
        for form, (*calls, _) in zip(("eager", "eager, with gradients"), calls_of(kind, size, dtype, lengths)):
            rows = [(form, host_times(calls, n, rounds, whole=True))]
            if form == "eager":
                found = [call() for call in calls]
                assert torch.equal(found[1], found[2])
                torch.testing.assert_close(found[2], found[0], rtol=0, atol=5e-3)
                if GPU:  # packing waits for the lengths
                    rows.append(("captured", [float("nan"), *(timed([call]) for call in calls[1:])]))
            case = f"{kind.__name__} {list(size[:3])}, {size[3]}, {str(dtype)[6:]} | {lengths.float().mean() / size[0] * 100:.0f}"
            for form, times in rows:
                print(f"| {case} | {form} |", *(f"{time:.0f} |" for time in times), f"{times[2] / times[0]:.2f} |", flush=True)


def times_by_form(kind, size, dtype, is_eager):
    lengths = torch.randint(1, size[0] + 1, size[1:2], device=DEVICE)
    for packed, _, ours, without in calls_of(kind, size, dtype, lengths):
        if is_eager:
            yield from host_times([packed, ours], 1, 3, whole=True)
            continue
        yield timed([without], 3)
        with mock.patch.dict(os.environ, DML_CUDA_RNN="two_passes"):
            yield timed([ours], 3)
        yield timed([ours], 3)


def by_form(is_eager, head):
    head = f"| bidirectional, [T, B, F], states, layers | {head} |"
    print("\n" + head, "|" + " --- |" * (head.count("|") - 1), sep="\n")
    for kind, size in itertools.product((torch.nn.LSTM, torch.nn.GRU), CHOSEN if is_eager else CHOSEN + DRAWN):
        for dtype in (torch.float16, torch.float32):
            case = f"{kind.__name__} {list(size[:3])}, {size[3]}, {size[4]}, {str(dtype)[6:]}"
            print(f"| {case} |", *(f"{time:.0f} |" for time in times_by_form(kind, size, dtype, is_eager)), flush=True)


torch.set_num_threads(1)
by_fill()
if GPU or SMALL:
    by_form(False, "captured: without lengths | two passes | as chosen | with gradients: without lengths | two passes | as chosen")
    by_form(True, "eager: packed | BidirectionalRNN | with gradients: packed | BidirectionalRNN")
