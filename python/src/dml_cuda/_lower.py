"""Reversals of any shape in the dimensions that the library takes; the same for all kinds of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_MAX_DIMENSIONS = 8


class _Dimension(NamedTuple):
    size: int
    x: int
    lengths: int
    out: int
    is_axis: bool


class Lowered(NamedTuple):
    """Sizes and strides as `_library.reversal` takes them."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    length_sizes: tuple[int, ...]
    length_strides: tuple[int, ...]
    output_strides: tuple[int, ...]
    axis: int


def lower(
    sizes: Sequence[int], x: Sequence[int], lengths: Sequence[int], out: Sequence[int], axis: int, units: int
) -> Lowered:
    """x, lengths and out are strides, of x and out in units, of which an element has so many side by side."""
    dims = [
        # Dimensions of size 1 may have any strides.
        _Dimension(size, of_x, of_lengths, of_out, d == axis) if size > 1 else _Dimension(1, 0, 0, 0, True)
        for d, (size, of_x, of_lengths, of_out) in enumerate(zip(sizes, x, lengths, out))
        if size > 1 or d == axis
    ]
    if units > 1:
        dims.append(_Dimension(units, 1, 0, 1, False))
    if len(dims) > _MAX_DIMENSIONS:
        dims = _fold(dims)
    for name in ("x", "lengths", "out"):
        for step in (getattr(dim, name) for dim in dims):
            if not 0 <= step < 1 << 32:
                raise ValueError(f"{name} has a stride of {step} elements, must be from 0 to 2**32 - 1")
    if any(dim.size >= 1 << 32 for dim in dims) or len(dims) > _MAX_DIMENSIONS:
        raise ValueError(f"x has shape {tuple(sizes)}, must have sizes below 2**32 and fold into {_MAX_DIMENSIONS} dimensions")
    return Lowered(
        tuple(dim.size for dim in dims),
        tuple(dim.x for dim in dims),
        tuple(1 if dim.is_axis else dim.size for dim in dims),
        tuple(0 if dim.is_axis else dim.lengths for dim in dims),
        tuple(dim.out for dim in dims),
        next(d for d, dim in enumerate(dims) if dim.is_axis),
    )


def _fold(dims: list[_Dimension]) -> list[_Dimension]:
    """Joins neighbours that are one in all three tensors."""
    folded = dims[:1]
    for inner in dims[1:]:
        outer = folded[-1]
        joins = all(far == near * inner.size for far, near in zip(outer[1:4], inner[1:4]))
        if joins and not (outer.is_axis or inner.is_axis):
            folded[-1] = inner._replace(size=outer.size * inner.size)
        else:
            folded.append(inner)
    return folded
