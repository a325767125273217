"""The package itself: its docstrings, its library, a wrong variable, and the page for an issue."""

import doctest
import importlib.util
import pathlib
import sys
import tempfile
import unittest
import zipfile

import dml_cuda
from dml_cuda import _fill_value_sequence, _onnxruntime, _reverse_subsequences
from programs import run_python


class Package(unittest.TestCase):
    def test_docstrings_run(self):
        for module in (_fill_value_sequence, _onnxruntime, _reverse_subsequences):
            with self.subTest(module.__name__):
                result = doctest.testmod(module)
                self.assertEqual((result.failed, result.attempted > 1), (0, True))

    def test_a_variable_with_an_unknown_value_is_an_error(self):
        program = (
            "import dml_cuda; print(dml_cuda.fill_value_sequence(2, 0, 1, 'int8'))"
        )
        for value, words in [
            ("specialize=always", r"[0 1]"),
            ("", r"[0 1]"),
            (
                "specialize=1",
                "ValueError: in DML_CUDA_COMPILE_OPTIONS, the compile option is `specialize=1`, but must be one of specialize=in_graphs|always|never, select",
            ),
        ]:
            run = run_python("-c", program, DML_CUDA_COMPILE_OPTIONS=value)
            self.assertIn(words, run.stdout + run.stderr)

    def test_without_its_library_the_package_says_what_to_do(self):
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(dml_cuda.__file__).parent
            with zipfile.ZipFile(f"{folder}/a.zip", "w") as file:
                for path in package.rglob("*.[ps][yo]"):
                    file.write(path, path.relative_to(package.parent))
            error = run_python(
                "-c", f"import sys; sys.path[:0] = ['{folder}/a.zip']; import dml_cuda"
            ).stderr
            self.assertRegex(
                error,
                r"(?m)^ImportError: the native library .*/a\.zip/dml_cuda/_native/lib_native\.so is missing.* A zip file cannot contain it: install",
            )

    def test_the_page_for_an_issue_has_nothing_secret(self):
        home = str(pathlib.Path.home())
        call = lambda *given: run_python(
            "-m", "dml_cuda", *given, LD_LIBRARY_PATH=f"{home}/lib", A_TOKEN="secret"
        )
        page = call().stdout
        for line in (
            rf"dml-cuda: {dml_cuda.__version__}, ",
            r"library: .*, libdml_cuda\.so\.0\.3$",
            "system: .*NumPy",
            "GPUs that",
            "torch: ",
            "LD_LIBRARY_PATH: ~/lib",
        ):
            self.assertRegex(page, f"(?m)^{line}")
        self.assertNotIn("secret", page)
        self.assertNotIn("FileNotFoundError", page)
        self.assertRegex(
            call("--help").stdout,
            "(?s)usage: python -m dml_cuda .*page to paste into an issue.*onnx",
        )
        self.assertEqual(call("onxn").returncode, 2)
        if importlib.util.find_spec("onnx") is None:
            self.assertEqual(
                call("onnx", "m.onnx").stderr,
                "onnx is not installed: pip install onnx onnxruntime\n",
            )
        self.assertNotIn(home + "/", page)

    def test_the_page_for_an_issue_says_what_it_cannot_find_out(self):
        program = """if True:
            import os, pwd, runpy
            def getpwuid(_): raise KeyError("no entry in passwd")
            pwd.getpwuid = getpwuid
            os.environ.pop("HOME", None)
            runpy.run_module("dml_cuda", run_name="__main__", alter_sys=True)"""
        run = run_python("-c", program, PYTHONIOENCODING="ascii", LD_PRELOAD="\xe9")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(
            run.stdout, r"(?s)^dml-cuda: .*\nGPUs that .*\ncupy: .*LD_PRELOAD: \\xe9\n"
        )
        for to, words in (
            (">/dev/full", "No space left on device"),
            (">&-", "standard output is closed"),
        ):
            run = run_python(
                "-c",
                f"import os; os.system('{sys.executable} -m dml_cuda {to}') and os._exit(1)",
            )
            self.assertEqual(
                (run.returncode, run.stderr),
                (1, f"the output cannot be written: {words}\n"),
            )
