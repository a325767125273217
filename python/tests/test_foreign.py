"""dml_cuda on arrays of other libraries: DLPack, `__cuda_array_interface__`, and JAX with NumPy."""

import importlib.util
import unittest
from unittest import mock

import numpy as np
from dml_cuda import _arrays, _library, fill_value_sequence, reverse_subsequences
from programs import run_python

from test_numpy import check_errors, model

jax = importlib.util.find_spec("jax") and importlib.import_module("jax")


class Exported:
    """An array that has only `__dlpack__`, like those of other libraries."""

    def __init__(self, array, versioned=True):
        self.array, self.versioned = array, versioned

    def __dlpack__(self, **keywords):
        if keywords and not self.versioned:
            raise TypeError("an exporter from before DLPack 1.0")
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Dlpack(unittest.TestCase):
    def test_arrays_are_read_and_written_where_they_lie(self):
        for versioned in (True, False):
            for dtype in (
                *["bool"] * (np.lib.NumpyVersion(np.__version__) >= "1.25.0"),
                "int8",
                "uint16",
                "float16",
                "float32",
                "int64",
                "complex128",
            ):
                x = np.arange(24).reshape(4, 6).astype(dtype)[:, ::2]
                out = np.zeros((4, 3), dtype)
                given = Exported(out, versioned)
                lengths = Exported(np.full((4, 1), 2), versioned) if versioned else 2
                self.assertIs(
                    reverse_subsequences(Exported(x, versioned), lengths, 1, out=given),
                    given,
                )
                self.assertEqual(out.tobytes(), model(x, 2, 1).tobytes())
            out = np.zeros(6, np.int16)
            fill_value_sequence(6, 5, -1, np.int16, out=Exported(out, versioned))
            self.assertEqual(out.tolist(), [5, 4, 3, 2, 1, 0])

    def test_what_is_read_only_is_not_written(self):
        frozen = np.zeros(4, np.float32)
        frozen.flags.writeable = False
        for versioned in (True, False):
            given = Exported(frozen, versioned)
            words = "out (is read-only, but must be writable|must give its memory to DLPack)"
            check_errors(
                self,
                [
                    (
                        ValueError,
                        words,
                        lambda: reverse_subsequences(np.ones(4, "f4"), 2, 0, out=given),
                    ),
                    (
                        ValueError,
                        words,
                        lambda: fill_value_sequence(4, 1, 1, np.float32, out=given),
                    ),
                ],
            )
        for buffer in (b"0123", memoryview(b"0123")):
            with self.assertRaisesRegex(
                ValueError, "out is read-only, but must be writable"
            ):
                fill_value_sequence(
                    4, 1, 1, np.uint8, out=np.frombuffer(buffer, np.uint8)
                )
            with self.assertRaisesRegex(
                TypeError, "out is a (bytes|memoryview), but must be a NumPy array"
            ):
                fill_value_sequence(4, 1, 1, np.uint8, out=buffer)
        self.assertEqual(frozen.tolist(), [0] * 4)

    def test_masks_are_refused(self):
        class Masked:
            __cuda_array_interface__ = {
                "shape": (4,),
                "typestr": "<f4",
                "data": (64, False),
                "version": 3,
                "mask": Exported(np.ones(4, bool)),
            }

        check_errors(
            self,
            [
                (
                    TypeError,
                    "x has a mask, but must have none",
                    lambda: reverse_subsequences(Masked(), 1, 0),
                ),
                (
                    TypeError,
                    "out has a mask, but must have none",
                    lambda: fill_value_sequence(4, 0, 1, "f4", out=Masked()),
                ),
            ],
        )
        Masked.__cuda_array_interface__ = {"shape": (4,)}
        with self.assertRaisesRegex(
            TypeError, "x.__cuda_array_interface__ must have data, typestr"
        ):
            reverse_subsequences(Masked(), 1, 0)

    def test_layouts_that_cannot_be_read_are_refused(self):
        class Odd:
            pass

        right = {"shape": (4,), "typestr": "<f4", "data": (64, False), "version": 3}
        for words, interface in [
            (r" is 5, but must be a mapping", 5),
            (
                r"\['shape'\] is 5, but must be a sequence of integers",
                {**right, "shape": 5},
            ),
            (
                r"\['strides'\]\[0\] is 'a', but must be an integer",
                {**right, "strides": "a,".split(",")},
            ),
            (
                " is .*, but must have data and typestr: ",
                {**right, "data": (None, False)},
            ),
            (" is .*, but must have data and typestr: ", {**right, "typestr": "four"}),
        ]:
            Odd.__cuda_array_interface__ = interface
            with (
                self.subTest(words),
                self.assertRaisesRegex(
                    TypeError, f"^x.__cuda_array_interface__{words}"
                ),
            ):
                reverse_subsequences(Odd(), 1, 0)
        back = np.zeros(8, np.int32)[::-1]
        with self.assertRaisesRegex(
            ValueError, "stride 0 of x is -4 bytes, but must be at least 0"
        ):
            reverse_subsequences(Exported(back), 1, 0, out=np.zeros(8, np.int32))


class OnGpu(Exported):
    """An array that says that it is on a GPU, and keeps the stream that it is told."""

    def __dlpack__(self, **keywords):
        self.told = keywords.pop("stream", None)
        return super().__dlpack__(**keywords)

    def __dlpack_device__(self):
        return (2, 0)


class Streams(unittest.TestCase):
    """What is asked of other libraries' arrays. `test_torch_gpu.py` has their streams."""

    def test_an_exporter_is_told_the_stream(self):
        for versioned in (True, False):
            for stream, told in ((0, 1), (1, 1), (2, 2), (1 << 40, 1 << 40)):
                x = OnGpu(np.zeros(4), versioned)
                _arrays.view(x, "x", stream)
                self.assertEqual(x.told, told)
            x, out = OnGpu(np.arange(4.0), versioned), OnGpu(np.zeros(4), versioned)
            reverse_subsequences(x, 3, 0, out=out)
            self.assertEqual(
                (x.told, out.told, out.array.tolist()), (1, 1, [2, 1, 0, 3])
            )

    def test_our_stream_waits_for_those_of_the_interfaces(self):
        def array(**stream):
            interface = {
                "shape": (1,),
                "typestr": "<i4",
                "data": (64, False),
                "version": 3,
                **stream,
            }
            return type("Array", (), {"__cuda_array_interface__": interface})()

        def called(call):
            with mock.patch.multiple(
                _library, check=mock.DEFAULT, device=lambda ordinal: f"GPU {ordinal}"
            ) as patched:
                call()
            wait = _library.library.dml_cuda_wait_for_stream
            of_call = [call.args for call in patched["check"].call_args_list]
            self.assertTrue(
                of_call[-1][0] is not wait
                and all(args[:2] == (wait, "GPU 0") for args in of_call[:-1])
            )
            return sorted(args[2:] for args in of_call[:-1])

        arrays = array(stream=7), array(stream=1), array(stream=None)
        for stream, (x, lengths, out), waits in [
            (0, arrays, [7]),
            (9, arrays, [1, 7]),
            (7, arrays, [1]),
            (0, arrays[1:] + arrays[:1], [7]),
            (2, (array(),) * 3, []),
            (1, (arrays[1],) * 3, []),
        ]:
            found = called(
                lambda: reverse_subsequences(x, lengths, 0, out=out, stream=stream)
            )
            self.assertEqual(found, [(stream, awaited) for awaited in waits])
        self.assertEqual(
            called(lambda: fill_value_sequence(1, 0, 1, "i4", out=arrays[0])), [(0, 7)]
        )
        for error, stream in (
            (ValueError, 0),
            (ValueError, -1),
            (TypeError, "7"),
            (TypeError, True),
        ):
            with self.assertRaisesRegex(
                error, r"x.__cuda_array_interface__\['stream'\] is .*, but must be"
            ):
                reverse_subsequences(array(stream=stream), 1, 0)

    def test_an_interface_without_a_stream_gives_way_to_dlpack(self):
        class Old(OnGpu):
            __cuda_array_interface__ = {
                "shape": (4,),
                "typestr": "<f8",
                "data": (64, False),
                "version": 2,
            }

        x = Old(np.arange(4.0))
        self.assertEqual(
            (_arrays.view(x, "x").address, x.told), (x.array.ctypes.data, 1)
        )

    def test_the_functions_of_pythonapi_stay_as_they_are(self):
        program = """
import ctypes
functions = [getattr(ctypes.pythonapi, name) for name in ("PyCapsule_GetPointer", "PyCapsule_IsValid")]
before = [(of.restype, of.argtypes) for of in functions]
import dml_cuda, numpy
print([(of.restype, of.argtypes) for of in functions] == before)
for of in functions:
    of.restype, of.argtypes = None, [ctypes.c_int]
Exported = type("Exported", (), {"__dlpack__": lambda self, **keywords: numpy.arange(3).__dlpack__(**keywords)})
print(dml_cuda.reverse_subsequences(Exported(), 2, 0, out=numpy.zeros(3, int)).tolist())
"""
        done = run_python("-c", program)
        self.assertEqual(done.stdout, "True\n[1, 0, 2]\n", done.stderr)


@unittest.skipIf(jax is None, "no JAX")
class Jax(unittest.TestCase):
    """Arrays of JAX with those of NumPy. `test_jax.py` has the rest."""

    def test_what_jax_says_never_changes_is_not_written(self):
        x = jax.numpy.arange(8.0)
        alias, frozen = np.asarray(x), x.tolist()
        for out, error, words in (
            (x, TypeError, "out is an array of JAX, but must be one of"),
            (alias, ValueError, "out is read-only, but must be writable"),
        ):
            check_errors(
                self,
                [
                    (
                        error,
                        words,
                        lambda: reverse_subsequences(np.zeros(8, "f4"), 8, 0, out=out),
                    ),
                    (
                        error,
                        words,
                        lambda: fill_value_sequence(8, 5, 1, np.float32, out=out),
                    ),
                ],
            )
        self.assertEqual((x.tolist(), alias.tolist()), (frozen, frozen))

    def test_lengths_of_jax_for_an_x_of_numpy(self):
        x = np.arange(6.0)
        self.assertEqual(
            reverse_subsequences(x, jax.numpy.asarray([3]), 0).tolist(),
            model(x, 3, 0).tolist(),
        )
        for words, lengths in (
            ("lengths is a .*Tracer, but must be integers on the host", lambda n: n),
            ("lengths is a list, but must be integers", lambda n: [n]),
        ):
            with self.subTest(words), self.assertRaisesRegex(TypeError, words):
                jax.jit(
                    lambda n, lengths=lengths: reverse_subsequences(x, lengths(n), 0)
                )(3)
        with self.assertRaisesRegex(TypeError, "start is .*, but must be a number"):
            jax.jit(lambda n: fill_value_sequence(6, n, 1, "float32"))(1.0)
