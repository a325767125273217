"""Arrays of other libraries: their address, layout and device, and how to allocate one like them."""

import ctypes
import operator
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._arguments import integer, integers, of_type, refuse_mask, shown
from ._library import Array


def library_of(x: Any) -> str:
    """The library that an array is of: ``numpy``, ``cupy``, ``torch``, ``jax`` or another."""
    name = type(x).__module__.partition(".")[0]
    if name not in ("numpy", "torch") and isinstance(
        x, getattr(sys.modules.get("torch"), "Tensor", ())
    ):
        return "torch"  # a subclass of tensors
    return "jax" if name == "jaxlib" else name


def view(x: Any, name: str, stream: int = 0) -> Array:
    """Reads an array's layout: NumPy's, or one with ``__cuda_array_interface__`` or ``__dlpack__``. stream: the one
    that uses it."""
    if isinstance(x, np.ndarray):
        return _from_numpy(x, name)
    if library_of(x) == "jax":
        raise TypeError(
            f"{name} is an array of JAX, but must be one of x's library: arrays of JAX never change, and use XLA's streams"
        )
    interface = getattr(x, "__cuda_array_interface__", None)
    is_exporter = hasattr(x, "__dlpack__")
    if interface is not None:
        # An interface of before version 3 has no stream to wait for.
        is_old = isinstance(interface, Mapping) and "stream" not in interface
        if not (is_exporter and is_old):
            return _from_interface(x, name, interface)
    if is_exporter:
        return _from_dlpack(x, name, stream)
    raise TypeError(
        f"{name} is {of_type(x, full=True)}, but must be a NumPy array, or one with __cuda_array_interface__ or __dlpack__"
    )


def _from_numpy(x: np.ndarray, name: str) -> Array:
    if type(x) is not np.ndarray:
        refuse_mask(x, name)
    if x.dtype.hasobject:
        raise TypeError(
            f"{name} has dtype {x.dtype}, but must have one whose elements are bytes"
        )
    strides = None if x.flags.c_contiguous else x.strides
    read_only = not x.flags.writeable
    return Array(x.ctypes.data, x.shape, strides, x.dtype, None, read_only, x)


def _from_interface(x: Any, name: str, interface: Any) -> Array:
    """Reads ``__cuda_array_interface__``, and checks what no library guarantees."""
    place = f"{name}.__cuda_array_interface__"
    if not isinstance(interface, Mapping):
        raise TypeError(f"{place} is {shown(interface)}, but must be a mapping")
    if interface.get("mask") is not None:
        raise TypeError(
            f"{name} has a mask, but must have none: pass its data and its mask separately"
        )
    missing = [key for key in ("data", "shape", "typestr") if key not in interface]
    if missing:
        raise TypeError(f"{place} must have {', '.join(missing)}")
    shape = integers(interface["shape"] or (), f"{place}['shape']")
    strides = integers(interface.get("strides") or (), f"{place}['strides']")
    try:
        address, read_only = interface["data"]
        dtype = np.dtype(interface["typestr"])
        address = operator.index(address)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{place} is {shown(interface)}, but must have data and typestr: {error}"
        ) from None
    awaited = interface.get("stream")
    if awaited is not None:
        if not 0 < integer(awaited, f"{place}['stream']") < 1 << 64:
            raise ValueError(
                f"{place}['stream'] is {shown(awaited)}, but must be None, or from 1 to 2**64 - 1"
            )
    return Array(
        address, shape, strides or None, dtype, _ordinal(x), read_only, x, awaited
    )


def _ordinal(x: Any) -> int:
    """The GPU of an array. ``__cuda_array_interface__`` itself does not name the GPU."""
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


# Function objects of our own: those of `ctypes.pythonapi` have one prototype for all libraries of the process.
_of_capsule = ctypes.py_object, ctypes.c_char_p
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, *_of_capsule)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_has_name = ctypes.PYFUNCTYPE(ctypes.c_int, *_of_capsule)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}
_NAMES = {
    4: "bfloat16",
    7: "float8_e3m4",
    8: "float8_e4m3",
    9: "float8_e4m3b11fnuz",
    10: "float8_e4m3fn",
    11: "float8_e4m3fnuz",
    12: "float8_e5m2",
    13: "float8_e5m2fnuz",
    14: "float8_e8m0fnu",
}
# Byte offsets in a versioned capsule: two numbers of 4 bytes, two pointers, flags of 8 bytes, then the tensor.
_VERSION, _FLAGS, _VERSIONED_TENSOR = 0, 24, 32
_READ_ONLY, _COPIED = 1, 2


def _dtype_of(tensor: _DLTensor, name: str) -> np.dtype:
    """Elements move as bytes, so any dtype of the right size does: without ml_dtypes, bfloat16 is two bytes."""
    width = tensor.bits // 8
    if tensor.lanes == 1 and tensor.bits % 8 == 0:
        if tensor.code in _NAMES:
            known = getattr(sys.modules.get("ml_dtypes"), _NAMES[tensor.code], None)
            return np.dtype(known or f"V{width}")
        try:
            return np.dtype(f"{_KINDS[tensor.code]}{width}")
        except (KeyError, TypeError):
            pass
    lanes = f" in groups of {tensor.lanes}" if tensor.lanes != 1 else ""
    raise TypeError(
        f"{name} has elements of {tensor.bits} bits{lanes}, DLPack's type {tensor.code}, but must have numbers of whole bytes"
    )


def _from_dlpack(x: Any, name: str, stream: int) -> Array:
    # An exporter on a GPU makes our stream wait for its own. Nothing consumes the capsule, so it releases its reference
    # to the memory when it is destroyed.
    try:
        is_on_gpu = hasattr(x, "__dlpack_device__") and x.__dlpack_device__()[0] in (
            2,
            13,
        )
        of_stream = {"stream": stream or 1} if is_on_gpu else {}
        try:
            capsule = x.__dlpack__(max_version=(1, 0), **of_stream)
        except TypeError:  # older than DLPack 1.0
            capsule = x.__dlpack__(**of_stream)
    except Exception as error:
        raise ValueError(
            f"{name} must give its memory to DLPack: {type(error).__name__}: {error}"
        ) from error
    flags, is_versioned = 0, _has_name(capsule, b"dltensor_versioned")
    address = _pointer_of(
        capsule, b"dltensor_versioned" if is_versioned else b"dltensor"
    )
    if is_versioned:
        major = ctypes.c_uint32.from_address(address + _VERSION).value
        if major != 1:
            raise TypeError(f"{name} has version {major} of DLPack, but must have 1")
        flags = ctypes.c_uint64.from_address(address + _FLAGS).value
        address += _VERSIONED_TENSOR
    tensor = _DLTensor.from_address(address)
    if tensor.device_type not in (1, 2, 3, 13):
        raise TypeError(
            f"{name} is on a device of DLPack's type {tensor.device_type}, but must be on the CPU or a CUDA GPU"
        )
    read_only = flags & (_READ_ONLY | _COPIED) != 0  # writes to a copy would be lost
    dtype = _dtype_of(tensor, name)
    shape = tuple(tensor.shape[d] for d in range(tensor.ndim))
    strides = (
        tuple(tensor.strides[d] * dtype.itemsize for d in range(tensor.ndim))
        if tensor.strides
        else None
    )
    ordinal = tensor.device_id if tensor.device_type in (2, 13) else None
    return Array(
        (tensor.data or 0) + tensor.byte_offset,
        shape,
        strides,
        dtype,
        ordinal,
        read_only,
        capsule,
    )


def stream_of(x: Any, stream: Any) -> int:
    """The handle of the given stream. For None CuPy's current stream for CuPy arrays, else the legacy default
    stream."""
    if stream is not None:
        return _handle(stream)
    if not isinstance(x, np.ndarray) and library_of(x) == "cupy":
        import cupy

        return int(cupy.cuda.get_current_stream().ptr)
    return 0


def _handle(stream: Any) -> int:
    for found in (
        stream,
        getattr(stream, "ptr", stream),
        getattr(stream, "cuda_stream", stream),
    ):
        if hasattr(found, "__index__") and not isinstance(found, bool):
            handle = operator.index(found)
            if not 0 <= handle < 1 << 64:
                raise ValueError(f"stream is {handle}, but must be from 0 to 2**64 - 1")
            return handle
    raise TypeError(
        f"stream is {shown(stream)}, but must be an integer, or have ptr or cuda_stream"
    )


def empty_like(x: Any, name: str) -> Any:
    """A new array of the same kind, shape, dtype and device."""
    if isinstance(x, np.ndarray):
        # Keeps subclasses, such as arrays with units, but not memmap: the new array has no file.
        return np.empty_like(x, subok=not isinstance(x, np.memmap))
    if library_of(x) == "cupy":
        import cupy

        with x.device:
            return cupy.empty_like(x)
    raise TypeError(
        f"{name} is {of_type(x, full=True)}, but must be an array that this library can allocate: pass out"
    )
