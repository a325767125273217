"""The two operators on arrays."""

import ctypes
import re
from typing import Any, Literal, NamedTuple, Protocol, SupportsIndex, TypeVar, overload

import numpy as np
import numpy.typing as npt

from . import _library as lib
from ._arguments import (
    Number,
    Shape,
    axis_of_lanes,
    check_batch,
    fill_shape,
    fill_type,
    host_lengths,
    integer,
)
from ._arguments import refuse_ambiguous, scalar_bits, shown, wrong_lengths
from ._arrays import empty_like, library_of, stream_of, view


class _HasDlpack(Protocol):
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...


class _HasCudaArrayInterface(Protocol):
    @property
    def __cuda_array_interface__(self) -> Any: ...


_Element = TypeVar("_Element", bound=np.generic)
_Array = TypeVar("_Array", bound=_HasDlpack | _HasCudaArrayInterface)
_Out = TypeVar("_Out", bound=_HasDlpack | _HasCudaArrayInterface)


def onnxruntime_library_path() -> str:
    """The path of the library that ONNX Runtime loads:
    ``options.register_custom_ops_library(dml_cuda.onnxruntime_library_path())``.

    >>> import dml_cuda, os
    >>> os.path.exists(dml_cuda.onnxruntime_library_path())
    True
    """
    return str(lib.PATH)


class OnnxRuntimeCounters(NamedTuple):
    """Counts of this library's work in ONNX Runtime's sessions of this process, including closed ones."""

    nodes: int
    """Nodes that sessions loaded with this library, including those that never ran."""
    runs: int
    """Runs of such nodes."""
    in_place_runs: int
    """Runs whose output was their input."""


def onnxruntime_counters() -> OnnxRuntimeCounters:
    """Counts what this library did in ONNX Runtime, so that a program can check that it is in use.

    >>> import dml_cuda
    >>> nodes, runs, in_place_runs = dml_cuda.onnxruntime_counters()
    """
    counts = (ctypes.c_uint64 * 3)()
    lib.check(lib.library.dml_cuda_onnxruntime_counters, counts)
    return OnnxRuntimeCounters(*counts)


def cuda_device_count() -> int:
    """The number of GPUs. 0 without a driver, or if it fails: ``python -m dml_cuda`` says why."""
    count = ctypes.c_uint32()
    lib.library.dml_cuda_cuda_device_count(
        ctypes.byref(count), None
    )  # a call that fails writes nothing
    return count.value


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
    x: _HasDlpack | _HasCudaArrayInterface,
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
    """Reverses the first ``length`` elements of every lane of x along an axis, and copies the other elements.

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
    library = library_of(x)
    if library in _FOREIGN:
        given_out = out if library == "jax" else None
        for value, name in (
            (stream, "stream"),
            (compile_options, "compile_options"),
            (given_out, "out"),
        ):
            if value is not None:
                raise TypeError(
                    f"{name} is given, but must be None for {_FOREIGN[library]}"
                )
        if library == "torch":
            from . import torch

            return torch._out(x, lengths, integer(axis, "axis"), out)
        from . import jax

        return jax.reverse_subsequences(x, lengths, axis)
    options = _options(compile_options)
    handle = stream_of(x, stream)
    given = view(x, "x", handle)
    _check_stream(handle, given, "x")
    if isinstance(x, np.ndarray) and any(stride < 0 for stride in given.strides or ()):
        x = np.array(
            x, order="C", subok=True
        )  # if x is also out, out has the negative strides
        given = view(x, "x")
    if out is None:
        out = empty_like(x, "x")
        output = view(out, "out", handle)
    else:
        output = given if out is x else view(out, "out", handle)
        _check_out(output, given.shape, given.dtype, "x's, ")
        if output.ordinal != given.ordinal:
            raise ValueError(
                f"out is on {_device_name(output.ordinal)}, but must be on {_device_name(given.ordinal)}, as x is"
            )
    of_lanes = _lengths(lengths, given.ordinal, handle)
    axis = axis_of_lanes(axis, given.shape, of_lanes.shape)
    refuse_ambiguous(of_lanes.shape, given.shape, axis)
    if 0 in given.shape or given.dtype.itemsize == 0:
        return _unchanged(out, options)
    try:
        lib.reverse(given, of_lanes, output, axis, handle, options)
    except ValueError as error:
        is_numpy = isinstance(x, np.ndarray) and isinstance(out, np.ndarray)
        if isinstance(error, lib.ValidationError) or not is_numpy or x.ndim <= 8:
            raise
        # These dimensions do not fold into those of a descriptor. Packed ones do.
        copy, lanes = np.array(x, order="C"), (*x.shape[:axis], 1, *x.shape[axis + 1 :])
        packed, of_lanes = (
            view(copy, "x"),
            view(np.broadcast_to(of_lanes.keeps, lanes).copy(), "lengths"),
        )
        lib.reverse(packed, of_lanes, packed, axis, handle, options)
        out[...] = copy
    return out


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
    x: _HasDlpack | _HasCudaArrayInterface,
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


_FOREIGN = {
    "torch": "PyTorch tensors, which use PyTorch's current stream and DML_CUDA_COMPILE_OPTIONS",
    "jax": "arrays of JAX, which never change, and use XLA's streams and DML_CUDA_COMPILE_OPTIONS",
}


def _check_out(
    out: lib.Array, shape: tuple[int, ...], dtype: np.dtype, whose: str
) -> None:
    if out.read_only:
        raise ValueError("out is read-only, but must be writable")
    if out.shape != shape:
        raise ValueError(f"out has shape {out.shape}, but must have {whose}{shape}")
    if out.dtype != dtype:
        raise TypeError(f"out has dtype {out.dtype}, but must have {whose}{dtype}")


def _options(compile_options: str | None) -> bytes | None:
    if compile_options is not None and not isinstance(compile_options, str):
        raise TypeError(
            f"compile_options is {shown(compile_options)}, but must be a string"
        )
    if compile_options is not None and "\0" in compile_options:
        raise ValueError(
            f"compile_options is {shown(compile_options)}, but must have no NUL, where a string in C ends"
        )
    return None if compile_options is None else compile_options.encode()


def _unchanged(out: Any, options: bytes | None) -> Any:
    """An array without bytes. The library reads the options for any array."""
    lib.fill(
        view(np.empty(0, np.uint8), "out"), "UINT8", (0, 0), lib.RESULT, 0, options
    )
    return out


def _device_name(ordinal: int | None) -> str:
    return "the host" if ordinal is None else f"GPU {ordinal}"


def _check_stream(stream: int, used_by: lib.Array, name: str) -> None:
    if stream and used_by.ordinal is None:
        raise ValueError(
            f"stream is {stream}, but must be None or 0, as {name} is on the host"
        )


def _lengths(lengths: Any, ordinal: int | None, stream: int) -> lib.Array:
    """The lengths as unsigned integers of 4 or 8 bytes, in the memory that x is in."""
    if ordinal is None:
        return view(host_lengths(lengths), "lengths")
    found = view(lengths, "lengths", stream)
    if found.ordinal != ordinal:
        raise ValueError(
            f"lengths is on {_device_name(found.ordinal)}, but must be on {_device_name(ordinal)}, as x is"
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


@overload
def fill_value_sequence(
    shape: Shape,
    start: Number,
    delta: Number,
    dtype: type[_Element] | np.dtype[_Element],
    *,
    out: None = None,
    device: Literal["cpu"] | None = None,
    stream: Any = None,
    compile_options: str | None = None,
) -> npt.NDArray[_Element]: ...
@overload
def fill_value_sequence(
    shape: Shape,
    start: Number,
    delta: Number,
    dtype: npt.DTypeLike,
    *,
    out: None = None,
    device: Literal["cpu"] | None = None,
    stream: Any = None,
    compile_options: str | None = None,
) -> npt.NDArray[Any]: ...
@overload
def fill_value_sequence(  # CuPy, which has no type annotations
    shape: Shape,
    start: Number,
    delta: Number,
    dtype: npt.DTypeLike,
    *,
    device: str,
    stream: Any = None,
    compile_options: str | None = None,
) -> Any: ...
@overload
def fill_value_sequence(
    shape: Shape,
    start: Number,
    delta: Number,
    dtype: npt.DTypeLike,
    *,
    out: _Out,
    stream: Any = None,
    compile_options: str | None = None,
) -> _Out: ...
def fill_value_sequence(
    shape: Any,
    start: Any,
    delta: Any,
    dtype: Any,
    *,
    out: Any = None,
    device: Any = None,
    stream: Any = None,
    compile_options: str | None = None,
) -> Any:
    """Sets element i, in row-major order, to ``start + i * delta``. Integers wrap. Floats are rounded as DirectML's
    page says.

    shape: an integer or a sequence of integers, at most 8 unless a size is 0.
    start, delta: numbers of the dtype. Unsigned dtypes accept negative numbers.
    dtype: float32, float16, or integers of 8 to 64 bits, in the machine's byte order.
    out: the array to write to, with this shape and dtype. Gaps between its elements do not change.
    device: ``cpu`` for a NumPy array, ``cuda`` or ``cuda:1`` for a CuPy array. Without CuPy, pass out.
    stream, compile_options: as in :func:`reverse_subsequences`. A stream must be None or 0 on the host.

    >>> import dml_cuda
    >>> dml_cuda.fill_value_sequence((2, 3), 10, -2, "uint8")
    array([[10,  8,  6],
           [ 4,  2,  0]], dtype=uint8)
    """
    if out is not None and library_of(out) == "torch":
        raise TypeError(
            "out is a PyTorch tensor: use dml_cuda.torch.fill_value_sequence"
        )
    kind, data_type = fill_type(dtype)
    sizes = fill_shape(shape, kind)
    bits = [
        scalar_bits(value, data_type, name)
        for value, name in ((start, "start"), (delta, "delta"))
    ]
    names = lib.RESULT if out is None else lib.OUT
    if out is None:
        out = _allocate(sizes, kind, device)
    elif device is not None:
        raise TypeError("out is given with device, but must be given alone: it has one")
    options, handle = _options(compile_options), stream_of(out, stream)
    output = view(out, "out", handle)
    _check_out(output, sizes, kind, "")
    _check_stream(handle, output, names.Output.decode())
    if 0 in sizes:
        return _unchanged(out, options)
    lib.fill(output, data_type, bits, names, handle, options)
    return out


def _allocate(sizes: tuple[int, ...], kind: np.dtype, device: str | None) -> Any:
    required = "but must be 'cpu', 'cuda', or the name of a GPU such as 'cuda:1'"
    if device is not None and not isinstance(device, str):
        raise TypeError(f"device is {shown(device)}, {required}")
    if device is None or device == "cpu":
        return np.empty(sizes, kind)
    if re.fullmatch("cuda(:[0-9]+)?", device):
        ordinal = device[len("cuda:") :]
        try:
            import cupy
        except ImportError:
            raise RuntimeError(
                f"CuPy must be installed for device {device!r}: or pass out"
            ) from None
        with cupy.cuda.Device(int(ordinal or 0)):
            return cupy.empty(sizes, kind)
    raise ValueError(f"device is {device!r}, {required}")
