"""Calls libdml_cuda.so with ctypes: the structures of dml_cuda.h, and its errors as exceptions."""

from __future__ import annotations

import copyreg
import ctypes
import functools
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

PATH = pathlib.Path(__file__).parent / "_native" / "lib_native.so"

# DML_TENSOR_DATA_TYPE.
DATA_TYPES = {
    "FLOAT32": 1, "FLOAT16": 2, "UINT32": 3, "UINT16": 4, "UINT8": 5, "INT32": 6, "INT16": 7, "INT8": 8, "FLOAT64": 9,
    "UINT64": 10, "INT64": 11, "UINT4": 12, "INT4": 13,
}  # fmt: skip
FILL_TYPES = tuple(name for name in DATA_TYPES if name not in ("FLOAT64", "UINT4", "INT4"))


class CArray(ctypes.Structure):
    _fields_ = [
        ("Data", ctypes.c_void_p),
        ("Rank", ctypes.c_uint32),
        ("ElementSizeInBytes", ctypes.c_uint32),
        ("Sizes", ctypes.c_void_p),
        ("StridesInBytes", ctypes.c_void_p),
    ]
    numbers: Any
    """The sizes and strides, to keep them."""


class CViolation(ctypes.Structure):
    _fields_ = [
        ("Rule", ctypes.c_char_p),
        ("Place", ctypes.c_char_p),
        ("Found", ctypes.c_char_p),
        ("Required", ctypes.c_char_p),
        ("NeededFeatureLevel", ctypes.c_uint32),
    ]


class Violation(NamedTuple):
    """A rule that a descriptor breaks."""

    rule: str
    """The rule's id, which never changes: ``reverse.axis.range``."""
    place: str
    """The field: ``ReverseSubsequencesDesc.Axis``."""
    found: str
    """The field's value."""
    required: str | None
    """What the value must be. None if a higher feature level accepts the value."""
    needed_feature_level: str | None
    """That feature level, such as ``5_0``, else None."""


class ValidationError(ValueError):
    """A descriptor breaks rules of its operator. The message has a line per rule."""

    violations: list[Violation]

    def __init__(self, message: str, violations: Iterable[Violation] = ()):
        super().__init__(message)
        self.violations = list(violations)

    def __reduce__(self) -> tuple[Any, ...]:
        # Python's own way calls __init__ with `args`, which a subclass's may not accept.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__.copy()  # type: ignore[attr-defined]


_WORDS = {
    "ReverseSubsequencesDesc.": "", "FillValueSequenceDesc.": "", "InputTensor": "x", "SequenceLengthsTensor": "lengths",
    ".Sizes": ".shape", ".Strides": ".strides", ".DimensionCount": ".ndim", ".DataType": ".dtype",
}  # fmt: skip


def in_arguments(error: ValueError, output: str, layout: str) -> ValueError:
    """Rewords an error for a call on arrays. `output` is what the caller calls it. `layout` describes it if its elements share memory: the
    strides in the error are those of merged and split dimensions, not the caller's."""

    def reword(text: str) -> str:
        for directml, word in _WORDS.items():
            text = text.replace(directml, word)
        return text.replace("OutputTensor", output)

    if not isinstance(error, ValidationError):
        return type(error)(reword(str(error)))
    violations = [violation._replace(place=reword(violation.place)) for violation in error.violations]
    shared = [violation.rule for violation in violations if violation.rule.startswith("output.")]
    lines = [f"{layout}, must place no two elements in the same memory ({', '.join(shared)})"] if shared else []
    lines += [line for line in reword(str(error)).splitlines() if not any(rule in line for rule in shared)]
    return ValidationError("\n".join(lines), violations)


def _load() -> ctypes.CDLL:
    library = ctypes.CDLL(str(PATH))
    pointer, status = ctypes.c_void_p, ctypes.c_uint32
    handle = error = ctypes.POINTER(ctypes.c_void_p)
    for name, result, arguments in [
        ("version", ctypes.c_char_p, []),
        ("cuda_device_count", status, [ctypes.POINTER(ctypes.c_uint32), error]),
        ("create_cpu_device", status, [ctypes.c_uint32, handle, error]),
        ("create_cuda_device", status, [ctypes.c_uint32, ctypes.c_uint32, handle, error]),
        ("validate", status, [pointer, ctypes.c_uint32, error]),
        ("validate_as", status, [pointer, ctypes.c_char_p, error]),
        ("create_operator", status, [pointer, pointer, handle, error]),
        ("destroy_operator", None, [pointer]),
        ("compile_reversal", status, [pointer, pointer, pointer, pointer, ctypes.c_int32, handle, error]),
        ("compile_sequence", status, [pointer, pointer, ctypes.c_uint32, pointer, pointer, handle, error]),
        ("destroy_compiled_operator", None, [pointer]),
        ("dispatch", status, [pointer, pointer, ctypes.c_uint32, pointer, pointer, error]),
        ("register_torch", status, [error]),
        ("explain", status, [pointer, ctypes.c_char_p, handle, error]),
        ("free_string", None, [pointer]),
        ("error_message", ctypes.c_char_p, [pointer]),
        ("error_violation_count", ctypes.c_uint32, [pointer]),
        ("error_violation", status, [pointer, ctypes.c_uint32, ctypes.POINTER(CViolation)]),
        ("destroy_error", None, [pointer]),
    ]:
        function = getattr(library, f"dml_cuda_{name}")
        function.restype, function.argtypes = result, arguments
    return library


library = _load()
_dispatch = library.dml_cuda_dispatch


def check(function: Any, *arguments: Any) -> None:
    """Calls a function whose last argument is the error, and raises the error as an exception."""
    error = ctypes.c_void_p()
    status = function(*arguments, ctypes.byref(error))
    if not status:
        return
    message = (library.dml_cuda_error_message(error) or b"").decode()
    violations = []
    found = CViolation()
    for index in range(library.dml_cuda_error_violation_count(error)):
        library.dml_cuda_error_violation(error, index, ctypes.byref(found))
        level = found.NeededFeatureLevel
        needed = f"{level >> 12}_{level >> 8 & 15}" if level else None
        required = None if found.Required is None else found.Required.decode()
        violations.append(Violation(found.Rule.decode(), found.Place.decode(), found.Found.decode(), required, needed))
    library.dml_cuda_destroy_error(error)
    if status == 2:
        raise ValidationError(message, violations)
    raise (ValueError if status in (1, 5) else RuntimeError)(message)


@functools.lru_cache(maxsize=None)
def device(ordinal: int | None) -> ctypes.c_void_p:
    """The CPU device for None, else the GPU with this ordinal. Each is opened once."""
    handle = ctypes.c_void_p()
    if ordinal is None:
        check(library.dml_cuda_create_cpu_device, 0, ctypes.byref(handle))
    else:
        check(library.dml_cuda_create_cuda_device, ordinal, 0, ctypes.byref(handle))
    return handle


class Compiled:
    """A compiled operator. Its kernels stay loaded, so it can be destroyed while its work is queued."""

    def __init__(self, function: Any, *arguments: Any):
        self.handle = ctypes.c_void_p()
        check(function, *arguments, ctypes.byref(self.handle))

    def __del__(self, destroy: Any = library.dml_cuda_destroy_compiled_operator) -> None:
        destroy(self.handle)

    def dispatch(self, inputs: Any, count: int, output: int, stream: int) -> None:
        if _dispatch(self.handle, inputs, count, output, stream, None):
            # A failed call has done nothing. Call again to get the error.
            check(_dispatch, self.handle, inputs, count, output, stream)


Addresses = ctypes.c_void_p * 2


class Array(NamedTuple):
    """An array's memory."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    """In bytes. None means packed, in row-major order."""
    dtype: np.dtype
    ordinal: int | None = None
    """The GPU's ordinal. None is the host."""
    read_only: bool = False
    keeps: Any = None
    """The owner of the memory."""


def _pointer(of: Array) -> Any:
    """A pointer to the structure."""
    rank = len(of.shape)
    numbers = (ctypes.c_int64 * (2 * rank))(*of.shape, *(of.strides or ()))
    sizes = ctypes.addressof(numbers)
    array = CArray(of.address, rank, of.dtype.itemsize, sizes, None if of.strides is None else sizes + 8 * rank)
    array.numbers = numbers
    return ctypes.byref(array)


def reversal(x: Array, lengths: Array, output: Array, axis: int) -> Compiled:
    """Compiles a reversal, or finds it in the library's cache."""
    return Compiled(library.dml_cuda_compile_reversal, device(x.ordinal), *map(_pointer, (x, lengths, output)), axis)


def fill(output: Array, data_type: str, scalars: Sequence[int], stream: int) -> None:
    """Fills an array of 1 element or more. The scalars are the bits of start and delta."""
    # Only the alignment of the address matters.
    aligned = 16 if output.address % 16 == 0 else output.dtype.itemsize
    layout = Array(aligned, output.shape, output.strides, output.dtype, output.ordinal)
    _sequence(layout, DATA_TYPES[data_type], *scalars).dispatch(None, 0, output.address, stream)


@functools.lru_cache(maxsize=256)
def _sequence(output: Array, data_type: int, start: int, delta: int) -> Compiled:
    """Compiles a fill. Without this cache a call takes 1.5 times as long."""
    scalars = (ctypes.byref(ctypes.c_uint64(bits)) for bits in (start, delta))
    return Compiled(library.dml_cuda_compile_sequence, device(output.ordinal), _pointer(output), data_type, *scalars)
