#!/usr/bin/env python3
"""Writes the generated tables of the pages, between `<!-- table: NAME -->` and `<!-- end -->`, and docs/speedups.svg, from
benches/record and the list of minimum versions. `--check` only compares. Fails if a file names another minimum
version."""

import csv
import functools
import json
import re
import statistics
import sys

import speedups
import versions
from gains import gains, is_older, measured_on
from records import BENCHES, COLD, MODELS_RUN, ONNXRUNTIME, ROOT, RUN, read

# The cases, and the goals of some.
SUITE = ROOT / "crates" / "dml-cuda-cli" / "src" / "bench" / "suite.jsonl"
# The rows of RNNs in CUDA graphs.
FORMS = r"^\| (LSTM|GRU) \[([^|]+\|){9}$"

TYPES = ("u8", "f16", "f32", "i64")
# How the names of cases begin that no table has, and of those in the table of small work.
ODD = ("lanes odd", "lanes long", "block long", "transposed")
SMALL = ("small", "tokens", "lanes of", "model", "blocks of")


def table(head, lines):
    lines = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def by_type(names, cell, modes=("fill", "copy", "in place")):
    """A line for each case, a column for each type; modes are apart by a slash."""
    of_modes = lambda *key: " / ".join(
        text for mode in modes if (text := cell(*key, mode)) is not None
    )
    return table(
        ["case", *TYPES],
        [[name, *(of_modes(name, data_type) for data_type in TYPES)] for name in names],
    )


def cold_table(begin, text):
    """The cases whose names begin so, or without a beginning all others."""
    cases = read(COLD)
    is_wanted = lambda name: (
        name.startswith(begin)
        if begin
        else not name.startswith((*ODD, *SMALL, "512 MiB"))
    )
    names = filter(is_wanted, dict.fromkeys(name for name, *_ in cases))
    return by_type(names, lambda *key: text(*cases[key]) if key in cases else None)


def in_the_l2():
    empty = read(COLD)["small fill of 64 bytes", "f32", "fill"][2]
    return (
        cold_table(SMALL, lambda time, *_: f"{time:.2f}")
        + f"\n| an empty kernel |  |  | {empty:.2f} |  |"
    )


def of_goals():
    """A line for each goal and case: how many types and modes have it, and how many meet it."""
    found, goals = read(COLD), {}
    for case in map(json.loads, SUITE.read_text(encoding="utf-8").splitlines()):
        if "goal" in case:
            time, floor, _ = found[case["case"], case["type"], case["mode"]]
            goals.setdefault((case["goal"], case["case"]), []).append(floor / time)
    lines = [
        (f"{goal:.2f}", name, len(ratios), sum(ratio >= goal for ratio in ratios))
        for (goal, name), ratios in goals.items()
    ]
    lines = sorted(lines, key=lambda line: line[0], reverse=True)
    lines.append(
        ("all", "", *(sum(line[column] for line in lines) for column in (2, 3)))
    )
    return table(
        ["goal", "case", "types and modes", "meet it"],
        [[str(cell) for cell in line] for line in lines],
    )


def of_onnxruntime(mode, types):
    """A line for each case of ONNX Runtime's run: its microseconds, with the library, and the kernel's alone."""
    runs = [read(path) for path in ONNXRUNTIME]
    names = dict.fromkeys(
        name for name, _, of_mode in runs[0] | runs[1] if of_mode == mode
    )

    def cell(*key):
        times = [run.get(key) for run in runs]
        return (
            " / ".join(
                f"{time[0]:,.3g}"
                if time and time[0] < 10
                else f"{time[0]:,.0f}"
                if time
                else "–"
                for time in times
            )
            if any(times)
            else ""
        )

    return table(
        ["case", *types],
        [
            [name, *(cell(name, data_type, mode) for data_type in types)]
            for name in names
        ],
    )


def of_rnns():
    """A line for each size: the microseconds in CUDA graphs of PyTorch's module without lengths, of two passes, and of
    the form that an RNN with lengths chooses."""
    columns = [
        f"{kind}, {dtype}"
        for kind in ("LSTM", "GRU")
        for dtype in ("float16", "float32")
    ]
    lines = {}
    for line in filter(
        re.compile(FORMS).search,
        (RUN / "rnn-captured.md").read_text(encoding="utf-8").splitlines(),
    ):
        _, name, *times = (cell.strip() for cell in line.split("|"))
        kind, size, dtype = re.fullmatch(r"(\w+) (.*), (\w+)", name).groups()
        lines.setdefault(size, {})[f"{kind}, {dtype}"] = "; ".join(
            f"{int(time):,}" for time in times[:3]
        )
    return table(
        ["[T, B, F], hidden size, layers", *columns],
        [[size, *map(cells.get, columns)] for size, cells in lines.items()],
    )


def of_gains():
    """A line for each alternative: the average of the speedups, their range, and the record."""
    lines = []
    for gain in gains():
        average, low, high = (
            digits(number)
            for number in (
                statistics.geometric_mean(gain.speedups),
                min(gain.speedups),
                max(gain.speedups),
            )
        )
        link = gain.record.relative_to(ROOT)
        older = ", older" if is_older(gain) else ""
        speedup = f"{average}× ({low}–{high})"
        lines.append([gain.alternative, speedup, f"[{gain.measured}]({link}){older}"])
    return table(["compared with", "speedup", "measured on"], lines)


def picture_of_gains():
    """README's picture, which has no Markdown in its names."""
    rows = [(gain.alternative.replace("`", ""), gain.speedups) for gain in gains()]
    return speedups.picture(rows, digits)


def of_lengths():
    """A line for each LSTM in two directions: milliseconds packed by PyTorch, packed by this library and padded, and
    the first over the second."""
    lines = []
    for line in (RUN / "rnn-sizes.md").read_text(encoding="utf-8").splitlines():
        if found := re.match(
            r"\| LSTM, 1, 2, (\[.*\]), \d+, (float\d+), \d+%, inference \|((?: [\d.]+ \|){7})$",
            line,
        ):
            packed, _, kept, padded, *_ = map(float, found[3].split("|")[:-1])
            times = [f"{digits(time)} ms" for time in (packed, kept, padded)]
            lines.append(
                [f"{found[1]} {found[2]}", *times, f"{digits(packed / kept)}×"]
            )
    return table(
        [
            "[T, B, F], two directions",
            "packed",
            "kept pack",
            "`lengths=`",
            "speedup of the kept pack",
        ],
        lines,
    )


def digits(number):
    """Two significant digits."""
    return (
        f"{number:.0f}"
        if number >= 9.95
        else f"{number:.1f}"
        if number >= 0.995
        else f"{number:.2f}"
    )


def of_constants(section):
    """A line for each constant and alternative of a part of benches/TUNING.md. Runners-up have no value."""
    with (BENCHES / "record" / "constants.csv").open(encoding="utf-8") as file:
        lines = [
            line for of_section, *line in csv.reader(file) if of_section == section
        ]
    head = [
        "constant",
        "value",
        "alternative",
        "loss; in place" if section == "model" else "the alternative takes",
    ]
    if not any(value for _, value, *_ in lines):
        head, lines = ["kernel", *head[2:]], [[name, *rest] for name, _, *rest in lines]
    return table(head, lines)


def of_record(head, file, rows, columns, after="\n"):
    """Microseconds in rows of a record's Markdown: for each name the beginning of its row behind a heading."""
    lines = file.read_text(encoding="utf-8").partition(after)[2].splitlines()
    line = lambda begin: next(
        line for line in lines if line.startswith(f"| {begin}")
    ).split("|")
    text = lambda time: f"{time:,.0f} µs" if time >= 99.5 else f"{time:.1f} µs"
    cells = lambda begin: [text(float(line(begin)[column])) for column in columns]
    return table(head, [[name, *cells(begin)] for name, begin in rows.items()])


IN_JAX = {
    "`r(x)`": "alone, rows [64, 2048, 1024] f16",
    "`r(x) * 2 + 1`": "after, rows [64, 2048, 1024] f16",
    "`x + r(x)`": "residual, rows [64, 2048, 1024] f16",
    "`jnp.concatenate((x * 2, r(x * 3)), -1)`": "cat, rows [64, 2048, 1024] f16",
    "`r(x) * 2 + 1`, interleaved, [64, 512, 1024]": "after, side-by-side [64, 512, 1024] f16",
}
IN_PYTORCH = (
    "[64, 2048, 1024] float16",
    "[32, 128, 512] float16",
    "[8, 64, 128] float32",
)
MODELS = (
    "bidirectional LSTM",
    "bidirectional GRU",
    "attention mask",
    "positional encoding",
    "Range of float16, opset 27",
)
PAGES = [
    "README.md",
    "benches/results.md",
    "benches/TUNING.md",
    *(f"docs/{name}.md" for name in ("install", "jax", "onnxruntime", "pytorch")),
]
SECTIONS = (
    "runners-up",
    "fills",
    "elementwise",
    "segments",
    "lanes",
    "strips",
    "transposed",
    "specialized",
    "model",
    "cpu",
)
TABLES = {
    "gains": of_gains,
    "measured on": measured_on,
    "RNNs in CUDA graphs": of_rnns,
    "versions": lambda: table(*versions.cells()),
    "of the floor": lambda: cold_table(
        None, lambda time, floor, _: floor and f"{floor / time:.2f}"
    ),
    "of the baseline": lambda: cold_table(
        None, lambda time, _, baseline: baseline and f"{baseline / time:.2f}"
    ),
    "microseconds in the L2": in_the_l2,
    "goals": of_goals,
    "ONNX Runtime, ReverseSequence": lambda: of_onnxruntime("copy", TYPES),
    "LSTMs": of_lengths,
    "programs in JAX": lambda: of_record(
        ["jitted, float16, [64, 2048, 1024]", "`None`", "gather", '`"kernel"`'],
        RUN / "compiled-jax.md",
        IN_JAX,
        (2, 3, 4),
    ),
    "reversals in PyTorch": lambda: of_record(
        ["[B, T, F], along T", "`dml_cuda.torch`", "compiled gather", "eager gather"],
        RUN / "pytorch.md",
        dict(zip(IN_PYTORCH, IN_PYTORCH)),
        (2, 3, 4),
    ),
    "whole ONNX models": lambda: of_record(
        ["model", "without", "`1`", "`ReverseSequence,Range`"],
        MODELS_RUN,
        {name: f"{name} |" for name in MODELS},
        (2, 3, 4),
    ),
    **{
        f"constants of {section}": functools.partial(of_constants, section)
        for section in SECTIONS
    },
    "ONNX Runtime, Range": lambda: of_onnxruntime(
        "fill", ("i16", "i32", "i64", "f32", "f64")
    ),
}


def main():
    written = {}
    write = lambda match: f"{match[1]}\n{TABLES[match[2]]()}\n{match[3]}"
    for path in (ROOT / page for page in PAGES):
        written[path] = re.sub(
            r"(<!-- table: (.+?) -->)\n.*?(<!-- end -->)",
            write,
            path.read_text(encoding="utf-8"),
            flags=re.DOTALL,
        )
    written[ROOT / "docs/speedups.svg"] = picture_of_gains()
    stale = []
    for path, new in written.items():
        if not path.exists() or path.read_text(encoding="utf-8") != new:
            stale.append(str(path.relative_to(ROOT)))
            if "--check" not in sys.argv:
                path.write_text(new, encoding="utf-8")
    for gain in gains():
        if is_older(gain):
            record = gain.record.relative_to(ROOT)
            print(f"{gain.alternative} was measured with other kernels: {record}")
    wrong = sorted(versions.wrong())
    if stale and "--check" in sys.argv:
        wrong.append(
            f"{', '.join(stale)}: not what the records say; scripts/tables.py writes it anew"
        )
    sys.exit("\n".join(wrong) or None)


main()
