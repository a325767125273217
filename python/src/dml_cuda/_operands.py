"""What both functions on arrays check in the same way: outputs, streams and compile options."""

from typing import Any, Protocol

import numpy as np

from . import _library as lib
from ._arguments import shown
from ._arrays import view


class HasDlpack(Protocol):
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...


class HasCudaArrayInterface(Protocol):
    @property
    def __cuda_array_interface__(self) -> Any: ...


HasArray = HasDlpack | HasCudaArrayInterface


def check_out(
    out: lib.Array, shape: tuple[int, ...], dtype: np.dtype, whose: str
) -> None:
    """Refuses an output that cannot take a result of this shape and dtype. whose: of which argument they are."""
    if out.read_only:
        raise ValueError("out is read-only, but must be writable")
    if out.shape != shape:
        raise ValueError(f"out has shape {out.shape}, but must have {whose}{shape}")
    if out.dtype != dtype:
        raise TypeError(f"out has dtype {out.dtype}, but must have {whose}{dtype}")


def encoded_options(compile_options: str | None) -> bytes | None:
    """The compile options as C takes them."""
    if compile_options is None:
        return None
    if not isinstance(compile_options, str):
        raise TypeError(
            f"compile_options is {shown(compile_options)}, but must be a string"
        )
    if "\0" in compile_options:
        raise ValueError(
            f"compile_options is {shown(compile_options)}, but must have no NUL, where a string in C ends"
        )
    return compile_options.encode()


def checked_without_elements(out: Any, options: bytes | None) -> Any:
    """Validates the options although nothing runs, and returns out, which has no elements."""
    lib.fill(
        view(np.empty(0, np.uint8), "out"), "UINT8", (0, 0), lib.RESULT, 0, options
    )
    return out


def device_name(ordinal: int | None) -> str:
    """What messages call a device."""
    return "the host" if ordinal is None else f"GPU {ordinal}"


def check_stream(stream: int, used_by: lib.Array, name: str) -> None:
    """Refuses a stream for an array on the host."""
    if stream and used_by.ordinal is None:
        raise ValueError(
            f"stream is {stream}, but must be None or 0, as {name} is on the host"
        )
