"""The two operators on arrays."""

from __future__ import annotations

import math
import operator as _operator
import re
from collections.abc import Sequence
from typing import Any, Literal, Protocol, SupportsFloat, SupportsIndex, TypeVar, overload

import numpy as np
import numpy.typing as npt

from . import _library as lib
from ._arrays import View, empty_like, is_jax, is_torch, no_stream, refuse_mask, stream_of, view
from ._scalars import integer, integers, scalar_bits, shown


class _HasDlpack(Protocol):
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...


class _HasCudaArrayInterface(Protocol):
    @property
    def __cuda_array_interface__(self) -> Any: ...


_Element = TypeVar("_Element", bound=np.generic)
_Array = TypeVar("_Array", bound=_HasDlpack | _HasCudaArrayInterface)
_Out = TypeVar("_Out", bound=_HasDlpack | _HasCudaArrayInterface)


def onnxruntime_library_path() -> str:
    """The path of the library that ONNX Runtime loads: ``options.register_custom_ops_library(dml_cuda.onnxruntime_library_path())``.

    >>> import dml_cuda, os
    >>> os.path.exists(dml_cuda.onnxruntime_library_path())
    True
    """
    return str(lib.PATH)


def cuda_device_count() -> int:
    """The number of GPUs. 0 without a driver."""
    import ctypes

    count, error = ctypes.c_uint32(), ctypes.c_void_p()
    if lib.library.dml_cuda_cuda_device_count(ctypes.byref(count), ctypes.byref(error)):
        lib.library.dml_cuda_destroy_error(error)
        return 0
    return count.value


@overload
def reverse_subsequences(
    x: npt.NDArray[_Element], lengths: Any, axis: SupportsIndex, *, out: None = None, stream: Any = None
) -> npt.NDArray[_Element]: ...
@overload
def reverse_subsequences(
    x: _Array, lengths: Any, axis: SupportsIndex, *, out: None = None, stream: Any = None
) -> _Array: ...
@overload
def reverse_subsequences(
    x: _HasDlpack | _HasCudaArrayInterface, lengths: Any, axis: SupportsIndex, *, out: _Out, stream: Any = None
) -> _Out: ...
def reverse_subsequences(x: Any, lengths: Any, axis: SupportsIndex, *, out: Any = None, stream: Any = None) -> Any:
    """Reverses the first ``length`` elements of every lane of x along an axis, and copies the other elements.

    x: an array with 1 dimension or more, any strides, and any dtype whose elements are plain bytes. It is NumPy's, or has
    ``__cuda_array_interface__`` (CuPy) or ``__dlpack__``. PyTorch tensors are passed on to :mod:`dml_cuda.torch`, arrays of JAX to
    :mod:`dml_cuda.jax`. Masked arrays are a TypeError.
    lengths: integers that NumPy broadcasts to x's shape with 1 at the axis, in the same memory as x. If x is on the host, Python numbers
    and NumPy arrays. A length above the axis size acts as the axis size.
    axis: a negative axis counts from the end.
    out: the array to write to, like x. Pass x to reverse in place. None allocates a new array of x's kind.
    stream: a GPU stream: an integer, or a stream of CuPy or PyTorch. None is CuPy's current stream for CuPy arrays, and the legacy default
    stream for others. Must be None or 0 if x is on the host.

    Raises TypeError or ValueError. The message names the argument, its value, and what is required.

    >>> import dml_cuda, numpy
    >>> dml_cuda.reverse_subsequences(numpy.array([[1, 2, 3, 4], [5, 6, 7, 8]]), [[3], [2]], axis=1)
    array([[3, 2, 1, 4],
           [6, 5, 7, 8]])
    """
    if is_torch(x):
        if stream is not None:
            raise TypeError("stream is given, must be None for PyTorch tensors, which use PyTorch's current stream")
        from . import torch

        return torch._out(x, lengths, integer(axis, "axis"), out)
    if is_jax(x):
        for value, name in ((out, "out"), (stream, "stream")):
            if value is not None:
                raise TypeError(f"{name} is given, must be None for arrays of JAX, which never change and have XLA's streams")
        from . import jax

        return jax.reverse_subsequences(x, lengths, axis)
    given = view(x, "x")
    rank = len(given.shape)
    if rank == 0:
        raise ValueError("x has 0 dimensions, must have at least 1")
    axis = _axis(axis, rank)
    if given.ordinal is None and any(stride < 0 for stride in given.strides):
        if out is x:
            raise ValueError(f"out has strides {given.strides}, must have none below 0")
        x = np.array(x, order="C", subok=True)
        given = view(x, "x")
    if out is None:
        out = empty_like(x, "x")
        output = view(out, "out")._replace(read_only=False)
    else:
        output = given if out is x else view(out, "out")
        if output.read_only:
            raise ValueError("out is read-only, must be writable")
    if output.shape != given.shape:
        raise ValueError(f"out has shape {output.shape}, must have x's, {given.shape}")
    if output.dtype != given.dtype:
        raise TypeError(f"out has dtype {output.dtype}, must have x's, {given.dtype}")
    if output.ordinal != given.ordinal:
        raise ValueError(f"out is on {_device_name(output.ordinal)}, must be on {_device_name(given.ordinal)}, as x is")
    if output is not given and min(output.strides) < 0:
        raise ValueError(f"out has strides {output.strides}, must have none below 0")
    kept = _lengths(lengths, given, axis)
    if stream is not None and given.ordinal is None:
        no_stream(stream, "x")
    if 0 in given.shape or given.dtype.itemsize == 0:
        return out
    handle = stream_of(x, stream) if given.ordinal is not None else 0
    try:
        _reverse(given, kept[0], output, axis, handle)
    except ValueError as error:
        layout = f"out has shape {output.shape} and strides of {output.strides} bytes"
        raise lib.in_arguments(error, _ARGUMENTS, layout) from None
    return out


_ARGUMENTS = {"InputTensor": "x", "SequenceLengthsTensor": "lengths", "OutputTensor": "out"}


def _axis(axis: SupportsIndex, rank: int, name: str = "axis") -> int:
    try:
        found = _operator.index(axis)
    except TypeError:
        found_type = "None" if axis is None else f"a {type(axis).__qualname__}"
        raise TypeError(f"{name} is {found_type}, must be an integer") from None
    if not -rank <= found < rank:
        raise ValueError(f"{name} is {found}, must be from {-rank} to {rank - 1}, of an x of {rank} dimensions")
    return found % rank


def _device_name(ordinal: int | None) -> str:
    return "the host" if ordinal is None else f"GPU {ordinal}"


def _lengths(lengths: Any, x: View, axis: int) -> tuple[View, Any]:
    """The lengths as unsigned integers of 4 or 8 bytes, broadcast to x's shape with 1 at the axis, and the object that owns them."""
    target = x.shape[:axis] + (1,) + x.shape[axis + 1 :]
    if x.ordinal is None:
        array = host_lengths(lengths)
        found, holder = view(array, "lengths"), array
    else:
        found, holder = view(lengths, "lengths"), lengths
        if found.ordinal != x.ordinal:
            required = f"{_device_name(x.ordinal)}, as x is"
            raise ValueError(f"lengths is on {_device_name(found.ordinal)}, must be on {required}")
        if found.dtype.kind not in "iu":
            raise TypeError(f"lengths has dtype {found.dtype}, must have one of integers")
        if found.dtype.itemsize < 4:
            if not hasattr(lengths, "astype"):
                raise TypeError(f"lengths has dtype {found.dtype}, must have one of integers of 32 or 64 bits")
            holder = lengths.astype("uint32")
            found = view(holder, "lengths")
    missing = len(target) - len(found.shape)
    if missing < 0 or any(size not in (1, to) for size, to in zip(found.shape, target[missing:])):
        raise ValueError(f"lengths has shape {found.shape}, must broadcast to {target}, x's with 1 at the axis")
    strides = (0,) * missing + tuple(0 if size == 1 else stride for size, stride in zip(found.shape, found.strides))
    return found._replace(shape=target, strides=strides), holder


def host_lengths(lengths: Any, where: str = " on the host, as x is") -> npt.NDArray[Any]:
    """Lengths on the host as unsigned integers of 4 or 8 bytes. `where` says in an error where they must be."""
    if type(lengths) is not np.ndarray:
        _check_kind(lengths)
    try:
        array = np.asarray(lengths)
    except Exception:
        raise TypeError(f"lengths is a {type(lengths).__qualname__}, must be integers{where}") from None
    if lengths is None:
        raise TypeError("lengths is None, must be integers")
    if array.dtype == object and all(type(item) is int for item in array.flat):
        array = np.asarray(np.clip(array, -(2**63), 2**63 - 1), dtype=np.int64)
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"lengths has dtype {array.dtype}, must have one of integers")
    if array.dtype.kind == "i" and array.size and array.min() < 0:
        at = tuple(int(k) for k in np.argwhere(array < 0)[0])
        place = f"lengths[{', '.join(map(str, at))}]" if at else "lengths"
        raise ValueError(f"{place} is {array[at]}, must be at least 0")
    array = np.asarray(array, dtype=np.uint64 if array.dtype.itemsize == 8 else np.uint32, order="C")
    if not array.flags.aligned:
        array = array.copy()
    return array


def _check_kind(lengths: Any) -> None:
    """Refuses lengths that NumPy would accept silently, or would refuse with an unclear error."""
    if type(lengths) is int:
        return
    if isinstance(lengths, np.ndarray):
        refuse_mask(lengths, "lengths")
    elif isinstance(lengths, (list, tuple)):
        for item in lengths:
            _check_kind(item)


def _reverse(x: View, lengths: View, output: View, axis: int, stream: int) -> None:
    width = x.dtype.itemsize
    compiled = lib.reversal(
        x.ordinal,
        lib.Array(x.address, x.shape, x.strides, width),
        lib.Array(lengths.address, lengths.shape, lengths.strides, lengths.dtype.itemsize),
        lib.Array(output.address, output.shape, output.strides, width),
        axis,
    )
    compiled.dispatch(lib.Addresses(x.address, lengths.address), 2, output.address, stream)


_FILL_TYPES = {np.dtype(name.lower()): name for name in lib.DATA_TYPES if name not in ("FLOAT64", "UINT4", "INT4")}


_Shape = SupportsIndex | Sequence[SupportsIndex]
_Number = SupportsFloat | SupportsIndex


@overload
def fill_value_sequence(
    shape: _Shape,
    start: _Number,
    delta: _Number,
    dtype: type[_Element] | np.dtype[_Element],
    *,
    strides: Sequence[SupportsIndex] | None = None,
    out: None = None,
    device: Literal["cpu"] | None = None,
    stream: Any = None,
) -> npt.NDArray[_Element]: ...
@overload
def fill_value_sequence(
    shape: _Shape,
    start: _Number,
    delta: _Number,
    dtype: npt.DTypeLike,
    *,
    strides: Sequence[SupportsIndex] | None = None,
    out: None = None,
    device: Literal["cpu"] | None = None,
    stream: Any = None,
) -> npt.NDArray[Any]: ...
@overload
def fill_value_sequence(  # CuPy, which has no type annotations
    shape: _Shape,
    start: _Number,
    delta: _Number,
    dtype: npt.DTypeLike,
    *,
    strides: Sequence[SupportsIndex] | None = None,
    out: None = None,
    device: str,
    stream: Any = None,
) -> Any: ...
@overload
def fill_value_sequence(
    shape: _Shape,
    start: _Number,
    delta: _Number,
    dtype: npt.DTypeLike,
    *,
    strides: None = None,
    out: _Out,
    device: None = None,
    stream: Any = None,
) -> _Out: ...
def fill_value_sequence(
    shape: _Shape,
    start: _Number,
    delta: _Number,
    dtype: npt.DTypeLike,
    *,
    strides: Sequence[SupportsIndex] | None = None,
    out: Any = None,
    device: str | None = None,
    stream: Any = None,
) -> Any:
    """Sets element i, in row-major order, to ``start + i * delta``. Integers wrap. Floats are rounded as DirectML's page says.

    shape: an integer or a sequence of integers, at most 8 unless a size is 0.
    start, delta: numbers of the dtype. Unsigned dtypes accept negative numbers.
    dtype: float32, float16, or integers of 8 to 64 bits, in the machine's byte order.
    strides: the strides of the result, in elements. Gaps between elements are zeros.
    out: the array to write to, with this shape and dtype. Gaps between its elements do not change.
    device: ``cpu`` for a NumPy array, ``cuda`` or ``cuda:1`` for a CuPy array. Without CuPy, pass out.
    stream: as in :func:`reverse_subsequences`. Must be None or 0 on the host.

    >>> import dml_cuda
    >>> dml_cuda.fill_value_sequence((2, 3), 10, -2, "uint8")
    array([[10,  8,  6],
           [ 4,  2,  0]], dtype=uint8)
    """
    if out is not None and is_torch(out):
        raise TypeError("out is a PyTorch tensor, must be none: use dml_cuda.torch.fill_value_sequence")
    kind, data_type = _fill_type(dtype)
    sizes = _shape(shape)
    bits = [scalar_bits(value, data_type, name) for value, name in ((start, "start"), (delta, "delta"))]
    steps = None if strides is None else integers(strides, "strides")
    if steps is not None and (len(steps) != len(sizes) or any(step < 0 for step in steps)):
        raise ValueError(f"strides is {steps}, must be {len(sizes)} numbers of at least 0")
    if steps is not None and any(step >= 1 << 32 for step in steps):
        raise ValueError(f"strides is {steps}, must be numbers from 0 to 2**32 - 1")
    given = out is not None
    if out is None:
        out = _allocate(sizes, steps, kind, device)
    elif strides is not None or device is not None:
        raise TypeError("out is given with strides or device, must be without: it has both")
    output = view(out, "out")
    if output.read_only:
        raise ValueError("out is read-only, must be writable")
    if output.shape != sizes:
        raise ValueError(f"out has shape {output.shape}, must have {sizes}")
    if output.dtype != kind:
        raise TypeError(f"out has dtype {output.dtype}, must have {kind}")
    if stream is not None and output.ordinal is None:
        no_stream(stream, "out" if given else "the result")
    if 0 in sizes:
        return out
    width = kind.itemsize
    if output.address % width:
        raise ValueError(f"out is at address {output.address:#x}, must be at a multiple of {width}, the bytes of {kind}")
    handle = stream_of(out, stream) if output.ordinal is not None else 0
    try:
        aligned = output.address % 16 == 0
        compiled = lib.sequence(
            output.ordinal, sizes, output.strides, width, aligned, lib.DATA_TYPES[data_type], *bits
        )
        compiled.dispatch(None, 0, output.address, handle)
    except ValueError as error:
        found = f"out has shape {sizes} and strides of {output.strides} bytes" if given else f"strides is {steps}, of shape {sizes}"
        raise lib.in_arguments(error, {"OutputTensor": "out" if given else "the result"}, found) from None
    return out


def _fill_type(dtype: Any) -> tuple[np.dtype, str]:
    """NumPy's dtype, and DirectML's name for it."""
    try:
        kind = np.dtype(dtype) if dtype is not None else None
    except TypeError:
        kind = None
    data_type = None if kind is None else _FILL_TYPES.get(kind)
    if kind is None or data_type is None:
        found = shown(dtype) if kind is None else kind
        raise TypeError(
            f"dtype is {found}, must be float32, float16, or integers of 8 to 64 bits, in the machine's byte order"
        )
    return kind, data_type


def _shape(shape: Any) -> tuple[int, ...]:
    """A shape as NumPy accepts it: an integer or a sequence of integers."""
    if type(shape) is tuple:
        sizes = integers(shape, "shape")
    else:
        try:
            sizes = (integer(shape, "shape"),)
        except TypeError:
            sizes = integers(shape, "shape", "an integer or a sequence of integers")
    if min(sizes, default=0) < 0:
        raise ValueError(f"shape is {sizes}, must have sizes of at least 0")
    if 0 not in sizes:
        if len(sizes) > 8:
            raise ValueError(f"shape is {sizes}, must have at most 8 dimensions (tensor.dimension_count)")
        if math.prod(sizes) >= 1 << 32:
            raise ValueError(f"shape is {sizes}, must have at most 2**32 - 1 elements (tensor.element_count)")
    return sizes


def _allocate(sizes: tuple[int, ...], strides: tuple[int, ...] | None, kind: np.dtype, device: str | None) -> Any:
    required = "must be 'cpu', 'cuda', or such as 'cuda:1'"
    if device is not None and not isinstance(device, str):
        raise TypeError(f"device is {shown(device)}, {required}")
    if device is None or device == "cpu":
        return _strided(np, sizes, strides, kind)
    if re.fullmatch("cuda(:[0-9]+)?", device):
        ordinal = device[len("cuda:") :]
        try:
            import cupy
        except ImportError:
            raise RuntimeError(f"device is {device!r}, for which CuPy must be installed: or pass out") from None
        with cupy.cuda.Device(int(ordinal or 0)):
            return _strided(cupy, sizes, strides, kind)
    raise ValueError(f"device is {device!r}, {required}")


def _strided(xp: Any, sizes: tuple[int, ...], strides: tuple[int, ...] | None, kind: np.dtype) -> Any:
    if strides is None:
        return xp.empty(sizes, kind)
    elements = 1 + sum((size - 1) * step for size, step in zip(sizes, strides)) if 0 not in sizes else 0
    steps = tuple(step * kind.itemsize for step in strides)
    return xp.lib.stride_tricks.as_strided(xp.zeros(elements, kind), sizes, steps)
