"""Times whole runs of ONNX Runtime sessions on a GPU, with its own kernels and with this library's, in turn in one process: the host time of
run_with_iobinding, with all tensors on the device. Prints a table in Markdown, and writes a CSV if a path is given.

    DML_CUDA_LIBRARY=target/release/libdml_cuda.so python bench_cuda.py [out.csv]
"""

import csv
import os
import statistics
import sys
import time

import numpy as np
import onnxruntime as ort
import torch
from common import reverse, session
from test_cuda import bind, cuda, of_lanes, reverse_sequence

TORCH = {np.uint8: torch.uint8, np.float16: torch.float16, np.float32: torch.float32, np.int64: torch.int64}
# Layout, shape, time axis: [B, T, F], [T, B, F], [B, T].
SHAPES = [
    ((64, 2048, 1024), 1), ((2048, 64, 1024), 0), ((16384, 8192), 1),
    ((64, 512, 1024), 1), ((512, 64, 1024), 0), ((4096, 8192), 1),
    ((32, 128, 512), 1), ((128, 32, 512), 0), ((2048, 1024), 1), ((256, 4096), 1), ((8, 64, 128), 1), ((16, 128), 1),
]


def run(limit_s):
    rows, begin = [], time.time()
    for shape, axis in SHAPES:
        for dtype in TORCH:
            size = int(np.prod(shape)) * np.dtype(dtype).itemsize
            if time.time() - begin > limit_s:
                print("out of time", file=sys.stderr)
                return rows
            serialized = reverse_sequence(dtype, list(shape), axis)
            x = torch.randint(0, 100, shape, device="cuda").to(TORCH[dtype])
            lengths = torch.randint(0, shape[axis] + 1, (shape[1 - axis],), device="cuda")
            sessions, outputs = {}, {}
            for name, library in (("onnxruntime", False), ("dml_cuda", True)):
                made = session(serialized, library=library, providers=cuda())
                outputs[name] = torch.empty_like(x)
                sessions[name] = (made, bind(made, {"x": x, "l": lengths}, outputs[name]))
            for made, binding in sessions.values():
                for _ in range(5):
                    made.run_with_iobinding(binding)
            times = {name: [] for name in sessions}
            for _ in range(9):
                for name, (made, binding) in sessions.items():
                    n = 20 if size > 1 << 24 else 200
                    torch.cuda.synchronize()
                    start = time.perf_counter()
                    for _ in range(n):
                        made.run_with_iobinding(binding)
                    torch.cuda.synchronize()
                    times[name].append((time.perf_counter() - start) / n * 1e6)
            assert torch.equal(*outputs.values())
            medians = {name: statistics.median(values) for name, values in times.items()}
            rows.append([str(list(shape)), axis, np.dtype(dtype).name, size >> 10, *(f"{medians[name]:.1f}" for name in medians), f"{medians['onnxruntime'] / medians['dml_cuda']:.2f}"])
    return rows


def main():
    print(torch.cuda.get_device_name(0), "driver", os.popen("nvidia-smi --query-gpu=driver_version --format=csv,noheader").read().split()[0], "onnxruntime", ort.__version__)
    rows = run(400)
    header = ["shape", "time axis", "type", "KiB", "onnxruntime, µs", "dml_cuda, µs", "speed-up"]
    print("| " + " | ".join(header) + " |\n|" + " --- |" * len(header))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w", newline="") as file:
            csv.writer(file).writerows([header, *rows])


if __name__ == "__main__":
    main()
