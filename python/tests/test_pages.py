"""What README.md and docs/ show runs as it stands. A block of Python needs what it imports: those without it wait for a
run of the tests that has it. Commands need target/release/dml-cuda and libdml_cuda.so. Commands that build, install or
time are not run, but the names in them are checked."""

import importlib.util
import itertools
import os
import pathlib
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

from programs import run_python

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "python" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
TOOL = ROOT / "target" / "release" / "dml-cuda"
LIBRARY = ROOT / "target" / "release" / "libdml_cuda.so"
# Commands that build, install, time, or need what is not there.
NOT_RUN = r"cargo (?!run --release -- (?!tune))|\bpip |tritonserver|serve\.py|--provider|openvino|benches/\w+\.py|\b(?:bench|tune) |times\.csv|fit-estimates|gpu-bundle|REQUIRE_CUDA|DML_CUDA_LIBRARY|cd |random_rnns|-m unittest"
# The tool and Python that a block means.
SHELL = f"""
dml-cuda() {{ "{TOOL}" "$@"; }}
cargo() {{ shift 3; "{TOOL}" "$@"; }}
python() {{ "{sys.executable}" -W ignore "$@"; }}
"""
# The files that commands name, besides those of the repository.
RUNS = {
    "windows": "directml-1.13.1",
    "linux": "2026-11-29/suite",
    "cold": "2026-11-29/cold",
    "cuda": "2026-11-29/onnxruntime",
    "library": "2026-11-29/onnxruntime-library",
}


def blocks(page, kind):
    return re.findall(rf"(?ms)^```{kind}(.*?)^```", page.read_text(encoding="utf-8"))


def simple_commands(block):
    """Its commands as words, without variables that are set for them."""
    for line in re.sub(r"\\\n", "", block).splitlines():
        words = shlex.shlex(line, posix=True, punctuation_chars=True)
        words.whitespace_split = True
        for is_operator, command in itertools.groupby(
            words, lambda word: word in ("&&", ";", "|", "(", ")")
        ):
            command = [word for word in command if not re.match(r"\w+=", word)]
            if command and not is_operator:
                yield command


def installed(block):
    names = re.findall(r"(?m)^(?:from|import) (.*)", block)
    modules = {
        word.split()[0].partition(".")[0]
        for line in names
        for word in line.split(" import ")[0].split(", ")
    }
    return all(map(importlib.util.find_spec, modules))


def make_files(folder):
    """What the commands name: two models, of which rules are broken, and results."""
    shutil.copytree(ROOT / "models", folder / "models")
    for name in "benches", "crates", "scripts":
        (folder / name).symlink_to(ROOT / name)
    (folder / "target").mkdir()
    for profile in "release", "dist":
        (folder / "target" / profile).symlink_to(TOOL.parent)
    for name, run in RUNS.items():
        shutil.copy(
            ROOT / "benches" / "record" / "nvidia-h200" / f"{run}.json",
            folder / f"{name}.json",
        )
    reverse = (ROOT / "models" / "reverse_subsequences.json").read_text(
        encoding="utf-8"
    )
    (folder / "model.json").write_text(
        re.sub(r'"Axis": \d', '"Axis": 4', reverse), encoding="utf-8"
    )
    fill = (ROOT / "models" / "fill_value_sequence_float32.json").read_text(
        encoding="utf-8"
    )
    (folder / "other.json").write_text(
        re.sub(r'"Sizes": \[', '"Sizes": [1, 1, ', fill), encoding="utf-8"
    )


def ran(command, folder):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True
    )


def make_onnx(folder, block):
    """model.onnx, if a block names it."""
    if "model.onnx" in block:
        import onnx

        example = (
            ROOT / "crates" / "dml-cuda-capi" / "examples" / "bidirectional_rnn.py"
        )
        onnx.save(runpy.run_path(str(example))["make_model"](), f"{folder}/model.onnx")


class Pages(unittest.TestCase):
    def test_every_block_of_python_runs(self):
        programs = [
            (page, block) for page in PAGES for block in blocks(page, "python\n")
        ]
        self.assertGreater(len(programs), 14)
        for page, block in filter(lambda program: installed(program[1]), programs):
            with (
                self.subTest(page=page.name, block=block),
                tempfile.TemporaryDirectory() as folder,
            ):
                make_onnx(folder, block)
                pathlib.Path(folder, "models", "reverse", "1").mkdir(
                    parents=True
                )  # docs/triton.md
                pathlib.Path(folder, "block.py").write_text(
                    block, encoding="utf-8"
                )  # TorchScript reads sources
                run = run_python("block.py", cwd=folder)
                self.assertEqual(run.returncode, 0, run.stderr)

    @unittest.skipUnless(TOOL.exists(), "needs cargo build --release")
    def test_the_tool_prints_what_pages_show(self):
        tried = 0
        for page in [*PAGES, *sorted((ROOT / "docs" / "design").glob("*.md"))]:
            with tempfile.TemporaryDirectory() as folder:
                make_files(pathlib.Path(folder))
                for block in blocks(page, r"text\n(?=\$ )"):
                    for command, printed in re.findall(
                        r"(?m)^\$ dml-cuda (.*)\n((?:^(?!\$ ).*\n)*)", block
                    ):
                        with self.subTest(page=page.name, command=command):
                            run = ran([TOOL, *shlex.split(command)], folder)
                            self.assertEqual(
                                run.stdout, printed.rstrip("\n") + "\n", run.stderr
                            )
                            tried += 1
        self.assertGreater(tried, 1)

    @unittest.skipUnless(
        TOOL.exists() and LIBRARY.exists(),
        "needs cargo build --release with -p dml-cuda-cli and -p dml-cuda-capi",
    )
    def test_every_block_for_a_shell_runs(self):
        tried = 0
        for page in [
            *PAGES,
            *sorted((ROOT / "docs" / "design").glob("*.md")),
            ROOT / "benches" / "README.md",
        ]:
            with tempfile.TemporaryDirectory() as folder:
                make_files(pathlib.Path(folder))
                for block in blocks(page, "sh\n"):
                    lines = [
                        line
                        for line in re.sub(r"\\\n", "", block).splitlines()
                        if not re.search(NOT_RUN, line)
                    ]
                    if any("onnx" in line for line in lines):
                        if not all(
                            map(importlib.util.find_spec, ("onnx", "onnxruntime"))
                        ):
                            continue
                        make_onnx(folder, block)
                    with self.subTest(page=page.name, block=block):
                        run = ran(["bash", "-euc", "\n".join([SHELL, *lines])], folder)
                        self.assertEqual(run.returncode, 0, run.stderr)
                        for line in lines:  # such as `./reverse  # 3 2 1`
                            for printed in re.findall(
                                r"  # ((?:Resource 'Out': )?\d[\d, ]+\d)$", line
                            ):
                                self.assertIn(printed, run.stdout)
                                tried += 1
                        tried += len(lines)
        self.assertGreater(tried, 15)

    def test_what_a_shell_is_told_is_there(self):
        """Files, steps, crates, benches and tests that commands name, in all blocks for a shell of all pages."""
        steps = subprocess.run(
            [ROOT / ".ci" / "run", "--list"], capture_output=True, text=True, check=True
        ).stdout.split("\n")
        steps = {line.split()[0] for line in steps if line}
        manifests = "\n".join(
            path.read_text(encoding="utf-8")
            for path in [
                ROOT / "Cargo.toml",
                ROOT / "benches" / "Cargo.toml",
                *ROOT.glob("crates/*/Cargo.toml"),
            ]
        )
        tried = 0
        for page in [
            *PAGES,
            *ROOT.glob("*.md"),
            *(ROOT / "docs" / "design").glob("*.md"),
            ROOT / "benches" / "README.md",
        ]:
            for block in blocks(page, "sh\n"):
                self.assertEqual(
                    subprocess.run(
                        ["bash", "-n"], input=block, capture_output=True, text=True
                    ).stderr,
                    "",
                )
                folder = ROOT
                for words in simple_commands(block):
                    with self.subTest(page=page.name, words=words):
                        for word in words:
                            if re.match(
                                r"(?:\.\./)*(?:crates|scripts|benches|models|python|\.ci)/(?!bidirectional|reverse/)[^*]*$",
                                word.removeprefix("./"),
                            ):
                                self.assertTrue(
                                    (folder / word).exists()
                                    or "_native" in word
                                    or "a100-seed" in word,
                                    word,
                                )
                        if words[0] == ".ci/run":
                            self.assertLessEqual(
                                {word for word in words[1:] if word != "--list"}, steps
                            )
                        if words[1:3] == ["-m", "unittest"]:
                            self.assertTrue(
                                all(
                                    (folder / f"{word}.py").exists()
                                    for word in words[3:]
                                )
                            )
                        if words[0] == "cargo":
                            line = " ".join(words)
                            named = re.findall(r"(?:-p|--bench) (\S+)", line)
                            self.assertTrue(
                                all(f'name = "{name}"' in manifests for name in named),
                                named,
                            )
                            tests = re.findall(r"--test (\S+)", line)
                            files = [
                                (
                                    ROOT / "tests" / f"{name}.rs",
                                    ROOT / "tests" / name / "main.rs",
                                )
                                for name in tests
                            ]
                            self.assertTrue(
                                all(
                                    one.exists() or other.exists()
                                    for one, other in files
                                ),
                                files,
                            )
                        if words[0] == "cd":
                            folder = folder / words[1]
                        tried += 1
        self.assertGreater(tried, 50)

    def test_the_program_in_c_is_that_of_the_example(self):
        example = (
            ROOT / "crates" / "dml-cuda-capi" / "examples" / "reverse.c"
        ).read_text(encoding="utf-8")
        lines = {line.strip() for line in example.splitlines()}
        block = re.search(
            r"(?ms)^```c\n(.*?)^```",
            (ROOT / "docs" / "c.md").read_text(encoding="utf-8"),
        )[1]
        self.assertLessEqual(set(filter(None, block.splitlines())), lines)


if __name__ == "__main__":
    unittest.main()
