#!/usr/bin/env python3
"""Compares results files of `dml-cuda bench` with the best time that was ever recorded for each case on the same GPU
model, in benches/record/best.csv. Prints what is more than 3 % slower.

A case is the same if its name, type, mode and bytes are. Times with a warm L2 cache are compared with such times alone,
and so are those with a cold one. Fails if a case is slower, failed or has no record. With --remember it fails only if a
case failed, and better times become records."""

import argparse
import csv
import json
import pathlib
import statistics
import sys

BEST = pathlib.Path(__file__).resolve().parent.parent / "benches/record/best.csv"
CASE = ["gpu", "l2", "case", "type", "mode", "bytes"]
COLUMNS = [*CASE, "microseconds", "kernel", "commit", "date"]
SLOWER = 1.03


def results_of(path):
    """A results file of this library, which names its commit."""
    try:
        results = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        machine = results["machine"]
        is_ours = machine["tool"].startswith("dml-cuda ") and machine["commit"]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        sys.exit(f"{path} is not a results file: {error}")
    if not is_ours:
        sys.exit(
            f"{path} has times of {machine['tool']}, but must have those of dml-cuda and its commit"
        )
    return results


def cases_of(path):
    """The rows of a results file, a time of each case that is no baseline, and how many cases failed."""
    results = results_of(path)
    machine = results["machine"]
    l2 = "cold" if "cold L2" in results["timing"] else "warm"
    rows, failed = [], 0
    for case in results["cases"]:
        if case["mode"].startswith("baseline"):
            continue
        if not case.get("each"):
            failed += 1
            continue
        row = {
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
        rows.append(row)
    return rows, failed


def key(row):
    return tuple(row[column] for column in CASE)


def recorded():
    if not BEST.exists():
        return {}
    with open(BEST, newline="") as file:
        return {key(row): row for row in csv.DictReader(file)}


def compare(path, best):
    """Prints the cases that are slower than their records, the slowest first. Returns how many are slower or have no
    record, and how many failed."""
    rows, failed = cases_of(path)
    ratios = []
    for row in rows:
        record = best.get(key(row))
        if record is not None:
            ratio = float(row["microseconds"]) / float(record["microseconds"])
            ratios.append((ratio, row, record))
    slower = [ratio for ratio in ratios if ratio[0] > SLOWER]
    slower.sort(key=lambda ratio: -ratio[0])
    for ratio, row, record in slower:
        name = f"{row['case']}, {row['type']}, {row['mode']}"
        times = f"{row['microseconds']} µs, but {record['microseconds']} µs at {record['commit']} on {record['date']}"
        print(f"{ratio:.2f} times the best: {name}: {times}")
    unknown = len(rows) - len(ratios)
    print(
        f"{path}: {len(slower)} of {len(ratios)} cases are more than 3 % slower than their best record; {unknown} have no record, {failed} failed"
    )
    return len(slower) + unknown, failed


def remember(path, best):
    """Adds the cases of a file that have no record or are faster than it."""
    rows, _ = cases_of(path)
    for row in rows:
        record = best.get(key(row))
        if record is None or float(row["microseconds"]) < float(record["microseconds"]):
            best[key(row)] = row
    with open(BEST, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(best[of] for of in sorted(best))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", nargs="+", metavar="RESULTS.json")
    parser.add_argument("--remember", action="store_true")
    options = parser.parse_args()
    best = recorded()
    found = [compare(path, best) for path in options.results]
    has_failed = any(failed for _, failed in found)
    if options.remember and not has_failed:
        for path in options.results:
            remember(path, best)
    is_slower = any(slower for slower, _ in found) and not options.remember
    sys.exit(has_failed or is_slower)


main()
