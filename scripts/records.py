"""The records that tables are made of, and how their numbers are read."""

import csv
import json
import re
import statistics
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BENCHES = ROOT / "benches"
# One run of benches/record.py: every file says of which commit it is.
RUN = BENCHES / "record" / "nvidia-h200" / "2026-11-29"
COLD = RUN / "cold.json"
SUITE_RUN = RUN / "suite.json"
# Runs of ONNX Runtime without and with the library, and the kernels alone.
ONNXRUNTIME = [RUN / "onnxruntime.json", RUN / "onnxruntime-library.json", SUITE_RUN]
# Other records of the H200: what DirectML took, and whole ONNX models.
DIRECTML = RUN.parent / "directml-1.13.1.json"
MODELS_RUN = RUN.parent / "2026-11-22-onnx-models.md"


def read(file):
    """Microseconds of each case, type and mode, its floor's and its baseline's, each None where it is not known."""
    cases, rates = {}, {}
    run = json.loads(file.read_text(encoding="utf-8"))["cases"]
    run = [
        {**case, "median": statistics.median(case.get("each") or case["medians"])}
        for case in run
        if "each" in case or "medians" in case
    ]
    for case in run:
        if case["case"] == "512 MiB":
            rates[case["mode"]] = case["bytes"] / case["median"]
    for case in run:
        rate = rates.get(
            "baseline of fills" if case["mode"] == "fill" else "baseline of copies"
        )
        floor = case["bytes"] / rate if rate else None
        cases[case["case"], case["type"], case["mode"]] = (
            case["median"],
            floor,
            case.get("baseline"),
        )
    return cases


def quotients(file, rows, over, under):
    """The quotients of two columns in the rows of a record's Markdown that match."""
    lines = [
        line.split("|")
        for line in (RUN / file).read_text(encoding="utf-8").splitlines()
        if re.search(rows, line)
    ]
    return [float(cells[over]) / float(cells[under]) for cells in lines]


def column_of(file, rows, column):
    """The numbers of a column in the rows of a record's Markdown that match."""
    lines = (RUN / file).read_text(encoding="utf-8").splitlines()
    return [float(line.split("|")[column]) for line in lines if re.search(rows, line)]


def of_layouts(over, under):
    """The quotients of two times of random layouts, where both were taken."""
    with (RUN / "layouts.csv").open(encoding="utf-8") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return [
            float(row[over]) / float(row[under])
            for row in rows
            if row[over] and row[under]
        ]


def ratios_of_cases(theirs, ours):
    """The mode of each case that both have, and their time over ours."""
    ratios = []
    for key, (time, *_) in theirs.items():
        if key in ours:
            ratios.append((key[2], time / ours[key][0]))
    return ratios
