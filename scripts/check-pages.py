#!/usr/bin/env python3
"""Checks the pages (*.md without records) and what comments and messages have in common with them: habits of style,
links and their anchors, long cells of tables, figures without a record, and names that the code does not have. Prints
every fault of a page. For sources it prints the number of habits, which may not rise above SOURCES_AT_MOST."""

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = (".rs", ".py", ".sh", ".cu", ".cuh", ".c", ".cpp", ".h", ".hpp")
RECORDS = ("benches/record/", "crates/dml-cuda-cli/tests/golden/", "tests/data/")

# What to write instead is in CONTRIBUTING.md, "Style".
HABITS = {
    "fronted Of": r"(?:^|[.;:!?] |- |\| )Of (?:a|an|all|the|these|those|what|which|one|two|nodes|\d+)\b",
    "is of": r"\b(?:is|are|was|were|be) of (?!at least|no )",
    "a … more": r"\b(?:a|an|one) (?!few|little|lot|bit|third|quarter|half)\w+ more\b(?! than)",
    "so many": r"\b(?:so|that) many\b|\bas many as (?:are|is|take|make)\b",
    "trailing too": r", too\b",
    "least": r"\bleast (?:estimate|version|time|bytes)",
    "in the mean": r"\bin the (?:geometric )?mean\b",
    "nobody": r"\b[Nn]obody\b",
    "fragment": r"(?:^|[.:;] )(?:Not|Nor)\b[^,.;:]*[.;]",
    "comma splice": r"\bis [^,.;:]{1,60}, must (?:be|have)\b",
    "abandoned word": r"\blanes side by side\b|\bside-by-side lanes\b|\bbehind the axis\b|\buntried\b|\b[Dd]oors?\b",
}
# Words that the pages do not use for what has another name.
ABANDONED = {
    "the command line tool": r"\bthe runner\b(?! is| takes|'s device)",
    "commit": r"(?<![\w/-])(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}(?![\w-])",
    "ratio in words": r"\b\d[\d.]* times (?:as fast|faster)\b",
}
SOURCES_AT_MOST = 0
# Words for users: help, messages and reports as the golden files have them, docstrings, and the header in C.
FOR_USERS = (
    "tests/golden/messages.txt",
    "crates/dml-cuda-cli/tests/golden/help.txt",
    "crates/dml-cuda-cli/tests/golden/report.txt",
    "crates/dml-cuda-capi/include/dml_cuda.h",
)
# What they call otherwise: a sequence, a results file, a number of a GPU.
USER_WORDS = {
    "lane": r"(?<!interleaved )\blanes?\b(?! odd| of \d| \[)",
    "run": r"\b(?:older|other|first|both|two) runs?\b(?! differ)",
    "ordinal": r"(?<!uint32_t )\bordinals?\b",
}
CELL = 25  # words

# Figures that are settings or definitions, and no measurements.
SETTINGS = r"threshold of 5 %|95 %|97\.5 %|10\.5 %|about 2 ms|below 20 µs|over 100 ms|1\.15 times an empty kernel|`inf` ms"
FIGURE = r"\d\s?(?:×|%|µs|ms\b|GB/s)|\d times as (?:fast|long)"
# Options of other programs, in inline code.
FOREIGN_OPTIONS = {
    "--gpus",
    "--log-verbose",
    "--preset",
    "--nvtx",
    "--nvtx-include",
    "--lib",
    "--test",
    "--manifest-path",
}


def tracked(*patterns):
    command = [
        "git",
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        *patterns,
    ]
    found = subprocess.run(
        command, cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    return [file for file in found.splitlines() if (ROOT / file).exists()]


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def prose(text):
    """The text without blocks of code, and with inline code and the targets of links replaced."""
    text = re.sub(
        r"(?ms)^( *)```.*?^\1```", lambda block: "\n" * block[0].count("\n"), text
    )
    return re.sub(r"`[^`\n]*`", "`code`", re.sub(r"\]\([^)\s]*\)", "](link)", text))


def slug(heading):
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def anchors(path):
    return {
        slug(heading)
        for heading in re.findall(
            r"(?m)^#+ (.*)$", re.sub(r"(?ms)^```.*?^```", "", read(path))
        )
    }


def style(path, text, patterns):
    for number, line in enumerate(text.splitlines(), 1):
        for name, pattern in patterns.items():
            if re.search(pattern, line):
                yield f"{path}:{number}: {name}: {line.strip()}"


def links(path):
    for target in re.findall(
        r"\]\(([^)\s]+)\)", re.sub(r"(?ms)^```.*?^```", "", read(path))
    ):
        if re.match(r"\w+:", target):
            continue
        file, _, anchor = target.partition("#")
        found = (ROOT / path).parent / file if file else ROOT / path
        if not found.exists():
            yield f"{path}: the link {target} leads nowhere"
        elif anchor and anchor not in anchors(found.resolve().relative_to(ROOT)):
            yield f"{path}: the link {target} has no such heading"


def cells(path):
    for number, line in enumerate(read(path).splitlines(), 1):
        for cell in line.split("|")[1:-1] if line.startswith("|") else []:
            if len(cell.split()) > CELL:
                yield f"{path}:{number}: a cell has {len(cell.split())} words, but may have {CELL}: {cell.strip()}"


def figures(path):
    """A paragraph, an item or a table with a figure links a record, or is next to a paragraph or table that does."""
    text = re.sub(r"(?ms)^```.*?^```", "", read(path))
    parts = [
        part
        for block in re.split(r"\n\s*\n", text)
        for part in re.split(r"\n(?=- |\d\. )", block)
    ]
    linked = lambda n: (
        0 <= n < len(parts)
        and re.search(
            r"\]\((?:\.\./)*(?:benches/)?(?:record/|results\.md|TUNING\.md)", parts[n]
        )
    )
    is_table = lambda n: (
        0 <= n < len(parts) and parts[n].lstrip().startswith(("|", "<!--"))
    )
    for n, part in enumerate(parts):
        if re.search(FIGURE, re.sub(SETTINGS, "", prose(part))) and not part.startswith(
            "#"
        ):
            near = [
                n,
                *(
                    [n - 1, n + 1]
                    if is_table(n)
                    else [n + 1]
                    if is_table(n + 1)
                    else []
                ),
            ]
            if not any(map(linked, near)):
                yield f"{path}: no record for: {' '.join(part.split())[:150]}"


def names(path, words, options, features, files):
    text = read(path)
    code = re.findall(r"`([^`\n]+)`", re.sub(r"(?ms)^```.*?^```", "", text))
    blocks = re.findall(r"(?ms)^```\w*\n(.*?)^```", text)
    for span in [*code, *blocks]:
        for name in re.findall(
            r"\bDML_CUDA_\w+|\bdml_cuda(?:_\w+|(?:\.\w+)+)|\b(?!IDML)[A-Z]\w+::\w+",
            span,
        ):
            lost = [
                word
                for word in re.split(r"\.|::", name)
                if word not in words and word.rstrip("_") not in words
            ]
            if lost and not any(
                word.startswith(name) for word in words if name.endswith("_")
            ):
                yield f"{path}: the code does not have {name}"
    commands = [
        line
        for block in blocks
        for line in block.splitlines()
        if re.match(r"(?:\$ )?dml-cuda |cargo run --release -- ", line)
    ]
    for span in [
        *code,
        *(line.partition("#")[0].rpartition("--release -- ")[2] for line in commands),
    ]:
        if (
            span.startswith("--")
            or span.startswith(("dml-cuda ", "$ dml-cuda "))
            or span in commands
        ):
            for option in (
                set(re.findall(r"(?<![\w-])--[a-z][\w-]*", span)) - FOREIGN_OPTIONS
            ):
                if options.isdisjoint((option, option[2:].replace("-", "_"))):
                    yield f"{path}: there is no option {option}"
    for feature in re.findall(r"[Ff]eature `([^`]+)`", text):
        if feature not in features:
            yield f"{path}: there is no Cargo feature {feature}"
    for span in code:
        place = span.rstrip("/")
        if re.fullmatch(
            r"(?:\.ci|benches|crates|docs|examples|fuzz|kernels|models|python|scripts|src|tests)/[\w./-]+",
            place,
        ):
            if not any(file == place or file.startswith(place + "/") for file in files):
                yield f"{path}: there is no file {span}"


def docstrings(text):
    """The docstrings of a module in Python, with as many lines before each as the module has."""
    lines = [""] * (text.count("\n") + 2)
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for part in body:
            value = getattr(part, "value", None)
            if isinstance(part, ast.Expr) and isinstance(value, ast.Constant):
                if isinstance(value.value, str):
                    for n, line in enumerate(value.value.splitlines()):
                        lines[part.lineno - 1 + n] = line
    return "\n".join(lines)


def for_users():
    """The texts for users, by file."""
    found = {path: read(path) for path in FOR_USERS}
    # The report's tables have names of cases, cut into lines.
    report = next(path for path in FOR_USERS if path.endswith("report.txt"))
    found[report] = re.sub(r"\blanes\b", "", found[report])
    for path in tracked("python/src/*.py"):
        found[path] = docstrings(read(path))
    return found


def main():
    pages = [page for page in tracked("*.md") if not page.startswith(RECORDS)]
    files = tracked()
    sources = [
        file for file in files if file.endswith(SOURCES) or file.startswith(".ci/")
    ]
    sources.remove("scripts/check-pages.py")
    text = {file: read(file) for file in sources}
    code = [
        re.sub(r"#.*" if file.endswith((".py", ".sh")) else r"//.*", "", text[file])
        for file in sources
    ]
    words = set(re.findall(r"\w+", "\n".join([*code, *map(read, tracked("*.toml"))])))
    for file in files:
        words.update(Path(file).parts, [Path(file).name.partition(".")[0]])
    options = set(re.findall(r"--[a-z][\w-]*", "\n".join(text.values())))
    for file in filter(
        lambda file: file.startswith("crates/dml-cuda-cli/src"), sources
    ):
        options.update(re.findall(r"\w+", text[file]))
    manifests = "\n".join(map(read, tracked("*Cargo.toml")))
    blocks = "".join(re.findall(r"(?ms)^\[features\]\n(.*?)(?:^\[|\Z)", manifests))
    features = set(re.findall(r"(?m)^([\w-]+) = ", blocks))

    faults = []
    for page in pages:
        faults += [
            *style(page, prose(read(page)), HABITS | ABANDONED),
            *links(page),
            *cells(page),
        ]
        if page == "benches/TUNING.md":
            constants = set(
                re.findall(r"`([A-Z][A-Z0-9_]+)`", read(page))
            )  # of some only a comment has the name
            lost = sorted(
                name
                for name in constants
                if not any(name in code for code in text.values())
            )
            faults += [f"{page}: the code does not have {name}" for name in lost]
        if page == "README.md" or re.fullmatch(r"docs/[^/]+\.md", page):
            faults += [*figures(page), *names(page, words, options, features, files)]
    for path, words_for_users in for_users().items():
        faults += style(path, words_for_users, HABITS | USER_WORDS)
    habits = [fault for file in sources for fault in style(file, text[file], HABITS)]
    if "--sources" in sys.argv:
        print("\n".join(habits))
    print(
        f"{len(faults)} faults on {len(pages)} pages; {len(habits)} habits in comments and messages, at most {SOURCES_AT_MOST}"
    )
    if len(habits) > SOURCES_AT_MOST:
        faults.append(
            "comments and messages have more habits than before: scripts/check-pages.py --sources lists them"
        )
    sys.exit("\n".join(faults) or None)


main()
