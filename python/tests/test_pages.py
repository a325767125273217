"""What README.md and docs/ show runs as it stands. A block of Python needs what it imports: those without it wait for a
run of the tests that has it. Commands of the tool need target/release/dml-cuda; those that time are not run."""

import importlib.util
import pathlib
import re
import runpy
import shlex
import shutil
import subprocess
import tempfile
import unittest

from programs import run_python

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "python" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TOOL = ROOT / "target" / "release" / "dml-cuda"
COMMANDS = r"(?m)^(\$ )?(?:dml-cuda|cargo run --release --) (.*)\n((?:^(?!\$ |dml-cuda |cargo ).*\n)*)"
# The files that commands name, besides those of the repository.
RUNS = {"windows": "directml-1.13.1", "linux": "2026-11-22-suite", "cold": "2026-11-22", "cuda": "2026-11-23-onnxruntime", "library": "2026-11-23-onnxruntime-dml-cuda"}


def installed(block):
    names = re.findall(r"(?m)^(?:from|import) (.*)", block)
    modules = {word.split()[0].partition(".")[0] for line in names for word in line.split(" import ")[0].split(", ")}
    return all(map(importlib.util.find_spec, modules))


def make_files(folder):
    """What the commands name: two models, of which rules are broken, and results."""
    for name in "models", "benches":
        (folder / name).symlink_to(ROOT / name)
    for name, run in RUNS.items():
        shutil.copy(ROOT / "benches" / "record" / "nvidia-h200" / f"{run}.json", folder / f"{name}.json")
    reverse = (ROOT / "models" / "reverse_subsequences.json").read_text(encoding="utf-8")
    (folder / "model.json").write_text(re.sub(r'"Axis": \d', '"Axis": 4', reverse), encoding="utf-8")
    fill = (ROOT / "models" / "fill_value_sequence_float32.json").read_text(encoding="utf-8")
    (folder / "other.json").write_text(re.sub(r'"Sizes": \[', '"Sizes": [1, 1, ', fill), encoding="utf-8")


class Pages(unittest.TestCase):
    def test_every_block_of_python_runs(self):
        blocks = [(page, block) for page in PAGES for block in re.findall(r"(?ms)^```python\n(.*?)^```", page.read_text(encoding="utf-8"))]
        self.assertGreater(len(blocks), 15)
        for page, block in filter(lambda found: installed(found[1]), blocks):
            with self.subTest(page=page.name, block=block), tempfile.TemporaryDirectory() as folder:
                if "model.onnx" in block:
                    import onnx

                    example = ROOT / "crates" / "dml-cuda-capi" / "examples" / "bidirectional_rnn.py"
                    onnx.save(runpy.run_path(str(example))["make_model"](), f"{folder}/model.onnx")
                pathlib.Path(folder, "models", "reverse", "1").mkdir(parents=True)  # docs/triton.md
                pathlib.Path(folder, "block.py").write_text(block, encoding="utf-8")  # TorchScript reads sources
                run = run_python("block.py", cwd=folder)
                self.assertEqual(run.returncode, 0, run.stderr)

    @unittest.skipUnless(TOOL.exists(), "needs cargo build --release")
    def test_every_command_of_the_tool_runs(self):
        tried = 0
        for page in [*PAGES, *sorted((ROOT / "docs" / "design").glob("*.md")), ROOT / "benches" / "README.md"]:
            blocks = re.findall(r"(?ms)^```(?:sh\n|text\n(?=\$ ))(.*?)^```", page.read_text(encoding="utf-8"))
            with tempfile.TemporaryDirectory() as folder:
                make_files(pathlib.Path(folder))
                # A line of commands, or a prompt with what the command prints.
                for prompt, command, printed in re.findall(COMMANDS, "\n".join(blocks)):
                    words = shlex.split(command, comments=True)
                    if words[0] not in ("bench", "tune"):
                        with self.subTest(page=page.name, command=command):
                            run = subprocess.run([TOOL, *words], cwd=folder, capture_output=True, text=True)
                            if prompt:
                                self.assertEqual(run.stdout, printed.rstrip("\n") + "\n", run.stderr)
                            else:
                                self.assertEqual(run.returncode, 0, run.stderr)
                            tried += 1
        self.assertGreater(tried, 10)

    def test_the_program_in_c_is_that_of_the_example(self):
        example = (ROOT / "crates" / "dml-cuda-capi" / "examples" / "reverse.c").read_text(encoding="utf-8")
        lines = {line.strip() for line in example.splitlines()}
        block = re.search(r"(?ms)^```c\n(.*?)^```", (ROOT / "docs" / "c.md").read_text(encoding="utf-8"))[1]
        self.assertLessEqual(set(filter(None, block.splitlines())), lines)


if __name__ == "__main__":
    unittest.main()
