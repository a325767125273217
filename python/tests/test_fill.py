"""dml_cuda.fill_value_sequence on NumPy arrays: results compared with NumPy's, and errors."""

import re
import unittest

import dml_cuda
import numpy as np
from numpy.lib.stride_tricks import as_strided
from test_numpy import check_errors


class Fill(unittest.TestCase):
    def test_every_dtype(self):
        for dtype in (
            np.int8,
            np.uint8,
            np.int16,
            np.uint16,
            np.int32,
            np.uint32,
            np.int64,
            np.uint64,
        ):
            found = dml_cuda.fill_value_sequence((5, 100), 7, -3, dtype)
            required = (7 - 3 * np.arange(500, dtype=object)) % (
                1 << 8 * np.dtype(dtype).itemsize
            )
            self.assertEqual(found.dtype, dtype)
            self.assertEqual(
                (found.astype(object) % (1 << 8 * found.itemsize)).ravel().tolist(),
                required.tolist(),
            )
        # Products of two floats are exact in float64. Only the rounding to float32 remains.
        found = dml_cuda.fill_value_sequence(1000, 0.5, 0.1, np.float32)
        required = (np.arange(1000.0) * np.float64(np.float32(0.1)) + 0.5).astype(
            np.float32
        )
        self.assertEqual(found.tobytes(), required.tobytes())
        self.assertEqual(
            dml_cuda.fill_value_sequence((3,), 1, 0.5, "float16").tolist(), [1, 1.5, 2]
        )
        self.assertEqual(dml_cuda.fill_value_sequence((), 4, 1, "int8").tolist(), 4)
        self.assertEqual(
            dml_cuda.fill_value_sequence((0, 2), 4, 1, "int8").shape, (0, 2)
        )
        for scalar in (1, 1.0, np.float16(1), np.int8(1), np.array(1.0)):
            self.assertEqual(
                dml_cuda.fill_value_sequence(2, scalar, scalar, "float32").tolist(),
                [1, 2],
            )

    def test_shapes_are_taken_as_numpy_takes_them(self):
        class Three:
            def __index__(self):
                return 3

        for shape in (
            3,
            np.int64(3),
            np.uint8(3),
            np.array(3),
            Three(),
            [3],
            np.array([3]),
            (np.int16(3), Three()),
            range(2, 4),
            np.zeros((2, 3)).shape,
            (),
        ):
            self.assertEqual(
                dml_cuda.fill_value_sequence(shape, 0, 1, np.int8).shape,
                np.zeros(shape).shape,
            )

    def test_out(self):
        memory = np.full(40, -1, np.int16)
        out = memory[3:39:3].reshape(3, 4)[:, ::2]
        self.assertIs(
            dml_cuda.fill_value_sequence((3, 2), 10, 1, np.int16, out=out), out
        )
        self.assertEqual(out.tolist(), [[10, 11], [12, 13], [14, 15]])

    def test_errors_name_argument_found_and_required(self):
        fill = dml_cuda.fill_value_sequence
        types = "but must be float32, float16, or integers of 8 to 64 bits, in the machine's byte order"
        devices = "but must be 'cpu', 'cuda', or the name of a GPU such as 'cuda:1'"
        check_errors(
            self,
            [
                *(
                    (
                        TypeError,
                        f"dtype is {re.escape(value)}, {types}",
                        lambda value=value: fill(3, 0, 1, value),
                    )
                    for value in ("float64", ">i4", "datetime64[s]")
                ),
                (
                    ValueError,
                    "start is 300, but must be from -128 to 255, as the data type is UINT8",
                    lambda: fill(3, 300, 1, "uint8"),
                ),
                (
                    TypeError,
                    "delta is 0.5, but must be an integer, as the data type is INT32",
                    lambda: fill(3, 0, 0.5, "int32"),
                ),
                (
                    ValueError,
                    "start is 1e[+]39, but must fit FLOAT32, or be float\('inf'\)",
                    lambda: fill(3, 1e39, 1, "float32"),
                ),
                (
                    ValueError,
                    r"shape is \(-1,\), but must have sizes of at least 0",
                    lambda: fill((-1,), 0, 1, "int8"),
                ),
                (
                    ValueError,
                    "tensor.dimension_count",
                    lambda: fill((1,) * 9, 0, 1, "int8"),
                ),
                *(
                    (
                        ValueError,
                        f"device is {value!r}, {devices}",
                        lambda value=value: fill(2, 0, 1, "int8", device=value),
                    )
                    for value in ("gpu", "", "cpu:", "cuda:")
                ),
                (
                    ValueError,
                    r"out has shape \(3,\), but must have \(2,\)",
                    lambda: fill(2, 0, 1, "int8", out=np.zeros(3, np.int8)),
                ),
                (
                    TypeError,
                    "out has dtype int16, but must have int8",
                    lambda: fill(3, 0, 1, "int8", out=np.zeros(3, np.int16)),
                ),
                *(
                    (
                        TypeError,
                        f"shape is {value!r}, but must be an integer or a sequence of integers",
                        lambda value=value: fill(value, 0, 1, "int8"),
                    )
                    for value in (2.0, None, "23", b"23", {2, 3})
                ),
                (
                    TypeError,
                    r"shape\[1\] is 3.0, but must be an integer",
                    lambda: fill((2, 3.0), 0, 1, "int8"),
                ),
                (
                    ValueError,
                    "shape is a tuple, but must have at most 2",
                    lambda: fill((10**5000,), 0, 1, "int8"),
                ),
                (
                    ValueError,
                    r"shape is \(1099511627776,\), but must have at most 2\*\*32 - 4 elements of int8",
                    lambda: fill(1 << 40, 0, 1, "int8"),
                ),
                *(
                    (
                        TypeError,
                        f"delta is {re.escape(repr(value))}, but must be a number",
                        lambda value=value: fill(3, 0, value, "float32"),
                    )
                    for value in (
                        "1",
                        b"1",
                        None,
                        True,
                        np.True_,
                        np.array("1"),
                        np.array([1.0]),
                        np.complex64(1 + 2j),
                    )
                ),
                (
                    TypeError,
                    "start is '1', but must be an integer",
                    lambda: fill(3, "1", 1, "int32"),
                ),
                (
                    TypeError,
                    "shape is True, but must be an integer",
                    lambda: fill(True, 0, 1, "int32"),
                ),
                *(
                    (
                        TypeError,
                        f"dtype is {value!r}, {types}",
                        lambda value=value: fill(3, 0, 1, value),
                    )
                    for value in (None, "foo")
                ),
                *(
                    (
                        TypeError,
                        f"device is {value!r}, {devices}",
                        lambda value=value: fill(3, 0, 1, "int8", device=value),
                    )
                    for value in (0, False, b"cpu")
                ),
                (
                    TypeError,
                    "stream is 'foo', but must be an integer",
                    lambda: fill(3, 0, 1, "int8", stream="foo"),
                ),
                (
                    ValueError,
                    "stream is 5, but must be None or 0, as out is on the host",
                    lambda: fill(3, 0, 1, "int8", stream=5, out=np.zeros(3, np.int8)),
                ),
                *(
                    (
                        ValueError,
                        rf"must have at most 2\*\*32 - {spare} elements of {dtype} ",
                        lambda dtype=dtype, spare=spare: fill(
                            (1 << 32) - spare + 1, 0, 1, dtype
                        ),
                    )
                    for dtype, spare in (
                        ("uint8", 4),
                        ("float16", 2),
                        ("int32", 1),
                        ("int64", 1),
                    )
                ),
                (
                    ValueError,
                    r"^out.strides is \[0\] bytes, but must be strides that place no two elements of the sizes \[4\] in the same memory \(output",
                    lambda: fill(
                        4,
                        0,
                        1,
                        "int8",
                        out=as_strided(np.zeros(4, np.int8), (4,), (0,)),
                    ),
                ),
            ],
        )
