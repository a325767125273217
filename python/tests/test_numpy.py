"""dml_cuda.reverse_subsequences on NumPy arrays: results compared with a slow reference, views, errors, forks."""

import array
import importlib.util
import itertools
import os
import pathlib
import signal
import tempfile
import threading
import unittest

import dml_cuda
import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view

ml_dtypes = importlib.util.find_spec("ml_dtypes") and importlib.import_module(
    "ml_dtypes"
)


def model(x, lengths, axis):
    """Reverses with NumPy, index by index."""
    x = np.asarray(x)
    shape = list(x.shape)
    shape[axis] = 1
    size = x.shape[axis]
    lengths = np.broadcast_to(
        np.asarray(np.minimum(np.asarray(lengths).astype(object), size)).astype(
            np.int64
        ),
        shape,
    )
    t = np.arange(size).reshape(
        [-1 if d == axis % x.ndim else 1 for d in range(x.ndim)]
    )
    return np.take_along_axis(x, np.where(t < lengths, lengths - 1 - t, t), axis)


def check_errors(test, cases):
    """Each case is an error, the words in its message, and a call that must raise it."""
    for error, words, call in cases:
        with test.subTest(words), test.assertRaisesRegex(error, words):
            call()


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
        dtypes = [
            "bool",
            "i1",
            "u1",
            "i2",
            "f2",
            "i4",
            "f4",
            "i8",
            "f8",
            "c8",
            "c16",
            "datetime64[s]",
            "S5",
            "U3",
            [("a", "i4"), ("b", "u1")],
        ]
        length_types = itertools.cycle(["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
        for dtype in map(np.dtype, dtypes):
            for shape in [(7,), (5, 3), (3, 4, 5), (2, 3, 4, 5), (1, 1), (2,) * 10]:
                for axis in range(-1, len(shape)):
                    x = (
                        np.frombuffer(
                            random.bytes(int(np.prod(shape)) * dtype.itemsize), dtype
                        )
                        .reshape(shape)
                        .copy()
                    )
                    of_lanes = list(shape)
                    of_lanes[axis] = 1
                    self.check(
                        x,
                        random.integers(0, shape[axis] + 2, of_lanes).astype(
                            next(length_types)
                        ),
                        axis,
                    )

    def test_lengths_broadcast_like_numpys(self):
        x = np.arange(60).reshape(3, 4, 5)
        for lengths in (
            2,
            [[[1]], [[2]], [[9]]],
            np.arange(5),
            np.array([[3]]),
            np.full((3, 1, 5), 4),
            1 << 40,
        ):
            self.check(x, lengths, 1)
        self.check(x, np.broadcast_to(np.uint32(2), (3, 1, 5)), 1)
        for dtype in ("<u4", ">u4", "<i4"):  # at an odd address
            lengths = np.zeros(13, np.uint8)[1:].view(dtype).reshape(3, 1)
            lengths[:] = [[3], [4], [0]]
            self.check(x[:, :, 0], lengths, 1)

    def test_views_are_taken_where_they_lie(self):
        base = np.arange(2000, dtype=np.int32).reshape(20, 100)
        fields = np.zeros(30, dtype=[("a", "i4"), ("b", "f8")])
        fields["b"] = np.arange(30)
        for x in (
            base[::2],
            base[:, 3:50],
            base.T,
            base[1::3, ::7].T,
            base[:, 40:20:-1],
            np.broadcast_to(base[0], (4, 100)),
            sliding_window_view(base[0], 10),
            fields["b"],
            base.astype(">i4"),
        ):
            for axis in range(x.ndim):
                self.check(x, 3, axis)

    def test_dimensions_that_do_not_fold_are_copied(self):
        base = np.arange(4**10, dtype=np.int32).reshape((4,) * 10)
        every_second = (slice(None, None, 2),) * 10
        x, others = base[every_second], base[(slice(1, None, 2),) * 10]
        of_lanes = np.arange(2**5).reshape((2, 1) * 2 + (2, 1) + (1, 2) * 2) % 4
        for lengths in (
            2,
            of_lanes,
            np.broadcast_to(of_lanes, (2,) * 5 + (1,) + (2,) * 4),
        ):
            for given in (x, x.T[..., ::-1], x.copy()):
                self.check(given, lengths, 5)
                required, out = model(given, lengths, 5), base.copy()
                dml_cuda.reverse_subsequences(given, lengths, 5, out=out[every_second])
                self.assertTrue((out[every_second] == required).all())
                out[every_second] = x
                self.assertTrue((out == base).all(), "gaps were written")
            in_place, required = base.copy(), model(x, lengths, 5)
            view = in_place[every_second]
            self.assertIs(
                dml_cuda.reverse_subsequences(view, lengths, 5, out=view), view
            )
            self.assertTrue((view == required).all())
        with self.assertRaisesRegex(
            ValueError, r"lengths is -1, but must be at least 0"
        ):
            dml_cuda.reverse_subsequences(x, -1, 5, out=others)
        self.assertTrue((base == np.arange(4**10).reshape(base.shape)).all())

    def test_compile_options_are_read_where_nothing_is_done(self):
        nothing = np.zeros((3, 0)), np.zeros((0, 3)), np.zeros(3, [])
        for call in (
            *(
                lambda given, x=x: dml_cuda.reverse_subsequences(
                    x, 1, 0, compile_options=given
                )
                for x in nothing
            ),
            lambda given: dml_cuda.reverse_padded_sequence(
                np.zeros((0, 2)), [0, 0], compile_options=given
            ),
            lambda given: dml_cuda.fill_value_sequence(
                (3, 0), 1, 1, "uint8", compile_options=given
            ),
        ):
            call("specialize=never")
            with self.assertRaisesRegex(
                ValueError, "the compile option is `select=fast`, but must be one of"
            ):
                call("select=fast")

    def test_compile_options_are_those_of_one_call(self):
        x = np.arange(8, dtype=np.int32).reshape(2, 4)
        reverse, fill = dml_cuda.reverse_subsequences, dml_cuda.fill_value_sequence
        for given in (None, "", "specialize=always select=measure", "specialize=never"):
            self.assertEqual(
                reverse(x, 2, 1, compile_options=given).tolist(),
                [[1, 0, 2, 3], [5, 4, 6, 7]],
            )
            padded = dml_cuda.reverse_padded_sequence(
                x, [2, 1, 0, 0], compile_options=given
            )
            self.assertEqual(padded[:, 0].tolist(), [4, 0])
            self.assertEqual(
                fill(3, 5, -1, "uint8", compile_options=given).tolist(), [5, 4, 3]
            )
        check_errors(
            self,
            [
                (
                    ValueError,
                    "compile_options is .*, but must have no NUL",
                    lambda: reverse(
                        x, 2, 1, compile_options="select=measure\0specialize=always"
                    ),
                ),
                (
                    TypeError,
                    "compile_options is 3, but must be a string",
                    lambda: reverse(x, 2, 1, compile_options=3),
                ),
            ],
        )

    def test_padded_sequences(self):
        reverse, x = dml_cuda.reverse_padded_sequence, np.arange(40).reshape(4, 5, 2)
        for lengths in ([2, 5, 0, 9], np.uint8([2, 5, 0, 9]), np.arange(8)[::2]):
            required = model(x, np.reshape(lengths, (4, 1, 1)), 1)
            self.assertEqual(
                reverse(x, lengths, batch_first=True).tolist(), required.tolist()
            )
            self.assertEqual(
                reverse(x.swapaxes(0, 1), lengths).tolist(),
                required.swapaxes(0, 1).tolist(),
            )
            out = x.copy()
            self.assertIs(reverse(out, lengths, True, out=out), out)
            self.assertEqual(out.tolist(), required.tolist())
        numbers = np.arange(1, 5)
        required = model(x[:, :, 0], numbers[:, None], 1)
        self.assertEqual(reverse(x[:, :, 0], numbers, True).tolist(), required.tolist())
        self.assertEqual(reverse(np.zeros((3, 0, 2)), []).shape, (3, 0, 2))
        # One size for every dimension: the lengths are those of the batch.
        cube = np.arange(64).reshape(4, 4, 4)
        self.assertEqual(
            reverse(cube, numbers, True).tolist(),
            model(cube, numbers[:, None, None], 1).tolist(),
        )
        check_errors(
            self,
            [
                (
                    ValueError,
                    r"lengths\[1\] is -2, but must be at least 0",
                    lambda: reverse(x, [1, -2, 3, 4], True),
                ),
                (
                    ValueError,
                    r"lengths has shape \(4,\), but must have \(5,\), the batch size; with batch_first=True it would be 4",
                    lambda: reverse(x, [1, 2, 3, 4]),
                ),
                (
                    ValueError,
                    r"lengths has shape \(\), but must have \(5,\), the batch size",
                    lambda: reverse(x, 3),
                ),
                (
                    ValueError,
                    r"x has shape \(2,\), but must have at least 2 dimensions: time and batch",
                    lambda: reverse(x[0, 0], [1]),
                ),
                (
                    TypeError,
                    "x is a list, but must be a NumPy array, or one with",
                    lambda: reverse([[1]], [1]),
                ),
            ],
        )

    def test_lengths_that_fit_two_dimensions_are_refused(self):
        reverse, cube = dml_cuda.reverse_subsequences, np.arange(64).reshape(4, 4, 4)
        padded = "; reverse_padded_sequence takes a length for each sequence$"
        for axis in (0, 1):
            words = (
                r"^lengths has shape \(4,\), but must have 3 dimensions, as x has, because more than one of x's has the size 4"
                + padded
            )
            with self.assertRaisesRegex(ValueError, words):
                reverse(cube, [1, 2, 3, 4], axis)
        with self.assertRaisesRegex(
            ValueError,
            r"^lengths has shape \(4,\), but must broadcast to \(4, 1, 3\), x's with 1 at axis"
            + padded,
        ):
            reverse(cube[:, :, 1:], [1, 2, 3, 4], 1)
        with self.assertRaisesRegex(
            ValueError, r"must broadcast to \(4, 1, 3\), x's with 1 at axis$"
        ):
            reverse(cube[:, :, 1:], [[1, 2, 3, 4]], 1)
        self.check(cube, [[[1, 2, 3, 4]]], 1)
        self.check(cube, [3], 1)
        self.check(cube[1:], [1, 2, 3, 4], 1)  # only the last dimension has this size
        self.check(cube[0], [1, 2, 3, 4], 0)

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

    def test_files_in_memory(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "x"
            np.arange(40, dtype=np.int16).tofile(path)
            x = np.memmap(path, np.int16, "r+", shape=(4, 10))
            self.assertIs(type(dml_cuda.reverse_subsequences(x, 3, 1)), np.ndarray)
            required = model(x, 3, 1)
            self.assertIs(dml_cuda.reverse_subsequences(x, 3, 1, out=x), x)
            dml_cuda.fill_value_sequence(10, 7, 1, np.int16, out=x[3])
            required[3] = np.arange(7, 17)
            x.flush()
            self.assertEqual(
                np.fromfile(path, np.int16).reshape(4, 10).tolist(), required.tolist()
            )

    def test_subclasses_stay_what_they_are(self):
        class Metres(np.ndarray):
            def __array_finalize__(self, of):
                self.unit = getattr(of, "unit", None)

        x = np.arange(12.0).reshape(3, 4).view(Metres)
        x.unit = "m"
        for given in (
            x,
            x[:, ::-1],
            np.matrix(np.arange(12.0).reshape(3, 4)),
            np.rec.array([[(1, 2.5)], [(3, 4.5)]], dtype=[("a", "i4"), ("b", "f8")]),
        ):
            found = dml_cuda.reverse_subsequences(given, 2, 0)
            self.assertIs(type(found), type(given))
            self.assertEqual(getattr(found, "unit", None), getattr(given, "unit", None))
            self.assertEqual(found.tobytes(), model(given, 2, 0).tobytes())

    @unittest.skipIf(ml_dtypes is None, "no ml_dtypes")
    def test_types_of_ml_dtypes_move_as_bytes(self):
        for name in (
            "bfloat16",
            "float8_e4m3fn",
            "float8_e5m2",
            "float8_e4m3b11fnuz",
            "int4",
            "float4_e2m1fn",
        ):
            x = np.arange(12).astype(getattr(ml_dtypes, name)).reshape(3, 4)
            self.check(x, [[3], [0], [9]], 1)
            self.assertEqual(
                dml_cuda.reverse_subsequences(x, 3, 1, out=x).tobytes(),
                model(np.arange(12).astype(x.dtype).reshape(3, 4), 3, 1).tobytes(),
            )
            with self.assertRaisesRegex(
                TypeError, f"lengths has dtype {name}, but must have an integer dtype"
            ):
                dml_cuda.reverse_subsequences(np.zeros(4), np.zeros(1, x.dtype), 0)
            with self.assertRaisesRegex(
                TypeError, f"dtype is {name}, but must be float32, float16"
            ):
                dml_cuda.fill_value_sequence(3, 0, 1, x.dtype)

    def test_masked_arrays_are_refused(self):
        x = np.arange(12).reshape(3, 4)
        masked = np.ma.array(x.copy(), mask=x % 2 == 0)
        reverse, fill = dml_cuda.reverse_subsequences, dml_cuda.fill_value_sequence

        class OfOurs(np.ma.MaskedArray):
            pass

        check_errors(
            self,
            (
                (TypeError, *case)
                for case in [
                    (
                        "x is a MaskedArray, but must be an array with no mask",
                        lambda: reverse(masked, 3, 1),
                    ),
                    (
                        "x is a .*OfOurs, but must be",
                        lambda: reverse(masked.view(OfOurs), 3, 1),
                    ),
                    ("out is a MaskedArray", lambda: reverse(x, 3, 1, out=masked)),
                    (
                        "lengths is a MaskedArray",
                        lambda: reverse(
                            x, np.ma.array([[1], [2], [3]], mask=[[0], [1], [0]]), 1
                        ),
                    ),
                    (
                        "lengths is a MaskedArray",
                        lambda: reverse(x, [np.ma.array([1]), [2], [3]], 1),
                    ),
                    (
                        "lengths is a MaskedConstant",
                        lambda: reverse(x, [[1], [np.ma.masked], [3]], 1),
                    ),
                    (
                        "axis is masked, but must be an integer",
                        lambda: reverse(x, 3, np.ma.masked),
                    ),
                    (
                        "out is a MaskedArray",
                        lambda: fill((3, 4), 0, 1, np.int64, out=masked),
                    ),
                    (
                        r"shape\[1\] is masked, but must be an integer",
                        lambda: fill((3, np.ma.masked), 0, 1, np.int64),
                    ),
                    (
                        "start is masked, but must be a number",
                        lambda: fill(3, np.ma.masked, 1, np.float32),
                    ),
                ]
            ),
        )
        self.assertEqual(
            (masked.data.tolist(), masked.mask.tolist()),
            (x.tolist(), (x % 2 == 0).tolist()),
        )

    def test_empty_arrays_and_elements_of_no_bytes(self):
        for shape, axis, dtype in [
            ((0,), 0, "f4"),
            ((0, 3), 1, "f4"),
            ((3, 0), 1, "f4"),
            ((2, 0, 3), 0, "f4"),
            ((2**33, 0), 0, "f4"),
            ((3,), 0, []),
            ((2**33,), 0, []),
        ]:
            found = dml_cuda.reverse_subsequences(np.zeros(shape, dtype), 1, axis)
            self.assertEqual((found.shape, found.dtype), (shape, np.dtype(dtype)))

    def test_errors_name_argument_found_and_required(self):
        x, reverse = np.arange(12).reshape(3, 4), dml_cuda.reverse_subsequences
        read_only = np.arange(12).reshape(3, 4)
        read_only.flags.writeable = False
        wide = np.zeros(20)
        ones = np.ones(4, np.uint32)
        check_errors(
            self,
            [
                (
                    ValueError,
                    "axis is 2, but must be from -2 to 1, the dimensions of x",
                    lambda: reverse(x, 1, 2),
                ),
                *(
                    (
                        TypeError,
                        f"axis is {value}, but must be an integer",
                        lambda value=value: reverse(x, 1, value),
                    )
                    for value in (1.0, None, True)
                ),
                *(
                    (
                        TypeError,
                        f"lengths has dtype {kind}, but must have an integer dtype",
                        lambda value=value: reverse(x, value, 1),
                    )
                    for kind, value in (
                        ("float64", [1.5]),
                        ("<U1", "1"),
                        (r"timedelta64\[s\]", np.timedelta64(1, "s")),
                        ("bool", True),
                        ("bool", [[True], [1], [2]]),
                        ("bool", np.True_),
                    )
                ),
                (
                    TypeError,
                    r"dtype float64, but must have an integer dtype: lengths[.]astype\(int\), or \(lengths [*] T\)[.]round\(\)[.]astype\(int\) for lengths relative to T$",
                    lambda: reverse(x, np.ones((3, 1)), 1),
                ),
                (
                    ValueError,
                    "lengths is -1180591620717411303424, but must be at least 0",
                    lambda: reverse(x, -(2**70), 1),
                ),
                (
                    ValueError,
                    r"lengths\[0, 1\] is an int, but must be at least 0",
                    lambda: reverse(x.T, [[1, -(10**5000), 3]], 0),
                ),
                (
                    ValueError,
                    r"lengths has shape \(4,\), but must broadcast to \(3, 1\), x's with 1 at axis",
                    lambda: reverse(x, [1] * 4, 1),
                ),
                (
                    ValueError,
                    r"lengths\[1, 0\] is -2, but must be at least 0",
                    lambda: reverse(x, [[1], [-2], [3]], 1),
                ),
                *(
                    (
                        ValueError,
                        "out is read-only, but must be writable",
                        lambda value=value: reverse(value, 1, 1, out=read_only),
                    )
                    for value in (x, read_only)
                ),
                (
                    ValueError,
                    r"out has shape \(4, 3\), but must have x's, \(3, 4\)",
                    lambda: reverse(x, 1, 1, out=x.T),
                ),
                (
                    TypeError,
                    "out has dtype float64, but must have x's, int64",
                    lambda: reverse(x, 1, 1, out=x.astype(float)),
                ),
                (
                    ValueError,
                    "must be the same range, to run in place, or lie apart",
                    lambda: reverse(wide[:10], 1, 0, out=wide[5:15]),
                ),
                (
                    ValueError,
                    "x has 0 dimensions, but must have at least 1",
                    lambda: reverse(np.array(1), 1, 0),
                ),
                (
                    TypeError,
                    "x is an array.array, but must be a NumPy array, or one with",
                    lambda: reverse(array.array("i", [1]), 1, 0),
                ),
                (
                    TypeError,
                    "x has dtype object, but must have one whose elements are bytes",
                    lambda: reverse(np.array([None]), 1, 0),
                ),
                *(
                    (
                        ValueError,
                        "lengths is -1, but must be at least 0",
                        lambda value=value: reverse(x, value, 1),
                    )
                    for value in (-1, np.int8(-1))
                ),
                (
                    TypeError,
                    "lengths is None, but must be integers",
                    lambda: reverse(x, None, 1),
                ),
                (
                    TypeError,
                    "lengths is a list, but must be integers",
                    lambda: reverse(x, [[1], [1, 2]], 1),
                ),
                *(
                    (
                        TypeError,
                        f"stream is {value!r}, but must be an integer, or have ptr or cuda_stream",
                        lambda value=value: reverse(x, 1, 1, stream=value),
                    )
                    for value in ("foo", 1.0)
                ),
                (
                    ValueError,
                    "stream is -1, but must be from 0 to",
                    lambda: reverse(x, 1, 1, stream=-1),
                ),
                (
                    ValueError,
                    "stream is 5, but must be None or 0, as x is on the host",
                    lambda: reverse(x, 1, 1, stream=5),
                ),
                (
                    ValueError,
                    r"stride 1 of out is -8 bytes, but must be at least 0",
                    lambda: reverse(x, 1, 1, out=x[:, ::-1]),
                ),
                (
                    ValueError,
                    r"^out.strides is \[16, 16\] bytes, but must be strides that place no two elements of the sizes \[2, 2\] in the same memory \(output",
                    lambda: reverse(
                        np.zeros((2, 2), complex),
                        1,
                        0,
                        out=as_strided(wide.view(complex), (2, 2), (16, 16)),
                    ),
                ),
                (
                    ValueError,
                    r"^the range of out at pointer 0x\w+ overlaps that of lengths at pointer 0x\w+, but must lie apart \(binding.overlap\)$",
                    lambda: reverse(np.zeros(4, np.uint32), ones[:1], 0, out=ones),
                ),
                (
                    ValueError,
                    r"^the layout of out differs from that of x, but must have the same strides to run in place \(binding.in_place\)$",
                    lambda: reverse(
                        wide[:16].reshape(4, 4), 1, 0, out=wide[:16].reshape(4, 4).T
                    ),
                ),
            ],
        )
        self.assertTrue((x == np.arange(12).reshape(3, 4)).all())
        self.assertTrue((wide == 0).all() and (ones == 1).all())

    def test_an_error_names_arguments_in_its_data_too(self):
        out = as_strided(np.zeros(4), (4,), (0,))
        with self.assertRaises(dml_cuda.ValidationError) as caught:
            dml_cuda.reverse_subsequences(np.zeros(4), 1, 0, out=out)
        self.assertEqual(
            {
                violation.place.partition(".")[0]
                for violation in caught.exception.violations
            },
            {"out"},
        )


class Forks(unittest.TestCase):
    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_a_forked_child_never_waits_for_a_lock_of_the_parent(self):
        done = threading.Event()

        def calls():
            while not done.is_set():
                for size in range(1, 4000):
                    dml_cuda.reverse_subsequences(np.zeros(size, np.uint8), size, 0)

        threads = [threading.Thread(target=calls) for _ in range(4)]
        for thread in threads:
            thread.start()
        statuses = []
        for _ in range(100):
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                right = all(
                    dml_cuda.reverse_subsequences(np.arange(size), size, 0)[0]
                    == size - 1
                    for size in range(1, 4000, 40)
                )
                os._exit(0 if right else 1)
            statuses.append(os.waitpid(child, 0)[1])
        done.set()
        for thread in threads:
            thread.join()
        self.assertEqual(statuses, [0] * 100)
