"""run_onnx.py of `dml-cuda suite --onnx`: it times nothing that is wrong, runs elsewhere or is not replaced, and loses no file."""

import contextlib
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import numpy as np
import onnx
from common import LIBRARY, reverse

SCRIPT = Path(__file__).resolve().parents[4] / "crates/dml-cuda-cli/src/bench/suite/run_onnx.py"


def load(path):
    spec = importlib.util.spec_from_file_location("run_onnx", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


run_onnx = load(SCRIPT)

WORK = {"bytes": 4096, "dispatches": 2, "check": False}
SETTINGS = {"provider": "CPUExecutionProvider", "library": None, "device_id": 0, "samples": 2}


def reversal(shape, time, **more):
    name = f"reverse_{'x'.join(map(str, shape))}_{time}"
    node = {"op": "ReverseSequence", "opset": 10, "shape": shape, "batch_axis": 1 - time, "time_axis": time}
    return {**WORK, "name": name, "case": name, "type": "f32", "mode": "copy", **node, **more}


def filling(data_type, start, delta, count, **more):
    node = {"op": "Range", "opset": 11, "start": start, "limit": start + delta * count, "delta": delta, "count": count}
    return {**WORK, "name": f"range_{data_type}", "case": f"range_{data_type}", "type": data_type, "mode": "fill", **node, **more}


class LengthsOfEveryFeature:
    """A session that reads the lengths as if each (batch, feature) had its own: behind those of the batch, it finds zeros."""

    def __init__(self, session, case):
        self.session, self.case = session, case

    def __getattr__(self, name):
        return getattr(self.session, name)

    def run_with_iobinding(self, binding):
        self.session.run_with_iobinding(binding)
        case, inputs = self.case, run_onnx.make_inputs(self.case)
        shape = list(case["shape"])
        shape[case["time_axis"]] = 1
        lengths = np.zeros(int(np.prod(shape)), np.int64)
        lengths[: inputs["lengths"].size] = inputs["lengths"]
        binding.get_outputs()[0].update_inplace(reverse(inputs["x"], lengths.reshape(shape), case["time_axis"]))


class Outputs(unittest.TestCase):
    def test_lengths_read_as_those_of_every_feature_are_seen(self):
        real = run_onnx.make_session
        for time, shape in [(1, [8, 32, 6]), (0, [32, 8, 6]), (1, [8, 32, 1]), (0, [32, 8, 1])]:
            case = reversal(shape, time)
            stand_in = lambda *arguments, case=case: LengthsOfEveryFeature(real(*arguments), case)
            with self.subTest(shape=shape), mock.patch.object(run_onnx, "make_session", stand_in):
                answer = run_onnx.run_case(case, SETTINGS)
                if shape[2] == 1:
                    self.assertEqual(len(answer["samples"]), 2)
                else:
                    self.assertRegex(answer["failed"], r"^the output is wrong: element \[.*\] is .*, must be .*; \d+ of these 1536 elements differ$")
            self.assertEqual(len(run_onnx.run_case(case, SETTINGS)["samples"]), 2)

    def test_ranges_are_exact_to_a_unit_or_the_running_sum(self):
        with mock.patch.object(run_onnx, "CHUNK", 64):
            for data_type in ("float32", "float64"):
                start, delta = (np.array(value, data_type) for value in (-3.7, 0.1))
                inputs = {"start": start, "delta": delta}
                exact = (np.float64(start) + np.arange(1000) * np.float64(delta)).astype(data_type)
                self.assertEqual(run_onnx.wrong_range(inputs, exact), (None, None))
                # A kernel without a fused multiply-add rounds twice.
                twice = start + np.arange(1000).astype(data_type) * delta
                self.assertEqual(run_onnx.wrong_range(inputs, twice), (None, None))
                off = exact.copy()
                off[700] *= 1 + 3 * np.finfo(data_type).eps
                self.assertIn("element [700] is", run_onnx.wrong_range(inputs, off)[0])
                off[700] = np.nan
                self.assertIn("element [700] is nan", run_onnx.wrong_range(inputs, off)[0])
                steps = np.full(1000, delta)
                steps[0] = start
                sums = np.add.accumulate(steps, dtype=data_type)
                self.assertIn("adds delta repeatedly", run_onnx.wrong_range(inputs, sums)[1])
                sums[-1] = np.nextafter(sums[-1], np.array(np.inf, data_type))
                self.assertIn("the output is wrong", run_onnx.wrong_range(inputs, sums)[0])
            inputs = {"start": np.array(-32767, np.int16), "delta": np.array(1, np.int16)}
            numbers = np.arange(-32767, 0, dtype=np.int16)
            self.assertEqual(run_onnx.wrong_range(inputs, numbers), (None, None))
            numbers[20000] += 1
            self.assertIn("element [20000] is -12766, must be -12767", run_onnx.wrong_range(inputs, numbers)[0])

    def test_a_kernel_of_another_provider_or_owner_is_not_timed(self):
        case, real = reversal([8, 32], 1), run_onnx.make_session
        self.assertIn("samples", run_onnx.run_case(case, {**SETTINGS, "library": LIBRARY}))
        without = lambda model, settings, *profile: real(model, {**settings, "library": None}, *profile)
        with mock.patch.object(run_onnx, "make_session", without), self.assertRaisesRegex(RuntimeError, "ONNX Runtime's own kernel ran"):
            run_onnx.run_case(case, {**SETTINGS, "library": LIBRARY})
        on_cpu = lambda model, settings, *profile: real(model, SETTINGS, *profile)
        with mock.patch.object(run_onnx, "make_session", on_cpu), self.assertRaisesRegex(RuntimeError, "ReverseSequence on CPUExecutionProvider"):
            run_onnx.run_case(case, {**SETTINGS, "provider": "AnotherExecutionProvider"})

    def test_the_models_are_onnx(self):
        for case in (reversal([9, 6, 5], 0), filling("i64", 5, 3, 70)):
            onnx.checker.check_model(run_onnx.make_model(case), full_check=True)


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        cases = [reversal([4, 8], 1), reversal([8, 4, 3], 0), filling("f64", 0.5, 0.25, 50, optional=True)]
        models = {"cases": cases, "checks": [filling("i32", 1, 1, 3, name="check.range")]}
        (self.folder / "manifest.json").write_text(json.dumps({"schema": 1, "id": "quick 1", "onnx": models}))
        self.script(SCRIPT.read_text(encoding="utf-8"))

    def script(self, text):
        (self.folder / "run_onnx.py").write_text(text, encoding="utf-8")

    def run_it(self, *arguments, code=0):
        """What it prints. The process that runs the models is another one."""
        printed, previous = io.StringIO(), os.getcwd()
        os.chdir(self.folder)
        try:
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                found = load(self.folder / "run_onnx.py").main(["--provider", "cpu", "--samples", "2", *arguments])
        except SystemExit as error:
            found = error.code
        finally:
            os.chdir(previous)
        if isinstance(found, str):
            found, printed = 1, io.StringIO(found)
        self.assertEqual(found or 0, code, printed.getvalue())
        return printed.getvalue()

    def read(self, name="run.json"):
        return json.loads((self.folder / name).read_text())

    def test_a_run_is_continued_and_nothing_else_is_replaced(self):
        self.run_it("-o", "run.json", "--only", "4x8")
        first = self.read()["cases"]
        self.assertEqual([case["case"] for case in first], ["reverse_4x8_1"])
        self.assertIn("3 cases, 1 outputs, 0 failed", self.run_it("-o", "run.json"))
        self.assertEqual(self.read()["cases"][0], first[0])
        self.assertEqual(self.read()["outputs"], {"check.range": "010000000200000003000000"})
        self.assertIn("nothing left to time", self.run_it("-o", "run.json"))
        self.assertIn("with dml-cuda", self.run_it("-o", "run.json", "--library", LIBRARY, code=1))
        other = {"schema": 1, "machine": {"tool": "another tool"}}
        for content in (json.dumps(other), json.dumps([1]), "a letter", ""):
            (self.folder / "kept.json").write_text(content)
            self.assertIn("is not replaced; choose another name", self.run_it("-o", "kept.json", code=1))
            self.assertEqual((self.folder / "kept.json").read_text(), content)
        self.assertIn("cannot be written", self.run_it("-o", "run.json/none.json", code=1))
        self.assertEqual(sorted(os.listdir(self.folder)), ["kept.json", "manifest.json", "run.json", "run_onnx.py"])
        self.run_it("--save-models", "models")
        self.assertIn("cannot be written", self.run_it("--save-models", "models", code=1))

    def test_a_crash_and_a_failure_are_rows_and_are_tried_again(self):
        begin = "def make_session(model, settings, profile=None):\n"
        breaks = begin + "    if b'reverse_4' in model: os._exit(3)\n    if b'range' in model: raise ValueError('no\\nkernel')\n"
        self.script(SCRIPT.read_text(encoding="utf-8").replace(begin, breaks))
        self.assertIn("1 cases, 0 outputs, 2 failed", self.run_it("-o", "run.json", code=1))
        run = self.read()
        self.assertEqual([(case["case"], case["error"]) for case in run["failed"]], [("reverse_4x8_1", "the process that ran it ended with exit code 3")])
        self.assertEqual(run["failed_outputs"], {"check.range": "no kernel"})
        self.assertIn("range_f64: no kernel", run["notes"])
        self.script(SCRIPT.read_text(encoding="utf-8"))
        self.assertIn("3 cases, 1 outputs, 0 failed", self.run_it("-o", "run.json"))
        run = self.read()
        self.assertEqual((run["failed"], run["failed_outputs"], len(run["notes"])), ([], {}, 1))

    def test_what_is_missing_is_named(self):
        self.assertIn("has no CUDAExecutionProvider, only", self.run_it("--provider", "cuda", "-o", "run.json", code=1))
        self.assertIn("none.so is not a file", self.run_it("--library", "none.so", "-o", "run.json", code=1))
        self.assertIn("is not the library of dml-cuda", self.run_it("--library", "manifest.json", "-o", "run.json", code=1))
        self.assertIn("--only none is in the name of no model", self.run_it("--only", "none", "-o", "run.json", code=1))
        self.assertIn("needs --provider and -o", self.run_it(code=2))
        self.assertIn("--samples at least 1", self.run_it("--samples", "0", "-o", "run.json", code=2))
        self.assertIn("argument --samples: invalid int value: 'x'", self.run_it("--samples", "x", "-o", "run.json", code=2))
        (self.folder / "manifest.json").write_text("{}")
        self.assertIn("`dml-cuda suite --onnx` writes them", self.run_it("-o", "run.json", code=1))
        with mock.patch.dict(sys.modules, {"onnxruntime": None}):
            self.assertIn("this script needs onnx, numpy, and onnxruntime", self.run_it("-o", "run.json", code=1))
            self.assertIn("usage: ", self.run_it("--help"))
        (self.folder / "manifest.json").write_text('{"schema": 2}')
        self.assertIn("its schema is 2, must be at most 1", self.run_it("-o", "run.json", code=1))
        self.assertFalse((self.folder / "run.json").exists())

    @unittest.skipIf(os.name == "nt", "POSIX's devices and shell")
    def test_devices_and_closed_pipes(self):
        for device in ("/dev/zero", "/dev/full"):
            self.assertIn("is not a regular file", self.run_it("-o", device, code=1))
        # A warning and a summary that nobody reads end no run.
        begin = "def make_session(model, settings, profile=None):\n"
        self.script(SCRIPT.read_text(encoding="utf-8").replace(begin, begin + "    if b'reverse_4' in model: raise ValueError\n"))
        for arguments in ("--provider CPU --samples 2 -o run.json", "--help"):
            command = f"{{ {sys.executable} run_onnx.py {arguments}; echo $? >&3; }} 3>&2 2>&1 | true"
            found = subprocess.run(["sh", "-c", command], cwd=self.folder, stderr=subprocess.PIPE, text=True)
            self.assertEqual(found.stderr, "0\n")
        run = self.read()
        self.assertEqual((len(run["cases"]), len(run["failed"]), len(run["outputs"])), (2, 1, 1))

    def test_a_model_of_a_newer_opset_is_a_note(self):
        begin = "def make_session(model, settings, profile=None):\n"
        error = "ONNX Runtime only *guarantees* support. Opset 25 is under development and support for this is limited. current official support till opset 21"
        self.script(SCRIPT.read_text(encoding="utf-8").replace(begin, begin + f"    if b'range' in model: raise RuntimeError('{error}')\n"))
        self.assertIn("2 cases, 0 outputs, 0 failed", self.run_it("-o", "run.json"))
        self.assertIn("check.range: the model has opset 25, ONNX Runtime ", str(self.read()["notes"]))


if __name__ == "__main__":
    unittest.main()
