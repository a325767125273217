"""The library in ONNX Runtime on the CPU: results compared with ONNX Runtime's own kernels and a slow reference,
errors, threads, in place.

    DML_CUDA_LIBRARY=target/release/libdml_cuda.so python -m unittest discover crates/dml-cuda-capi/tests/onnxruntime -v
"""

import concurrent.futures
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import warnings

os.environ["ALLOW_RELEASED_ONNX_OPSET_ONLY"] = "0"
import numpy as np
import onnxruntime as ort
from common import (
    LIBRARY,
    ONNX_TYPES,
    counters,
    fills,
    model,
    of_lanes,
    ranges,
    reverse,
    reverse_sequence,
    same,
)
from common import scalars, session, values
from onnx import TensorProto, helper

EVERY_TYPE = list(ONNX_TYPES)
LENGTH_TYPES = [np.uint32, np.uint64, np.int64]


def run_range(dtype, start, limit, delta, **options):
    return session(ranges(dtype), **options).run(
        None, scalars(dtype, a=start, b=limit, c=delta)
    )[0]


def subsequences(dtype, shape, lengths_dtype, lengths_shape, axis):
    node = helper.make_node(
        "ReverseSubsequences",
        ["x", "l"],
        ["y"],
        axis=axis,
        domain="dml_cuda",
        name="node",
    )
    return model(
        [node],
        [("x", dtype, list(shape)), ("l", lengths_dtype, list(lengths_shape))],
        [("y", dtype, list(shape))],
    )


def in_a_process(program, serialized, *arguments, **variables):
    """Runs a Python program whose first argument is the path of a model."""
    environment = {
        key: value
        for key, value in os.environ.items()
        if key != "DML_CUDA_REPLACE_ONNX"
    } | variables
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.onnx"
        with open(path, "wb") as file:
            file.write(serialized)
        command, here = (
            [sys.executable, "-c", program, path, *arguments],
            os.path.dirname(os.path.abspath(__file__)),
        )
        return subprocess.run(
            command,
            cwd=here,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )


class ReverseSequence(unittest.TestCase):
    def test_every_type_and_layout_has_onnxruntimes_bytes(self):
        random = np.random.default_rng(1)
        before = counters()
        runs = compared = 0
        for dtype in EVERY_TYPE:
            for shape in [
                (5, 3),
                (3, 5),
                (1, 1),
                (7, 2, 3),
                (2, 9, 33),
                (4, 3, 2, 5),
                (2, 3) + (2,) * 8,
                (64, 5, 17),
            ]:
                for time in (0, 1):
                    x = values(random, dtype, shape)
                    lengths = random.integers(0, shape[time] + 1, shape[1 - time])
                    serialized = reverse_sequence(
                        dtype, shape, time, dynamic=len(shape) == 3
                    )
                    feeds = {"x": x, "l": lengths}
                    # In older versions results do not outlive their sessions.
                    made, alone = (
                        session(serialized),
                        session(serialized, library=False),
                    )
                    found = made.run(None, feeds)[0]
                    same(found, reverse(x, of_lanes(lengths, len(shape), time), time))
                    # ONNX Runtime 1.18's own kernel leaves parts of lanes of length 0 unwritten.
                    if ort.__version__ >= "1.30" or lengths.min() > 0:
                        same(found, alone.run(None, feeds)[0])
                        compared += 1
                    runs += 1
        self.assertEqual(counters()[1] - before[1], runs)
        self.assertGreater(runs, 200)
        self.assertGreater(compared, 60)

    def test_empty_tensors(self):
        for shape, time in [
            ((0, 3), 0),
            ((3, 0), 0),
            ((0, 3), 1),
            ((2, 3, 0), 0),
            ((0, 0, 0), 1),
        ]:
            found = session(reverse_sequence(np.float32, shape, time, dynamic=True))
            feeds = {
                "x": np.zeros(shape, np.float32),
                "l": np.zeros(shape[1 - time], np.int64),
            }
            same(found.run(None, feeds)[0], feeds["x"])

    def test_lengths_that_do_not_fit_are_named(self):
        """Lengths are checked, including those of tensors without elements."""
        for shape, lengths, words in [
            (
                (4, 3),
                [1, 5, 2],
                r"dml_cuda ReverseSequence: sequence_lens\[1\] is 5, but must be from 0 to 4, the size of the time axis",
            ),
            ((4, 3), [1, 2, -1], r"sequence_lens\[2\] is -1, but must be from 0 to 4"),
            (
                (4, 3),
                [1, 2],
                r"sequence_lens has shape \[2\], but must have \[3\], the batch size",
            ),
            ((0, 2), [1, 0], r"sequence_lens\[0\] is 1, but must be from 0 to 0"),
            ((3, 0), [1], r"sequence_lens has shape \[1\], but must have \[0\]"),
            ((2, 1, 0), [3], r"sequence_lens\[0\] is 3, but must be from 0 to 2"),
        ]:
            made = session(reverse_sequence(np.float32, shape, dynamic=True))
            with self.subTest(words), self.assertRaisesRegex(Exception, words):
                made.run(
                    None, {"x": np.zeros(shape, np.float32), "l": np.array(lengths)}
                )

    def test_attributes_and_ranks_that_cannot_be_are_named(self):
        node = helper.make_node(
            "ReverseSequence", ["x", "l"], ["y"], time_axis=1, batch_axis=1
        )
        with self.assertRaisesRegex(
            Exception,
            "batch_axis and time_axis are 1 and 1, but must be 0 and 1, or 1 and 0",
        ):
            session(
                model(
                    [node],
                    [("x", np.int8, [2, 2]), ("l", np.int64, [2])],
                    [("y", np.int8, [2, 2])],
                )
            )
        node = helper.make_node("ReverseSequence", ["x", "l"], ["y"])
        made = session(
            model(
                [node],
                [("x", np.int8, ["a"]), ("l", np.int64, ["b"])],
                [("y", np.int8, ["a"])],
            )
        )
        with self.assertRaisesRegex(
            Exception, "input has 1 dimensions, but must have at least 2"
        ):
            made.run(None, {"x": np.zeros(2, np.int8), "l": np.zeros(2, np.int64)})

    def test_a_buffer_that_nobody_reads_again_is_reversed_in_place(self):
        nodes = [
            helper.make_node("Add", ["x", "one"], ["a"]),
            helper.make_node(
                "ReverseSequence", ["a", "l"], ["b"], time_axis=1, batch_axis=0
            ),
            None,
        ]
        inputs = [
            ("x", np.float32, [3, 8]),
            ("one", np.float32, [1]),
            ("l", np.int64, [3]),
        ]
        x, lengths = np.arange(24, dtype=np.float32).reshape(3, 8), np.array([8, 1, 5])
        reversed_ = reverse(x + 1, lengths[:, None], 1)
        # A second reader keeps its input.
        for factor, required, in_place in [
            ("one", reversed_, 1),
            ("a", reversed_ * (x + 1), 0),
        ]:
            nodes[2] = helper.make_node("Mul", ["b", factor], ["y"])
            made = session(model(nodes, inputs, [("y", np.float32, [3, 8])]))
            before = counters()
            same(
                made.run(None, {"x": x, "one": np.ones(1, np.float32), "l": lengths})[
                    0
                ],
                required,
            )
            self.assertEqual(tuple(np.subtract(counters(), before)), (0, 1, in_place))


class Range(unittest.TestCase):
    def test_counts_are_onnxs_and_integers_have_onnxruntimes_bytes(self):
        for dtype in (np.int16, np.int32, np.int64):
            for start, limit, delta in [
                (0, 10, 3),
                (9, 0, -3),
                (0, 10, -1),
                (-5, 300, 1),
            ]:
                same(
                    run_range(dtype, start, limit, delta),
                    run_range(dtype, start, limit, delta, library=False),
                )
        self.assertEqual(
            run_range(np.int16, 32760, 32767, 3).tolist(), [32760, 32763, 32766]
        )
        # The difference overflows a float, and not a double.
        for dtype, required in ((np.float32, 7), (np.float64, 6)):
            self.assertEqual(len(run_range(dtype, -3e38, 3e38, 1e38)), required)
        self.assertEqual(len(run_range(np.float32, 0, 1, np.inf)), 0)
        for dtype in (np.float32, np.float64):
            for start, limit, delta in [
                (1, 0, -0.3),
                (0, 10, -1),
                (0, 1e4, 0.1),
                (1e-3, 1, 1e-3),
            ]:
                found = run_range(dtype, start, limit, delta)
                alone = run_range(dtype, start, limit, delta, library=False)
                self.assertEqual(found.shape, alone.shape, (start, limit, delta))

    def test_floats_are_rounded_once(self):
        """Doubles hold a product of two floats, and its sum with a small float, exactly. The library's tests have the
        other types."""
        for start, limit, delta in [
            (0, 1e5, 0.1),
            (-3, 77, 0.7),
            (1e6, 1e6 + 300, 0.125),
            (1, -1000, -0.013),
        ]:
            start, delta = np.float32(start), np.float32(delta)
            found = run_range(np.float32, start, limit, delta)
            same(
                found,
                (np.float64(start) + np.arange(len(found)) * np.float64(delta)).astype(
                    np.float32
                ),
            )
        self.assertEqual(run_range(np.float32, 0, 1e5, 0.1)[-1], np.float32(99999.9))

    def test_what_gives_no_range_is_named(self):
        for dtype in (np.float32, np.float64, np.int16, np.int32, np.int64):
            with self.assertRaisesRegex(
                Exception, "dml_cuda Range: delta is 0, but must be another number"
            ):
                run_range(dtype, 0, 1, 0)
        with self.assertRaisesRegex(
            Exception,
            "start is NaN, limit 1.*, but must give a finite number of elements",
        ):
            run_range(np.float32, np.nan, 1, 1)
        with self.assertRaisesRegex(
            Exception, r"the output has 3\d+ elements, but must have fewer than 2³²"
        ):
            run_range(np.float64, 0, 3e38, 1)
        with self.assertRaisesRegex(Exception, "the output has 10000000000 elements"):
            run_range(np.int64, 0, 10**10, 1)


class OwnDomain(unittest.TestCase):
    def test_reversals_of_every_type_with_lengths_of_every_type(self):
        random = np.random.default_rng(2)
        for dtype in EVERY_TYPE:
            for lengths_dtype in LENGTH_TYPES:
                for shape, lengths_shape, axis in [
                    ((4, 6), (4, 1), 1),
                    ((4, 6), (1, 6), -2),
                    ((3, 4, 5), (3, 1, 5), 1),
                    ((3, 4, 5), (5,), 0),
                    ((3, 4, 5), (), 2),
                    ((2, 3, 2, 2, 3, 2), (2, 3, 2, 1, 3, 2), 3),
                ]:
                    x = values(random, dtype, shape)
                    lengths = random.integers(0, shape[axis] + 3, lengths_shape).astype(
                        lengths_dtype
                    )
                    made = session(
                        subsequences(dtype, shape, lengths_dtype, lengths_shape, axis),
                        replace=False,
                    )
                    same(
                        made.run(None, {"x": x, "l": np.array(lengths)})[0],
                        reverse(x, lengths, axis),
                    )

    def test_bfloat16_moves_as_bits(self):
        node = helper.make_node(
            "ReverseSubsequences", ["x", "l"], ["b"], axis=0, domain="dml_cuda"
        )
        nodes = [
            helper.make_node("Cast", ["f"], ["x"], to=TensorProto.BFLOAT16),
            node,
            helper.make_node("Cast", ["b"], ["y"], to=TensorProto.FLOAT),
        ]
        made = session(
            model(
                nodes,
                [("f", np.float32, [4]), ("l", np.uint32, [1])],
                [("y", np.float32, [4])],
            )
        )
        found = made.run(
            None,
            {"f": np.array([1, 2, 3, 4], np.float32), "l": np.array([3], np.uint32)},
        )[0]
        self.assertEqual(found.tolist(), [3, 2, 1, 4])

    def test_fills_of_every_type(self):
        for dtype in (
            np.float32,
            np.float16,
            *(f"{sign}{bits}" for sign in ("int", "uint") for bits in (8, 16, 32, 64)),
        ):
            made = session(fills(dtype))
            run = lambda shape, start, delta: made.run(
                None,
                {"s": np.array(shape, np.int64), **scalars(dtype, a=start, d=delta)},
            )[0]
            same(run([2, 3], 5, 2), np.array([[5, 7, 9], [11, 13, 15]], dtype))
            same(run([], 5, 2), np.array(5, dtype))
            same(run([0, 3], 5, 2), np.zeros((0, 3), dtype))
            with self.assertRaisesRegex(
                Exception, r"the shape is \[-1, 2\], but must have sizes of at least 0"
            ):
                run([-1, 2], 5, 2)
            with self.assertRaisesRegex(Exception, "fewer than 2³² elements"):
                run([1 << 16, 1 << 16], 5, 2)

    def test_errors_name_what_does_not_fit(self):
        made = session(subsequences(np.float32, (4, 6), np.uint32, (3, 1), 1))
        words = r"sequence_lengths has shape \[3, 1\], but must broadcast to \[4, 1\], input's with 1 at axis"
        with self.assertRaisesRegex(
            Exception, f"dml_cuda ReverseSubsequences: {words}"
        ):
            made.run(
                None,
                {"x": np.zeros((4, 6), np.float32), "l": np.zeros((3, 1), np.uint32)},
            )
        made = session(subsequences(np.float32, (2, 2), np.int64, (2, 1), 1))
        with self.assertRaisesRegex(
            Exception, r"sequence_lengths\[1, 0\] is -3, but must be at least 0"
        ):
            made.run(
                None, {"x": np.zeros((2, 2), np.float32), "l": np.array([[1], [-3]])}
            )


class Memory(unittest.TestCase):
    def test_tensors_that_are_not_aligned_to_their_elements(self):
        """Parts of byte buffers, memory-mapped weights."""

        def shifted(array, offset):
            memory = np.frombuffer(bytearray(array.nbytes + offset), np.uint8)
            memory[offset:] = np.frombuffer(array.tobytes(), np.uint8)
            return np.frombuffer(memory.data, array.dtype, offset=offset).reshape(
                array.shape
            )

        made = session(reverse_sequence(np.float32, (5, 3), dynamic=True))
        feeds = {
            "x": shifted(np.arange(15, dtype=np.float32).reshape(5, 3), 1),
            "l": shifted(np.array([5, 0, 3]), 3),
        }
        same(made.run(None, feeds)[0], reverse(feeds["x"], feeds["l"][None, :], 0))
        feeds = {
            name: shifted(value, 3)
            for name, value in scalars(np.float64, a=1, b=3, c=0.5).items()
        }
        same(session(ranges(np.float64)).run(None, feeds)[0], np.arange(1, 3, 0.5))
        feeds = {
            name: shifted(value, 2)
            for name, value in scalars(np.int32, a=7, d=1).items()
        }
        found = session(fills(np.int32)).run(
            None, {"s": shifted(np.array([2, 2]), 1), **feeds}
        )[0]
        same(found, np.array([[7, 8], [9, 10]], np.int32))

    def test_sessions_leave_nothing_behind(self):
        """Sessions open and close in a process that does not load the library otherwise. Its memory use does not
        grow."""
        program = """
import sys
from common import session  # loads nothing
def resident():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS"))
for k in range(500):
    session(sys.argv[1], replace="1")
    if k == 99:
        before = resident()
print(resident() - before)
"""
        run = in_a_process(program, reverse_sequence(np.float32, (4, 3)))
        # 400 sessions. A leak of one table per session was 35 MB.
        self.assertLess(int(run.stdout), 2000)


class Registration(unittest.TestCase):
    X, LENGTHS = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([4, 2, 3])

    def replaced(self, *steps):
        """Returns whether this library runs a session's node. A step is an entry to set, or None to register."""
        options = ort.SessionOptions()
        options.log_severity_level = 4
        for step in steps:
            options.register_custom_ops_library(
                LIBRARY
            ) if step is None else options.add_session_config_entry(*step)
        before = counters()[1]
        made = ort.InferenceSession(
            reverse_sequence(np.float32, (4, 3)),
            options,
            providers=["CPUExecutionProvider"],
        )
        same(
            made.run(None, {"x": self.X, "l": self.LENGTHS})[0],
            reverse(self.X, self.LENGTHS[None, :], 0),
        )
        return counters()[1] > before

    def test_the_entry_names_what_is_replaced(self):
        entry = "dml_cuda.replace_onnx"
        self.assertFalse(self.replaced(None))
        for value, required in [
            ("0", False),
            ("1", True),
            ("ReverseSequence", True),
            ("Range", False),
            ("Range,ReverseSequence", True),
            (" Range , ReverseSequence", True),
        ]:
            self.assertEqual(self.replaced((entry, value), None), required, value)
        for value in ("", "2", "true", "yes", "Range,", "range", "x" * 1000):
            with self.assertRaisesRegex(
                Exception,
                "dml_cuda.replace_onnx is `.*`, but must be `0`, `1` .ReverseSequence., or a list of the names `ReverseSequence` and `Range`",
            ):
                self.replaced((entry, value), None)

    def test_registering_again_adds_what_the_entry_asks_for_since(self):
        entry = ("dml_cuda.replace_onnx", "1")
        self.assertTrue(self.replaced(entry, None, None))
        self.assertFalse(self.replaced(None, None))
        self.assertFalse(self.replaced(None, entry))  # the library cannot see it
        self.assertTrue(self.replaced(None, entry, None))
        with self.assertRaisesRegex(
            Exception,
            "these options replace `Range` .* asks for `ReverseSequence`: set it once, before the library is registered",
        ):
            self.replaced(("dml_cuda.replace_onnx", "Range"), None, entry, None)

    def test_the_environment_variable_acts_as_the_entry(self):
        variable = lambda value: unittest.mock.patch.dict(
            os.environ, DML_CUDA_REPLACE_ONNX=value
        )
        entry = "dml_cuda.replace_onnx"
        for value, steps, required in [
            ("0", [None], False),
            ("1", [None], True),
            ("Range", [None], False),
            (" Range , ReverseSequence", [None, None], True),
            # The entry wins, but over a 0.
            ("1", [(entry, "0"), None], False),
            ("Range", [(entry, "1"), None], True),
            ("1", [(entry, "Range"), None], False),
            ("0", [(entry, "1"), None], False),
            ("0", [None, (entry, "1"), None], False),
        ]:
            with self.subTest(value, steps=steps), variable(value):
                self.assertEqual(self.replaced(*steps), required)
        refused = "the environment variable DML_CUDA_REPLACE_ONNX is `.*`, but must be `0`, `1` .ReverseSequence., or a list of the names"
        for value, steps, words in [
            *(
                (value, [None], refused)
                for value in ("", "2", "true", "Range,", os.fsdecode(b"\xff1"))
            ),
            ("2", [(entry, "1"), None], refused),
            (
                "Range",
                [None, (entry, "1"), None],
                "these options replace `Range` .* dml_cuda.replace_onnx asks for `ReverseSequence`",
            ),
        ]:
            with (
                self.subTest(value),
                variable(value),
                self.assertRaisesRegex(Exception, words),
            ):
                self.replaced(*steps)
        options = ort.SessionOptions()
        options.register_custom_ops_library(LIBRARY)  # replaces nothing
        with variable("1"):
            options.register_custom_ops_library(LIBRARY)
        with (
            variable("Range"),
            self.assertRaisesRegex(
                Exception,
                "the environment variable DML_CUDA_REPLACE_ONNX asks for `Range`: set it once",
            ),
        ):
            options.register_custom_ops_library(LIBRARY)

    def test_the_log_says_who_asked_for_a_replacement(self):
        program = """
import sys
from common import session
session(sys.argv[1], replace=sys.argv[2] if sys.argv[2:] else None, log_severity_level=1)
"""
        own = subsequences(np.float32, (2, 2), np.int64, (2, 1), 1)
        line = "dml_cuda runs ReverseSequence `node` on CPU, as {} asks"
        of_entry, of_variable = (
            line.format("dml_cuda.replace_onnx"),
            line.format("the environment variable DML_CUDA_REPLACE_ONNX"),
        )
        for serialized, entries, variable, required in [
            (reverse_sequence(np.float32, (4, 3)), ["1"], {}, of_entry),
            (
                reverse_sequence(np.float32, (4, 3)),
                ["1"],
                {"DML_CUDA_REPLACE_ONNX": "1"},
                of_entry,
            ),
            (
                reverse_sequence(np.float32, (4, 3)),
                [],
                {"DML_CUDA_REPLACE_ONNX": "1"},
                of_variable,
            ),
            (reverse_sequence(np.float32, (4, 3)), [], {}, None),
            (
                own,
                [],
                {"DML_CUDA_REPLACE_ONNX": "1"},
                "dml_cuda runs ReverseSubsequences `node` on CPU",
            ),
        ]:
            run = in_a_process(program, serialized, *entries, **variable)
            found = [
                line.partition("] ")[2]
                for line in run.stderr.splitlines()
                if "dml_cuda runs" in line
            ]
            self.assertEqual(found, [required] if required else [], run.stderr)

    def test_an_entry_that_comes_too_late_is_a_warning_in_onnxruntimes_log(self):
        program = """
import sys
import onnxruntime as ort
from common import LIBRARY
ort.set_default_logger_severity(2)  # ONNX Runtime's default
options = ort.SessionOptions()
for step in sys.argv[2:]:
    if step == "library":
        options.register_custom_ops_library(LIBRARY)
    else:
        options.add_session_config_entry("dml_cuda.replace_onnx", step)
ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
"""
        for steps, warns in [
            (["library"], False),
            (["1", "library"], False),
            (["library", "library"], False),
            (["library", "1"], True),
            (["library", "1", "library"], True),
        ]:
            run = in_a_process(program, reverse_sequence(np.float32, (4, 3)), *steps)
            found = [
                line
                for line in run.stderr.splitlines()
                if "dml_cuda.replace_onnx] already exists with value [0; set it before register_custom_ops_library, or register the library again]"
                in line
            ]
            self.assertEqual(len(found), warns, run.stderr)

    def test_keys_of_this_library_are_checked_and_no_others(self):
        for key in ("dml_cuda.replace_onx", "dml_cuda.Replace_onnx", "dml_cuda."):
            if ort.__version__ >= "1.23":
                with self.assertRaisesRegex(
                    Exception,
                    f"dml_cuda: the session's configuration entry is `{key}`, but must be `dml_cuda.replace_onnx`",
                ):
                    self.replaced((key, "1"), None)
            else:
                self.assertFalse(self.replaced((key, "1"), None))
        for key in (
            "my.replace_onnx_model",
            "replace_onnx",
            "dml_cuda_",
            "other.dml_cuda.replace",
        ):
            self.assertTrue(
                self.replaced((key, "1"), ("dml_cuda.replace_onnx", "1"), None)
            )

    def test_errors_of_a_node_name_the_operator_the_node_and_the_attribute(self):
        for attributes in ({}, {"axis": 1.0}):
            node = helper.make_node(
                "ReverseSubsequences",
                ["x", "l"],
                ["y"],
                domain="dml_cuda",
                name="here",
                **attributes,
            )
            serialized = model(
                [node],
                [("x", np.float32, [2, 2]), ("l", np.int64, [2, 1])],
                [("y", np.float32, [2, 2])],
            )
            with self.assertRaisesRegex(
                Exception, "dml_cuda ReverseSubsequences `here`: axis: .*[Aa]ttribute"
            ):
                session(serialized)

    def test_ort_format_models_run_as_they_were_made(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/model.ort"
            options = ort.SessionOptions()
            options.optimized_model_filepath = path
            options.add_session_config_entry("session.save_model_format", "ORT")
            options.add_session_config_entry("dml_cuda.replace_onnx", "1")
            options.register_custom_ops_library(LIBRARY)
            ort.InferenceSession(
                reverse_sequence(np.float32, (4, 3)),
                options,
                providers=["CPUExecutionProvider"],
            )
            found = session(path, replace="1").run(
                None, {"x": self.X, "l": self.LENGTHS}
            )[0]
            same(found, reverse(self.X, self.LENGTHS[None, :], 0))


class Concurrency(unittest.TestCase):
    def test_eight_threads_on_one_session_with_many_shapes(self):
        made = session(reverse_sequence(np.float32, (1, 1, 1), dynamic=True))
        counted = session(ranges(np.int32))

        def work(thread):
            random = np.random.default_rng(thread)
            for _ in range(150):
                shape = tuple(random.integers(1, 40, 3))
                x = random.standard_normal(shape).astype(np.float32)
                lengths = random.integers(0, shape[0] + 1, shape[1])
                same(
                    made.run(None, {"x": x, "l": lengths})[0],
                    reverse(x, lengths[None, :, None], 0),
                )
                start, count, delta = (int(random.integers(1, 300)) for _ in range(3))
                limit = start + count * delta
                same(
                    counted.run(None, scalars(np.int32, a=start, b=limit, c=delta))[0],
                    np.arange(start, limit, delta, dtype=np.int32),
                )
            return True

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            self.assertEqual(list(pool.map(work, range(8))), [True] * 8)


class NodeTests(unittest.TestCase):
    def test_no_node_test_of_onnx_that_passes_alone_fails_with_the_library(self):
        from onnx.backend.test.case.node import collect_testcases

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cases = collect_testcases(None)
        uses = lambda case: (
            {node.op_type for node in case.model.graph.node}
            & {"Range", "ReverseSequence"}
        )
        cases = [case for case in cases if uses(case)]

        def passes(case, library, replace=True):
            try:
                made = session(case.model.SerializeToString(), library, replace)
                for inputs, outputs in case.data_sets:
                    found = made.run(
                        None, dict(zip([i.name for i in made.get_inputs()], inputs))
                    )
                    for ours, theirs in zip(found, outputs):
                        np.testing.assert_allclose(
                            ours, theirs, rtol=case.rtol, atol=case.atol
                        )
                return True
            except Exception:
                return False

        before = counters()[0]
        alone = [case.name for case in cases if passes(case, False)]
        with_library = [case.name for case in cases if passes(case, True)]
        print(
            f"\n{len(cases)} node tests of ONNX use these operators: {len(alone)} pass alone, {len(with_library)} with the library",
            flush=True,
        )
        self.assertEqual(set(alone) - set(with_library), set())
        self.assertEqual(
            [
                name
                for name in alone
                if not passes(
                    next(case for case in cases if case.name == name), True, "1"
                )
            ],
            [],
        )
        # Most use opsets that older versions do not have.
        newest = tuple(map(int, ort.__version__.split(".")[:2])) >= (1, 30)
        self.assertGreaterEqual(len(alone), 50 if newest else 4)
        self.assertGreaterEqual(counters()[0] - before, len(alone) // 2)


if __name__ == "__main__":
    print("onnxruntime", ort.__version__, LIBRARY)
    unittest.main()
