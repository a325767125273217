"""FILL_VALUE_SEQUENCE on arrays."""

import re
from typing import Any, Literal, TypeVar, overload

import numpy as np
import numpy.typing as npt

from . import _library as lib
from ._arguments import Number, Shape, fill_shape, fill_type, scalar_bits, shown
from ._arrays import library_of, stream_of, view
from ._operands import (
    HasArray,
    check_out,
    check_stream,
    encoded_options,
    checked_without_elements,
)

_Element = TypeVar("_Element", bound=np.generic)
_Out = TypeVar("_Out", bound=HasArray)


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
    """Sets element i, in row-major order, to ``start + i * delta``. Integers wrap. Floats are one fused multiply-add,
    rounded once (docs/directml.md).

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
        raise TypeError(
            "pass either out or device, not both: out is on a device already"
        )
    options, handle = encoded_options(compile_options), stream_of(out, stream)
    output = view(out, "out", handle)
    check_out(output, sizes, kind, "")
    check_stream(handle, output, names.Output.decode())
    if 0 in sizes:
        return checked_without_elements(out, options)
    lib.fill(output, data_type, bits, names, handle, options)
    return out


def _allocate(sizes: tuple[int, ...], kind: np.dtype, device: str | None) -> Any:
    """A new array on a device: NumPy's on the CPU, CuPy's on a GPU."""
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
                f"device is {device!r}, but CuPy is not installed: install it, or pass out"
            ) from None
        with cupy.cuda.Device(int(ordinal or 0)):
            return cupy.empty(sizes, kind)
    raise ValueError(f"device is {device!r}, {required}")
