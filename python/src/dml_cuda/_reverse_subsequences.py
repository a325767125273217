"""REVERSE_SUBSEQUENCES on arrays."""

from typing import Any, SupportsIndex, TypeVar, overload

import numpy as np
import numpy.typing as npt

from . import _library as lib
from ._arguments import axis_of_lanes, check_batch, host_lengths, integer
from ._arguments import refuse_ambiguous, wrong_lengths
from ._arrays import empty_like, library_of, stream_of, view
from ._operands import HasArray, check_out, check_stream, device_name
from ._operands import encoded_options, checked_without_elements

_Element = TypeVar("_Element", bound=np.generic)
_Array = TypeVar("_Array", bound=HasArray)
_Out = TypeVar("_Out", bound=HasArray)

_FOREIGN = {
    "torch": "PyTorch tensors, which use PyTorch's current stream and DML_CUDA_COMPILE_OPTIONS",
    "jax": "arrays of JAX, which never change, and use XLA's streams and DML_CUDA_COMPILE_OPTIONS",
}


@overload
def reverse_subsequences(
    x: npt.NDArray[_Element],
    lengths: Any,
    axis: SupportsIndex,
    *,
    out: None = None,
    stream: Any = None,
    compile_options: str | None = None,
) -> npt.NDArray[_Element]: ...
@overload
def reverse_subsequences(
    x: _Array,
    lengths: Any,
    axis: SupportsIndex,
    *,
    out: None = None,
    stream: Any = None,
    compile_options: str | None = None,
) -> _Array: ...
@overload
def reverse_subsequences(
    x: HasArray,
    lengths: Any,
    axis: SupportsIndex,
    *,
    out: _Out,
    stream: Any = None,
    compile_options: str | None = None,
) -> _Out: ...
def reverse_subsequences(
    x: Any,
    lengths: Any,
    axis: SupportsIndex,
    *,
    out: Any = None,
    stream: Any = None,
    compile_options: str | None = None,
) -> Any:
    """Reverses the first ``length`` elements of every sequence of x along an axis, and copies the other elements.

    x: an array with 1 dimension or more, any strides, and any dtype whose elements are plain bytes. It is NumPy's, or
    has ``__cuda_array_interface__`` (CuPy) or ``__dlpack__``. PyTorch tensors are passed on to :mod:`dml_cuda.torch`,
    arrays of JAX to :mod:`dml_cuda.jax`. Masked arrays are a TypeError.
    lengths: integers that NumPy broadcasts to x's shape with 1 at the axis, in the same memory as x. If x is on the
    host, Python numbers and NumPy arrays. A length above the axis size acts as the axis size. One dimension of lengths
    is an error if it fits more than one dimension of x: see :func:`reverse_padded_sequence`.
    axis: a negative axis counts from the end.
    out: the array to write to, like x, with strides of at least 0: never ``x[::-1]``. Pass x to reverse in place. Other
    arrays share no element with x or the lengths. None allocates a new array of x's kind.
    stream: a GPU stream: an integer, or a stream of CuPy or PyTorch. None is CuPy's current stream for CuPy arrays, and
    the legacy default stream for others. Must be None or 0 if x is on the host. It waits for the streams that the
    arrays name in ``__cuda_array_interface__`` or know in ``__dlpack__``.
    compile_options: how the operator is compiled, such as ``specialize=always`` (docs/compile-options.md). They come on
    top of those of ``DML_CUDA_COMPILE_OPTIONS`` in the environment.

    Raises TypeError or ValueError. The message names the argument, its value, and what is required.

    >>> import dml_cuda, numpy
    >>> dml_cuda.reverse_subsequences(numpy.array([[1, 2, 3, 4], [5, 6, 7, 8]]), [[3], [2]], axis=1)
    array([[3, 2, 1, 4],
           [6, 5, 7, 8]])
    """
    if library_of(x) in _FOREIGN:
        return _reverse_foreign(x, lengths, axis, out, stream, compile_options)
    options = encoded_options(compile_options)
    handle = stream_of(x, stream)
    given = view(x, "x", handle)
    check_stream(handle, given, "x")
    if isinstance(x, np.ndarray) and any(stride < 0 for stride in given.strides or ()):
        # If x is also out, the check of out refuses its negative strides.
        x = np.array(x, order="C", subok=True)
        given = view(x, "x")
    if out is None:
        out = empty_like(x, "x")
        output = view(out, "out", handle)
    else:
        output = given if out is x else view(out, "out", handle)
        check_out(output, given.shape, given.dtype, "x's, ")
        if output.ordinal != given.ordinal:
            raise ValueError(
                f"out is on {device_name(output.ordinal)}, but must be on {device_name(given.ordinal)}, as x is"
            )
    of_lanes = _lengths(lengths, given.ordinal, handle)
    axis = axis_of_lanes(axis, given.shape, of_lanes.shape)
    refuse_ambiguous(of_lanes.shape, given.shape, axis)
    if 0 in given.shape or given.dtype.itemsize == 0:
        return checked_without_elements(out, options)
    try:
        lib.reverse(given, of_lanes, output, axis, handle, options)
    except ValueError as error:
        is_numpy = isinstance(x, np.ndarray) and isinstance(out, np.ndarray)
        if isinstance(error, lib.ValidationError) or not is_numpy or x.ndim <= 8:
            raise
        # These dimensions do not fold into those of a descriptor. Packed ones do.
        out[...] = _reversed_copy(x, of_lanes, axis, options)
    return out


def _reverse_foreign(
    x: Any, lengths: Any, axis: Any, out: Any, stream: Any, compile_options: Any
) -> Any:
    """Hands an array to the module for its library, which takes fewer arguments."""
    library = library_of(x)
    unknown = {"stream": stream, "compile_options": compile_options}
    if library == "jax":
        unknown["out"] = out
    for name, value in unknown.items():
        if value is not None:
            raise TypeError(
                f"{name} is given, but must be None for {_FOREIGN[library]}"
            )
    if library == "torch":
        from . import torch

        return torch._out(x, lengths, integer(axis, "axis"), out)
    from . import jax

    return jax.reverse_subsequences(x, lengths, axis)


def _reversed_copy(
    x: npt.NDArray[Any], of_lanes: lib.Array, axis: int, options: bytes | None
) -> npt.NDArray[Any]:
    """A packed copy of x, reversed by packed lengths."""
    copy = np.array(x, order="C")
    shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    lengths = np.broadcast_to(of_lanes.keeps, shape).copy()
    packed = view(copy, "x")
    lib.reverse(packed, view(lengths, "lengths"), packed, axis, 0, options)
    return copy


@overload
def reverse_padded_sequence(
    x: _Array,
    lengths: Any,
    batch_first: bool = False,
    *,
    out: None = None,
    stream: Any = None,
    compile_options: str | None = None,
) -> _Array: ...
@overload
def reverse_padded_sequence(
    x: HasArray,
    lengths: Any,
    batch_first: bool = False,
    *,
    out: _Out,
    stream: Any = None,
    compile_options: str | None = None,
) -> _Out: ...
def reverse_padded_sequence(
    x: Any,
    lengths: Any,
    batch_first: bool = False,
    *,
    out: Any = None,
    stream: Any = None,
    compile_options: str | None = None,
) -> Any:
    """Reverses every sequence of a padded batch. The padding stays where it is.

    x: [T, B, ...], or [B, T, ...] with batch_first. lengths: [B]. All else is as in :func:`reverse_subsequences`.

    >>> import dml_cuda, numpy
    >>> dml_cuda.reverse_padded_sequence(numpy.array([[1, 2, 0], [3, 4, 5]]), [2, 3], batch_first=True)
    array([[2, 1, 0],
           [5, 4, 3]])
    """
    shape = x.shape if hasattr(x, "shape") else view(x, "x", stream_of(x, stream)).shape
    rank, batch = len(shape), 0 if batch_first else 1
    if rank < 2:
        raise ValueError(
            f"x has shape {shape}, but must have at least 2 dimensions: time and batch"
        )
    # On the host an error has the index in these lengths.
    if isinstance(x, np.ndarray) or not hasattr(lengths, "reshape"):
        lengths = host_lengths(lengths)
    option = "batch_first=False" if batch_first else "batch_first=True"
    check_batch(tuple(lengths.shape), (shape[batch],), shape[1 - batch], option)
    of_lanes = lengths.reshape([shape[d] if d == batch else 1 for d in range(rank)])
    return reverse_subsequences(
        x, of_lanes, 1 - batch, out=out, stream=stream, compile_options=compile_options
    )


def _lengths(lengths: Any, ordinal: int | None, stream: int) -> lib.Array:
    """The lengths as unsigned integers of 4 or 8 bytes, in the memory that x is in."""
    if ordinal is None:
        return view(host_lengths(lengths), "lengths")
    found = view(lengths, "lengths", stream)
    if found.ordinal != ordinal:
        raise ValueError(
            f"lengths is on {device_name(found.ordinal)}, but must be on {device_name(ordinal)}, as x is"
        )
    if found.dtype.kind not in "iu":
        raise wrong_lengths(found.dtype)
    if found.dtype.itemsize >= 4:
        return found
    if not hasattr(lengths, "astype"):
        raise TypeError(
            f"lengths has dtype {found.dtype}, but must have an integer dtype of 32 or 64 bits"
        )
    return view(lengths.astype("uint32"), "lengths", stream)
