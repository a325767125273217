"""Arguments besides arrays: numbers, shapes, data types, lengths of the host. Checks them, shows them in errors, and
converts them. All kinds of arrays share this code."""

import contextlib
import math
import operator as _operator
import struct
from collections.abc import Mapping, Sequence, Set
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
import numpy.typing as npt

from ._library import FILL_TYPES

Shape = SupportsIndex | Sequence[SupportsIndex]
Number = SupportsFloat | SupportsIndex


def is_masked(value: Any) -> bool:
    """Whether an array has a mask, as NumPy's and astropy's masked arrays do. This library does not support masks."""
    return isinstance(value, np.ndarray) and hasattr(type(value), "mask")


def is_bool(value: Any) -> bool:
    """Whether a value is a bool of Python, or of a library's dtype ``bool``."""
    return isinstance(value, bool) or str(getattr(value, "dtype", None)) in (
        "bool",
        "torch.bool",
    )


def refuse_mask(x: Any, name: str) -> None:
    """Refuses a masked array: the data would move without the mask."""
    if is_masked(x):
        raise TypeError(
            f"{name} is {of_type(x)}, but must be an array with no mask: pass its data and its mask separately"
        )


def shown(value: Any) -> str:
    """A wrong value for an error message: the value if it is short, else its type."""
    with contextlib.suppress(Exception):  # such as an integer of thousands of digits
        text = repr(value)
        if len(text) <= 80 and "\n" not in text:
            return text
    return of_type(value)


def of_type(value: Any, full: bool = False) -> str:
    """A value's type in an error message: ``an int``, or in full ``an array.array``."""
    kind = type(value)
    name = (
        f"{kind.__module__}.{kind.__qualname__}"
        if full and kind.__module__ != "builtins"
        else kind.__qualname__
    )
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


_INT = frozenset([int])


def integer(value: Any, name: str, required: str = "an integer") -> int:
    """Converts a value with ``__index__`` to an int."""
    try:
        if type(value) is int or not (is_masked(value) or is_bool(value)):
            return _operator.index(value)
    except TypeError:
        pass
    raise TypeError(f"{name} is {shown(value)}, but must be {required}")


def integers(
    value: Any, name: str, required: str = "a sequence of integers"
) -> tuple[int, ...]:
    """Converts a sequence of integers to a tuple."""
    if type(value) is tuple and _INT.issuperset(map(type, value)):
        return value
    if (
        np.iterable(value)
        and not isinstance(value, (str, bytes, bytearray, Mapping, Set))
        and not is_masked(value)
    ):
        return tuple(integer(item, f"{name}[{at}]") for at, item in enumerate(value))
    raise TypeError(f"{name} is {shown(value)}, but must be {required}")


def scalar_bits(value: Any, data_type: str, name: str) -> int:
    """The bits of a scalar of a data type. An integer must fit the type, but unsigned types also accept negative
    numbers, which wrap."""
    if data_type.startswith("FLOAT"):
        try:
            packed = struct.pack(
                {"FLOAT16": "<e", "FLOAT32": "<f"}[data_type], _real(value)
            )
        except OverflowError:
            raise ValueError(
                f"{name} is {shown(value)}, but must fit {data_type}, or be float('inf')"
            ) from None
        except (TypeError, ValueError):
            raise TypeError(f"{name} is {shown(value)}, but must be a number") from None
        return int.from_bytes(packed, "little")
    number = integer(value, name, f"an integer, as the data type is {data_type}")
    bits = int(data_type.lstrip("UINT"))
    least = -(1 << (bits - 1))
    most = (1 << bits) - 1 if data_type.startswith("U") else -least - 1
    if not least <= number <= most:
        raise ValueError(
            f"{name} is {shown(number)}, but must be from {least} to {most}, as the data type is {data_type}"
        )
    return number & (1 << bits) - 1


def _real(value: Any) -> float:
    """Like ``float``, but refuses bools, texts, complex and masked values, and arrays with dimensions."""
    if type(value) not in (float, int):
        kind = getattr(getattr(value, "dtype", None), "kind", "O")
        wrong = (
            isinstance(value, (str, bytes, bytearray))
            or kind in "SUTcmM"
            or is_masked(value)
            or is_bool(value)
        )
        if wrong or getattr(value, "ndim", 0) > 0:
            raise TypeError
    return float(value)


_FILL_TYPES = {np.dtype(name.lower()): name for name in FILL_TYPES}


def fill_type(dtype: Any) -> tuple[np.dtype, str]:
    """NumPy's dtype, and DirectML's name for it."""
    try:
        kind = np.dtype(dtype) if dtype is not None else None
    except TypeError:
        kind = None
    if kind is None or kind not in _FILL_TYPES:
        found = shown(dtype) if kind is None else kind
        raise TypeError(
            f"dtype is {found}, but must be float32, float16, or integers of 8 to 64 bits, in the machine's byte order"
        )
    return kind, _FILL_TYPES[kind]


def fill_shape(shape: Any, kind: np.dtype) -> tuple[int, ...]:
    """A shape as NumPy accepts it: an integer or a sequence of integers."""
    required = "an integer or a sequence of integers"
    sizes = (
        integers(shape, "shape", required)
        if np.iterable(shape)
        else (integer(shape, "shape", required),)
    )
    if min(sizes, default=0) < 0:
        raise ValueError(f"shape is {shown(sizes)}, but must have sizes of at least 0")
    if 0 not in sizes:  # what the operator would refuse, before memory is allocated
        if len(sizes) > 8:
            raise ValueError(
                f"shape is {shown(sizes)}, but must have at most 8 dimensions (tensor.dimension_count)"
            )
        spare = max(1, 4 // kind.itemsize)  # the bytes are a multiple of 4
        if math.prod(sizes) > (1 << 32) - spare:
            rule = "tensor.total_size.max" if spare > 1 else "tensor.element_count"
            raise ValueError(
                f"shape is {shown(sizes)}, but must have at most 2**32 - {spare} elements of {kind} ({rule})"
            )
    return sizes


def axis_from_front(axis: Any, shape: Sequence[Any], name: str = "axis") -> int:
    """Checks an axis of x, and counts it from the front. The messages are those of the library, which
    cannot check because sizes may be symbols."""
    axis, rank = integer(axis, name), len(shape)
    if rank == 0:
        raise ValueError("x has 0 dimensions, but must have at least 1")
    if not -rank <= axis < rank:
        raise ValueError(
            f"{name} is {shown(axis)}, but must be from {-rank} to {rank - 1}, the dimensions of x"
        )
    return axis % rank


def axis_of_lanes(axis: Any, shape: Any, lengths: Any, name: str = "axis") -> int:
    """Checks an axis of x and the shape of the lengths, and counts the axis from the front. Callers show shapes as
    lists or as tuples."""
    front = axis_from_front(axis, shape, name)
    of_lanes = type(shape)((*shape[:front], 1, *shape[front + 1 :]))
    missing = len(shape) - len(lengths)
    if missing < 0 or any(
        size != 1 and size != to for size, to in zip(lengths, of_lanes[missing:])
    ):
        padded = (
            "; reverse_padded_sequence takes a length for each sequence"
            if len(lengths) == 1
            else ""
        )
        raise ValueError(
            f"lengths has shape {lengths}, but must broadcast to {of_lanes}, x's with 1 at {name}{padded}"
        )
    return front


def refuse_ambiguous(lengths: Any, shape: Any, axis: int) -> None:
    """Refuses lengths of one dimension that fit another dimension of x besides the last, to which they broadcast."""
    if (
        len(lengths) == 1
        and lengths[0] != 1
        and (*shape[:axis], *shape[axis + 1 :]).count(lengths[0]) > 1
    ):
        raise ValueError(
            f"lengths has shape {lengths}, but must have {len(shape)} dimensions, as x has, because more than one of x's "
            f"has the size {lengths[0]}; reverse_padded_sequence takes a length for each sequence"
        )


def check_batch(lengths: Any, required: Any, other: Any, option: str) -> None:
    """Checks the shape of the lengths of a padded batch. other: what would be the batch size with an option."""
    if lengths != required:
        swapped = (
            f"; with {option} it would be {other}" if [*lengths] == [other] else ""
        )
        raise ValueError(
            f"lengths has shape {lengths}, but must have {required}, the batch size{swapped}"
        )


def host_lengths(lengths: Any) -> npt.NDArray[Any]:
    """Lengths on the host as unsigned integers of 4 or 8 bytes."""
    if type(lengths) is not np.ndarray:
        check_kind(lengths)
    try:
        is_foreign = hasattr(lengths, "__dlpack__") and not hasattr(
            lengths, "__array__"
        )
        array = np.from_dlpack(lengths) if is_foreign else np.asarray(lengths)
    except Exception:
        raise TypeError(
            f"lengths is {of_type(lengths)}, but must be integers on the host"
        ) from None
    # NumPy makes floats of numbers from 2**63 on if the list also has smaller ones.
    is_rounded = array.dtype.kind == "f" and isinstance(lengths, (list, tuple))
    items = np.asarray(lengths, dtype=object) if is_rounded else array
    if items.dtype == object and all(type(item) is int for item in items.flat):
        array = np.asarray(np.clip(items, -(2**63), 2**63 - 1), dtype=np.int64)
    if array.dtype.kind not in "iu" and array.size:
        raise wrong_lengths(array.dtype)
    if array.dtype.kind == "i" and array.size and array.min() < 0:
        at = tuple(int(k) for k in np.argwhere(array < 0)[0])
        place = f"lengths[{', '.join(map(str, at))}]" if at else "lengths"
        raise ValueError(f"{place} is {shown(int(items[at]))}, but must be at least 0")
    return np.asarray(
        array, dtype=np.uint64 if array.dtype.itemsize == 8 else np.uint32, order="C"
    )


def wrong_lengths(dtype: Any, integers: str = ".astype(int)") -> TypeError:
    """The error of lengths that are no integers. integers: how an array of the lengths' library becomes integers."""
    # Rounding down would make 12 of 13 / 22 * 22 in float32.
    advice = (
        f": lengths{integers}, or (lengths * T).round(){integers} for lengths relative to T"
        if "float" in str(dtype)
        else ""
    )
    return TypeError(
        f"lengths has dtype {dtype}, but must have an integer dtype{advice}"
    )


def check_kind(lengths: Any) -> None:
    """Refuses lengths that NumPy would accept silently, or would refuse with an unclear error."""
    if lengths is None:
        raise TypeError("lengths is None, but must be integers")
    if is_bool(lengths):
        raise wrong_lengths("bool")
    if isinstance(lengths, (list, tuple)):
        for item in lengths:
            if type(item) is not int:
                check_kind(item)
    else:
        refuse_mask(lengths, "lengths")
