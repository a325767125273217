"""dml_cuda on NumPy arrays: bytes against a slow model and against recorded executions of DirectML, views, errors, docstrings."""

import concurrent.futures
import copy
import doctest
import gzip
import json
import multiprocessing
import pathlib
import pickle
import unittest

import dml_cuda
import numpy as np
from dml_cuda import _ops

DATA = pathlib.Path(__file__).parents[2] / "tests/data/directml"


def model(x, lengths, axis):
    """Reverses with NumPy, index by index."""
    x = np.asarray(x)
    shape = list(x.shape)
    shape[axis] = 1
    size = x.shape[axis]
    lengths = np.broadcast_to(np.asarray(np.minimum(np.asarray(lengths).astype(object), size)).astype(np.int64), shape)
    t = np.arange(size).reshape([-1 if d == axis % x.ndim else 1 for d in range(x.ndim)])
    return np.take_along_axis(x, np.where(t < lengths, lengths - 1 - t, t), axis)


class Reverse(unittest.TestCase):
    def check(self, x, lengths, axis):
        before = x.copy()
        found = dml_cuda.reverse_subsequences(x, lengths, axis)
        required = model(before, lengths, axis)
        self.assertEqual((found.dtype, found.shape), (required.dtype, required.shape))
        self.assertEqual(found.tobytes(), required.tobytes())
        self.assertEqual(x.tobytes(), before.tobytes(), "the input was written")

    def test_every_dtype_shape_and_length_type(self):
        random = np.random.default_rng(0)
        dtypes = [np.bool_, np.int8, np.uint8, np.int16, np.float16, np.int32, np.float32, np.int64, np.float64, np.complex64, np.complex128,
                  "datetime64[s]", "S5", "U3", [("a", "i4"), ("b", "u1")]]  # fmt: skip
        cases = 0
        for dtype in map(np.dtype, dtypes):
            for shape in [(7,), (5, 3), (3, 4, 5), (2, 3, 4, 5), (1, 1), (2,) * 10]:
                for axis in range(-1, len(shape)):
                    x = np.frombuffer(random.bytes(int(np.prod(shape)) * dtype.itemsize), np.uint8).view(dtype).reshape(shape).copy()
                    of_lanes = list(shape)
                    of_lanes[axis] = 1
                    kind = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64][cases % 8]
                    self.check(x, random.integers(0, shape[axis] + 2, of_lanes).astype(kind), axis)
                    cases += 1
        self.assertGreater(cases, 400)

    def test_lengths_broadcast_like_numpys(self):
        x = np.arange(60).reshape(3, 4, 5)
        for lengths in (2, [[[1]], [[2]], [[9]]], np.arange(5), np.array([[3]]), np.full((3, 1, 5), 4), 1 << 40):
            self.check(x, lengths, 1)
        self.check(x, np.broadcast_to(np.uint32(2), (3, 1, 5)), 1)

    def test_views_are_taken_where_they_lie(self):
        base = np.arange(2000, dtype=np.int32).reshape(20, 100)
        fields = np.zeros(30, dtype=[("a", "i4"), ("b", "f8")])
        fields["b"] = np.arange(30)
        for x in (base[::2], base[:, 3:50], base.T, base[1::3, ::7].T, base[:, 40:20:-1], np.broadcast_to(base[0], (4, 100)),
                  np.lib.stride_tricks.sliding_window_view(base[0], 10), fields["b"], base.astype(">i4")):  # fmt: skip
            for axis in range(x.ndim):
                self.check(x, 3, axis)

    def test_out_and_in_place(self):
        x = np.arange(40.0).reshape(4, 10)
        lengths = [[3], [10], [0], [7]]
        required = model(x, lengths, 1)
        out = np.full((8, 30), -1.0)
        given = out[::2, ::3]
        self.assertIs(dml_cuda.reverse_subsequences(x, lengths, 1, out=given), given)
        self.assertTrue((given == required).all())
        out[::2, ::3] = -1
        self.assertTrue((out == -1).all(), "gaps were written")
        self.assertIs(dml_cuda.reverse_subsequences(x, lengths, 1, out=x), x)
        self.assertTrue((x == required).all())
        view = x.T
        dml_cuda.reverse_subsequences(view, np.array(lengths).T, 0, out=view)
        self.assertTrue((x == np.arange(40.0).reshape(4, 10)).all())

    def test_empty_arrays(self):
        for shape, axis in [((0,), 0), ((0, 3), 1), ((3, 0), 1), ((2, 0, 3), 0)]:
            found = dml_cuda.reverse_subsequences(np.zeros(shape, np.float32), 1, axis)
            self.assertEqual((found.shape, found.dtype), (shape, np.float32))

    def test_errors_name_argument_found_and_required(self):
        x = np.arange(12).reshape(3, 4)
        read_only = np.arange(12).reshape(3, 4)
        read_only.flags.writeable = False
        wide = np.zeros(20)
        for error, words, call in [
            (ValueError, "axis is 2, must be from -2 to 1, of an x of 2 dimensions", lambda: dml_cuda.reverse_subsequences(x, 1, 2)),
            (TypeError, "axis is a float, must be an integer", lambda: dml_cuda.reverse_subsequences(x, 1, 1.0)),
            (TypeError, "lengths has dtype float64, must have one of integers", lambda: dml_cuda.reverse_subsequences(x, [1.5], 1)),
            (ValueError, r"lengths has shape \(4,\), must broadcast to \(3, 1\), x's with 1 at the axis", lambda: dml_cuda.reverse_subsequences(x, [1] * 4, 1)),
            (ValueError, r"lengths\[1, 0\] is -2, must be at least 0", lambda: dml_cuda.reverse_subsequences(x, [[1], [-2], [3]], 1)),
            (ValueError, "out is read-only, must be writable", lambda: dml_cuda.reverse_subsequences(x, 1, 1, out=read_only)),
            (ValueError, "out is read-only, must be writable", lambda: dml_cuda.reverse_subsequences(read_only, 1, 1, out=read_only)),
            (ValueError, r"out has shape \(4, 3\), must have x's, \(3, 4\)", lambda: dml_cuda.reverse_subsequences(x, 1, 1, out=x.T)),
            (TypeError, "out has dtype float64, must have x's, int64", lambda: dml_cuda.reverse_subsequences(x, 1, 1, out=x.astype(float))),
            (ValueError, "must be the same range, to run in place, or lie apart", lambda: dml_cuda.reverse_subsequences(wide[:10], 1, 0, out=wide[5:15])),
            (ValueError, "output.overlap|output.strides", lambda: dml_cuda.reverse_subsequences(np.zeros(4), 1, 0, out=np.lib.stride_tricks.as_strided(wide, (4,), (0,)))),
            (ValueError, "x has 0 dimensions, must have at least 1", lambda: dml_cuda.reverse_subsequences(np.array(1), 1, 0)),
            (TypeError, "x is a builtins.list, must be a NumPy array, or one with", lambda: dml_cuda.reverse_subsequences([1], 1, 0)),
            (TypeError, "x has dtype object, must have one whose elements are bytes", lambda: dml_cuda.reverse_subsequences(np.array([None]), 1, 0)),
        ]:  # fmt: skip
            with self.subTest(words), self.assertRaisesRegex(error, words):
                call()
        self.assertTrue((x == np.arange(12).reshape(3, 4)).all())
        self.assertTrue((wide == 0).all())


class Jax(unittest.TestCase):
    def test_arrays_on_the_cpu(self):
        try:
            import jax
        except ImportError:
            self.skipTest("no JAX")
        with jax.default_device(jax.devices("cpu")[0]):
            for dtype in ("float32", "int8", "bool"):
                x = jax.numpy.arange(24).reshape(2, 3, 4).astype(dtype)
                lengths = jax.numpy.asarray([[[1]], [[3]]])
                found = dml_cuda.reverse_subsequences(x, lengths, 1)
                self.assertEqual((type(found), found.dtype), (type(x), x.dtype))
                self.assertEqual(np.asarray(found).tolist(), model(np.asarray(x), np.asarray(lengths), 1).tolist())
                self.assertEqual(np.asarray(x).tolist(), np.arange(24).reshape(2, 3, 4).astype(dtype).tolist())
            with self.assertRaisesRegex(ValueError, "out is read-only, must be writable"):
                dml_cuda.reverse_subsequences(x, lengths, 1, out=x)


class Fill(unittest.TestCase):
    def test_every_dtype(self):
        for dtype in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64):
            found = dml_cuda.fill_value_sequence((5, 100), 7, -3, dtype)
            required = (7 - 3 * np.arange(500, dtype=object)) % (1 << 8 * np.dtype(dtype).itemsize)
            self.assertEqual(found.dtype, dtype)
            self.assertEqual((found.astype(object) % (1 << 8 * found.itemsize)).ravel().tolist(), required.tolist())
        # Exact in float64: products of two floats; one rounding to float32 is left.
        found = dml_cuda.fill_value_sequence(1000, 0.5, 0.1, np.float32)
        required = (np.arange(1000.0) * np.float64(np.float32(0.1)) + 0.5).astype(np.float32)
        self.assertEqual(found.tobytes(), required.tobytes())
        self.assertEqual(dml_cuda.fill_value_sequence((3,), 1, 0.5, "float16").tolist(), [1, 1.5, 2])
        self.assertEqual(dml_cuda.fill_value_sequence((), 4, 1, "int8").tolist(), 4)
        self.assertEqual(dml_cuda.fill_value_sequence((0, 2), 4, 1, "int8").shape, (0, 2))

    def test_strides_and_out(self):
        found = dml_cuda.fill_value_sequence((2, 3), 1, 1, "int32", strides=(1, 4))
        self.assertEqual((found.strides, found.tolist()), ((4, 16), [[1, 2, 3], [4, 5, 6]]))
        memory = np.full(40, -1, np.int16)
        out = memory[3:39:3].reshape(3, 4)[:, ::2]
        self.assertIs(dml_cuda.fill_value_sequence((3, 2), 10, 1, np.int16, out=out), out)
        self.assertEqual(out.tolist(), [[10, 11], [12, 13], [14, 15]])

    def test_errors_name_argument_found_and_required(self):
        fill = dml_cuda.fill_value_sequence
        for error, words, call in [
            (TypeError, "dtype is float64, must be float32, float16, or integers", lambda: fill(3, 0, 1, "float64")),
            (ValueError, "start is 300, must be from -128 to 255, as the data type is UINT8", lambda: fill(3, 300, 1, "uint8")),
            (TypeError, "delta is 0.5, must be an integer, as the data type is INT32", lambda: fill(3, 0, 0.5, "int32")),
            (ValueError, "start is 1e[+]39, must be a FLOAT32: infinity is written as such", lambda: fill(3, 1e39, 1, "float32")),
            (ValueError, r"shape is \(-1,\), must have sizes of at least 0", lambda: fill((-1,), 0, 1, "int8")),
            (ValueError, "tensor.dimension_count", lambda: fill((1,) * 9, 0, 1, "int8")),
            (ValueError, r"strides is \(1,\), must be 2 numbers", lambda: fill((2, 2), 0, 1, "int8", strides=(1,))),
            (ValueError, "device is 'gpu', must be 'cpu', 'cuda', or such as 'cuda:1'", lambda: fill(2, 0, 1, "int8", device="gpu")),
            (ValueError, r"out has shape \(3,\), must have \(2,\)", lambda: fill(2, 0, 1, "int8", out=np.zeros(3, np.int8))),
            (TypeError, "out has dtype int16, must have int8", lambda: fill(3, 0, 1, "int8", out=np.zeros(3, np.int16))),
        ]:  # fmt: skip
            with self.subTest(words), self.assertRaisesRegex(error, words):
                call()


def records(name):
    with gzip.open(DATA / f"{name}.jsonl.gz", "rt") as file:
        return [json.loads(line) for line in file]


class DirectMl(unittest.TestCase):
    def test_recorded_verdicts(self):
        accepted = 0
        for record in records("verdicts"):
            desc = {key: value for key, value in record["desc"].items() if key not in ("ValueStart", "ValueDelta")}
            violations = dml_cuda.validate({"Type": record["type"], "Desc": desc})
            required = record["accepted"] and not record.get("output_overlaps")
            self.assertEqual(not violations, required, (record, violations))
            accepted += required
        self.assertEqual(accepted, 943)

    def test_recorded_executions(self):
        """The arrays of the 421 executions, as views of one buffer; where this project departs from DirectML, the verdict of the model."""
        departures = run = 0
        for record in records("outputs"):
            desc = record["desc"]
            output_desc = desc["OutputTensor"]
            expected = np.frombuffer(bytes.fromhex(record["out_bytes"]), np.uint8)
            memory = np.full(expected.size, int(expected[-1]), np.uint8)
            offset = record.get("out_offset", 0)

            def array(tensor, memory, offset=0):
                dtype = np.dtype(tensor["DataType"].lower())
                sizes = tensor["Sizes"]
                steps = tensor["Strides"] or [int(np.prod(sizes[d + 1 :])) for d in range(len(sizes))]
                return np.ndarray(sizes, dtype, memory, offset, [step * dtype.itemsize for step in steps])

            out = array(output_desc, memory, offset)
            run += 1
            if record["type"].endswith("FILL_VALUE_SEQUENCE"):
                start, delta = (np.frombuffer(bytes.fromhex(record[key]).ljust(8, b"\0"), out.dtype)[0].item() for key in ("start_bytes", "delta_bytes"))
                dml_cuda.fill_value_sequence(output_desc["Sizes"], start, delta, out.dtype, out=out)
            else:
                total, width = desc["InputTensor"]["TotalTensorSizeInBytes"], out.itemsize
                counted = b"".join((k % (1 << 8 * width)).to_bytes(width, "little") for k in range(total // width))
                given = bytes.fromhex(record["input_bytes"]) if record.get("input_bytes") else counted
                x = array(desc["InputTensor"], bytearray(given.ljust(total, b"\0")))
                lengths = array(desc["SequenceLengthsTensor"], bytearray(bytes.fromhex(record["length_bytes"])))
                dml_cuda.reverse_subsequences(x, lengths, desc["Axis"], out=out)
            departs = record.get("departs_from_page") or record.get("denormals_flushed")
            departures += bool(departs)
            if departs and record["type"].endswith("REVERSE_SUBSEQUENCES"):
                self.assertTrue(np.array_equal(out.view(f"u{width}"), model(x, lengths, desc["Axis"]).view(f"u{width}")), record["id"])
            elif departs:
                # Both scalars are exact in float64, and so are the products.
                count = int(np.prod(output_desc["Sizes"]))
                required = (np.arange(count, dtype=np.float64) * delta + start).astype(out.dtype)
                self.assertTrue(np.array_equal(out.ravel(), required, equal_nan=True), record["id"])
            else:
                found, required = out, array(output_desc, expected.copy(), offset)
                if out.dtype.kind == "f":
                    self.assertTrue(np.array_equal(found, required, equal_nan=True), record["id"])
                else:
                    self.assertEqual(memory.tobytes(), expected.tobytes(), record["id"])
        self.assertEqual((run, departures), (421, 52))


class Descriptors(unittest.TestCase):
    TENSOR = {"DataType": "FLOAT32", "Sizes": [2, 4]}

    def test_violations_are_data(self):
        lengths = {"DataType": "UINT32", "Sizes": [2, 1]}
        inner = {"InputTensor": self.TENSOR, "SequenceLengthsTensor": lengths, "OutputTensor": self.TENSOR, "Axis": 4}
        desc = {"Type": "DML_OPERATOR_REVERSE_SUBSEQUENCES", "Desc": inner}
        found = dml_cuda.validate(desc)
        self.assertEqual(len(found), 1)
        self.assertEqual((found[0].rule, found[0].place, found[0].found), ("reverse.axis.range", "ReverseSubsequencesDesc.Axis", "4"))
        desc["Desc"] = {**inner, "Axis": 1}
        self.assertEqual(dml_cuda.validate(desc), [])
        low = dml_cuda.validate(desc, "2_1")
        self.assertEqual({violation.needed_feature_level for violation in low}, {"4_0"})
        self.assertEqual(dml_cuda.validate(desc, directml="1.8.0"), [])
        self.assertTrue(dml_cuda.validate(desc, directml="1.0.0"))
        with self.assertRaisesRegex(ValueError, "`eight` is not a version of DirectML"):
            dml_cuda.validate(desc, directml="eight")
        with self.assertRaisesRegex(ValueError, "feature_level is 'five', must be such as '5_0'"):
            dml_cuda.validate(desc, "five")

    def test_what_is_no_descriptor_is_named(self):
        for desc, words in [
            ({}, "desc.Type is missing, must be there"),
            ({"Type": "COPY", "Desc": {}}, "desc.Type is 'COPY', must be FILL_VALUE_SEQUENCE or REVERSE_SUBSEQUENCES"),
            ({"Type": "REVERSE_SUBSEQUENCES", "Desc": {}}, "ReverseSubsequencesDesc.InputTensor is missing"),
            ({"Type": "FILL_VALUE_SEQUENCE", "Desc": {"OutputTensor": {"DataType": "FLOAT31", "Sizes": [1]}}}, "OutputTensor.DataType is 'FLOAT31', must be one of FLOAT32, "),
            ({"Type": "FILL_VALUE_SEQUENCE", "Desc": {"OutputTensor": {"DataType": "INT8", "Sizes": [-1]}}}, r"OutputTensor.Sizes is \[-1\], must be numbers from 0 to 4294967295"),
        ]:  # fmt: skip
            with self.subTest(words), self.assertRaisesRegex(ValueError, words):
                dml_cuda.validate(desc)


def overlapping(_=None):
    """Raises, in a worker."""
    dml_cuda.fill_value_sequence((2, 2), 0, 1, "int8", strides=(1, 1))


class OfAnotherCall(dml_cuda.ValidationError):
    def __init__(self, code, *, text):
        super().__init__(f"{text} {code}", [])
        self.code = code


class Exceptions(unittest.TestCase):
    def raised(self):
        with self.assertRaises(dml_cuda.ValidationError) as caught:
            overlapping()
        return caught.exception

    def same(self, found, required):
        self.assertIs(type(found), type(required))
        self.assertEqual((str(found), found.args, vars(found)), (str(required), required.args, vars(required)))

    def test_they_are_pickled_and_copied_with_all_they_hold(self):
        error = self.raised()
        self.assertTrue(error.violations)
        plain = [error, dml_cuda.ValidationError("words", []), dml_cuda.ValidationError(message="words", violations=iter(error.violations)),
                 dml_cuda.ValidationError("words"), dml_cuda.ValidationError("", error.violations), OfAnotherCall(7, text="code")]  # fmt: skip
        error.__notes__ = ["a note"]
        error.more = {"x": 1}
        for error in plain:
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
                self.same(pickle.loads(pickle.dumps(error, protocol)), error)
            self.same(copy.copy(error), error)
            deep = copy.deepcopy(error)
            self.same(deep, error)
            self.assertIsNot(deep.violations, error.violations)

    def test_they_come_out_of_workers(self):
        required = self.raised()
        context = multiprocessing.get_context("spawn")
        with context.Pool(1) as pool:
            with self.assertRaises(dml_cuda.ValidationError) as caught:
                pool.map_async(overlapping, range(2)).get(timeout=120)
            self.assertEqual((str(caught.exception), caught.exception.violations), (str(required), required.violations))
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
            with self.assertRaises(dml_cuda.ValidationError) as caught:
                pool.submit(overlapping).result(timeout=120)
            self.assertEqual((str(caught.exception), caught.exception.violations), (str(required), required.violations))
            self.assertEqual(pool.submit(abs, -1).result(timeout=120), 1)


class Docs(unittest.TestCase):
    def test_docstrings_run(self):
        result = doctest.testmod(_ops)
        self.assertEqual(result.failed, 0)
        self.assertGreater(result.attempted, 10)


if __name__ == "__main__":
    unittest.main()
