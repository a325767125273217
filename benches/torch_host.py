#!/usr/bin/env python3
"""Times small calls of dml_cuda.torch, which the host limits, next to PyTorch's own operators, and bidirectional LSTMs
over padded sequences: packed, with a gather in place of this library's kernel, and with the kernel. Prints Markdown.

Usage: PYTHONPATH=python/src python3 benches/torch_host.py"""

import copy
import statistics
import time
from unittest import mock

import dml_cuda.torch as dt
import torch
from dml_cuda import _rnn
from torch_times import gather, timed


def host_times(calls, n, rounds, whole=False):
    """Microseconds of host time of each call, of n that are queued. The queue is drained between rounds. `whole`
    includes the queued work. The calls take turns, so that a change of the host's speed meets all of them."""

    def once(call):
        call()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(n):
            call()
        if whole:
            torch.cuda.synchronize()
        return (time.perf_counter() - start) / n * 1e6

    return [statistics.median(times) for times in zip(*([once(call) for call in calls] for _ in range(rounds)))]


def small_calls():
    x, lengths = torch.randn(8, 64, device="cuda"), torch.full((8, 1), 5, device="cuda")
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
    for name, microseconds in zip(calls, host_times(calls.values(), 1000, rounds=9)):
        print(f"| {name} | {microseconds:.2f} |")


def lstm(steps, batch, features, dtype):
    """The forms of a call with F states, each with its times."""
    rnn = torch.nn.LSTM(features, features, bidirectional=True).to("cuda", dtype)
    plain, module = copy.deepcopy(rnn), dt.BidirectionalRNN(rnn)
    plain.flatten_parameters()
    x = torch.randn(steps, batch, features, device="cuda", dtype=dtype)
    lengths = torch.randint(1, steps + 1, (batch,), device="cuda")

    def packed():
        of_rnn = torch.nn.utils.rnn
        output, _ = plain(of_rnn.pack_padded_sequence(x, lengths.cpu(), enforce_sorted=False))
        return of_rnn.pad_packed_sequence(output, total_length=steps)[0]

    def gathered():
        with mock.patch.object(_rnn, "reverse_subsequences", gather):
            return module(x, lengths)[0]

    def trained(call):
        for part in (x, *plain.parameters(), *rnn.parameters()):
            part.grad = None
        call().sum().backward()

    calls, n = [packed, gathered, lambda: module(x, lengths)[0]], max(1, 32 // (1 + steps // 100))
    with torch.no_grad():
        found = [call() for call in calls]
        assert torch.equal(found[1], found[2])
        torch.testing.assert_close(found[2], found[0], rtol=0, atol=5e-3)
        yield "eager", host_times(calls, n, rounds=5, whole=True)
        yield "captured", [float("nan"), *(timed([call]) for call in calls[1:])]  # packing waits for the lengths
    x.requires_grad_()
    yield "eager, with gradients", host_times([lambda call=call: trained(call) for call in calls], n, rounds=5, whole=True)


small_calls()
print("| a bidirectional LSTM, [T, B, F], µs | | packed | BidirectionalRNN with a gather | BidirectionalRNN |\n| --- | --- | --- | --- | --- |")
for shape in [(64, 16, 128), (256, 64, 512), (1000, 128, 256), (4000, 32, 64)]:
    for dtype in (torch.float16, torch.float32):
        for form, times in lstm(*shape, dtype):
            print(f"| {list(shape)} {str(dtype)[6:]} | {form} |", *(f"{time:.0f} |" for time in times), flush=True)
