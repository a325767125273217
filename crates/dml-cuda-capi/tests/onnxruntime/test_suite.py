"""The worker of `dml-cuda bench --runner onnxruntime`: it times nothing that is wrong, runs elsewhere or is not
replaced."""

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

WORK = {"dispatches": 2, "check": False}
SETTINGS = {
    "provider": "CPUExecutionProvider",
    "library": None,
    "provider_library": None,
    "device_id": 0,
    "samples": 2,
}


def reversal(shape, time, **more):
    name = f"reverse_{'x'.join(map(str, shape))}_{time}"
    node = {
        "op": "ReverseSequence",
        "opset": 10,
        "shape": shape,
        "batch_axis": 1 - time,
        "time_axis": time,
    }
    return {
        **WORK,
        "name": name,
        "case": name,
        "type": "float32",
        "mode": "copy",
        **node,
        **more,
    }


def filling(data_type, start, delta, count, **more):
    node = {
        "op": "Range",
        "opset": 11,
        "scalars": [start, start + delta * count, delta],
        "shape": [count],
    }
    return {
        **WORK,
        "name": f"range_{data_type}",
        "case": f"range_{data_type}",
        "type": data_type,
        "mode": "fill",
        **node,
        **more,
    }


class LengthsOfEveryFeature:
    """A session that reads the lengths as if each (batch, feature) had its own: behind those of the batch, it finds
    zeros."""

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
        binding.get_outputs()[0].update_inplace(
            reverse(inputs["x"], lengths.reshape(shape), case["time_axis"])
        )


class Outputs(unittest.TestCase):
    def test_lengths_read_as_those_of_every_feature_are_seen(self):
        real = worker.make_session
        for time, shape in [
            (1, [8, 32, 6]),
            (0, [32, 8, 6]),
            (1, [8, 32, 1]),
            (0, [32, 8, 1]),
        ]:
            case = reversal(shape, time)
            stand_in = lambda *arguments, case=case: LengthsOfEveryFeature(
                real(*arguments), case
            )
            with (
                self.subTest(shape=shape),
                mock.patch.object(worker, "make_session", stand_in),
            ):
                if shape[2] == 1:
                    self.assertEqual(
                        len(worker.run_case(case, SETTINGS)["timed"]["samples"]), 2
                    )
                else:
                    with self.assertRaisesRegex(
                        RuntimeError,
                        r"^the output is wrong: element \[.*\] is .*, but must be .*; \d+ of these 1536 elements differ$",
                    ):
                        worker.run_case(case, SETTINGS)
            self.assertEqual(
                len(worker.run_case(case, SETTINGS)["timed"]["samples"]), 2
            )

    def test_ranges_are_rounded_once_or_the_running_sum(self):
        for data_type, start, delta in (
            ("float32", 0, 0.1),
            ("float64", -3.7, 0.1),
            ("int16", -32767, 1),
        ):
            case = filling(data_type, start, delta, 32767)
            inputs = worker.make_inputs(case)
            wide = np.int64 if data_type == "int16" else np.float64
            exact = (
                wide(inputs["start"]) + np.arange(32767) * wide(inputs["delta"])
            ).astype(inputs["start"].dtype)
            self.assertIsNone(worker.check(case, inputs, exact))
            sums = np.full(32767, inputs["delta"])
            sums[0] = inputs["start"]
            sums = np.add.accumulate(sums, dtype=exact.dtype)
            note = worker.check(case, inputs, sums)
            self.assertEqual(note is None, data_type == "int16")
            self.assertIn("adds delta repeatedly", note or "adds delta repeatedly")
            for off in (exact, sums):
                off[20000] += 1
                with self.assertRaisesRegex(
                    RuntimeError, "the output is wrong: element .* is .*, but must be"
                ):
                    worker.check(case, inputs, off)

    def test_a_kernel_of_another_provider_is_not_timed(self):
        with self.assertRaisesRegex(
            Exception, "AnotherExecutionProvider|fallback to the CPU"
        ):
            worker.run_case(
                reversal([8, 32], 1),
                {**SETTINGS, "provider": "AnotherExecutionProvider"},
            )

    def test_the_models_are_onnx(self):
        for case in (reversal([9, 6, 5], 0), filling("int64", 5, 3, 70)):
            onnx.checker.check_model(
                worker.make_model(case, worker.make_inputs(case)), full_check=True
            )


class Answers(unittest.TestCase):
    """A process answers its settings, or a case, with one line of JSON."""

    def ask(self, *question, settings={}, text=None):
        asked = [
            {
                "provider": "cpu",
                "library": None,
                "provider_library": None,
                "device_id": 0,
                "samples": 2,
                **settings,
            },
            *question,
        ]
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "worker.py").write_text(
                text or SCRIPT.read_text(encoding="utf-8"), encoding="utf-8"
            )
            found = subprocess.run(
                [sys.executable, "worker.py", *map(json.dumps, asked)],
                cwd=folder,
                stdout=subprocess.PIPE,
                text=True,
            )
        return json.loads(found.stdout) if found.stdout else found.returncode

    def broken(self, how):
        begin = "def make_session(model, settings):\n"
        return SCRIPT.read_text(encoding="utf-8").replace(begin, begin + f"    {how}\n")

    def test_each_question_has_one_answer(self):
        library = {"library": LIBRARY}
        hello = self.ask(settings=library)["hello"]
        self.assertEqual(hello["provider"], "CPUExecutionProvider")
        self.assertIn(" with dml-cuda ", hello["tool"])
        for case in (reversal([4, 8], 1), filling("float64", 0.5, 0.25, 50)):
            self.assertEqual(
                len(self.ask(case, settings=library)["timed"]["samples"]), 2
            )
        self.assertEqual(
            self.ask(filling("int32", 1, 1, 3, check=True)),
            {"output": "010000000200000003000000"},
        )
        without = self.broken("settings = {**settings, 'library': None}")
        self.assertIn(
            "ONNX Runtime's own kernel ran",
            self.ask(reversal([4, 8], 1), settings=library, text=without)["failed"],
        )

    def test_a_crash_and_a_failure_are_answers(self):
        text = self.broken("raise ValueError('no\\nkernel')")
        self.assertEqual(
            self.ask(reversal([4, 8], 1), text=text), {"failed": "no kernel"}
        )
        text = self.broken(
            "raise RuntimeError('Could not find an implementation for ReverseSequence(10)')"
        )
        self.assertEqual(
            self.ask(reversal([4, 8], 1), text=text),
            {"refused": "CPUExecutionProvider does not take the node"},
        )
        self.assertEqual(
            self.ask(reversal([4, 8], 1), text=self.broken("os._exit(3)")), 3
        )

    def test_what_is_missing_is_named(self):
        failed = lambda **more: self.ask(**more)["failed"]
        self.assertIn("has no cuda, only", failed(settings={"provider": "cuda"}))
        self.assertIn(
            os.path.basename(__file__),
            failed(settings={"library": os.path.abspath(__file__)}),
        )
        text = SCRIPT.read_text(encoding="utf-8").replace(
            "import onnxruntime as ort", "import no_onnxruntime as ort"
        )
        self.assertIn(
            "--python must be a Python with onnx, numpy, and onnxruntime",
            failed(text=text),
        )


if __name__ == "__main__":
    unittest.main()
