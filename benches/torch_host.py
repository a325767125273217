#!/usr/bin/env python3
"""Times small calls of dml_cuda.torch, which the host limits, next to PyTorch's own operators, and bidirectional LSTMs
over padded sequences: packed, with a gather in place of this library's kernel, and with the kernel. Prints Markdown.
Without a GPU it times RNNs on one thread of the CPU, by how full their batches are. `small` runs everything once, at
small sizes.

Usage: PYTHONPATH=python/src python3 benches/torch_host.py [small]"""

import copy
import itertools
import sys
from unittest import mock

import dml_cuda.torch as dt
import torch
from dml_cuda import _rnn
from torch_times import DEVICE, GPU, gather, host_times, timed

SMALL = sys.argv[1:] == ["small"]


def small_calls():
    x, lengths = torch.randn(8, 64, device=DEVICE), torch.full((8, 1), 5, device=DEVICE)
    of_batch, gradient, tracked = lengths[:, 0].contiguous(), torch.ones_like(x), x.clone().requires_grad_()
    flip, reverse = lambda x: x.flip(1), lambda x: dt.reverse_subsequences(x, lengths, 1)

    def backward(call):
        tracked.grad = None
        call(tracked).backward(gradient)

    calls = {
        "x + x": lambda: x + x,
        "x.flip(1)": lambda: flip(x),
        "x.add_(1)": lambda: x.add_(1),
        "reverse_subsequences": lambda: reverse(x),
        "reverse_subsequences_": lambda: dt.reverse_subsequences_(x, lengths, 1),
        "reverse_padded_sequence": lambda: dt.reverse_padded_sequence(x, of_batch, batch_first=True),
        "the operator dml_cuda::reverse_subsequences_ alone": lambda: torch.ops.dml_cuda.reverse_subsequences_.default(x, lengths, 1),
        "the gather, eager": lambda: gather(x, lengths, 1),
        "x.flip(1) and its backward": lambda: backward(flip),
        "reverse_subsequences and its backward": lambda: backward(reverse),
        "torch.func.jvp of x.flip(1)": lambda: torch.func.jvp(flip, (x,), (gradient,)),
        "torch.func.jvp of reverse_subsequences": lambda: torch.func.jvp(reverse, (x,), (gradient,)),
    }
    print("| host time of a call, [8, 64] float32 | µs |\n| --- | --- |")
    for name, microseconds in zip(calls, host_times(calls.values(), *((1, 1) if SMALL else (1000, 9)))):
        print(f"| {name} | {microseconds:.2f} |")


def times_of_rnn(kind, steps, batch, features, states, dtype, lengths):
    """The forms of a call, each with its times."""
    rnn = kind(features, states, bidirectional=True).to(DEVICE, dtype)
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
        for part in (x, *plain.parameters(), *rnn.parameters()):
            part.grad = None
        call().sum().backward()

    calls, n = [packed, gathered, lambda: module(x, lengths)[0]], max(1, 32 // (1 + steps // 100)) if GPU else 1
    rounds = 1 if SMALL else 5
    with torch.no_grad():
        found = [call() for call in calls]
        assert torch.equal(found[1], found[2])
        torch.testing.assert_close(found[2], found[0], rtol=0, atol=5e-3)
        yield "eager", host_times(calls, n, rounds, whole=True)
        if GPU:
            yield "captured", [float("nan"), *(timed([call]) for call in calls[1:])]  # packing waits for the lengths
    x.requires_grad_()
    yield "eager, with gradients", host_times([lambda call=call: trained(call) for call in calls], n, rounds, whole=True)


def rnns():
    """The longest sequence fills T."""
    print("| bidirectional, [T, B, F], states | filled, % | | packed, µs | BidirectionalRNN with a gather | BidirectionalRNN | times packing's |\n|" + " --- |" * 7)
    kinds, dtypes, fills = (torch.nn.LSTM, torch.nn.GRU), [torch.float32], (0.11, 0.25, 0.5, 0.75, 1)
    sizes = [(256, 32, 80, 128), (50, 16, 64, 64)]
    if GPU:
        kinds, dtypes, fills = kinds[:1], (torch.float16, torch.float32), [0.5]
        sizes = [(64, 16, 128, 128), (256, 64, 512, 512), (1000, 128, 256, 256), (4000, 32, 64, 64)]
    for size, kind, dtype, fill in itertools.product([(8, 4, 3, 5)] if SMALL else sizes, kinds, dtypes, fills):
        lengths = (size[0] * (torch.arange(1, size[1] + 1, device=DEVICE) / size[1]) ** (1 / fill - 1)).long().clamp(1)
        case = f"{kind.__name__} {list(size[:3])}, {size[3]}, {str(dtype)[6:]} | {lengths.float().mean() / size[0] * 100:.0f}"
        for form, times in times_of_rnn(kind, *size, dtype, lengths):
            print(f"| {case} | {form} |", *(f"{time:.0f} |" for time in times), f"{times[2] / times[0]:.2f} |", flush=True)


torch.set_num_threads(1)
if GPU or SMALL:
    small_calls()
rnns()
