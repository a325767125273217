"""The operators on PyTorch tensors through the C library's functions, in Python. :mod:`dml_cuda.torch` uses them with a PyTorch that is too old
for the operators of Rust, and for errors in the caller's words."""

from __future__ import annotations

from typing import Any

import torch

from . import _library as _lib

_LENGTH_WIDTHS = {torch.int32: 4, torch.uint32: 4, torch.int64: 8, torch.uint64: 8}
NARROW_LENGTHS = frozenset((torch.int8, torch.uint8, torch.int16, torch.uint16))

_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)


def stream(ordinal: int | None) -> int:
    """PyTorch's current stream of a GPU."""
    return 0 if ordinal is None else _raw_stream(ordinal)  # type: ignore[misc]


def ordinal_of(x: torch.Tensor) -> int | None:
    device = x.device
    if device.type == "cuda":
        return device.index
    if device.type == "cpu":
        return None
    raise ValueError(f"x is on {device}, must be on the CPU or a CUDA GPU")


def checked_dim(x: torch.Tensor, lengths: torch.Tensor, dim: int) -> int:
    """Checks the shapes, and returns the dimension counted from the front."""
    rank = x.dim()
    if rank == 0:
        raise ValueError("x has 0 dimensions, must have at least 1")
    if not -rank <= dim < rank:
        raise ValueError(f"dim is {dim}, must be from {-rank} to {rank - 1}, of an x of {rank} dimensions")
    dim %= rank
    if lengths.dtype not in _LENGTH_WIDTHS:
        raise TypeError(f"lengths has dtype {lengths.dtype}, must be int32, int64, uint32 or uint64")
    if lengths.device != x.device:
        raise ValueError(f"lengths is on {lengths.device}, must be on {x.device}, as x is")
    missing = rank - lengths.dim()
    target = list(x.shape)
    target[dim] = 1
    if missing < 0 or any(size != 1 and size != to for size, to in zip(lengths.shape, target[missing:])):
        raise ValueError(f"lengths has shape {list(lengths.shape)}, must broadcast to {target}, x's with 1 at dim")
    return dim


# Compiled operators, by everything that they depend on. None for empty tensors. Most calls repeat an earlier one.
_compiled: dict[tuple[Any, ...], _lib.Compiled | None] = {}
_MOST_COMPILED = 4096


def launch(x: torch.Tensor, lengths: torch.Tensor, dim: int, output: torch.Tensor, in_place: bool) -> None:
    source, to, ordinal = x.data_ptr(), output.data_ptr(), x.get_device()
    aligned = (source | to) & 15 == 0
    key = (
        x.shape, x.stride(), lengths.shape, lengths.stride(), output.stride(), dim, x.dtype, lengths.dtype, ordinal, lengths.get_device(),
        in_place, aligned,
    )  # fmt: skip
    try:
        compiled = _compiled[key]
    except KeyError:
        compiled = _compile(x, lengths, dim, output, in_place)
        if len(_compiled) >= _MOST_COMPILED:
            _compiled.clear()
        _compiled[key] = compiled
    if compiled is None:
        return
    if ordinal < 0:
        _check_lengths(lengths)
    try:
        queue = 0 if ordinal < 0 else _raw_stream(ordinal)  # type: ignore[misc]
        compiled.dispatch(_lib.Addresses(source, lengths.data_ptr()), 2, to, queue)
    except ValueError as error:
        raise _in_arguments(error, output, in_place) from None


def _in_arguments(error: ValueError, output: torch.Tensor, in_place: bool) -> ValueError:
    name = "x" if in_place else "out"
    layout = f"{name} has shape {list(output.shape)} and strides {list(output.stride())}"
    return _lib.in_arguments(error, {"InputTensor": "x", "SequenceLengthsTensor": "lengths", "OutputTensor": name}, layout)


def _compile(
    x: torch.Tensor, lengths: torch.Tensor, dim: int, output: torch.Tensor, in_place: bool
) -> _lib.Compiled | None:
    front = checked_dim(x, lengths, dim)
    ordinal = ordinal_of(x)
    if x.numel() == 0:
        return None
    width = x.element_size()
    if width not in (1, 2, 4, 8, 16):
        raise TypeError(f"x has dtype {x.dtype}, must have one of 1, 2, 4, 8 or 16 bytes")
    try:
        return _lib.reversal(ordinal, _array(x), _array(lengths), _array(output), front)
    except ValueError as error:
        raise _in_arguments(error, output, in_place) from None


def _array(x: torch.Tensor) -> _lib.Array:
    width = x.element_size()
    return _lib.Array(x.data_ptr(), x.shape, [step * width for step in x.stride()], width)


def _check_lengths(lengths: torch.Tensor) -> None:
    """Refuses negative lengths on the host."""
    if lengths.dtype in (torch.int32, torch.int64) and lengths.numel() and int(lengths.min()) < 0:
        at = (lengths < 0).nonzero()[0].tolist()
        raise ValueError(f"lengths{at or ''} is {lengths[tuple(at)].item()}, must be at least 0")


def reverse(x: torch.Tensor, lengths: torch.Tensor, dim: int) -> torch.Tensor:
    output = torch.empty_like(x)
    launch(x, lengths, dim, output, False)
    return output


def reverse_in_place(x: torch.Tensor, lengths: torch.Tensor, dim: int) -> None:
    if x.requires_grad and torch.is_grad_enabled():
        raise ValueError("x requires a gradient, must not if it is reversed in place: use reverse_subsequences")
    launch(x, lengths, dim, x, True)
    # A backward pass that saved x is then an error.
    torch.autograd.graph.increment_version(x)


def as_lengths(x: torch.Tensor, lengths: Any) -> torch.Tensor:
    if not isinstance(lengths, torch.Tensor):
        raise TypeError(f"lengths is a {type(lengths).__qualname__}, must be a tensor of integers on {x.device}, as x is")
    return lengths.to(torch.int32) if lengths.dtype in NARROW_LENGTHS else lengths


def check_tensor(x: Any, name: str) -> None:
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{name} is a {type(x).__qualname__}, must be a tensor")
