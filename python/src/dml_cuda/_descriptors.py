"""Descriptors of DirectML as mappings, as in a model of DxDispatch: validate and explain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _library as lib
from ._scalars import integer, integers, scalar_bits, shown


def _field(desc: Mapping[str, Any], name: str, place: str, default: Any = ...) -> Any:
    if not isinstance(desc, Mapping):
        raise TypeError(f"{place} is {shown(desc)}, must be a mapping of fields")
    if name in desc:
        return desc[name]
    if default is ...:
        raise ValueError(f"{place}.{name} is missing, must be there")
    return default


def _data_type(value: Any, place: str) -> int:
    name = str(value).upper().removeprefix("DML_TENSOR_DATA_TYPE_")
    if name not in lib.DATA_TYPES:
        raise ValueError(f"{place} is {value!r}, must be one of {', '.join(lib.DATA_TYPES)}")
    return lib.DATA_TYPES[name]


def _number(value: Any, place: str, most: int) -> int:
    found = integer(value, place)
    if not 0 <= found <= most:
        raise ValueError(f"{place} is {found}, must be from 0 to {most}")
    return found


def _numbers(value: Any, place: str, most: int) -> list[int]:
    found = list(integers(value, place))
    if any(not 0 <= number <= most for number in found):
        raise ValueError(f"{place} is {found}, must be numbers from 0 to {most}")
    return found


def _tensor(desc: Mapping[str, Any], place: str) -> lib.Tensor:
    data_type = _data_type(_field(desc, "DataType", place), f"{place}.DataType")
    name = next(name for name, code in lib.DATA_TYPES.items() if code == data_type)
    sizes = _numbers(_field(desc, "Sizes", place), f"{place}.Sizes", (1 << 32) - 1)
    strides = _field(desc, "Strides", place, None)
    strides = None if strides is None else _numbers(strides, f"{place}.Strides", (1 << 32) - 1)
    if strides is not None and len(strides) != len(sizes):
        raise ValueError(f"{place}.Strides has {len(strides)} numbers, must have {len(sizes)}, as Sizes has")
    flags = str(_field(desc, "Flags", place, "NONE")).upper().removeprefix("DML_TENSOR_FLAG_")
    if flags not in ("NONE", "OWNED_BY_DML"):
        raise ValueError(f"{place}.Flags is {flags!r}, must be NONE or OWNED_BY_DML")
    total = _field(desc, "TotalTensorSizeInBytes", place, None)
    if total is not None:
        total = _number(total, f"{place}.TotalTensorSizeInBytes", (1 << 64) - 1)
    alignment = _field(desc, "GuaranteedBaseOffsetAlignment", place, 0)
    alignment = _number(alignment, f"{place}.GuaranteedBaseOffsetAlignment", (1 << 32) - 1)
    bits = int(name.lstrip("UINTFLOA"))
    if total is None and bits < 8:
        total = 4 * -(-int(np.prod(sizes, dtype=object)) * bits // 32)
    return lib.Tensor(data_type, sizes, strides, max(bits // 8, 1), total, int(flags == "OWNED_BY_DML"), alignment)


def _desc(desc: Mapping[str, Any]) -> lib.Desc:
    kind = str(_field(desc, "Type", "desc")).upper().removeprefix("DML_OPERATOR_")
    inner = _field(desc, "Desc", "desc")
    if not isinstance(inner, Mapping):
        raise TypeError(f"desc.Desc is {shown(inner)}, must be a mapping of fields")
    if kind == "FILL_VALUE_SEQUENCE":
        place = "FillValueSequenceDesc"
        output = _tensor(_field(inner, "OutputTensor", place), f"{place}.OutputTensor")
        data_type = _data_type(_field(inner, "ValueDataType", place), f"{place}.ValueDataType")
        name = next(name for name, code in lib.DATA_TYPES.items() if code == data_type)
        scalars = [_field(inner, field, place, 0) for field in ("ValueStart", "ValueDelta")]
        if name in ("FLOAT64", "UINT4", "INT4"):
            bits = [0, 0]  # the operator refuses these types, whatever the scalars are
        else:
            bits = [scalar_bits(value, name, f"{place}.{field}") for value, field in zip(scalars, ("ValueStart", "ValueDelta"))]
        return lib.Desc.fill(output, data_type, *bits)
    if kind == "REVERSE_SUBSEQUENCES":
        place = "ReverseSubsequencesDesc"
        names = ("InputTensor", "SequenceLengthsTensor", "OutputTensor")
        x, lengths, output = (_tensor(_field(inner, name, place), f"{place}.{name}") for name in names)
        axis = _number(_field(inner, "Axis", place), f"{place}.Axis", (1 << 32) - 1)
        return lib.Desc.reverse(x, lengths, output, axis)
    raise ValueError(f"desc.Type is {kind!r}, must be FILL_VALUE_SEQUENCE or REVERSE_SUBSEQUENCES")


_LEVELS = ("1_0", "2_0", "2_1", "3_0", "3_1", "4_0", "4_1", "5_0", "5_1", "5_2", "6_0", "6_1", "6_2", "6_3", "6_4")


def _level(feature_level: str | None) -> int:
    if feature_level is None:
        return 0
    if not isinstance(feature_level, str):
        raise TypeError(f"feature_level is {shown(feature_level)}, must be such as '5_0'")
    name = feature_level.upper().removeprefix("DML_FEATURE_LEVEL_")
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

    desc: ``{"Type": "REVERSE_SUBSEQUENCES", "Desc": {...}}`` with DirectML's fields, as in a model of DxDispatch. The prefixes
    ``DML_OPERATOR_`` and ``DML_TENSOR_DATA_TYPE_`` are optional, and so are TotalTensorSizeInBytes, Strides, Flags and
    GuaranteedBaseOffsetAlignment.
    feature_level: such as ``5_0``. None is the highest.
    directml: a version such as ``1.8.0``. The verdict is that version's, including its mistakes.

    >>> import dml_cuda
    >>> tensor = {"DataType": "FLOAT32", "Sizes": [2, 4]}
    >>> lengths = {"DataType": "UINT32", "Sizes": [2, 1]}
    >>> desc = {"InputTensor": tensor, "SequenceLengthsTensor": lengths, "OutputTensor": tensor, "Axis": 2}
    >>> [violation.rule for violation in dml_cuda.validate({"Type": "REVERSE_SUBSEQUENCES", "Desc": desc})]
    ['reverse.axis.range']
    """
    made = _desc(desc)
    try:
        if directml is None:
            lib.check(lib.library.dml_cuda_validate, made.address, _level(feature_level))
            return []
        if feature_level is not None:
            raise TypeError("directml is given with feature_level, must be alone: a version has its own level")
        version = _text(directml, "directml", "1.8.0")
        try:
            lib.check(lib.library.dml_cuda_validate_as, made.address, version)
        except lib.ValidationError:
            raise
        except ValueError as error:  # the descriptor was readable, so the version is wrong
            raise ValueError(f"directml is {directml!r}, must be a version: {error}") from None
    except lib.ValidationError as error:
        return error.violations
    return []


def explain(desc: Mapping[str, Any], target: str = "h100") -> str:
    """Explains what a dispatch does on a GPU: merged dimensions, kernels, grids, bytes, and why no faster kernel runs. Needs no GPU.

    desc: as in :func:`validate`. target: ``t4``, ``l4``, ``a100``, ``h100``, ``b200``, or ``shared=KIB,sm=COUNT[,clusters]``.

    >>> import dml_cuda
    >>> output = {"DataType": "FLOAT32", "Sizes": [4, 1024]}
    >>> desc = {"OutputTensor": output, "ValueDataType": "FLOAT32", "ValueStart": 0, "ValueDelta": 1}
    >>> print(dml_cuda.explain({"Type": "FILL_VALUE_SEQUENCE", "Desc": desc}).splitlines()[1])
      size 4096, steps of OutputTensor 1, index 1
    """
    operator = lib.Operator(_desc(desc))
    name = _text(target, "target", "h100")
    try:
        return operator.explain(name)
    except ValueError as error:
        raise ValueError(f"target is {target!r}, must be a GPU's: {error}") from None
