"""Calls libdml_cuda.so with ctypes: the structures of dml_cuda.h, and its errors as exceptions."""

from __future__ import annotations

import ctypes
import functools
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

PATH = pathlib.Path(__file__).parent / "_native" / "lib_native.so"

# DML_TENSOR_DATA_TYPE.
DATA_TYPES = {
    "FLOAT32": 1, "FLOAT16": 2, "UINT32": 3, "UINT16": 4, "UINT8": 5, "INT32": 6, "INT16": 7, "INT8": 8, "FLOAT64": 9,
    "UINT64": 10, "INT64": 11, "UINT4": 12, "INT4": 13,
}  # fmt: skip
FILL_VALUE_SEQUENCE, REVERSE_SUBSEQUENCES = 104, 106


class TypedDesc(ctypes.Structure):
    """DML_TENSOR_DESC and DML_OPERATOR_DESC."""

    _fields_ = [("Type", ctypes.c_uint32), ("Desc", ctypes.c_void_p)]


class BufferTensorDesc(ctypes.Structure):
    _fields_ = [
        ("DataType", ctypes.c_uint32),
        ("Flags", ctypes.c_uint32),
        ("DimensionCount", ctypes.c_uint32),
        ("Sizes", ctypes.POINTER(ctypes.c_uint32)),
        ("Strides", ctypes.POINTER(ctypes.c_uint32)),
        ("TotalTensorSizeInBytes", ctypes.c_uint64),
        ("GuaranteedBaseOffsetAlignment", ctypes.c_uint32),
    ]


class FillDesc(ctypes.Structure):
    _fields_ = [
        ("OutputTensor", ctypes.POINTER(TypedDesc)),
        ("ValueDataType", ctypes.c_uint32),
        ("ValueStart", ctypes.c_uint64),
        ("ValueDelta", ctypes.c_uint64),
    ]


class ReverseDesc(ctypes.Structure):
    _fields_ = [
        ("InputTensor", ctypes.POINTER(TypedDesc)),
        ("SequenceLengthsTensor", ctypes.POINTER(TypedDesc)),
        ("OutputTensor", ctypes.POINTER(TypedDesc)),
        ("Axis", ctypes.c_uint32),
    ]


class CArray(ctypes.Structure):
    _fields_ = [
        ("Data", ctypes.c_void_p),
        ("Rank", ctypes.c_uint32),
        ("ElementSizeInBytes", ctypes.c_uint32),
        ("Sizes", ctypes.c_void_p),
        ("StridesInBytes", ctypes.c_void_p),
    ]


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
        # Exceptions are pickled as a call with `args`, which would lose the violations. This does not call __init__, not even a subclass's.
        return _restored, (type(self), self.args), self.__dict__.copy()


def _restored(kind: type[ValidationError], arguments: tuple[Any, ...]) -> ValidationError:
    return ValueError.__new__(kind, *arguments)


_FIELD = re.compile(r"(?:\w+Desc\.)?\b(InputTensor|SequenceLengthsTensor|OutputTensor)\b(?:\.(\w+))?")
_ATTRIBUTES = {"Sizes": "shape", "Strides": "strides", "DimensionCount": "ndim", "DataType": "dtype"}


def in_arguments(error: ValueError, names: Mapping[str, str], layout: str) -> ValueError:
    """Rewords an error for a call on arrays. `names` maps tensors to arguments. `layout` describes the output's strides, because the
    strides in the error are those of merged and split dimensions, not the caller's."""

    def rename(text: str) -> str:
        return _FIELD.sub(lambda found: names[found[1]] + (f".{_ATTRIBUTES.get(found[2], found[2])}" if found[2] else ""), text)

    if not isinstance(error, ValidationError):
        return type(error)(rename(str(error)))
    violations, lines = [], []
    shared = [violation.rule for violation in error.violations if violation.rule.startswith("output.")]
    if shared:
        lines.append(f"{layout}, must place no two elements in the same memory ({', '.join(shared)})")
    for violation in error.violations:
        violations.append(violation._replace(place=rename(violation.place)))
        if violation.rule in shared:
            continue
        if violation.place.endswith(".TotalTensorSizeInBytes"):
            tensor = rename(violation.place).partition(".")[0]
            lines.append(f"{tensor} spans {violation.found} bytes, must span {violation.required} ({violation.rule})")
        else:
            lines.append(f"{rename(violation.place)} is {violation.found}, must be {violation.required} ({violation.rule})")
    return ValidationError("\n".join(lines), violations)


def _load() -> ctypes.CDLL:
    library = ctypes.CDLL(str(PATH))
    pointer, error = ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)
    handle = ctypes.POINTER(ctypes.c_void_p)
    status = ctypes.c_uint32
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


def raise_error(status: int, error: ctypes.c_void_p) -> None:
    """Raises an error object as an exception, and destroys the object."""
    message = (library.dml_cuda_error_message(error) or b"").decode()
    violations = []
    found = CViolation()
    for index in range(library.dml_cuda_error_violation_count(error)):
        library.dml_cuda_error_violation(error, index, ctypes.byref(found))
        level = found.NeededFeatureLevel
        violations.append(
            Violation(
                found.Rule.decode(),
                found.Place.decode(),
                found.Found.decode(),
                found.Required.decode() if found.Required is not None else None,
                f"{level >> 12}_{level >> 8 & 15}" if level else None,
            )
        )
    library.dml_cuda_destroy_error(error)
    if status == 2:
        raise ValidationError(message, violations)
    raise (ValueError if status in (1, 5) else RuntimeError)(message)


def check(function: Any, *arguments: Any) -> None:
    """Calls a function whose last argument is the error, and raises it."""
    error = ctypes.c_void_p()
    status = function(*arguments, ctypes.byref(error))
    if status:
        raise_error(status, error)


@functools.lru_cache(maxsize=None)
def device(ordinal: int | None) -> ctypes.c_void_p:
    """The CPU device for None, else the GPU with this ordinal. Each is opened once."""
    handle = ctypes.c_void_p()
    if ordinal is None:
        check(library.dml_cuda_create_cpu_device, 0, ctypes.byref(handle))
    else:
        check(library.dml_cuda_create_cuda_device, ordinal, 0, ctypes.byref(handle))
    return handle


class Tensor:
    """A DML_TENSOR_DESC, and the data that it points to."""

    def __init__(
        self,
        data_type: int,
        sizes: Sequence[int],
        strides: Sequence[int] | None,
        width: int = 1,
        total: int | None = None,
        flags: int = 0,
        alignment: int = 0,
    ):
        count = len(sizes)
        self.sizes = (ctypes.c_uint32 * count)(*sizes)
        self.strides = (ctypes.c_uint32 * count)(*strides) if strides is not None else None
        if total is None:
            elements = 1
            for d in range(count - 1, -1, -1):
                elements = elements * sizes[d] if strides is None else elements + (sizes[d] - 1) * strides[d]
            total = (elements * width + 3) // 4 * 4
        numbers = ctypes.POINTER(ctypes.c_uint32)
        self.buffer = BufferTensorDesc(
            data_type,
            flags,
            count,
            ctypes.cast(self.sizes, numbers),
            ctypes.cast(self.strides, numbers) if self.strides is not None else None,
            min(total, (1 << 64) - 1),
            alignment,
        )
        self.desc = TypedDesc(1, ctypes.addressof(self.buffer))


class Desc:
    """A DML_OPERATOR_DESC, and the data that it points to."""

    def __init__(self, operator_type: int, desc: ctypes.Structure, tensors: Sequence[Tensor]):
        self.kept = (desc, tensors)
        self.desc = TypedDesc(operator_type, ctypes.addressof(desc))
        self.address = ctypes.addressof(self.desc)

    @classmethod
    def fill(cls, output: Tensor, data_type: int, start: int, delta: int) -> Desc:
        return cls(FILL_VALUE_SEQUENCE, FillDesc(ctypes.pointer(output.desc), data_type, start, delta), [output])

    @classmethod
    def reverse(cls, x: Tensor, lengths: Tensor, output: Tensor, axis: int) -> Desc:
        pointers = (ctypes.pointer(tensor.desc) for tensor in (x, lengths, output))
        return cls(REVERSE_SUBSEQUENCES, ReverseDesc(*pointers, axis), [x, lengths, output])


class Operator:
    """A validated descriptor, at the highest feature level."""

    def __init__(self, desc: Desc):
        self.handle = ctypes.c_void_p()
        check(library.dml_cuda_create_operator, device(None), desc.address, ctypes.byref(self.handle))

    def __del__(self, destroy: Any = library.dml_cuda_destroy_operator) -> None:
        destroy(self.handle)  # a default argument, because module globals are gone when the interpreter ends

    def explain(self, target: bytes) -> str:
        text = ctypes.c_void_p()
        check(library.dml_cuda_explain, self.handle, target, ctypes.byref(text))
        try:
            return ctypes.string_at(text).decode()
        finally:
            library.dml_cuda_free_string(text)


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
    """An array's layout, for a call of the library."""

    address: int
    sizes: Sequence[int]
    strides: Sequence[int]
    """In bytes."""
    width: int
    """Bytes of an element."""


def _c_array(array: Array) -> tuple[CArray, Any]:
    """The structure, and the data that it points to."""
    rank = len(array.sizes)
    numbers = (ctypes.c_int64 * (2 * rank))(*array.sizes, *array.strides)
    sizes = ctypes.addressof(numbers)
    return CArray(array.address, rank, array.width, sizes, sizes + 8 * rank), numbers


def reversal(ordinal: int | None, x: Array, lengths: Array, output: Array, axis: int) -> Compiled:
    """Compiles a reversal, or finds it in the library's cache."""
    arrays = [_c_array(array) for array in (x, lengths, output)]
    pointers = (ctypes.byref(array) for array, _ in arrays)
    return Compiled(library.dml_cuda_compile_reversal, device(ordinal), *pointers, axis)


@functools.lru_cache(maxsize=256)
def sequence(
    ordinal: int | None,
    sizes: tuple[int, ...],
    strides: tuple[int, ...],
    width: int,
    aligned: bool,
    data_type: int,
    start: int,
    delta: int,
) -> Compiled:
    """Compiles a fill, with its scalars as bits. Without this cache a call takes 1.5 times as long."""
    # Only the alignment of the address matters.
    array, _numbers = _c_array(Array(16 if aligned else width, sizes, strides, width))
    scalars = (ctypes.byref(ctypes.c_uint64(bits)) for bits in (start, delta))
    return Compiled(library.dml_cuda_compile_sequence, device(ordinal), ctypes.byref(array), data_type, *scalars)
