"""Descriptors of DirectML as mappings, as in a model of DxDispatch: validate and explain."""

import ctypes
import difflib
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

from . import _library as lib
from ._arguments import integer, integers, scalar_bits, shown
from ._library import u32

u64 = ctypes.c_uint64


class _BufferTensorDesc(ctypes.Structure):
    _fields_ = [
        ("DataType", u32),
        ("Flags", u32),
        ("DimensionCount", u32),
        ("Sizes", ctypes.POINTER(u32)),
        ("Strides", ctypes.POINTER(u32)),
        ("TotalTensorSizeInBytes", u64),
        ("GuaranteedBaseOffsetAlignment", u32),
    ]


class _TensorDesc(ctypes.Structure):
    _fields_ = [("Type", u32), ("Desc", ctypes.POINTER(_BufferTensorDesc))]


_Tensor = ctypes.POINTER(_TensorDesc)


class _FillDesc(ctypes.Structure):
    _fields_ = [("OutputTensor", _Tensor), ("ValueDataType", u32), ("ValueStart", u64), ("ValueDelta", u64)]


class _ReverseDesc(ctypes.Structure):
    _fields_ = [("InputTensor", _Tensor), ("SequenceLengthsTensor", _Tensor), ("OutputTensor", _Tensor), ("Axis", u32)]


class _OperatorDesc(ctypes.Structure):
    _fields_ = [("Type", u32), ("Desc", ctypes.POINTER(ctypes.c_byte))]


def _operator(operator_type: int, desc: ctypes.Structure) -> _OperatorDesc:
    return _OperatorDesc(operator_type, ctypes.cast(ctypes.pointer(desc), ctypes.POINTER(ctypes.c_byte)))


def _mapping(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{place} is {shown(value)}, must be a mapping of fields")
    return value


def _field(desc: Any, name: str, place: str, convert: Callable[[Any, str], Any], default: Any = ...) -> Any:
    """A field that `convert` checks and converts, or its default."""
    value = _mapping(desc, place).get(name, default)
    if value is ...:
        raise ValueError(f"{place}.{name} is required")
    return value if value is default else convert(value, f"{place}.{name}")


def _check_names(desc: Any, place: str, of: type[ctypes.Structure]) -> None:
    """Refuses members that the structure has not."""
    names = [field[0] for field in of._fields_]
    for name in _mapping(desc, place):
        if name not in names:
            nearest = difflib.get_close_matches(str(name), names, 1)
            required = f"{nearest[0]}, the nearest name" if nearest else f"one of {', '.join(names)}"
            raise ValueError(f"{place} has a member {shown(name)}, must be {required}")


def _data_type(value: Any, place: str) -> str:
    name = str(value).upper().removeprefix("DML_TENSOR_DATA_TYPE_")
    if name not in lib.DATA_TYPES:
        raise ValueError(f"{place} is {value!r}, must be one of {', '.join(lib.DATA_TYPES)}")
    return name


def _number(value: Any, place: str, most: int = (1 << 32) - 1) -> int:
    found = integer(value, place)
    if not 0 <= found <= most:
        raise ValueError(f"{place} is {found}, must be from 0 to {most}")
    return found


def _numbers(value: Any, place: str) -> list[int]:
    found = list(integers(value, place))
    if any(not 0 <= number < 1 << 32 for number in found):
        raise ValueError(f"{place} is {found}, must be numbers from 0 to {(1 << 32) - 1}")
    return found


def _tensor(desc: Any, place: str) -> Any:
    """A pointer to a DML_TENSOR_DESC."""
    _check_names(desc, place, _BufferTensorDesc)
    name = _field(desc, "DataType", place, _data_type)
    sizes = _field(desc, "Sizes", place, _numbers)
    count = _field(desc, "DimensionCount", place, _number, len(sizes))
    if count != len(sizes):
        raise ValueError(f"{place}.DimensionCount is {count}, must be {len(sizes)}, the number of Sizes")
    strides = _field(desc, "Strides", place, _numbers, None)
    if strides is not None and len(strides) != len(sizes):
        raise ValueError(f"{place}.Strides has {len(strides)} numbers, must have {len(sizes)}, as Sizes has")
    flags = _field(desc, "Flags", place, lambda value, _: str(value).upper().removeprefix("DML_TENSOR_FLAG_"), "NONE")
    if flags not in ("NONE", "OWNED_BY_DML"):
        raise ValueError(f"{place}.Flags is {flags!r}, must be NONE or OWNED_BY_DML")
    alignment = _field(desc, "GuaranteedBaseOffsetAlignment", place, _number, 0)
    total = _field(desc, "TotalTensorSizeInBytes", place, functools.partial(_number, most=(1 << 64) - 1), None)
    if total is None:
        elements = math.prod(sizes) if strides is None else 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides))
        total = min(4 * -(-elements * int(name.lstrip("UINTFLOA")) // 32), (1 << 64) - 1)
    numbers = u32 * len(sizes)
    steps = None if strides is None else numbers(*strides)
    owned = flags == "OWNED_BY_DML"
    buffer = _BufferTensorDesc(lib.DATA_TYPES[name], owned, len(sizes), numbers(*sizes), steps, total, alignment)
    return ctypes.pointer(_TensorDesc(1, ctypes.pointer(buffer)))


def _desc(desc: Mapping[str, Any]) -> _OperatorDesc:
    _check_names(desc, "desc", _OperatorDesc)
    kind = _field(desc, "Type", "desc", lambda value, _: str(value).upper().removeprefix("DML_OPERATOR_"))
    inner = _field(desc, "Desc", "desc", _mapping)
    if kind == "FILL_VALUE_SEQUENCE":
        place = "FillValueSequenceDesc"
        _check_names(inner, place, _FillDesc)
        output = _field(inner, "OutputTensor", place, _tensor)
        name = _field(inner, "ValueDataType", place, _data_type)
        # The operator refuses the other types, whatever the scalars are.
        convert = lambda value, place: scalar_bits(value, name, place) if name in lib.FILL_TYPES else 0
        bits = [_field(inner, field, place, convert, 0) for field in ("ValueStart", "ValueDelta")]
        return _operator(104, _FillDesc(output, lib.DATA_TYPES[name], *bits))
    if kind == "REVERSE_SUBSEQUENCES":
        place = "ReverseSubsequencesDesc"
        names = ("InputTensor", "SequenceLengthsTensor", "OutputTensor")
        _check_names(inner, place, _ReverseDesc)
        tensors = [_field(inner, name, place, _tensor) for name in names]
        axis = _field(inner, "Axis", place, _number)
        return _operator(106, _ReverseDesc(*tensors, axis))
    raise ValueError(f"desc.Type is {kind!r}, must be FILL_VALUE_SEQUENCE or REVERSE_SUBSEQUENCES")


_LEVELS = ("1_0", "2_0", "2_1", "3_0", "3_1", "4_0", "4_1", "5_0", "5_1", "5_2", "6_0", "6_1", "6_2", "6_3", "6_4")


def _level(feature_level: str | None) -> int:
    if feature_level is None:
        return 0
    name = _text(feature_level, "feature_level", "5_0").decode().upper().removeprefix("DML_FEATURE_LEVEL_")
    if name not in _LEVELS:
        raise ValueError(f"feature_level is {feature_level!r}, must be such as '5_0': one of {', '.join(_LEVELS)}")
    major, _, minor = name.partition("_")
    return int(major) << 12 | int(minor) << 8


def _text(value: Any, name: str, example: str) -> bytes:
    if not isinstance(value, str):
        raise TypeError(f"{name} is {shown(value)}, must be a text such as {example!r}")
    if "\0" in value:
        raise ValueError(f"{name} is {shown(value)}, must have no NUL")
    return value.encode()


def validate(
    desc: Mapping[str, Any], feature_level: str | None = None, *, directml: str | None = None
) -> list[lib.Violation]:
    """Returns the rules that a descriptor of DirectML breaks. An empty list means that the descriptor is accepted.

    desc: ``{"Type": "REVERSE_SUBSEQUENCES", "Desc": {...}}`` with DirectML's fields, as in a model of DxDispatch. The
    prefixes ``DML_OPERATOR_`` and ``DML_TENSOR_DATA_TYPE_`` are optional, and so are TotalTensorSizeInBytes, Strides,
    Flags and GuaranteedBaseOffsetAlignment.
    feature_level: such as ``5_0``. None is the highest.
    directml: a version such as ``1.8.0``. The verdict is that version's, including its mistakes.

    >>> import dml_cuda
    >>> tensor = {"DataType": "FLOAT32", "Sizes": [2, 4]}
    >>> lengths = {"DataType": "UINT32", "Sizes": [2, 1]}
    >>> desc = {"InputTensor": tensor, "SequenceLengthsTensor": lengths, "OutputTensor": tensor, "Axis": 2}
    >>> [violation.rule for violation in dml_cuda.validate({"Type": "REVERSE_SUBSEQUENCES", "Desc": desc})]
    ['reverse.axis.range']
    """
    if directml is not None and feature_level is not None:
        raise TypeError("directml is given with feature_level, must be given alone: a version has its own level")
    made = ctypes.byref(_desc(desc))
    try:
        if directml is None:
            lib.check(lib.library.dml_cuda_validate, made, _level(feature_level))
        else:
            lib.check(lib.library.dml_cuda_validate_as, made, _text(directml, "directml", "1.8.0"))
    except lib.ValidationError as error:
        return error.violations
    except ValueError as error:
        if directml is None:
            raise
        raise ValueError(f"directml is {directml!r}, must be a version: {error}") from None
    return []


def explain(desc: Mapping[str, Any], target: str = "h100") -> str:
    """Explains what a dispatch does on a GPU: merged dimensions, kernels, grids, bytes, and why no faster kernel runs.
    Needs no GPU.

    desc: as in :func:`validate`. target: ``t4``, ``l4``, ``a100``, ``h100``, ``b200``, or
    ``shared=KIB,sm=COUNT[,clusters]``.

    >>> import dml_cuda
    >>> output = {"DataType": "FLOAT32", "Sizes": [4, 1024]}
    >>> desc = {"OutputTensor": output, "ValueDataType": "FLOAT32", "ValueStart": 0, "ValueDelta": 1}
    >>> print(dml_cuda.explain({"Type": "FILL_VALUE_SEQUENCE", "Desc": desc}).splitlines()[1])
      size 4096, steps of OutputTensor 1, index 1
    """
    made, name = _desc(desc), _text(target, "target", "h100")
    operator, text = ctypes.c_void_p(), ctypes.c_void_p()
    lib.check(lib.library.dml_cuda_create_operator, lib.device(None), ctypes.byref(made), ctypes.byref(operator))
    try:
        lib.check(lib.library.dml_cuda_explain, operator, name, ctypes.byref(text))
        return ctypes.string_at(text).decode()
    except ValueError as error:
        raise ValueError(f"target is {target!r}, must be a GPU's: {error}") from None
    finally:
        lib.library.dml_cuda_free_string(text)
        lib.library.dml_cuda_destroy_operator(operator)
