"""A reversal as a gather, and times, for the benches with PyTorch: of a GPU, or of the CPU where there is none."""

import statistics
import time

import torch

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"
# The CPU's time of this process does not have what others take.
clock = time.perf_counter if GPU else time.process_time
synchronize = torch.cuda.synchronize if GPU else lambda: None


def gather(x, lengths, dim: int):
    t = torch.arange(x.shape[dim], device=x.device).reshape(
        [-1 if d == dim else 1 for d in range(x.dim())]
    )
    return x.gather(dim, torch.where(t < lengths, lengths - 1 - t, t).expand(x.shape))


def host_times(calls, n, rounds, whole=False):
    """Microseconds of host time of each call, of n that are queued. The queue is drained between rounds. `whole`
    includes the queued work. The calls take turns, so that a change of the host's speed meets all of them."""

    def once(call):
        call()
        synchronize()
        start = clock()
        for _ in range(n):
            call()
        if whole:
            synchronize()
        return (clock() - start) / n * 1e6

    return [
        statistics.median(times)
        for times in zip(*([once(call) for call in calls] for _ in range(rounds)))
    ]


def timed(calls, rounds=7):
    """Microseconds of one of the calls, in a graph of all of them."""
    if not GPU:
        return host_times(calls[:1], 1, rounds)[0]
    calls[0]()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = [call() for call in calls]  # noqa: F841, so that no result takes another's memory
    times = []
    for _ in range(rounds):
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        graph.replay()
        events[0].record()
        graph.replay()
        events[1].record()
        torch.cuda.synchronize()
        times.append(events[0].elapsed_time(events[1]) * 1e3 / len(calls))
    return statistics.median(times)
