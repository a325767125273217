#!/usr/bin/env python3
"""Fits the costs of src/cuda/estimate.rs to measured times: fit-estimates.py [TARGET-NAME.csv[.gz]...]

`dml-cuda tune` writes these files. Their names begin with the GPU, as `dml-cuda --target` takes it, and a hyphen.
Without arguments it takes benches/record/times. Prints how well the estimates choose on layouts that the fit has not
seen, and writes src/cuda/costs.rs. Needs numpy, pandas and scipy.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import pandas as pd
from scipy.optimize import least_squares

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent
LAYOUT = ["width", "sizes", "axis", "in_strides", "out_strides", "length_sizes"]
KERNEL = ["layout", "mode", "kernel", "variant", "alignment"]
TERMS = 8
# The logarithms of the least costs. Memory costs 1 at least: no kernel is faster than the GPU's memory, whatever GPU.
LEAST = (-14, 0, -14, -14, -14, -14, -14, -14)
# Steps cost at most 90 cycles, details 20: a term that is 0 for all recorded layouts tells nothing.
MOST = (9, 9, 9, 9, 4.5, 3, 9, 9)
STARTS = (0, 0, -1, -1, 0, 0, 3, -2), (-0.2, 0.1, 0.5, 0.5, 1.5, 1, 5, -1)
HEAD = '''//! What the terms of the estimate cost, by kernel family and bytes of the unit: 1, 2, 4, 8 and 16. Written by
//! scripts/fit-estimates.py from the files
//! {files}.
//!
//! The columns: launch, memory, accesses, misses, steps, details, thread blocks, rounds. A cost says nothing if its
//! term is always near 0 for the recorded layouts.

use super::estimate::FamilyCosts;

'''


def load(path):
    """The times of a file, with the terms of each launch."""
    times = pd.read_csv(path, keep_default_na=False)
    times["layout"] = pd.factorize(times[LAYOUT].astype(str).agg(",".join, axis=1))[0]
    with tempfile.TemporaryDirectory() as folder:
        layouts, terms = (str(pathlib.Path(folder) / name) for name in ("layouts.csv", "terms.csv"))
        times.drop_duplicates("layout")[["layout", *LAYOUT]].to_csv(layouts, index=False)
        environment = {**os.environ, "ESTIMATE_LAYOUTS": layouts, "ESTIMATE_TERMS": terms, "ESTIMATE_TARGET": path.name.split("-")[0]}
        command = ["cargo", "test", "--quiet", "-p", "dml-cuda", "--lib", "terms_of_recorded_layouts"]
        subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
        found = pd.read_csv(terms, keep_default_na=False)
    joined = times.merge(found, on=KERNEL, how="left")
    unknown = joined.terms.isna()
    print(f"{path.name}: {times.layout.nunique()} layouts, {len(times)} times, {unknown.sum()} of launches that are not selected any more")
    joined = joined[~unknown].copy()
    joined["layout"] = path.name + " " + joined.layout.astype(str)
    return joined


def estimate(logarithms, terms):
    """As `microseconds` in src/cuda/estimate.rs."""
    cost = np.exp(logarithms)
    multiprocessors = sum(cost[n] * terms[n] for n in range(2, 7))
    return cost[0] * terms[0] + np.hypot(cost[1] * terms[1], multiprocessors) + cost[7] * terms[7]


def fit(terms, times, weights):
    def solve(start, weights):
        def errors(logarithms):
            return weights * (np.log(estimate(logarithms, terms)) - np.log(times))

        return least_squares(errors, np.array(start, float), loss="soft_l1", f_scale=0.1, bounds=(LEAST, MOST), max_nfev=200)

    first = min((solve(start, weights) for start in STARTS), key=lambda result: result.cost).x
    # A slow kernel is chosen, too, if its estimate is low.
    chosen = np.minimum(1, weights * times / estimate(first, terms))
    return solve(first, np.maximum(weights, chosen)).x


def report(name, ratio):
    ratio = ratio.clip(lower=1)
    print(f"{name:34} {len(ratio):6} {ratio.mean():8.4f} {(ratio > 1.05).mean() * 100:6.1f} % {(ratio > 1.25).mean() * 100:7.1f} % {ratio.max():7.2f}")


def main():
    files = [pathlib.Path(argument) for argument in sys.argv[1:]] or sorted((ROOT / "benches/record/times").iterdir())
    data = pd.concat([load(path) for path in files], ignore_index=True)
    terms = np.array([text.split() for text in data.terms], float)
    times, layout = data.us.to_numpy(float), data.layout.to_numpy()
    key = (data["mode"] + " " + data.costs).to_numpy()
    # Errors matter where a kernel may be chosen, and three times for the rows of the benchmark.
    weights = (data.groupby(["layout", "mode"]).us.transform("min") / data.us).to_numpy(float)
    weights = weights * np.where(data.layout.str.contains("-bench"), 3.0, 1.0)
    held_out = np.full(len(data), np.inf)
    for part in np.array_split(np.random.default_rng(0).permutation(np.unique(layout)), 3):
        test = np.isin(layout, part)
        for kernel in np.unique(key):
            train, of_part = (key == kernel) & ~test, (key == kernel) & test
            train = train if train.sum() > TERMS else key == kernel
            if of_part.any():
                held_out[of_part] = estimate(fit(terms[train].T, times[train], weights[train]), terms[of_part].T)
    data["held_out"] = held_out
    print(f"\n{'layouts that the fit has not seen':34} {'count':>6} {'mean':>8} {'over 5 %':>8} {'over 25 %':>9} {'worst':>7}")
    for mode, of_mode in data.groupby("mode"):
        best = of_mode.groupby("layout").us.min()
        report(f"{mode}, chosen when measured", (of_mode[of_mode.chosen == "yes"].groupby("layout").us.first() / best).dropna())
        order = of_mode.sort_values("held_out")
        report(f"{mode}, least estimate", order.groupby("layout").us.first() / best)
        report(f"{mode}, best of 4 least", order.groupby("layout").head(4).groupby("layout").us.min() / best)
    print(f"\n{'kernel, bytes of the unit':36} {'times':>6} {'error, root of the mean square of logarithms'}")
    families = {}
    for kernel in np.unique(key):
        of_kernel = key == kernel
        errors = np.log(held_out[of_kernel]) - np.log(times[of_kernel])
        weight = weights[of_kernel] ** 2
        print(f"{kernel:36} {of_kernel.sum():6} {np.sqrt((weight * errors**2).sum() / weight.sum()):8.3f}")
        mode, family, unit = re.fullmatch(r"(copying|in place) (\w+) (\d+)", kernel).groups()
        costs = np.exp(fit(terms[of_kernel].T, times[of_kernel], weights[of_kernel]))
        families.setdefault(family, {}).setdefault(mode, {})[int(unit)] = costs
    write(families, ", ".join(path.name.split(".")[0] for path in files))


def write(families, files):
    """A line for each kernel."""
    text = HEAD.format(files=files)
    for family, modes in sorted(families.items()):
        text += f'pub(crate) static {family.upper()}: FamilyCosts = FamilyCosts {{ name: "{family}", modes: ['
        for mode in ("copying", "in place"):
            units = modes.get(mode, {})
            text += "&["
            for unit in (1, 2, 4, 8, 16):
                if units and unit <= max(units):
                    costs = units[min(units, key=lambda other: abs(np.log2(other / unit)))]
                    text += "\n    [" + ", ".join(f"{cost:#.4g}" if cost >= 1e-4 else "0.0" for cost in costs).replace("., ", ".0, ") + "],"
            text += "\n], " if units else "], "
        text = text[:-2] + "] };\n\n"
    path = ROOT / "src/cuda/costs.rs"
    path.write_text(text.rstrip() + "\n")
    print(f"\n{path.relative_to(ROOT)} is written")


if __name__ == "__main__":
    main()
