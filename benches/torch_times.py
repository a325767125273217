"""A reversal as a gather, and times on a GPU, for the benches with PyTorch."""

import statistics

import torch


def gather(x, lengths, dim: int):
    t = torch.arange(x.shape[dim], device=x.device).reshape([-1 if d == dim else 1 for d in range(x.dim())])
    return x.gather(dim, torch.where(t < lengths, lengths - 1 - t, t).expand(x.shape))


def timed(calls, rounds=7):
    """Microseconds of one of the calls, in a graph of all of them."""
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
