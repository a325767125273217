"""The blocks of Python in README.md and docs/ run as they stand. A block needs what it imports: those without it wait
for a run of the tests that has it."""

import importlib.util
import pathlib
import re
import runpy
import tempfile
import unittest

from programs import run_python

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "python" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def installed(block):
    names = re.findall(r"(?m)^(?:from|import) (.*)", block)
    modules = {word.split()[0].partition(".")[0] for line in names for word in line.split(" import ")[0].split(", ")}
    return all(map(importlib.util.find_spec, modules))


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
                pathlib.Path(folder, "models", "reverse", "1").mkdir(parents=True)  # docs/onnxruntime.md
                pathlib.Path(folder, "block.py").write_text(block, encoding="utf-8")  # TorchScript reads sources
                run = run_python("block.py", cwd=folder)
                self.assertEqual(run.returncode, 0, run.stderr)


if __name__ == "__main__":
    unittest.main()
