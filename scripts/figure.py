#!/usr/bin/env python3
"""Draws docs/benchmark.svg with target/release/dml-cuda, from benches/record: DirectML next to this library. The other
picture, docs/speedups.svg, is drawn by scripts/tables.py."""

import argparse
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
H200 = ROOT / "benches" / "record" / "nvidia-h200"
# The label and the record of each side.
FILES = {
    "DirectML 1.13.1 (vkd3d-proton, Linux) on NVIDIA H200": "directml-1.13.1.json",
    "dml-cuda on NVIDIA H200": "2026-11-29/suite.json",
}


def main():
    argparse.ArgumentParser(description=__doc__).parse_args()
    command = [ROOT / "target" / "release" / "dml-cuda", "report"]
    command += [H200 / name for name in FILES.values()]
    for label in FILES:
        command += ["--label", label]
    command += ["-o", ROOT / "docs" / "benchmark.svg", "--overwrite"]
    subprocess.run(command, check=True)


main()
