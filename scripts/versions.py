"""The minimum versions of what this project builds with and serves: the only list, with which scripts/tables.py compares
every file."""

import csv
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# The minimum versions, and what is before them in manifests, CI and code. Pages say "NAME 1.2 or newer".
MINIMUM = {
    "Rust": (("1.88", "1.92"), 'rust-version = "'),
    "Python": (("3.11",), 'requires-python = ">='),
    "NumPy": (("1.24",), '"numpy>='),
    "ONNX Runtime": (("1.18",), r"for version in (?=1\.)"),
    "PyTorch": (("2.8",), r"for version in (?=2)"),
    "JAX": (("0.6",), r"for versions in (?=0)"),
    "CUDA": (("12.0",), "cuda-nvcc-cu12=="),
}


def wrong():
    """The places where a minimum version is not the list's."""
    files = subprocess.run(
        ["git", "ls-files", "*.md", "*.toml", "*.rs", "*.py", "*.sh"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for file in set(files.stdout.split()) - {"CHANGELOG.md"}:
        text = (ROOT / file).read_text(encoding="utf-8")
        for name, (minimum, before) in MINIMUM.items():
            found = re.findall(
                rf"(?:\b{name} (?=\S+ (?:or|and) (?:newer|later))|{before})(\d+\.\d+)",
                text,
            )
            yield from (
                f"{file}: {name} {version}, but must be {' or '.join(minimum)}"
                for version in found
                if version not in minimum
            )


def cells():
    """The head and the lines of a table: for each integration its declared minimum, and the versions that ran on a CPU and
    on a GPU."""
    lines = {
        name: ([], {})
        for name in (
            "Rust",
            "C",
            "Python",
            "NumPy",
            "CuPy",
            "PyTorch",
            "JAX",
            "ONNX Runtime",
            "candle",
            "CUDA",
        )
    }
    with (ROOT / "benches" / "record" / "tried.csv").open(encoding="utf-8") as file:
        for name, version, device, *_ in list(csv.reader(file))[1:]:
            if "CPU" in device:
                lines[name][0].append(version + device.removeprefix("CPU"))
            elif device:
                lines[name][1].setdefault(version, []).append(device)
    on_gpus = lambda found: ", ".join(
        f"{version} ({', '.join(devices)})" for version, devices in found.items()
    )
    minimum = lambda name: ", ".join(MINIMUM.get(name, [[]])[0])
    head = ["", "declared minimum", "ran on a CPU", "ran on a GPU"]
    return (
        head,
        [
            [name, minimum(name), ", ".join(cpu), on_gpus(gpu)]
            for name, (cpu, gpu) in lines.items()
        ],
    )
