"""The error that holds the broken rules: pickled, copied, raised in workers."""

import concurrent.futures
import copy
import multiprocessing
import pickle
import unittest

import dml_cuda
import numpy as np


def overlapping():
    """Raises an error in a worker process."""
    dml_cuda.fill_value_sequence(
        4,
        0,
        1,
        "int8",
        out=np.lib.stride_tricks.as_strided(np.zeros(4, np.int8), (4,), (0,)),
    )


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
        self.assertEqual(
            (str(found), found.args, vars(found)),
            (str(required), required.args, vars(required)),
        )

    def test_they_are_pickled_and_copied_with_all_they_hold(self):
        error = self.raised()
        self.assertTrue(error.violations)
        made = dml_cuda.ValidationError
        plain = [
            error,
            made("words", []),
            made(message="words", violations=iter(error.violations)),
            made("words"),
            made("", error.violations),
            OfAnotherCall(7, text="code"),
        ]
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
        with concurrent.futures.ProcessPoolExecutor(
            1, mp_context=multiprocessing.get_context("spawn")
        ) as pool:
            with self.assertRaises(dml_cuda.ValidationError) as caught:
                pool.submit(overlapping).result(timeout=120)
        self.assertEqual(
            (str(caught.exception), caught.exception.violations),
            (str(required), required.violations),
        )
