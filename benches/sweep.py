#!/usr/bin/env python3
"""Times copying reversals of many layouts, next to a device copy of the same bytes and a gather by torch.compile. Prints
Markdown.

Usage: PYTHONPATH=python/src python3 benches/sweep.py [WORD...], only the layouts whose names contain a WORD. A library
is at python/src/dml_cuda/_native/lib_native.so. DML_CUDA_SPECIALIZE=1 times specialized kernels. Each time is a median
of replayed CUDA graphs that go through so many buffers that the L2 is cold. DML_CUDA_COMPILE_ONLY=2/8 fills PyTorch's
cache with every eighth gather, so that several processes can compile at once."""

import os
import statistics
import sys

import torch
from dml_cuda import _library, explain
from dml_cuda._arrays import view

# Kind, shape, axis. Blocks have a length for each element of the dimensions before the axis, lanes one for each lane.
ROWS = {
    "odd rows": ("blocks", "64,500,29 64,16384,3 32,1000,17 128,300,45 16,2000,101 256,128,77 8,4000,33 48,750,61 96,600,13 20,3000,250 64,1024,7 33,100,21 64,64,130 400,70,9", 1, "248"),
    "odd rows of bytes": ("blocks", "64,500,29 64,16384,3 128,300,45 20,3000,250 100,1000,77", 1, "1"),
    "odd lanes": ("lanes", "333,1777 512,2048 1,16777216 64,160000 1000,999 150,5001 2048,301 77,12345 700,2600 300,1500 1024,1024 700,900 64,20000", 1, "24"),
    "lanes of bytes": ("lanes", "100352,256 20000,200 8192,300 50176,128 65536,384 333,1777 1000,999 30000,511", 1, "12"),
    "tiny lanes": ("lanes", "1048576,6 500000,5 300000,12 100000,3 200000,2 100000,40", 1, "124"),
    "side by side, odd": ("lanes", "40,777,333 16,500,129 30,1000,201 8,300,1001 100,200,67 12,1500,513 5,3000,77 1,600,900", 1, "124"),
    "side by side": ("lanes", "1,2000,4096 1,4096,4096 1,1000,8192 16,1024,1024 32,600,768 1,3000,2048 6,1500,1280 64,512,512 8,256,512", 1, "124"),
    "long": ("lanes", "8,30000,96 4,8192,1024 2,16384,256 1,20000,512 2,10000,768 1,7500,1024", 1, "124"),
    "transposed input": ("both", "40,500,300 33,777,130 20,1000,333", 1, "124"),
}
TYPES = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
NAMES = {1: "UINT8", 2: "UINT16", 4: "UINT32", 8: "UINT64"}


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


def layouts():
    for group, (kind, shapes, dim, widths) in ROWS.items():
        for shape in shapes.split():
            sizes = [int(size) for size in shape.split(",")]
            for width in map(int, widths):
                for of_lanes in {"blocks": [False], "lanes": [True], "both": [False, True]}[kind]:
                    yield f"{group} {'lanes' if of_lanes else 'blocks'} {sizes} {8 * width} bits", group, sizes, dim, width, of_lanes


def buffers(group, sizes, dim, width, of_lanes, count):
    x = [torch.randint(0, 128, sizes, dtype=torch.uint8, device="cuda").to(TYPES[width]) for _ in range(count)]
    if group == "transposed input":
        x = [one.transpose(1, 2).contiguous().transpose(1, 2) for one in x]
    of = [1 if d == dim or (d > dim and not of_lanes) else size for d, size in enumerate(sizes)]
    lengths = [torch.randint(0, sizes[dim] + 1, of, dtype=torch.int32, device="cuda") for _ in range(count)]
    lengths = [one.expand([1 if d == dim else size for d, size in enumerate(sizes)]) for one in lengths]
    return list(zip(x, lengths, [torch.empty(sizes, dtype=TYPES[width], device="cuda") for _ in range(count)]))


def kernel(x, lengths, dim, out, width):
    tensor = lambda of, kind: {"DataType": kind, "Sizes": list(of.shape), "Strides": list(of.stride())}
    desc = {"InputTensor": tensor(x, NAMES[width]), "SequenceLengthsTensor": tensor(lengths, "UINT32"), "OutputTensor": tensor(out, NAMES[width]), "Axis": dim}
    text = explain({"Type": "REVERSE_SUBSEQUENCES", "Desc": desc}, "h100")
    return next(word for word in text[text.index("copying") :].split() if word.startswith("reverse_")).rstrip(":")


def reverse(x, lengths, dim, out):
    arrays = (view(one, "an array") for one in (x, lengths, out))
    _library.reverse(*arrays, dim, torch.cuda.current_stream().cuda_stream)


def main():
    part, parts = map(int, os.environ.get("DML_CUDA_COMPILE_ONLY", "0/1").split("/"))
    if parts == 1:
        print("| layout | MB moved | µs | copy, µs | gather, µs | kernel |\n| --- | --- | --- | --- | --- | --- |")
    for n, (name, *layout) in enumerate(layouts()):
        group, sizes, dim, width, of_lanes = layout
        if n % parts != part or (sys.argv[1:] and not any(word in name for word in sys.argv[1:])):
            continue
        size = width * torch.Size(sizes).numel()
        sets = buffers(*layout, 1 if parts > 1 else max(3, min(200, (1 << 27) // size)))
        x, lengths, out = sets[0]
        torch._dynamo.reset()
        compiled = torch.compile(lambda x, lengths, dim, out: out.copy_(gather(x, lengths, dim)), dynamic=False)
        compiled(x, lengths, dim, out)
        if parts > 1:
            continue
        of_gather = timed([lambda s=s: compiled(s[0], s[1], dim, s[2]) for s in sets])
        expected = out.clone()
        sources = [s[0] if s[0].is_contiguous() else s[0].contiguous() for s in sets]
        of_copy = timed([lambda s=s, source=source: s[2].copy_(source) for s, source in zip(sets, sources)])
        out.zero_()
        ours = timed([lambda s=s: reverse(s[0], s[1], dim, s[2]) for s in sets])
        assert torch.equal(out, expected), name
        times = [f"{time:.2f}" for time in (ours, of_copy, of_gather)]
        cells = [name, f"{size * 2e-6:.1f}", *times, kernel(x, lengths, dim, out, width)]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
