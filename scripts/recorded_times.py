"""Reads the times of `dml-cuda tune` for scripts/fit-estimates.py, with the terms of each launch."""

import os
import pathlib
import re
import subprocess
import tempfile

import numpy as np
import pandas as pd

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAYOUT = ["width", "sizes", "axis", "in_strides", "out_strides", "length_sizes"]
KERNEL = ["layout", "mode", "kernel", "variant", "alignment"]
# How much faster generic kernels became after files were recorded, by the beginning of a name, and the files that came
# after. What older files say of their specialized times does not count.
FASTER = {
    "reverse_clusters": 1.08,
    "reverse_thread_columns": 1.1,
    "reverse_transposed_scatter": 1.1,
    "reverse_strips": 1.0,
    "reverse_unaligned_strips": 1.0,
}
SINCE_THEN = "h200-seed-97", "h200-seed-98"


def load(path):
    """The times of a file, with the terms of each launch, also of launches that were not timed."""
    times = read_times(path)
    joined = times.merge(terms_of(times, path), on=KERNEL, how="outer")
    unknown = joined.terms.isna()
    print(
        f"{path.name}: {times.layout.nunique()} layouts, {len(times)} times, {unknown.sum()} of launches that are not selected any more"
    )
    is_timed = joined.groupby(["layout", "mode"]).us.transform("any")
    joined = joined[~unknown & is_timed].copy()
    # A kernel that copies in place takes as long as where it copies, unless the file has its time.
    launch = ["layout", *KERNEL[2:]]
    copying = joined[joined["mode"] == "copying"].groupby(launch).us.min()
    copying = copying.reindex(pd.MultiIndex.from_frame(joined[launch]))
    is_copy = joined.costs.str.startswith("copying")
    joined["copies"] = (joined["mode"] == "in place") & is_copy
    joined["us"] = joined.us.fillna(copying.set_axis(joined.index).where(joined.copies))
    by_layout = joined.groupby("layout")
    joined["sizes_and_strides"] = by_layout.sizes_and_strides.transform("first")
    joined["layout"] = f"{path} " + joined.layout.astype(str)
    return joined


def read_times(path):
    """The lines of a file, with a number for each layout."""
    times = pd.read_csv(path, keep_default_na=False)
    if missing := {*LAYOUT, *KERNEL[1:], "us", "chosen"} - {*times.columns}:
        raise ValueError(f"there is no column {', '.join(sorted(missing))}")
    times["us"] = pd.to_numeric(times["us"], errors="coerce")
    specialized = times.get("specialized_us")
    times["specialized_us"] = pd.to_numeric(specialized, errors="coerce")
    if times.empty or not np.isfinite(times.us).all() or not (times.us > 0).all():
        raise ValueError("there are no times, or one is not a number above 0")
    if not path.name.startswith(SINCE_THEN):
        names = times.kernel.str.extract(f"^({'|'.join(FASTER)})")[0]
        faster = names.map(FASTER)
        times["us"] /= faster.fillna(1)
        times.loc[faster.notna(), "specialized_us"] = np.nan
    times["sizes_and_strides"] = times[LAYOUT].astype(str).agg(",".join, axis=1)
    times["layout"] = pd.factorize(times.sizes_and_strides)[0]
    return times


def terms_of(times, path):
    """The terms of every launch of the layouts, as the library's test prints them."""
    with tempfile.TemporaryDirectory() as folder:
        layouts, terms = (pathlib.Path(folder) / name for name in ("layouts", "terms"))
        of_layouts = times.drop_duplicates("layout")[["layout", *LAYOUT]]
        of_layouts.to_csv(layouts, index=False)
        environment = {
            **os.environ,
            "ESTIMATE_LAYOUTS": str(layouts),
            "ESTIMATE_TERMS": str(terms),
            "ESTIMATE_TARGET": path.name.split("-")[0],
        }
        command = "cargo test --quiet -p dml-cuda --lib terms_of_recorded_layouts"
        ran = subprocess.run(
            command.split(),
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        if ran.returncode:
            reason = re.search(r"panicked at .*\n(.*)", ran.stdout)
            raise ValueError(
                reason[1] if reason else f"cargo test failed: {ran.stdout[-300:]}"
            )
        return pd.read_csv(terms, keep_default_na=False)
