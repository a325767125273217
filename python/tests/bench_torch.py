"""Compares the time of dml_cuda.torch with the same reversal written as a gather, eager and compiled, in one run. Also
compares the host time of a call with that of PyTorch's own operators; with --host, only this. Prints Markdown."""

import copy
import os
import statistics
import sys
import time

from dml_cuda import _rnn
from test_rnn import packed
from with_torch import dt, model, torch


def host_time(call, n=2000, rounds=9, whole=False):
    """Microseconds of host time of a call. The queue is drained between rounds. `whole` includes the queued work."""
    call()
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(n):
            call()
        if whole:
            torch.cuda.synchronize()
        times.append((time.perf_counter() - start) / n * 1e6)
    torch.cuda.synchronize()
    return statistics.median(times)


def device_time(call, n=20, rounds=9):
    """Microseconds of a call in a captured graph of n calls."""
    call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(n):
            kept = call()  # noqa: F841
    times = []
    for _ in range(rounds):
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        events[0].record()
        graph.replay()
        events[1].record()
        torch.cuda.synchronize()
        times.append(events[0].elapsed_time(events[1]) * 1e3 / n)
    return statistics.median(times)


def in_turns(calls, timed, rounds=5):
    """The median time of each call. The calls take turns, so that a change of the host's speed meets all of them."""
    times = [[timed(call) for call in calls] for _ in range(rounds)]
    return [statistics.median(of_call) for of_call in zip(*times)]


def lstm():
    """A bidirectional LSTM with F states over padded sequences: packed, with a gather in place of this library's
    kernel, and with the kernel."""
    print("| a bidirectional LSTM, [T, B, F] | | packed | BidirectionalRNN with a gather | BidirectionalRNN |\n| --- | --- | --- | --- | --- |")
    kernel = dt.reverse_subsequences
    for steps, batch, features in [(64, 16, 128), (256, 64, 512), (1000, 128, 256), (4000, 32, 64)]:
        for dtype in (torch.float16, torch.float32):
            rnn = torch.nn.LSTM(features, features, bidirectional=True).to("cuda", dtype)
            plain, module = copy.deepcopy(rnn), dt.BidirectionalRNN(rnn)
            plain.flatten_parameters()
            x, lengths = torch.randn(steps, batch, features, device="cuda", dtype=dtype), torch.randint(1, steps + 1, (batch,), device="cuda")
            lengths[0] = steps

            def run(reverse):
                _rnn.reverse_subsequences = reverse  # what the module calls
                return module(x, lengths)[0]

            def trained(call):
                for part in (x, *plain.parameters(), *rnn.parameters()):
                    part.grad = None
                call().sum().backward()

            calls = [lambda: packed(plain, x, lengths)[0], lambda: run(model), lambda: run(kernel)]
            timed = lambda call: host_time(call, n=max(1, 32 // (1 + steps // 100)), rounds=1, whole=True)
            with torch.no_grad():
                found = [call() for call in calls]
                assert torch.equal(found[1], found[2])
                torch.testing.assert_close(found[2], found[0], rtol=0, atol=5e-3)
                forms = {"eager": in_turns(calls, timed), "captured": ["n/a", *(device_time(call, 1) for call in calls[1:])]}
            x.requires_grad_()
            forms["eager, with gradients"] = in_turns([lambda call=call: trained(call) for call in calls], timed)
            for form, times in forms.items():
                cells = [time if isinstance(time, str) else f"{time:.0f}" for time in times]
                print(f"| {[steps, batch, features]} {str(dtype)[6:]} | {form} | " + " | ".join(cells) + " |", flush=True)


def host():
    """Calls whose host time limits them."""
    x, lengths = torch.randn(8, 64, device="cuda"), torch.full((8, 1), 5, device="cuda")
    of_batch, gradient = lengths[:, 0].contiguous(), torch.ones(8, 64, device="cuda")
    tracked = x.clone().requires_grad_()
    assert torch.equal(dt.reverse_subsequences(x, lengths, 1), model(x, lengths, 1))

    def backward(call):
        tracked.grad = None
        call(tracked).backward(gradient)
        return tracked.grad

    assert torch.equal(backward(lambda x: dt.reverse_subsequences(x, lengths, 1)), model(gradient, lengths, 1))
    calls = {
        "x + x": lambda: x + x,
        "x.flip(1)": lambda: x.flip(1),
        "x.add_(1)": lambda: x.add_(1),
        "reverse_subsequences": lambda: dt.reverse_subsequences(x, lengths, 1),
        "reverse_subsequences_": lambda: dt.reverse_subsequences_(x, lengths, 1),
        "reverse_padded_sequence": lambda: dt.reverse_padded_sequence(x, of_batch, batch_first=True),
        "the operator dml_cuda::reverse_subsequences_ alone": lambda: torch.ops.dml_cuda.reverse_subsequences_.default(x, lengths, 1),
        "the gather, eager": lambda: model(x, lengths, 1),
        "x.flip(1) and its backward": lambda: backward(lambda x: x.flip(1)),
        "reverse_subsequences and its backward": lambda: backward(lambda x: dt.reverse_subsequences(x, lengths, 1)),
        "torch.func.jvp of x.flip(1)": lambda: torch.func.jvp(lambda x: x.flip(1), (x,), (gradient,)),
        "torch.func.jvp of reverse_subsequences": lambda: torch.func.jvp(lambda x: dt.reverse_subsequences(x, lengths, 1), (x,), (gradient,)),
    }
    times = in_turns(calls.values(), lambda call: host_time(call, n=1000, rounds=1), rounds=9)
    print("| host time of a call, [8, 64] float32 | µs |\n| --- | --- |")
    for name, time_of_call in zip(calls, times):
        print(f"| {name} | {time_of_call:.2f} |", flush=True)


def main():
    driver = os.popen("nvidia-smi --query-gpu=driver_version --format=csv,noheader").read().split()[0]
    print(f"{torch.cuda.get_device_name(0)}, driver {driver}, PyTorch {torch.__version__}")
    if "--host" in sys.argv:
        return host()
    compiled = torch.compile(lambda x, l: model(x, l[:, None, None], 1), dynamic=False)
    print("| [B, T, F], a reversal along T, device time | dml_cuda.torch | torch.compile of a gather | eager gather |\n| --- | --- | --- | --- |")
    for shape in [(64, 2048, 1024), (64, 512, 1024), (32, 128, 512), (8, 64, 128)]:
        for dtype in (torch.float16, torch.float32):
            x, lengths = torch.randn(shape, device="cuda").to(dtype), torch.randint(0, shape[1] + 1, shape[:1], device="cuda")
            required = model(x, lengths[:, None, None], 1)
            calls = [lambda: dt.reverse_padded_sequence(x, lengths, batch_first=True), lambda: compiled(x, lengths), lambda: model(x, lengths[:, None, None], 1)]
            assert all(torch.equal(call(), required) for call in calls)
            print(f"| {list(shape)} {str(dtype)[6:]} | " + " | ".join(f"{device_time(call):.1f}" for call in calls) + " |", flush=True)
    host()
    lstm()


if __name__ == "__main__":
    main()
