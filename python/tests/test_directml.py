"""Recorded verdicts and executions of DirectML, descriptors, and the error that holds the broken rules."""

import concurrent.futures
import copy
import gzip
import json
import multiprocessing
import pathlib
import pickle
import unittest

import dml_cuda
import numpy as np

DATA = pathlib.Path(__file__).parents[2] / "tests/data/directml"


def records(name):
    with gzip.open(DATA / f"{name}.jsonl.gz", "rt") as file:
        return [json.loads(line) for line in file]


class DirectMl(unittest.TestCase):
    def test_recorded_verdicts(self):
        """A few, through ctypes. The library's tests replay all."""
        for record in records("verdicts")[::120]:
            desc = {key: value for key, value in record["desc"].items() if key not in ("ValueStart", "ValueDelta")}
            violations = dml_cuda.validate({"Type": record["type"], "Desc": desc})
            self.assertEqual(not violations, record["accepted"] and not record.get("output_overlaps"), (record, violations))

    def test_recorded_executions(self):
        """Their arrays, as views of one buffer. The library's tests have those where this project differs from DirectML."""

        def array(tensor, memory, offset=0):
            dtype, sizes = np.dtype(tensor["DataType"].lower()), tensor["Sizes"]
            steps = tensor["Strides"] or [int(np.prod(sizes[d + 1 :])) for d in range(len(sizes))]
            return np.ndarray(sizes, dtype, memory, offset, [step * dtype.itemsize for step in steps])

        same = [record for record in records("outputs") if not (record.get("departs_from_page") or record.get("denormals_flushed"))]
        self.assertEqual(len(same), 421 - 52)
        for record in same:
            desc, offset = record["desc"], record.get("out_offset", 0)
            expected = np.frombuffer(bytes.fromhex(record["out_bytes"]), np.uint8)
            memory = np.full(expected.size, int(expected[-1]), np.uint8)
            out = array(desc["OutputTensor"], memory, offset)
            if record["type"].endswith("FILL_VALUE_SEQUENCE"):
                start, delta = (np.frombuffer(bytes.fromhex(record[key]).ljust(8, b"\0"), out.dtype)[0].item() for key in ("start_bytes", "delta_bytes"))
                dml_cuda.fill_value_sequence(out.shape, start, delta, out.dtype, out=out)
            else:
                total, width = desc["InputTensor"]["TotalTensorSizeInBytes"], out.itemsize
                counted = b"".join((k % (1 << 8 * width)).to_bytes(width, "little") for k in range(total // width))
                given = bytes.fromhex(record["input_bytes"]) if record.get("input_bytes") else counted
                x = array(desc["InputTensor"], bytearray(given.ljust(total, b"\0")))
                lengths = array(desc["SequenceLengthsTensor"], bytearray(bytes.fromhex(record["length_bytes"])))
                dml_cuda.reverse_subsequences(x, lengths, desc["Axis"], out=out)
            if out.dtype.kind == "f":
                required = array(desc["OutputTensor"], expected.copy(), offset)
                self.assertTrue(np.array_equal(out, required, equal_nan=True), record["id"])
            else:
                self.assertEqual(memory.tobytes(), expected.tobytes(), record["id"])


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
        for level in ("five", "4_2", "0_0", "", "5.0"):
            with self.assertRaisesRegex(ValueError, f"feature_level is '{level}', must be such as '5_0': one of 1_0, 2_0"):
                dml_cuda.validate(desc, level)
        for error, words, call in [
            (TypeError, "feature_level is 5.0, must be a text such as '5_0'", lambda: dml_cuda.validate(desc, 5.0)),
            (TypeError, "directml is 1.8, must be a text such as '1.8.0'", lambda: dml_cuda.validate(desc, directml=1.8)),
            (TypeError, "directml is 0, must be a text such as '1.8.0'", lambda: dml_cuda.validate(desc, directml=0)),
            (ValueError, "`` is not a version of DirectML, must be such as 1.8.0", lambda: dml_cuda.validate(desc, directml="")),
            (ValueError, "`eight` is not a version of DirectML", lambda: dml_cuda.validate(desc, directml="eight")),
            (ValueError, "directml is .*, must have no NUL", lambda: dml_cuda.validate(desc, directml="1.8.0\0")),
            (TypeError, "target is None, must be a text such as 'h100'", lambda: dml_cuda.explain(desc, None)),
            (ValueError, "target is 'h1000', must be a GPU's", lambda: dml_cuda.explain(desc, "h1000")),
        ]:  # fmt: skip
            with self.subTest(words), self.assertRaisesRegex(error, words):
                call()

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
        fill = {"OutputTensor": {"DataType": "FLOAT32", "Sizes": [1]}, "ValueDataType": "FLOAT32"}
        for desc, words in [
            (None, "desc is None, must be a mapping of fields"),
            ([], r"desc is \[\], must be a mapping of fields"),
            ({"Type": "FILL_VALUE_SEQUENCE", "Desc": 3}, "desc.Desc is 3, must be a mapping of fields"),
            ({"Type": "FILL_VALUE_SEQUENCE", "Desc": {**fill, "OutputTensor": "x"}}, "FillValueSequenceDesc.OutputTensor is 'x', must be a mapping of fields"),
            ({"Type": "FILL_VALUE_SEQUENCE", "Desc": {**fill, "ValueStart": "1"}}, "FillValueSequenceDesc.ValueStart is '1', must be a number"),
            ({"Type": "FILL_VALUE_SEQUENCE", "Desc": {**fill, "OutputTensor": {"DataType": "INT8", "Sizes": 3}}}, "OutputTensor.Sizes is 3, must be a sequence of integers"),
            ({"Type": "FILL_VALUE_SEQUENCE", "Desc": {**fill, "OutputTensor": {"DataType": "INT8", "Sizes": [1, 2.0]}}}, r"OutputTensor.Sizes\[1\] is 2.0, must be an integer"),
            ({"Type": "FILL_VALUE_SEQUENCE", "Desc": {**fill, "OutputTensor": {"DataType": "INT8", "Sizes": [1], "TotalTensorSizeInBytes": "4"}}}, "OutputTensor.TotalTensorSizeInBytes is '4', must be an integer"),
        ]:  # fmt: skip
            with self.subTest(words), self.assertRaisesRegex(TypeError, words):
                dml_cuda.validate(desc)


def overlapping():
    """Raises an error in a worker process."""
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
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            with self.assertRaises(dml_cuda.ValidationError) as caught:
                pool.submit(overlapping).result(timeout=120)
        self.assertEqual((str(caught.exception), caught.exception.violations), (str(required), required.violations))


if __name__ == "__main__":
    unittest.main()
