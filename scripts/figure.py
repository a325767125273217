#!/usr/bin/env python3
"""Draws with target/release/dml-cuda, from benches/record: docs/benchmark.svg, DirectML next to this library, and
docs/side-by-side.svg, the figure of benches/, of the cases of the bench and the layouts of 2026-11-24-sweep.md."""

import json
import math
import re
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
H200 = ROOT / "benches" / "record" / "nvidia-h200"
RUNS = {
    "dml-cuda": "2026-11-22-suite",
    "DirectML 1.13.1": "directml-1.13.1",
    "a gather by torch.compile": "torch-compile-2026-11-21",
}


def main():
    runs = [
        json.loads((H200 / f"{name}.json").read_text(encoding="utf-8"))
        for name in RUNS.values()
    ]
    ours, _, gather = runs
    ours["suite"] = "bench and sweep"
    sweep = (
        (H200 / "2026-11-24-sweep.md")
        .read_text(encoding="utf-8")
        .rpartition("\n| layout |")[2]
    )
    for name, shape, bits, *times in re.findall(
        r"\| (.* \[(.*)\]) (\d+) bits \|[^|]*\|[^|]*\| (.*?) \|[^|]*\| (.*?) \|", sweep
    ):
        sizes = [int(size) for size in shape.split(",")]
        side_by_side = (
            len(sizes) > 2 and "lanes" in name
        )  # else they are along the last dimension
        work = {
            "case": name,
            "type": f"u{bits}",
            "mode": "copy",
            "side_by_side": side_by_side,
            "bytes": 2 * math.prod(sizes) * int(bits) // 8,
            "dispatches": 1,
        }
        for run, time in zip((ours, gather), times):
            run["cases"].append({**work, "medians": [float(time)]})
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in RUNS.values()]
        for file, run in zip(files, runs):
            file.write_text(json.dumps(run), encoding="utf-8")
        draw("side-by-side", files, [f"{label} on NVIDIA H200" for label in RUNS])
    ours, directml = (H200 / f"{RUNS[name]}.json" for name in list(RUNS)[:2])
    draw(
        "benchmark",
        [directml, ours],
        ["DirectML 1.13.1 on NVIDIA H200, Linux", "dml-cuda on NVIDIA H200, Linux"],
    )


def draw(name, files, labels):
    words = [word for label in labels for word in ("--label", label)]
    subprocess.run(
        [
            ROOT / "target" / "release" / "dml-cuda",
            "report",
            *files,
            *words,
            "-o",
            ROOT / "docs" / f"{name}.svg",
            "--overwrite",
        ],
        check=True,
    )


main()
