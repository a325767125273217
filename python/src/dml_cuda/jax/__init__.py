"""The operators for JAX: they work in ``jit``, ``grad``, ``jvp``, ``vmap``, ``scan``, ``shard_map`` and ``export``, on
the CPU and on GPUs.

XLA calls this library's handlers, which are the custom calls ``dml_cuda_reverse_subsequences`` and
``dml_cuda_fill_value_sequence``, or compiles the same arithmetic of jax.numpy together with what surrounds it.
"""

import functools
import math
from typing import Any, Literal, SupportsIndex

import jax
import numpy as np

from .. import _library as lib
from .._arguments import Number, Shape, axis_from_front, axis_of_lanes, check_batch
from .._arguments import fill_shape, fill_type, of_type, refuse_ambiguous, scalar_bits
from .._arguments import shown
from .arguments import as_array, as_lengths
from .interpreters import register_interpreters
from .primitive import as_varying, is_compiling, reverse

__all__ = ["fill_value_sequence", "reverse_padded_sequence", "reverse_subsequences"]

Implementation = Literal["kernel", "xla"] | None


@functools.lru_cache(maxsize=1024)
def _validate(shape: tuple[int, ...], dtype: np.dtype[Any], axis: int) -> None:
    """Checks while a program is traced what the handler would refuse while it runs, for any lengths."""
    lib.validate_reversal(
        lib.Array(0, shape, None, dtype),
        lib.Array(0, (), None, np.dtype(np.uint32)),
        axis,
    )


def reverse_subsequences(
    x: Any,
    lengths: Any,
    axis: SupportsIndex,
    *,
    in_place: bool = False,
    implementation: Implementation = None,
) -> Any:
    """Reverses the first ``length`` elements of every sequence of x along an axis, and copies the other elements.

    x: an array of JAX or NumPy with 1 dimension or more, of any dtype whose elements are whole bytes.
    lengths: integers that broadcast to x's shape with 1 at the axis. One dimension of lengths is an error if it fits
    more than one dimension of x: see :func:`reverse_padded_sequence`. A length above the axis size acts as the axis
    size. A negative length is an error of the kernel on the CPU, and else acts as the axis size.
    in_place: writes the result over x inside of a compiled program. If the program needs x afterwards, or if x is an
    argument that is not donated, XLA copies x first.
    implementation: ``kernel`` is a custom call of this library, ``xla`` is code that XLA fuses with its neighbours.
    None is the kernel in eager calls, in place, where lengths differ along x's last dimension, and with explicit sharding,
    else XLA's code.

    >>> import dml_cuda.jax, jax
    >>> dml_cuda.jax.reverse_subsequences(jax.numpy.array([[1, 2, 3, 4], [5, 6, 7, 8]]), jax.numpy.array([[3], [2]]), 1)
    Array([[3, 2, 1, 4],
           [6, 5, 7, 8]], dtype=int32)
    """
    register_interpreters()
    x, dtype = as_array(x, "x")
    lengths = as_lengths(lengths)
    front = axis_of_lanes(axis, x.shape, lengths.shape)
    refuse_ambiguous(lengths.shape, x.shape, front)
    lengths = lengths.reshape((1,) * (x.ndim - lengths.ndim) + lengths.shape)
    # Sizes of an exported program may be symbols.
    if all(isinstance(size, int) for size in x.shape) and 0 not in x.shape:
        _validate(x.shape, dtype, front)
    if not isinstance(in_place, (bool, np.bool_)):
        raise TypeError(f"in_place is {of_type(in_place)}, but must be a bool")
    if implementation not in (None, "kernel", "xla"):
        raise ValueError(
            f"implementation is {shown(implementation)}, but must be None, 'kernel' or 'xla'"
        )
    if in_place and implementation == "xla":
        raise ValueError(
            "in_place is True, but must be False for the implementation 'xla': XLA itself decides what its code writes over"
        )
    by_xla = implementation == "xla"
    if implementation is None and not in_place and lengths.shape[-1] == 1:
        # XLA's gather does not know how to split its result where partitions are types.
        by_xla = is_compiling() and not any(
            part for array in (x, lengths) for part in jax.typeof(array).sharding.spec
        )
    return reverse(*as_varying(x, lengths), front, bool(in_place), by_xla)


def reverse_padded_sequence(
    x: Any,
    lengths: Any,
    *,
    batch_axis: SupportsIndex = 0,
    time_axis: SupportsIndex = 1,
    in_place: bool = False,
    implementation: Implementation = None,
) -> Any:
    """Reverses every sequence of a padded batch. The padding stays where it is.

    x: an array of JAX or NumPy with a batch and a time axis. lengths: integers, one for each sequence.
    in_place, implementation: as in :func:`reverse_subsequences`.

    >>> import dml_cuda.jax, jax
    >>> dml_cuda.jax.reverse_padded_sequence(jax.numpy.array([[1, 2, 0], [3, 4, 5]]), jax.numpy.array([2, 3]))
    Array([[2, 1, 0],
           [5, 4, 3]], dtype=int32)
    """
    x, _ = as_array(x, "x")
    if x.ndim < 2:
        raise ValueError(
            f"x has shape {x.shape}, but must have at least 2 dimensions: time and batch"
        )
    batch = axis_from_front(batch_axis, x.shape, "batch_axis")
    time = axis_from_front(time_axis, x.shape, "time_axis")
    if batch == time:
        raise ValueError(
            f"batch_axis and time_axis are {batch_axis} and {time_axis}, but must be two axes of x"
        )
    lengths = as_lengths(lengths)
    check_batch(
        lengths.shape,
        (x.shape[batch],),
        x.shape[time],
        f"batch_axis={time}, time_axis={batch}",
    )
    shape = tuple(size if d == batch else 1 for d, size in enumerate(x.shape))
    return reverse_subsequences(
        x,
        lengths.reshape(shape),
        time,
        in_place=in_place,
        implementation=implementation,
    )


def fill_value_sequence(shape: Shape, start: Number, delta: Number, dtype: Any) -> Any:
    """An array whose element i, in row-major order, is ``start + i * delta``. Integers wrap. Floats are one
    fused multiply-add, rounded once (docs/directml.md).

    start, delta: numbers of Python or NumPy, which become a part of the compiled program. Integers may be traced, if
    dtype is one of integers.
    dtype: float32, float16, or integers of 8 to 64 bits. 64 bits need JAX's 64-bit mode.

    >>> import dml_cuda.jax
    >>> dml_cuda.jax.fill_value_sequence((2, 3), 10, -2, "uint8")
    Array([[10,  8,  6],
           [ 4,  2,  0]], dtype=uint8)
    """
    kind, data_type = fill_type(dtype)
    if kind.itemsize == 8 and not jax.config.jax_enable_x64:
        raise TypeError(
            f"dtype is {kind}, but must have at most 32 bits, or jax_enable_x64 must be on"
        )
    sizes = fill_shape(shape, kind)

    def number(value: Any, name: str) -> Any:
        if not isinstance(value, jax.core.Tracer):
            return np.uint64(scalar_bits(value, data_type, name))
        if (
            kind.kind == "f"
            or value.shape != ()
            or not jax.numpy.issubdtype(value.dtype, np.integer)
        ):
            raise TypeError(
                f"{name} is traced by JAX as {value.aval}, but must be a number of Python or NumPy, or an integer for a dtype of integers"
            )
        return value

    first, step = number(start, "start"), number(delta, "delta")
    if kind.kind != "f" and (
        is_compiling() or not type(first) is type(step) is np.uint64
    ):
        index = (
            jax.lax.iota(np.uint32, math.prod(sizes)).reshape(sizes).astype(kind)
        )  # XLA's integers wrap
        return index * step.astype(kind) + first.astype(kind)
    bits = {"start": first.astype(np.int64), "delta": step.astype(np.int64)}
    return jax.ffi.ffi_call(
        "dml_cuda_fill_value_sequence", jax.ShapeDtypeStruct(sizes, kind)
    )(**bits)
