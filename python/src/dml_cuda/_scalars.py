"""Numbers from callers: checks them, shows them in errors, and turns them into bits of a data type. Shared by all kinds of arrays."""

from __future__ import annotations

import operator as _operator
import struct
from collections.abc import Mapping, Set
from typing import Any

import numpy as np


def is_masked(value: Any) -> bool:
    """Whether an array has a mask, as NumPy's and astropy's masked arrays do. This library does not support masks."""
    return isinstance(value, np.ndarray) and hasattr(type(value), "mask")


def shown(value: Any) -> str:
    """A wrong value for an error message: the value if it is short, else its type."""
    try:
        text = repr(value)
    except Exception:  # such as an integer of thousands of digits
        return f"a {type(value).__qualname__}"
    return text if len(text) <= 80 and "\n" not in text else f"a {type(value).__qualname__}"


_INT = frozenset([int])


def integer(value: Any, name: str) -> int:
    """Converts a value with ``__index__`` to an int."""
    try:
        if not is_masked(value):
            return _operator.index(value)
    except TypeError:
        pass
    raise TypeError(f"{name} is {shown(value)}, must be an integer")


def integers(value: Any, name: str, required: str = "a sequence of integers") -> tuple[int, ...]:
    """Converts a sequence of integers to a tuple."""
    if type(value) is tuple and _INT.issuperset(map(type, value)):
        return value
    if not isinstance(value, (str, bytes, bytearray, Mapping, Set)) and not is_masked(value):
        try:
            items = tuple(value)
        except TypeError:
            pass
        else:
            return tuple(integer(item, f"{name}[{at}]") for at, item in enumerate(items))
    raise TypeError(f"{name} is {shown(value)}, must be {required}")


def scalar_bits(value: Any, data_type: str, name: str) -> int:
    """The bits of a scalar of a data type. An integer must fit the type, but unsigned types also accept negative numbers, which wrap."""
    if data_type.startswith("FLOAT"):
        try:
            packed = struct.pack({"FLOAT16": "<e", "FLOAT32": "<f"}[data_type], _real(value))
        except OverflowError:
            raise ValueError(f"{name} is {shown(value)}, must be a {data_type}: infinity is written as such") from None
        except (TypeError, ValueError):
            raise TypeError(f"{name} is {shown(value)}, must be a number") from None
        return int.from_bytes(packed, "little")
    try:
        if type(value) is not int and is_masked(value):
            raise TypeError
        number = _operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {shown(value)}, must be an integer, as the data type is {data_type}") from None
    bits = int(data_type.lstrip("UINT"))
    least = -(1 << (bits - 1))
    most = (1 << bits) - 1 if data_type.startswith("U") else -least - 1
    if not least <= number <= most:
        raise ValueError(f"{name} is {shown(number)}, must be from {least} to {most}, as the data type is {data_type}")
    return number & (1 << bits) - 1


def _real(value: Any) -> float:
    """Like ``float``, but refuses texts, complex and masked values, and arrays with dimensions."""
    if type(value) not in (float, int):
        kind = getattr(getattr(value, "dtype", None), "kind", None)
        if isinstance(value, (str, bytes, bytearray)) or is_masked(value) or kind in ("S", "U", "T", "c", "m", "M"):
            raise TypeError
        if getattr(value, "ndim", 0):
            raise TypeError
    return float(value)
