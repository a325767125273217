"""Scalars of a data type as bits; the same for all kinds of arrays."""

from __future__ import annotations

import operator as _operator
import struct
from typing import Any


def scalar_bits(value: Any, data_type: str, name: str) -> int:
    """The bits of a scalar of a data type; integers wrap in neither direction, but that an unsigned type takes a negative one."""
    if data_type.startswith("FLOAT"):
        code = {"FLOAT16": "<e", "FLOAT32": "<f"}[data_type]
        try:
            packed = struct.pack(code, float(value))
        except OverflowError:
            raise ValueError(f"{name} is {value}, must be a {data_type}: infinity is written as such") from None
        except (TypeError, ValueError):
            raise TypeError(f"{name} is a {type(value).__qualname__}, must be a number") from None
        return int.from_bytes(packed, "little")
    try:
        number = _operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}, must be an integer, as the data type is {data_type}") from None
    bits = int(data_type.lstrip("UINT"))
    least = -(1 << (bits - 1))
    most = (1 << bits) - 1 if data_type.startswith("U") else -least - 1
    if not least <= number <= most:
        raise ValueError(f"{name} is {number}, must be from {least} to {most}, as the data type is {data_type}")
    return number & (1 << bits) - 1
