"""The rows of README's table of gains, and what they were measured with."""

import json
import re
import sys
from pathlib import Path
from typing import NamedTuple

from records import (
    BENCHES,
    DIRECTML,
    ONNXRUNTIME,
    RUN,
    SUITE_RUN,
    column_of,
    of_layouts,
    quotients,
    ratios_of_cases,
    read,
)

sys.path.append(str(BENCHES))
import program  # noqa: E402

PROGRAM = program.hashes()


class Gain(NamedTuple):
    """A row of README's table of gains."""

    alternative: str
    """What this library is compared with."""
    speedups: list[float]
    """The alternative's times over this library's."""
    measured: str
    """What was timed."""
    record: Path


def gains():
    """The rows of README's table."""
    found = []
    for mode in ("inference", "training"):
        ratios = column_of("rnn-random.md", rf"^\| .*, {mode}; \w+ \|", 2)
        name = f"packing, random RNNs, {mode}"
        found.append(Gain(name, ratios, f"{len(ratios)} RNNs", RUN / "rnn-random.md"))
    sizes = quotients("rnn-sizes.md", r"^\| LSTM, .*\[4000, 32, 64\]", 2, 4)
    name = "packing, 4,000 steps and 64 hidden units"
    found.append(Gain(name, sizes, f"{len(sizes)} timings", RUN / "rnn-sizes.md"))
    in_jax = column_of("rnn-jax.md", r"^\| \[", 4)
    name = "cuDNN's padded LSTM, as JAX calls it"
    found.append(Gain(name, in_jax, f"{len(in_jax)} timings", RUN / "rnn-jax.md"))
    layouts = of_layouts("gather", "default")
    name = "a gather by `torch.compile`, random layouts"
    what = f"{len(layouts)} layouts"
    found.append(Gain(name, layouts, what, RUN / "layouts.csv"))
    for compiler, file in (("torch.compile", "pytorch"), ("jax.jit", "jax")):
        file = f"compiled-{file}.md"
        ratios = quotients(file, r"^\| \w+, .* [uf]\d+ \|", 3, 2)
        name = f"a gather in programs of `{compiler}`"
        found.append(Gain(name, ratios, f"{len(ratios)} programs", RUN / file))
    eager = quotients("pytorch.md", r"^\| \[[^|]+(\| [\d.]+ ){3}\|$", 4, 2)
    name = "an eager gather in PyTorch"
    found.append(Gain(name, eager, f"{len(eager)} layouts", RUN / "pytorch.md"))
    nodes = []
    for mode, ratio in ratios_of_cases(*map(read, ONNXRUNTIME[:2])):
        if mode == "copy":
            nodes.append(ratio)
    name = "ONNX Runtime's `ReverseSequence` kernel"
    what = f"{len(nodes)} single-node models"
    found.append(Gain(name, nodes, what, ONNXRUNTIME[1]))
    cases = [ratio for _, ratio in ratios_of_cases(read(DIRECTML), read(SUITE_RUN))]
    name = "DirectML 1.13.1 under Linux (vkd3d-proton)"
    found.append(Gain(name, cases, f"{len(cases)} cases", DIRECTML))
    return found


def told(gain):
    """The text of the record of this library's times: DirectML's has none."""
    path = SUITE_RUN if gain.record == DIRECTML else gain.record
    return path.read_text(encoding="utf-8")


def is_older(gain):
    """Whether a record was measured with other kernels or, for RNNs, with other passes, or does not say."""
    known = program.hashes_in(told(gain))
    needed = ["kernels", "rnn"] if "rnn" in gain.record.name else ["kernels"]
    return any(known.get(name) != PROGRAM[name] for name in needed)


def measured_on():
    """The GPU, the driver and the date of this library's records, which should be one of each, and DirectML's date."""
    machines = set()
    for gain in gains():
        head = re.search(
            r"commit \w+, (NVIDIA \w+), ([\d.]+), .*?(\d{4}-\d\d-\d\d)", told(gain)
        )
        machines.add("One {}, driver {}, {}".format(*head.groups()))
    directml = json.loads(DIRECTML.read_text(encoding="utf-8"))["machine"]["date"]
    return f"{'; '.join(sorted(machines))} (DirectML: {directml}). Records name their commits."
