#!/usr/bin/env python3
"""Fits the costs of src/cuda/estimate.rs to measured times.

`dml-cuda tune` writes these files. Their names begin with the GPU, as `dml-cuda --target` takes it, and a hyphen. A
kernel's time is that of the specialized one, because CUDA graphs run that. Where only the generic one was recorded,
what is not the memory's time is shortened as on average of the entry point.
Without arguments it takes benches/record/times. Prints how well the estimates choose on layouts that the fit has not
seen, and writes src/cuda/costs.rs. With --check it fits nothing, and prints how well the present costs choose. With
--only it fits the costs of a new family, such as short_lanes, and keeps all others.
Needs numpy, pandas and scipy.
"""

import argparse
import math
import pathlib
import re
import sys
import textwrap
import warnings

import numpy as np
import pandas as pd
from recorded_times import load
from scipy.optimize import least_squares, minimize

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent
COSTS = ROOT / "src/cuda/costs.rs"
TERMS = "launch", "memory", "misses", "warps", "rounds"
# The logarithms of the lowest and the highest costs. Memory costs 1 at least: no kernel is faster than the GPU's
# memory, whatever GPU. A launch costs 1 at least: an empty kernel takes about a microsecond. The highest are what
# hardware can explain: seven microseconds, three times the memory's time, and twenty cycles of a sector or a warp.
LEAST, MOST = (0, 0, -14, -14, -14), (2, 1.1, 3, 3, 0)
# Differences of logarithms: estimates may be this far from the times, and kernels this close to each other are chosen
# about equally often.
NOISE, CLOSE = 0.1, 0.05
# What the errors of the estimates weigh beside the loss of the choices.
ESTIMATES_MATTER = 0.1
# Bytes of the output from which a tensor is large: such ones are reported apart.
LARGE = 1 << 27
STARTS = (0.1, 0, -1, 0, -2), (0, 0.1, 0.5, 1, -1)
HEAD = """//! The coefficients of the cost model, by kernel family and bytes of the unit: 1, 2, 4, 8, 16 and 32. Written by
//! scripts/fit-estimates.py from the files
{files}.
//!
//! The columns: {terms}. A cost says nothing if its term is always near 0 for the
//! recorded layouts.

use super::estimate::FamilyCosts;

"""


def captured(data, memory):
    """The time of each launch in a captured call. Specialization shortens what is not the memory's time."""
    memory = np.minimum(memory, 0.7 * data.us)
    rest = data.us - memory
    gain = ((data.specialized_us - memory) / rest).groupby(data.kernel).median()
    return data.specialized_us.fillna(memory + rest * data.kernel.map(gain).fillna(1))


def estimate(logarithms, terms):
    """Computes `microseconds` as src/cuda/estimate.rs does, and the growth of its logarithm with each given logarithm."""
    parts = np.exp(logarithms) * terms
    multiprocessors = parts[:, 2:4].sum(axis=1)
    both = np.maximum(np.hypot(parts[:, 1], multiprocessors), 1e-30)
    estimates = parts[:, 0] + both + parts[:, 4]
    parts[:, 1] *= parts[:, 1] / both
    parts[:, 2:4] *= (multiprocessors / both)[:, None]
    return estimates, parts / estimates[:, None]


def fit_kernel(terms, times, weights):
    """The logarithms of the costs with which the estimates of one kernel are nearest to its times."""

    def errors(logarithms):
        return weights * (np.log(estimate(logarithms, terms)[0]) - np.log(times))

    def slopes(logarithms):
        return weights[:, None] * estimate(logarithms, terms)[1]

    options = {
        "loss": "soft_l1",
        "f_scale": NOISE,
        "bounds": (LEAST, MOST),
        "max_nfev": 200,
    }
    found = [
        least_squares(errors, np.array(start, float), slopes, **options)
        for start in STARTS
    ]
    return min(found, key=lambda result: result.cost).x


def load_or_exit(path):
    try:
        return load(path)
    except (OSError, EOFError, LookupError, TypeError, ValueError) as error:
        sys.exit(f"{path}: {type(error).__name__}: {error}")


def fit(data, terms, kept):
    """The logarithms of the costs of each kernel: first those with the best estimates, then, from there, those with the
    best choices. A kernel is taken to be chosen with a probability that falls with its estimate. Costs that are finite
    in `kept` stay as they are."""
    times, kernel = data.us.to_numpy(float), data.kernel_number.to_numpy()
    weights = data.weight.to_numpy(float)
    costs = kept.copy()  # infinite for kernels without times
    is_kept = np.isfinite(kept[:, 0])
    for number in np.unique(kernel):
        if is_kept[number]:
            continue
        of_kernel = kernel == number
        costs[number] = fit_kernel(
            terms[of_kernel], times[of_kernel], weights[of_kernel]
        )
    choices, choice = np.unique(data.choice, return_inverse=True)
    best = np.full(len(choices), np.inf)
    np.minimum.at(best, choice, times)
    loss = np.minimum(times / best[choice] - 1, 1)
    importance = data.importance.to_numpy(float)

    def mean_loss(flat):
        estimates, slopes = estimate(flat.reshape(costs.shape)[kernel], terms)
        logarithms = np.log(estimates)
        least = np.full(len(choices), np.inf)
        np.minimum.at(least, choice, logarithms)
        probability = np.exp((least[choice] - logarithms) / CLOSE)
        probability /= np.bincount(choice, probability)[choice]
        expected = np.bincount(choice, probability * loss)
        by_estimate = -importance * probability * (loss - expected[choice]) / CLOSE
        errors = weights * (logarithms - np.log(times)) / NOISE
        spread = np.sqrt(1 + errors**2)
        total = (
            importance * probability * loss
        ).sum() + 2 * ESTIMATES_MATTER * NOISE**2 * (spread - 1).sum()
        by_estimate += 2 * ESTIMATES_MATTER * NOISE * weights * errors / spread
        by_cost = [
            np.bincount(kernel, by_estimate * slopes[:, n], minlength=len(costs))
            for n in range(len(TERMS))
        ]
        return total / len(choices), np.stack(by_cost, axis=1).ravel() / len(choices)

    has_times = np.isfinite(costs)
    costs[~has_times] = 0
    least = np.where(is_kept[:, None], costs, LEAST)
    most = np.where(is_kept[:, None], costs, MOST)
    bounds = list(zip(least.ravel(), most.ravel()))
    found = minimize(
        mean_loss,
        costs.ravel(),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": 300, "maxfun": 600},
    )
    return np.where(has_times, found.x.reshape(costs.shape), np.inf)


def bytes_of(layout):
    width, sizes, *_ = layout.split(",")
    return int(width) * math.prod(map(int, sizes.split("x")))


def present_costs():
    """The costs in src/cuda/costs.rs: by mode, family and bytes of the unit."""
    found = {}
    for family, text in re.findall(
        r'name: "(\w+)", placements: (.*?)};', COSTS.read_text(), re.S
    ):
        for mode, rows in zip(("copying", "in place"), text.split("&[")[1:]):
            for n, row in enumerate(re.findall(r"\[([^][]+)\]", rows)):
                found[f"{mode} {family} {2**n}"] = [
                    float(cost) for cost in row.split(",") if cost.strip()
                ]
    return found


def estimates_of(costs, data, terms):
    """The estimates by the costs, given as logarithms by kernel. Infinite where a kernel has none."""
    of_data = costs[data.kernel_number]
    estimates = estimate(np.nan_to_num(of_data, posinf=0), terms)[0]
    return np.where(np.isfinite(of_data[:, 0]), estimates, np.inf)


def report(name, ratio):
    ratio = ratio.clip(lower=1)
    print(
        f"{name:42} {len(ratio):6} {ratio.mean():8.4f} {(ratio > 1.05).mean() * 100:6.1f} % {(ratio > 1.25).mean() * 100:7.1f} % {ratio.max():7.2f}"
    )


def report_choices(data, name):
    """How much longer the kernel with the lowest estimate takes than the fastest one."""
    print(
        f"\n{name:42} {'count':>6} {'mean':>8} {'over 5 %':>8} {'over 25 %':>9} {'worst':>7}"
    )
    for mode, of_mode in data.groupby("mode"):
        best = of_mode.groupby("layout").us.min()
        report(
            f"{mode}, chosen when measured",
            (
                of_mode[of_mode.chosen == "yes"].groupby("layout").us.first() / best
            ).dropna(),
        )
        least = of_mode.sort_values("estimate").groupby("layout")
        chosen = (least.head(1).set_index("layout").us / best).dropna()
        report(f"{mode}, lowest estimate", chosen)
        large = of_mode[of_mode.bytes >= LARGE].layout.unique()
        report(
            f"{mode}, the same, of 128 MiB or more", chosen[chosen.index.isin(large)]
        )
        eager = (
            least.head(1).set_index("layout").generic_us
            / of_mode.groupby("layout").generic_us.min()
        )
        report(f"{mode}, the same, not captured", eager.dropna())
        print(f"{'':42} {best.size - chosen.size:6} more, whose kernel was not timed")
        report(
            f"{mode}, best of 4 lowest",
            (least.head(4).groupby("layout").us.min() / best).dropna(),
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", metavar="TARGET-NAME.csv[.gz]")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--check", action="store_true")
    how.add_argument("--only", metavar="FAMILY")
    options = parser.parse_args()
    only = options.only
    families = {kernel.split()[-2] for kernel in present_costs()}
    if only and only not in families:
        parser.error(
            f"{only} has no costs to begin with; it must be one of {', '.join(sorted(families))}"
        )
    files = [pathlib.Path(name) for name in options.files]
    files = files or sorted((ROOT / "benches/record/times").glob("*.csv.gz"))
    data = pd.concat([load_or_exit(path) for path in files], ignore_index=True)
    terms = np.array([text.split() for text in data.terms], float)
    data["generic_us"] = data.us
    data["us"] = captured(data, terms[:, TERMS.index("memory")])
    data["bytes"] = data.sizes_and_strides.map(bytes_of)
    data["kernel_number"], kernels = pd.factorize(data.costs)
    if options.check:
        return check(data, terms, kernels)
    # Only kernels that have one mode are fitted. The choices that are reported are among all kernels.
    timed = (data.us.notna() & ~data.copies).to_numpy()
    weigh(data)
    kept = kept_costs(kernels, only)
    data["estimate"] = held_out(data, terms, timed, kept)
    of_family = f" of {only}" if only else ""
    report_choices(data, f"layouts that the fit{of_family} has not seen")
    costs = np.exp(fit(data[timed], terms[timed], kept))
    families = report_kernels(data, timed, kernels, costs)
    write(families, kernels, ", ".join(path.name.split(".")[0] for path in files))


def check(data, terms, kernels):
    """Reports the choices by the present costs, and fits nothing."""
    present = present_costs()
    none = [math.inf] * len(TERMS)
    costs = [present.get(kernel, none) for kernel in kernels]
    with np.errstate(divide="ignore"):
        data["estimate"] = estimates_of(np.maximum(np.log(costs), LEAST), data, terms)
    report_choices(data, "layouts, by the present costs")


def weigh(data):
    """Weighs layouts of the benchmark and large ones, and errors where a kernel may be chosen."""
    data["choice"] = data.layout + " " + data["mode"]
    is_suite = data.layout.str.contains("-suite")
    is_bench = data.layout.str.contains("-bench|-large")
    data["importance"] = np.select([is_suite, is_bench], [50.0, 10.0], 1.0)
    fastest = data.groupby("choice").us.transform("min")
    data["weight"] = data.importance * fastest / data.us


def kept_costs(kernels, only):
    """The logarithms of the costs that stay: with `only` those of all other families, otherwise none."""
    kept = np.full((len(kernels), len(TERMS)), np.inf)
    present = present_costs()
    for number, kernel in enumerate(kernels):
        if only and kernel in present and kernel.split()[-2] != only:
            with np.errstate(divide="ignore"):
                kept[number] = np.maximum(np.log(present[kernel]), LEAST)
    return kept


def held_out(data, terms, timed, kept):
    """The estimates of each third of the layouts by a fit to the others."""
    estimates = np.full(len(data), np.inf)
    layouts = data.sizes_and_strides.unique()
    for part in np.array_split(np.random.default_rng(0).permutation(len(layouts)), 3):
        test = data.sizes_and_strides.isin(layouts[part]).to_numpy()
        costs = fit(data[timed & ~test], terms[timed & ~test], kept)
        estimates[test] = estimates_of(costs, data[test], terms[test])
    return estimates


def report_kernels(data, timed, kernels, costs):
    """Prints the errors of each kernel's held-out estimates. Returns the costs by family, mode and unit."""
    print(
        f"\n{'kernel, bytes of the unit':36} {'times':>6} {'error, root of the mean square of logarithms'}"
    )
    families = {}
    for number, (kernel, of_kernel) in enumerate(zip(kernels, costs)):
        rows = timed & (data.kernel_number == number)
        if not rows.any():
            continue
        rows &= np.isfinite(data.estimate)
        errors = np.log(data.estimate[rows] / data.us[rows])
        weight = data.weight[rows] ** 2
        error = np.sqrt((weight * errors**2).sum() / weight.sum())
        print(f"{kernel:36} {rows.sum():6} {error:8.3f}")
        mode, family, unit = re.fullmatch(
            r"(copying|in place) (\w+) (\d+)", kernel
        ).groups()
        families.setdefault(family, {}).setdefault(mode, {})[int(unit)] = of_kernel
    return families


def write(families, kernels, files):
    """A line for each kernel. Costs of one without times would be lost, or be those of another width."""
    path = COSTS
    needed = set(kernels)
    for family, text in re.findall(
        r'name: "(\w+)", placements: (.*?)};', path.read_text(), re.S
    ):
        for mode, costs in zip(("copying", "in place"), text.split("&[")[1:]):
            rows = re.findall(r"\[([^][]+)\]", costs)
            # A unit that a kernel has not has the costs of the next one.
            needed |= {
                f"{mode} {family} {2**n}"
                for n, row in enumerate(rows)
                if row not in rows[n + 1 : n + 2]
            }
    missing = needed - {
        f"{mode} {family} {unit}"
        for family, modes in families.items()
        for mode in modes
        for unit in modes[mode]
    }
    if missing:
        names = ", ".join(sorted(missing))
        sys.exit(
            f"\n{path.relative_to(ROOT)} is not written, because the files have no times of {names}. Delete the costs of kernels that are gone"
        )
    text = HEAD.format(
        files=textwrap.fill(
            files, 120, initial_indent="//! ", subsequent_indent="//! "
        ),
        terms=", ".join(TERMS),
    )
    for family, modes in sorted(families.items()):
        text += f'pub(crate) static {family.upper()}: FamilyCosts = FamilyCosts {{ name: "{family}", placements: ['
        for mode in ("copying", "in place"):
            units = modes.get(mode, {})
            text += "&["
            for unit in (1, 2, 4, 8, 16, 32):
                if units and unit <= max(units):
                    costs = units[
                        min(units, key=lambda other: abs(np.log2(other / unit)))
                    ]
                    text += (
                        "\n    ["
                        + ", ".join(
                            f"{cost:#.4g}" if cost >= 1e-4 else "0.0" for cost in costs
                        ).replace("., ", ".0, ")
                        + "],"
                    )
            text += "\n], " if units else "], "
        text = text[:-2] + "] };\n\n"
    path.write_text(text)
    print(f"\n{path.relative_to(ROOT)} is written")


if __name__ == "__main__":
    main()
