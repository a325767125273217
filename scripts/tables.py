#!/usr/bin/env python3
"""Writes the tables of README.md, benches/README.md, docs/pytorch.md and docs/versions.md, between
`<!-- table: NAME -->` and `<!-- end -->`, from benches/record and the list of least versions. `--check` only compares.
Fails if a file names another least version."""

import csv
import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BENCHES = ROOT / "benches"
H200 = BENCHES / "record" / "nvidia-h200"
# A run of `dml-cuda bench --cold-l2`.
COLD = BENCHES / "record" / "nvidia-h100" / "2026-11-27-cold.json"
# The cases, and the goals of some.
SUITE = ROOT / "crates" / "dml-cuda-cli" / "src" / "bench" / "suite.jsonl"
# Runs of ONNX Runtime without and with the library, and of `dml-cuda bench` on the JSON models of the same cases.
ONNXRUNTIME = [H200 / f"2026-11-23-onnxruntime{run}.json" for run in ("", "-dml-cuda", "-runner")]

# Bidirectional RNNs, and the rows of CUDA graphs, which have more columns than the eager ones.
RNN, FORMS = "../nvidia-h100/2026-11-27-rnn.md", r"^\| (LSTM|GRU) \[([^|]+\|){7}$"

TYPES = ("u8", "f16", "f32", "i64")
# How the names of cases begin that no table has, and of those in the table of small work.
ODD = ("lanes odd", "lanes long", "block long", "transposed")
SMALL = ("small", "tokens", "lanes of", "model", "blocks of")


def read(file):
    """Microseconds of each case, type and mode, its floor's and its baseline's, each None where it is not known."""
    cases, rates = {}, {}
    run = json.loads(file.read_text(encoding="utf-8"))["cases"]
    run = [{**case, "median": statistics.median(case.get("each") or case["medians"])} for case in run if "each" in case or "medians" in case]
    for case in run:
        if case["case"] == "512 MiB":
            rates[case["mode"]] = case["bytes"] / case["median"]
    for case in run:
        rate = rates.get("baseline of fills" if case["mode"] == "fill" else "baseline of copies")
        floor = case["bytes"] / rate if rate else None
        cases[case["case"], case["type"], case["mode"]] = case["median"], floor, case.get("baseline")
    return cases


def table(head, lines):
    lines = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def by_type(names, cell, modes=("fill", "copy", "in place")):
    """A line for each case, a column for each type; modes are apart by a slash."""
    of_modes = lambda *key: " / ".join(text for mode in modes if (text := cell(*key, mode)) is not None)
    return table(["case", *TYPES], [[name, *(of_modes(name, data_type) for data_type in TYPES)] for name in names])


def cold_table(begin, text):
    """The cases whose names begin so, or without a beginning all others."""
    cases = read(COLD)
    is_wanted = lambda name: name.startswith(begin) if begin else not name.startswith((*ODD, *SMALL, "512 MiB"))
    names = filter(is_wanted, dict.fromkeys(name for name, *_ in cases))
    return by_type(names, lambda *key: text(*cases[key]) if key in cases else None)


def in_the_l2():
    empty = read(COLD)["small fill of 64 bytes", "f32", "fill"][2]
    return cold_table(SMALL, lambda time, *_: f"{time:.2f}") + f"\n| an empty kernel |  |  | {empty:.2f} |  |"


def of_goals():
    """A line for each goal: the cases that have it, and how many meet it."""
    found, goals = read(COLD), {}
    for case in map(json.loads, SUITE.read_text(encoding="utf-8").splitlines()):
        if "goal" in case:
            time, floor, _ = found[case["case"], case["type"], case["mode"]]
            names, ratios = goals.setdefault(case["goal"], ({}, []))
            ratios.append(floor / time)
            names[case["case"]] = None
    lines = []
    for goal, (names, ratios) in sorted(goals.items(), reverse=True):
        lines.append([f"{goal:.2f}", "; ".join(names), str(len(ratios)), str(sum(ratio >= goal for ratio in ratios))])
    lines.append(["all", "", *(str(sum(int(line[column]) for line in lines)) for column in (2, 3))])
    return table(["goal, of the floor", "cases, some of them copying or in place only", "count", "meet it"], lines)


def of_onnxruntime(mode, types):
    """A line for each case of ONNX Runtime's run: its microseconds, with the library, and the kernel's alone."""
    runs = [read(path) for path in ONNXRUNTIME]
    names = dict.fromkeys(name for name, _, of_mode in runs[0] | runs[1] if of_mode == mode)

    def cell(*key):
        times = [run.get(key) for run in runs]
        return " / ".join(f"{time[0]:,.3g}" if time and time[0] < 10 else f"{time[0]:,.0f}" if time else "–" for time in times) if any(times) else ""

    return table(["case", *types], [[name, *(cell(name, data_type, mode) for data_type in types)] for name in names])


def quotients(file, rows, over, under):
    """The quotients of two columns in the rows of Markdown that match. `file` is in the H200's folder."""
    lines = [line.split("|") for line in (H200 / file).read_text(encoding="utf-8").splitlines() if re.search(rows, line)]
    return [float(cells[over]) / float(cells[under]) for cells in lines]


def of_rnns():
    """A line for each size: the microseconds in CUDA graphs of PyTorch's module without lengths, of two passes, and of
    the form that an RNN with lengths chooses."""
    columns = [f"{kind}, {dtype}" for kind in ("LSTM", "GRU") for dtype in ("float16", "float32")]
    lines = {}
    for line in filter(re.compile(FORMS).search, (H200 / RNN).read_text(encoding="utf-8").splitlines()):
        _, name, *times = (cell.strip() for cell in line.split("|"))
        kind, size, dtype = re.fullmatch(r"(\w+) (.*), (\w+)", name).groups()
        lines.setdefault(size, {})[f"{kind}, {dtype}"] = "; ".join(f"{int(time):,}" for time in times[:3])
    return table(["[T, B, F], states, layers", *columns], [[size, *map(cells.get, columns)] for size, cells in lines.items()])


def of_gains():
    """A line for each alternative: its time over this library's, and the record."""
    faster = lambda a, b: [(*key, time / b[key][0]) for key, (time, *_) in a.items() if key in b]
    nodes = [ratio for *_, mode, ratio in faster(*map(read, ONNXRUNTIME[:2])) if mode == "copy"]
    directml = faster(read(H200 / "directml-1.13.1.json"), read(H200 / "2026-11-22-suite.json"))
    of_type = lambda name: statistics.geometric_mean(ratio for _, data_type, _, ratio in directml if data_type == name)
    pytorch, compiled = "2026-11-23-pytorch.md", "2026-11-25-compiled.md"
    programs, rnns = quotients(compiled, r"^\| \w+, .* [uf]\d+ \|", 3, 2), "2026-11-28-rnn.md"
    of_lstms = lambda count, mode: quotients(rnns, rf"^\| {count}, \[.*, {mode} \|", 2, 4)
    lstm = "8 LSTMs, T from 64 to 4000, random lengths"
    lines = [
        ("`pack_padded_sequence` in PyTorch, two directions, inference", of_lstms(2, "inference"), lstm, rnns),
        ("`pack_padded_sequence` in PyTorch, two directions, training", of_lstms(2, "training"), lstm, rnns),
        ("`pack_padded_sequence` in PyTorch, one direction, inference", of_lstms(1, "inference"), lstm, rnns),
        ("`pack_padded_sequence` in PyTorch, one direction, training", of_lstms(1, "training"), lstm, rnns),
        ("two passes of a bidirectional RNN, in CUDA graphs, H100", quotients(RNN, FORMS, 3, 4), "52 LSTMs and GRUs, half of float16", RNN),
        ("the same, training", quotients(RNN, FORMS, 6, 7), "52 LSTMs and GRUs, half of float16", RNN),
        ("an eager gather in PyTorch", quotients(pytorch, r"^\| \[[^|]+(\| [\d.]+ ){3}\|$", 4, 2), "8 layouts, f16 and f32", pytorch),
        ("a gather in `torch.compile`", programs[:40], "40 programs", compiled),
        ("a gather in `jax.jit`", programs[40:52], "12 programs, with 30 to 50 µs of the host", compiled),
        ("one `ReverseSequence` node in ONNX Runtime", nodes, f"{len(nodes)} nodes", ONNXRUNTIME[1].name),
        ("DirectML 1.13.1 under Linux, through vkd3d-proton", [ratio for *_, ratio in directml], "; ".join(f"{name} {of_type(name):.2f}" for name in TYPES), "directml-1.13.1.json"),
    ]
    address = lambda file: os.path.normpath(f"benches/record/nvidia-h200/{file}")
    text = lambda found: f"{min(found):.2f} to {max(found):.2f}, median {statistics.median(found):.2f}"
    links = lambda file: f"[{re.search('20[0-9-]+[0-9]', (H200 / file).read_text(encoding='utf-8'))[0]}]({address(file)})"
    return table(["instead of", "times as fast", "of", "record"], [[name, text(found), what, links(file)] for name, found, what, file in lines])


# The least versions, and what is before them in manifests, CI and code. Pages say "NAME 1.2 or newer".
LEAST = {
    "Rust": (("1.88", "1.92"), 'rust-version = "'),
    "Python": (("3.11",), 'requires-python = ">='),
    "NumPy": (("1.24",), '"numpy>='),
    "ONNX Runtime": (("1.18",), r"for version in (?=1)"),
    "PyTorch": (("2.8",), r"for version in (?=2)"),
    "JAX": (("0.6",), r"for versions in (?=0)"),
    "CUDA": (("12.0",), "cuda-nvcc-cu12=="),
}


def wrong_versions():
    """Where a least version is not the list's."""
    files = subprocess.run(["git", "ls-files", ".ci/run", "*.md", "*.toml", "*.rs", "*.py", "*.sh"], cwd=ROOT, check=True, capture_output=True, text=True)
    for file in set(files.stdout.split()) - {"CHANGELOG.md"}:
        text = (ROOT / file).read_text(encoding="utf-8")
        for name, (least, before) in LEAST.items():
            found = re.findall(rf"(?:\b{name} (?=\S+ (?:or|and) (?:newer|later))|{before})(\d+\.\d+)", text)
            yield from (f"{file}: {name} {version}, must be {' or '.join(least)}" for version in found if version not in least)


def of_versions():
    """A line for each door and version, a column for the CPU and one for a GPU: what it was tried on."""
    lines = {}
    with (BENCHES / "record" / "tried.csv").open(encoding="utf-8") as file:
        for door, version, device, *_ in list(csv.reader(file))[1:]:
            cells = lines.setdefault((door, version), ([], []))
            if device:
                cells["CPU" not in device].append(device)
    text = lambda cells: [", ".join(cell) or "*untried*" for cell in cells]
    return table(["door", "version", "CPU", "GPU"], [[*key, *text(cells)] for key, cells in lines.items()])


TABLES = {
    "gains": of_gains,
    "RNNs in CUDA graphs": of_rnns,
    "least versions": lambda: table(["of", "declared minimum"], [[name, ", ".join(least)] for name, (least, _) in LEAST.items()]),
    "versions": of_versions,
    "of the floor": lambda: cold_table(None, lambda time, floor, _: floor and f"{floor / time:.2f}"),
    "of the baseline": lambda: cold_table(None, lambda time, _, baseline: baseline and f"{baseline / time:.2f}"),
    "microseconds in the L2": in_the_l2,
    "goals": of_goals,
    "ONNX Runtime, ReverseSequence": lambda: of_onnxruntime("copy", TYPES),
    "ONNX Runtime, Range": lambda: of_onnxruntime("fill", ("i16", "i32", "i64", "f32", "f64")),
}


def main():
    stale = []
    for path in ROOT / "README.md", BENCHES / "README.md", ROOT / "docs" / "pytorch.md", ROOT / "docs" / "versions.md":
        old = path.read_text(encoding="utf-8")
        write = lambda match: f"{match[1]}\n{TABLES[match[2]]()}\n{match[3]}"
        new = re.sub(r"(<!-- table: (.+?) -->)\n.*?(<!-- end -->)", write, old, flags=re.DOTALL)
        if new != old:
            stale.append(str(path.relative_to(ROOT)))
            if "--check" not in sys.argv:
                path.write_text(new, encoding="utf-8")
    wrong = sorted(wrong_versions())
    if stale and "--check" in sys.argv:
        wrong.append(f"{', '.join(stale)}: a table is not what the records say; scripts/tables.py writes it anew")
    sys.exit("\n".join(wrong) or None)


main()
