#!/usr/bin/env python3
"""Draws docs/side-by-side.svg, README's figure, from benches/record: the cases of the bench, and the layouts of benches/sweep.py.

Usage: scripts/figure.py [dml-cuda], the runner, by default target/release/dml-cuda."""

import json
import math
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
H200 = ROOT / "benches" / "record" / "nvidia-h200"
RUNS = {"dml-cuda": "2026-11-22-suite", "DirectML 1.13.1": "directml-1.13.1", "a gather by torch.compile": "torch-compile-2026-11-21"}


def sweep():
    """The layouts, with the microseconds of this library and of the gather."""
    for line in (H200 / "2026-11-24-sweep.md").read_text(encoding="utf-8").rpartition("\n| layout |")[2].splitlines():
        layout = re.match(r"\| (.* \[(.*)\]) (\d+) bits \|[^|]*\|[^|]*\| (.*?) \|[^|]*\| (.*?) \|", line)
        if layout:
            name, sizes, bits, ours, gather = layout.groups()
            sizes = [int(size) for size in sizes.split(",")]
            # Lanes along the last dimension are rows.
            name = name if len(sizes) > 2 else name.replace("lanes", "rows")
            work = {"case": name, "type": f"u{bits}", "mode": "copy", "bytes": 2 * math.prod(sizes) * int(bits) // 8, "dispatches": 1}
            yield [{**work, "medians": [float(time)]} for time in (ours, gather)]


def main():
    runner = sys.argv[1] if len(sys.argv) > 1 else ROOT / "target" / "release" / "dml-cuda"
    runs = [json.loads((H200 / f"{name}.json").read_text(encoding="utf-8")) for name in RUNS.values()]
    for ours, gather in sweep():
        runs[0]["cases"].append(ours)
        runs[2]["cases"].append(gather)
    runs[0]["suite"] = "bench and sweep.py"
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{n}.json" for n in range(len(runs))]
        for file, run in zip(files, runs):
            file.write_text(json.dumps(run), encoding="utf-8")
        labels = [word for label in RUNS for word in ("--label", f"{label} on NVIDIA H200")]
        subprocess.run([runner, "report", *files, *labels, "-o", ROOT / "docs" / "side-by-side.svg", "--overwrite"], check=True)


if __name__ == "__main__":
    main()
