"""Arrays of other libraries: where they lie, in what memory, and how to make another like them."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np


class View(NamedTuple):
    """An array's memory."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In bytes."""
    dtype: np.dtype
    ordinal: int | None
    """Of the GPU; None is the host."""
    read_only: bool


def is_torch(x: Any) -> bool:
    return type(x).__module__.partition(".")[0] == "torch"


def is_jax(x: Any) -> bool:
    return type(x).__module__.partition(".")[0] in ("jax", "jaxlib")


def packed_strides(shape: tuple[int, ...], width: int) -> tuple[int, ...]:
    strides, step = [], width
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def view(x: Any, name: str) -> View:
    """Looks at an array: NumPy's, or one with ``__cuda_array_interface__`` or ``__dlpack__``."""
    if isinstance(x, np.ndarray):
        if x.dtype.hasobject:
            raise TypeError(f"{name} has dtype {x.dtype}, must have one whose elements are bytes")
        return View(x.ctypes.data, x.shape, x.strides, x.dtype, None, not x.flags.writeable)
    if is_jax(x):
        x.block_until_ready()  # it may still be computed, on streams that nobody is told of
    interface = getattr(x, "__cuda_array_interface__", None)
    if interface is not None:
        address, read_only = interface["data"]
        shape, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
        strides = interface.get("strides") or packed_strides(shape, dtype.itemsize)
        return View(address, shape, tuple(strides), dtype, _ordinal(x), read_only or is_jax(x))
    if hasattr(x, "__dlpack__"):
        return _from_dlpack(x, name)
    raise TypeError(
        f"{name} is a {type(x).__module__}.{type(x).__qualname__}, must be a NumPy array, or one with "
        "__cuda_array_interface__ or __dlpack__"
    )


def _ordinal(x: Any) -> int:
    """The GPU of an array with ``__cuda_array_interface__``, which does not say it."""
    device = getattr(x, "device", None)
    ordinal = getattr(device, "id", None)
    if ordinal is None and hasattr(x, "__dlpack_device__"):
        ordinal = x.__dlpack_device__()[1]
    return int(ordinal) if ordinal is not None else 0


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_KINDS = {0: "i", 1: "u", 2: "f", 4: "u", 5: "c", 6: "u"}  # bfloat16 moves as bits; bool as bytes


def _from_dlpack(x: Any, name: str) -> View:
    # The array itself keeps the memory; the capsule, unconsumed, gives its reference back when it goes.
    capsule = x.__dlpack__()
    tensor = _DLTensor.from_address(_pointer_of(capsule, b"dltensor"))
    if tensor.device_type not in (1, 2, 3, 13):
        raise TypeError(f"{name} is on a device of DLPack's type {tensor.device_type}, must be on the CPU or a CUDA GPU")
    if tensor.code not in _KINDS or tensor.lanes != 1 or tensor.bits % 8:
        raise TypeError(f"{name} has elements of DLPack's kind {tensor.code} with {tensor.bits} bits, must be numeric")
    dtype = np.dtype(f"{_KINDS[tensor.code]}{tensor.bits // 8}")
    shape = tuple(tensor.shape[d] for d in range(tensor.ndim))
    if tensor.strides:
        strides = tuple(tensor.strides[d] * dtype.itemsize for d in range(tensor.ndim))
    else:
        strides = packed_strides(shape, dtype.itemsize)
    ordinal = tensor.device_id if tensor.device_type in (2, 13) else None
    return View((tensor.data or 0) + tensor.byte_offset, shape, strides, dtype, ordinal, is_jax(x))


def stream_of(x: Any, stream: Any) -> int:
    """The handle of the stream to use: the one given, CuPy's current one, else the legacy default stream."""
    if stream is None:
        if type(x).__module__.partition(".")[0] == "cupy":
            import cupy

            return int(cupy.cuda.get_current_stream().ptr)
        return 0
    if isinstance(stream, int):
        return stream
    for attribute in ("ptr", "cuda_stream"):
        handle = getattr(stream, attribute, None)
        if handle is not None:
            return int(handle)
    raise TypeError(f"stream is a {type(stream).__qualname__}, must be an integer, or have ptr or cuda_stream")


def empty_like(x: Any, name: str) -> Any:
    """A new array of the same kind, shape, dtype and device."""
    module = type(x).__module__.partition(".")[0]
    if isinstance(x, np.ndarray):
        return np.empty_like(x, subok=False)
    if module == "cupy":
        import cupy

        with x.device:
            return cupy.empty_like(x)
    if is_jax(x):
        import jax

        # A copy is memory of its own, which nobody else has seen yet.
        return jax.block_until_ready(jax.numpy.array(x, copy=True))
    raise TypeError(
        f"{name} is a {type(x).__module__}.{type(x).__qualname__}, of which this library can make no other: pass out"
    )


def finish(x: Any, stream: int) -> None:
    """Waits where the array's library does not know of streams."""
    if is_jax(x):
        driver = ctypes.CDLL("libcuda.so.1")
        driver.cuStreamSynchronize(ctypes.c_void_p(stream))
