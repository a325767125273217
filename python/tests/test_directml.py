"""Descriptors, DirectML's recorded verdicts, and the error that holds the broken rules."""

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
from test_numpy import check_errors

VERDICTS = pathlib.Path(__file__).parents[2] / "tests/data/directml/verdicts.jsonl.gz"


class Descriptors(unittest.TestCase):
    TENSOR = {"DataType": "FLOAT32", "Sizes": [2, 4]}

    def test_recorded_verdicts(self):
        """A few. The library's tests replay all, and all executions."""
        with gzip.open(VERDICTS, "rt") as file:
            records = [json.loads(line) for line in file][::120]
        for record in records:
            desc = {key: value for key, value in record["desc"].items() if key not in ("ValueStart", "ValueDelta")}
            violations = dml_cuda.validate({"Type": record["type"], "Desc": desc})
            self.assertEqual(not violations, record["accepted"] and not record.get("output_overlaps"), (record, violations))

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
        check_errors(self, [
            (TypeError, "feature_level is 5.0, must be a text such as '5_0'", lambda: dml_cuda.validate(desc, 5.0)),
            (TypeError, "directml is 1.8, must be a text such as '1.8.0'", lambda: dml_cuda.validate(desc, directml=1.8)),
            (TypeError, "directml is 0, must be a text such as '1.8.0'", lambda: dml_cuda.validate(desc, directml=0)),
            (ValueError, "`` is not a version of DirectML, must be such as 1.8.0", lambda: dml_cuda.validate(desc, directml="")),
            (ValueError, "`6.4` is not a version of DirectML, .* below 2", lambda: dml_cuda.validate(desc, directml="6.4")),
            (ValueError, "`eight` is not a version of DirectML", lambda: dml_cuda.validate(desc, directml="eight")),
            (ValueError, "directml is .*, must have no NUL", lambda: dml_cuda.validate(desc, directml="1.8.0\0")),
            (TypeError, "target is None, must be a text such as 'h100'", lambda: dml_cuda.explain(desc, None)),
            (ValueError, "target is 'h1000', must be a GPU's", lambda: dml_cuda.explain(desc, "h1000")),
        ])  # fmt: skip

    def test_what_is_no_descriptor_is_named(self):
        fill = {"OutputTensor": {"DataType": "INT8", "Sizes": [1]}, "ValueDataType": "FLOAT32"}
        of_fill = lambda **fields: {"Type": "FILL_VALUE_SEQUENCE", "Desc": {**fill, **fields}}
        of_output = lambda **fields: of_fill(OutputTensor={**fill["OutputTensor"], **fields})
        cases = [
            (ValueError, "desc.Type is required", {}),
            (ValueError, "desc.Type is 'COPY', must be FILL_VALUE_SEQUENCE or REVERSE_SUBSEQUENCES", {"Type": "COPY", "Desc": {}}),
            (ValueError, "ReverseSubsequencesDesc.InputTensor is required", {"Type": "REVERSE_SUBSEQUENCES", "Desc": {}}),
            (ValueError, "OutputTensor.DataType is 'FLOAT31', must be one of FLOAT32, ", of_output(DataType="FLOAT31")),
            (ValueError, r"OutputTensor.Sizes is \[-1\], must be numbers from 0 to 4294967295", of_output(Sizes=[-1])),
            (TypeError, "desc is None, must be a mapping of fields", None),
            (TypeError, r"desc is \[\], must be a mapping of fields", []),
            (TypeError, "desc.Desc is 3, must be a mapping of fields", {"Type": "FILL_VALUE_SEQUENCE", "Desc": 3}),
            (TypeError, "FillValueSequenceDesc.OutputTensor is 'x', must be a mapping of fields", of_fill(OutputTensor="x")),
            (TypeError, "FillValueSequenceDesc.ValueStart is '1', must be a number", of_fill(ValueStart="1")),
            (TypeError, "OutputTensor.Sizes is 3, must be a sequence of integers", of_output(Sizes=3)),
            (TypeError, r"OutputTensor.Sizes\[1\] is 2.0, must be an integer", of_output(Sizes=[1, 2.0])),
            (TypeError, "OutputTensor.TotalTensorSizeInBytes is '4', must be an integer", of_output(TotalTensorSizeInBytes="4")),
            (TypeError, "OutputTensor.Sizes.0. is True, must be an integer", of_output(Sizes=[True])),
            (TypeError, "FillValueSequenceDesc.ValueStart is True, must be a number", of_fill(ValueStart=True)),
            (ValueError, "OutputTensor.DimensionCount is 3, must be 1, the number of Sizes", of_output(DimensionCount=3)),
            (TypeError, "OutputTensor.DimensionCount is True, must be an integer", of_output(DimensionCount=True)),
            (ValueError, "OutputTensor has a member 'Stride', must be Strides, the nearest name", of_output(Stride=[1])),
            (ValueError, "FillValueSequenceDesc has a member 'Bogus', must be one of OutputTensor, ValueDataType, Va", of_fill(Bogus=1)),
            (ValueError, "desc has a member 'desc', must be Desc, the nearest name", {**of_fill(), "desc": {}}),
            (ValueError, "desc has a member 7, must be one of Type, Desc", {**of_fill(), 7: 7}),
            (ValueError, "ReverseSubsequencesDesc has a member 'axis', must be Axis", {"Type": "REVERSE_SUBSEQUENCES", "Desc": {"axis": 1}}),
        ]  # fmt: skip
        for call in (dml_cuda.validate, dml_cuda.explain):
            check_errors(self, [(error, words, lambda desc=desc: call(desc)) for error, words, desc in cases])


def overlapping():
    """Raises an error in a worker process."""
    dml_cuda.fill_value_sequence(4, 0, 1, "int8", out=np.lib.stride_tricks.as_strided(np.zeros(4, np.int8), (4,), (0,)))


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
        made = dml_cuda.ValidationError
        plain = [error, made("words", []), made(message="words", violations=iter(error.violations)), made("words"),
                 made("", error.violations), OfAnotherCall(7, text="code")]  # fmt: skip
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
