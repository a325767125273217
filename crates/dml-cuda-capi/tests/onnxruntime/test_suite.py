"""The worker of `dml-cuda bench --runner onnxruntime`: it times nothing that is wrong, runs elsewhere or is not replaced."""

import importlib.util
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

SCRIPT = Path(__file__).resolve().parents[4] / "crates/dml-cuda-cli/src/bench/worker.py"


def load(path):
    spec = importlib.util.spec_from_file_location("worker", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


worker = load(SCRIPT)

WORK = {"dispatches": 2, "check": False, "optional": False}
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
        case, inputs = self.case, worker.make_inputs(self.case)
        shape = list(case["shape"])
        shape[case["time_axis"]] = 1
        lengths = np.zeros(int(np.prod(shape)), np.int64)
        lengths[: inputs["lengths"].size] = inputs["lengths"]
        binding.get_outputs()[0].update_inplace(reverse(inputs["x"], lengths.reshape(shape), case["time_axis"]))


class Outputs(unittest.TestCase):
    def test_lengths_read_as_those_of_every_feature_are_seen(self):
        real = worker.make_session
        for time, shape in [(1, [8, 32, 6]), (0, [32, 8, 6]), (1, [8, 32, 1]), (0, [32, 8, 1])]:
            case = reversal(shape, time)
            stand_in = lambda *arguments, case=case: LengthsOfEveryFeature(real(*arguments), case)
            with self.subTest(shape=shape), mock.patch.object(worker, "make_session", stand_in):
                answer = worker.run_case(case, SETTINGS)
                if shape[2] == 1:
                    self.assertEqual(len(answer["timed"]["samples"]), 2)
                else:
                    self.assertRegex(answer["failed"], r"^the output is wrong: element \[.*\] is .*, must be .*; \d+ of these 1536 elements differ$")
            self.assertEqual(len(worker.run_case(case, SETTINGS)["timed"]["samples"]), 2)

    def test_ranges_are_exact_to_a_unit_or_the_running_sum(self):
        with mock.patch.object(worker, "CHUNK", 64):
            for data_type in ("float32", "float64"):
                start, delta = (np.array(value, data_type) for value in (-3.7, 0.1))
                inputs = {"start": start, "delta": delta}
                exact = (np.float64(start) + np.arange(1000) * np.float64(delta)).astype(data_type)
                self.assertEqual(worker.wrong_range(inputs, exact), (None, None))
                # A kernel without a fused multiply-add rounds twice.
                twice = start + np.arange(1000).astype(data_type) * delta
                self.assertEqual(worker.wrong_range(inputs, twice), (None, None))
                off = exact.copy()
                off[700] *= 1 + 3 * np.finfo(data_type).eps
                self.assertIn("element [700] is", worker.wrong_range(inputs, off)[0])
                off[700] = np.nan
                self.assertIn("element [700] is nan", worker.wrong_range(inputs, off)[0])
                steps = np.full(1000, delta)
                steps[0] = start
                sums = np.add.accumulate(steps, dtype=data_type)
                self.assertIn("adds delta repeatedly", worker.wrong_range(inputs, sums)[1])
                sums[-1] = np.nextafter(sums[-1], np.array(np.inf, data_type))
                self.assertIn("the output is wrong", worker.wrong_range(inputs, sums)[0])
            inputs = {"start": np.array(-32767, np.int16), "delta": np.array(1, np.int16)}
            numbers = np.arange(-32767, 0, dtype=np.int16)
            self.assertEqual(worker.wrong_range(inputs, numbers), (None, None))
            numbers[20000] += 1
            self.assertIn("element [20000] is -12766, must be -12767", worker.wrong_range(inputs, numbers)[0])

    def test_a_kernel_of_another_provider_or_owner_is_not_timed(self):
        case, real = reversal([8, 32], 1), worker.make_session
        self.assertIn("timed", worker.run_case(case, {**SETTINGS, "library": LIBRARY}))
        without = lambda model, settings, *profile: real(model, {**settings, "library": None}, *profile)
        with mock.patch.object(worker, "make_session", without), self.assertRaisesRegex(RuntimeError, "ONNX Runtime's own kernel ran"):
            worker.run_case(case, {**SETTINGS, "library": LIBRARY})
        on_cpu = lambda model, settings, *profile: real(model, SETTINGS, *profile)
        with mock.patch.object(worker, "make_session", on_cpu), self.assertRaisesRegex(RuntimeError, "ReverseSequence on CPUExecutionProvider"):
            worker.run_case(case, {**SETTINGS, "provider": "AnotherExecutionProvider"})

    def test_the_models_are_onnx(self):
        for case in (reversal([9, 6, 5], 0), filling("i64", 5, 3, 70)):
            onnx.checker.check_model(worker.make_model(case), full_check=True)


class Answers(unittest.TestCase):
    """A process answers the settings, then each case, with one line of JSON."""

    def ask(self, *questions, settings={}, text=None):
        asked = [{"provider": "cpu", "library": None, "device_id": 0, "samples": 2, **settings}, *questions]
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "worker.py").write_text(text or SCRIPT.read_text(encoding="utf-8"), encoding="utf-8")
            lines = "".join(json.dumps(question) + "\n" for question in asked)
            found = subprocess.run([sys.executable, "worker.py"], cwd=folder, input=lines, stdout=subprocess.PIPE, text=True)
        return found.returncode, [json.loads(line) for line in found.stdout.splitlines()]

    def broken(self, how):
        begin = "def make_session(model, settings, profile=None):\n"
        return SCRIPT.read_text(encoding="utf-8").replace(begin, begin + f"    {how}\n")

    def test_each_question_has_one_answer(self):
        cases = [reversal([4, 8], 1), filling("f64", 0.5, 0.25, 50), filling("i32", 1, 1, 3, check=True)]
        code, (hello, reversed_, filled, output) = self.ask(*cases, settings={"library": LIBRARY})
        self.assertEqual((code, hello["hello"]["provider"]), (0, "CPUExecutionProvider"))
        self.assertIn(" with dml-cuda ", hello["hello"]["tool"])
        self.assertEqual([len(answer["timed"]["samples"]) for answer in (reversed_, filled)], [2, 2])
        self.assertEqual(output, {"output": "010000000200000003000000"})

    def test_a_crash_and_a_failure_are_answers(self):
        text = self.broken("if b'reverse_4' in model: raise ValueError('no\\nkernel')")
        _, (_, failed, right) = self.ask(reversal([4, 8], 1), reversal([8, 4, 3], 0), text=text)
        self.assertEqual((failed, "timed" in right), ({"failed": "no kernel"}, True))
        _, (_, refused) = self.ask(reversal([4, 8], 1, optional=True), text=text)
        self.assertEqual(refused, {"refused": "no kernel"})
        code, answers = self.ask(reversal([4, 8], 1), text=self.broken("os._exit(3)"))
        self.assertEqual((code, len(answers)), (3, 1))

    def test_what_is_missing_is_named(self):
        failed = lambda **more: self.ask(**more)[1][0]["failed"]
        self.assertIn("has no CUDAExecutionProvider, only", failed(settings={"provider": "cuda"}))
        self.assertIn("is not the library of dml-cuda", failed(settings={"library": os.path.abspath(__file__)}))
        text = SCRIPT.read_text(encoding="utf-8").replace("import onnxruntime as ort", "import no_onnxruntime as ort")
        self.assertIn("--python must be a Python with onnx, numpy, and onnxruntime", failed(text=text))

    def test_a_model_of_a_newer_opset_is_refused(self):
        error = "ONNX Runtime only *guarantees* support. Opset 25 is under development and support for this is limited. current official support till opset 21"
        _, (_, answer) = self.ask(reversal([4, 8], 1), text=self.broken(f"raise RuntimeError('{error}')"))
        self.assertIn("the model has opset 25, ONNX Runtime ", answer["refused"])


if __name__ == "__main__":
    unittest.main()
