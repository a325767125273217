#!/usr/bin/env python3
"""Compares a results file of `dml-cuda bench` with the best time that was ever recorded for each case on the same GPU
model. Prints what is more than 3 % slower, and fails if anything is. With --remember, files also become records.

Usage: check-suite.py [--remember] RESULTS.json...

A case is the same if its name, type, mode and bytes are. Times with a warm L2 cache are compared with such times alone,
and so are those with a cold one. The records are in benches/record/best.csv."""

import csv
import json
import pathlib
import statistics
import sys

BEST = pathlib.Path(__file__).resolve().parent.parent / "benches/record/best.csv"
CASE = ["gpu", "l2", "case", "type", "mode", "bytes"]
COLUMNS = [*CASE, "microseconds", "kernel", "commit", "date"]
SLOWER = 1.03


def cases_of(path):
    """The rows of a results file: a time of each case that is no baseline."""
    results = json.loads(pathlib.Path(path).read_text())
    machine, l2 = (
        results["machine"],
        "cold" if "cold L2" in results["timing"] else "warm",
    )
    for case in results["cases"]:
        if case.get("each") and not case["mode"].startswith("baseline"):
            yield {
                "gpu": machine["device"],
                "l2": l2,
                "case": case["case"],
                "type": case["type"],
                "mode": case["mode"],
                "bytes": str(case["bytes"]),
                "microseconds": f"{statistics.median(case['each']):.3f}",
                "kernel": case.get("kernel", ""),
                "commit": machine["commit"],
                "date": machine["date"][:10],
            }


def key(row):
    return tuple(row[column] for column in CASE)


def recorded():
    if not BEST.exists():
        return {}
    with open(BEST, newline="") as file:
        return {key(row): row for row in csv.DictReader(file)}


def compare(path, best):
    """Prints the cases that are slower than their records, the slowest first, and says how many there are."""
    ratios = []
    for row in cases_of(path):
        record = best.get(key(row))
        if record is not None:
            ratios.append(
                (
                    float(row["microseconds"]) / float(record["microseconds"]),
                    row,
                    record,
                )
            )
    slower = sorted(
        (ratio for ratio in ratios if ratio[0] > SLOWER), key=lambda ratio: -ratio[0]
    )
    for ratio, row, record in slower:
        name = f"{row['case']}, {row['type']}, {row['mode']}"
        times = f"{row['microseconds']} µs, but {record['microseconds']} µs at {record['commit']} on {record['date']}"
        print(f"{ratio:.2f} times the best: {name}: {times}")
    print(
        f"{path}: {len(slower)} of {len(ratios)} cases are more than 3 % slower than their best record"
    )
    return len(slower)


def remember(path, best):
    for row in cases_of(path):
        record = best.get(key(row))
        if record is None or float(row["microseconds"]) < float(record["microseconds"]):
            best[key(row)] = row
    with open(BEST, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(best[of] for of in sorted(best))


def main(arguments):
    remembers = "--remember" in arguments
    paths = [argument for argument in arguments if argument != "--remember"]
    if not paths:
        sys.exit(__doc__)
    best = recorded()
    slower = sum(compare(path, best) for path in paths)
    if remembers:
        for path in paths:
            remember(path, best)
    elif slower:
        sys.exit(1)


main(sys.argv[1:])
