"""Calls libdml_cuda.so with ctypes: the structures of dml_cuda.h, and its errors as exceptions."""

import copyreg
import ctypes
import functools
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

PATH = pathlib.Path(__file__).parent / "_native" / "lib_native.so"

# The types of FILL_VALUE_SEQUENCE, with their DML_TENSOR_DATA_TYPE.
FILL_TYPES = {
    "FLOAT32": 1,
    "FLOAT16": 2,
    "UINT32": 3,
    "UINT16": 4,
    "UINT8": 5,
    "INT32": 6,
    "INT16": 7,
    "INT8": 8,
    "UINT64": 10,
    "INT64": 11,
}

# These values of DML_CUDA_STATUS blame the arguments of a call.
_INVALID_ARGUMENT, _BINDING = 1, 5

u32, pointer, text = ctypes.c_uint32, ctypes.c_void_p, ctypes.c_char_p


class CArray(ctypes.Structure):
    _fields_ = [
        ("SizeInBytes", u32),
        ("Rank", u32),
        ("Data", pointer),
        ("ElementSizeInBytes", ctypes.c_uint64),
    ]
    _fields_ += [("Sizes", pointer), ("StridesInBytes", pointer)]
    numbers: Any
    """The sizes and strides, to keep them."""


class CViolation(ctypes.Structure):
    _fields_ = [
        ("Rule", text),
        ("Place", text),
        ("Found", text),
        ("Required", text),
        ("NeededFeatureLevel", u32),
    ]
    _fields_ += [("Tensor", u32), ("Index", ctypes.c_int32), ("Field", text)]


class Names(ctypes.Structure):
    """A function's names for its arguments."""

    _fields_ = [
        ("SizeInBytes", u32),
        ("Input", text),
        ("Lengths", text),
        ("Output", text),
        ("Axis", text),
    ]


OUT, RESULT = (
    Names(ctypes.sizeof(Names), b"x", b"lengths", output, b"axis")
    for output in (b"out", b"the result")
)


class Violation(NamedTuple):
    """A rule that arguments break."""

    rule: str
    """The rule's id, which never changes: ``output.overlap``."""
    place: str
    """The attribute of an argument: ``out.strides``."""
    found: str
    """The attribute's value."""
    required: str
    """The required value."""


class ValidationError(ValueError):
    """A descriptor breaks rules of its operator. The message has a line per rule."""

    violations: list[Violation]

    def __init__(self, message: str, violations: Iterable[Violation] = ()):
        super().__init__(message)
        self.violations = list(violations)

    def __reduce__(self) -> tuple[Any, ...]:
        # Python's own way calls __init__ with `args`, which a subclass's may not accept.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__.copy()  # type: ignore[attr-defined]


_ATTRIBUTES = {
    "Sizes": "shape",
    "Strides": "strides",
    "DimensionCount": "ndim",
    "DataType": "dtype",
}


def _load() -> ctypes.CDLL:
    if not PATH.is_file():
        raise ImportError(
            f"the native library {PATH} is missing. In a checkout, run `pip install ./python`. A zip file cannot contain it: install dml_cuda in a folder "
            "next to the zip file. PyInstaller bundles it by the wheel's hook; tell other tools to bundle dml_cuda/_native/lib_native.so"
        )
    library = ctypes.CDLL(str(PATH))
    status, handle, error = u32, ctypes.POINTER(pointer), ctypes.POINTER(pointer)
    for name, result, arguments in [
        ("version", text, []),
        ("cuda_device_count", status, [ctypes.POINTER(u32), error]),
        ("create_cpu_device", status, [u32, handle, error]),
        ("create_cuda_device", status, [u32, u32, handle, error]),
        (
            "compile_reversal",
            status,
            [pointer, pointer, pointer, pointer, ctypes.c_int32, text, handle, error],
        ),
        ("destroy_compiled_operator", None, [pointer]),
        (
            "reverse_arrays",
            status,
            [pointer, pointer, pointer, pointer, ctypes.c_int32, text, pointer, error],
        ),
        ("wait_for_stream", status, [pointer, pointer, pointer, error]),
        (
            "fill_array",
            status,
            [pointer, pointer, u32, pointer, pointer, text, pointer, error],
        ),
        ("onnxruntime_counters", status, [pointer, error]),
        ("register_torch", status, [error]),
        ("free_string", None, [pointer]),
        ("error_violation_count", u32, [pointer]),
        ("error_violation", status, [pointer, u32, ctypes.POINTER(CViolation)]),
        ("error_message_with_names", status, [pointer, ctypes.POINTER(Names), handle]),
        ("destroy_error", None, [pointer]),
    ]:
        function = getattr(library, f"dml_cuda_{name}")
        function.restype, function.argtypes = result, arguments
    return library


library = _load()


def check(function: Any, *arguments: Any, names: Names = OUT) -> None:
    """Calls a function whose last argument is the error, and raises the error as an exception, with the names of the
    arguments."""
    error = ctypes.c_void_p()
    status = function(*arguments, ctypes.byref(error))
    if not status:
        return
    text = ctypes.c_void_p()
    library.dml_cuda_error_message_with_names(error, names, ctypes.byref(text))
    message = ctypes.string_at(text).decode()
    library.dml_cuda_free_string(text)
    violations = [
        _violation(error, index, names)
        for index in range(library.dml_cuda_error_violation_count(error))
    ]
    library.dml_cuda_destroy_error(error)
    if violations:
        lines = (
            f"{broken.place} is {broken.found}, but must be {broken.required} ({broken.rule})"
            for broken in violations
        )
        raise ValidationError("\n".join(lines), violations)
    is_of_arguments = status in (_INVALID_ARGUMENT, _BINDING)
    raise (ValueError if is_of_arguments else RuntimeError)(message)


def _violation(error: Any, index: int, names: Names) -> Violation:
    """A broken rule, whose place is an attribute of an argument: `x.shape[1]`."""
    broken = CViolation()
    library.dml_cuda_error_violation(error, index, ctypes.byref(broken))
    parts = [
        name.decode()
        for name in (names.Input, names.Lengths, names.Output)[
            broken.Tensor : broken.Tensor + 1
        ]
    ]
    if broken.Field is not None:
        field = broken.Field.decode()
        parts.append(_ATTRIBUTES.get(field, field))
    at = "" if broken.Index < 0 else f"[{broken.Index}]"
    return Violation(
        broken.Rule.decode(),
        ".".join(parts) + at,
        broken.Found.decode(),
        broken.Required.decode(),
    )


@functools.lru_cache(maxsize=None)
def device(ordinal: int | None) -> ctypes.c_void_p:
    """The CPU device for None, else the GPU with this number. Each is opened once."""
    handle = ctypes.c_void_p()
    if ordinal is None:
        check(library.dml_cuda_create_cpu_device, 0, ctypes.byref(handle))
    else:
        check(library.dml_cuda_create_cuda_device, ordinal, 0, ctypes.byref(handle))
    return handle


def cuda_device_count() -> int:
    """The number of GPUs. 0 without a driver, or if it fails: ``python -m dml_cuda`` says why."""
    count = ctypes.c_uint32()
    library.dml_cuda_cuda_device_count(
        ctypes.byref(count), None
    )  # a call that fails writes nothing
    return count.value


class Array(NamedTuple):
    """An array's memory."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    """In bytes. None means packed, in row-major order."""
    dtype: np.dtype
    ordinal: int | None = None
    """The number of the GPU. None is the host."""
    read_only: bool = False
    keeps: Any = None
    """The owner of the memory."""
    stream: int | None = None
    """The stream of the owner, for whose work ours has to wait."""


_SIZE = ctypes.sizeof(CArray)


def _pointer(array: Array) -> Any:
    """A pointer to the structure."""
    numbers, sizes, strides = _numbers(array.shape, array.strides)
    rank, itemsize = len(array.shape), array.dtype.itemsize
    structure = CArray(_SIZE, rank, array.address, itemsize, sizes, strides)
    structure.numbers = numbers
    return ctypes.byref(structure)


@functools.lru_cache(maxsize=1024)
def _numbers(
    shape: tuple[int, ...], strides: tuple[int, ...] | None
) -> tuple[Any, int, int | None]:
    """Sizes and strides, and their addresses. They never change."""
    numbers = (ctypes.c_int64 * (2 * len(shape)))(*shape, *(strides or ()))
    sizes = ctypes.addressof(numbers)
    return numbers, sizes, None if strides is None else sizes + 8 * len(shape)


_scalar = functools.lru_cache(maxsize=1024)(
    lambda bits: ctypes.byref(ctypes.c_uint64(bits))
)


def _wait(stream: int, *arrays: Array) -> None:
    """Makes a stream wait for the streams of the arrays' owners. 0 and 1 are both the legacy default stream."""
    for awaited in {array.stream for array in arrays} - {None, stream or 1}:
        check(
            library.dml_cuda_wait_for_stream, device(arrays[0].ordinal), stream, awaited
        )


def reverse(
    x: Array,
    lengths: Array,
    output: Array,
    axis: int,
    stream: int,
    options: bytes | None = None,
) -> None:
    if x.ordinal is not None:
        _wait(stream, x, lengths, output)
    arrays = map(_pointer, (x, lengths, output))
    check(
        library.dml_cuda_reverse_arrays,
        device(x.ordinal),
        *arrays,
        axis,
        options,
        stream,
    )


def validate_reversal(x: Array, lengths: Array, axis: int) -> None:
    """Compiles a reversal on the host, or finds it, and so tells what is wrong with it."""
    compiled = ctypes.c_void_p()
    arrays = map(_pointer, (x, lengths, x))
    check(
        library.dml_cuda_compile_reversal,
        device(None),
        *arrays,
        axis,
        None,
        ctypes.byref(compiled),
        names=RESULT,
    )
    library.dml_cuda_destroy_compiled_operator(compiled)


def fill(
    output: Array,
    data_type: str,
    scalars: Sequence[int],
    names: Names,
    stream: int,
    options: bytes | None = None,
) -> None:
    """Fills an array. The scalars are the bits of start and delta."""
    if output.ordinal is not None:
        _wait(stream, output)
    start, delta = map(_scalar, scalars)
    arguments = (
        device(output.ordinal),
        _pointer(output),
        FILL_TYPES[data_type],
        start,
        delta,
        options,
        stream,
    )
    check(library.dml_cuda_fill_array, *arguments, names=names)
