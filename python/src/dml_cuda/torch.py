"""The two operators on PyTorch tensors. They are registered with ``torch.library``: they trace, compile, export and differentiate, and CUDA
graphs can capture them. On a GPU a call queues work on PyTorch's current stream. It allocates only the result, copies nothing and waits
for nothing."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch.library import Library

from . import _library as _lib
from ._rnn import BidirectionalRNN
from ._scalars import scalar_bits

__all__ = ["BidirectionalRNN", "fill_value_sequence", "reverse_padded_sequence", "reverse_subsequences", "reverse_subsequences_"]

_LENGTH_WIDTHS = {torch.int32: 4, torch.uint32: 4, torch.int64: 8, torch.uint64: 8}
_NARROW_LENGTHS = (torch.int8, torch.uint8, torch.int16, torch.uint16)
_FILL_TYPES = {
    torch.float32: "FLOAT32", torch.float16: "FLOAT16", torch.int8: "INT8", torch.int16: "INT16", torch.int32: "INT32",
    torch.int64: "INT64", torch.uint8: "UINT8", torch.uint16: "UINT16", torch.uint32: "UINT32", torch.uint64: "UINT64",
}  # fmt: skip

_library = Library("dml_cuda", "DEF")
_library.define("reverse_subsequences(Tensor x, Tensor lengths, int dim) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))
# The same without a gradient: PyTorch's gradient support costs more time than the launch.
_library.define("_reverse_subsequences(Tensor x, Tensor lengths, int dim) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))
_library.define("reverse_subsequences_(Tensor(a!) x, Tensor lengths, int dim) -> ()", tags=(torch.Tag.pt2_compliant_tag,))
_library.define(
    "fill_value_sequence(SymInt[] size, Scalar start, Scalar delta, ScalarType dtype, Device device) -> Tensor",
    tags=(torch.Tag.pt2_compliant_tag,),
)
_reverse = torch.ops.dml_cuda.reverse_subsequences.default
_reverse_without_gradient = torch.ops.dml_cuda._reverse_subsequences.default
_reverse_in_place = torch.ops.dml_cuda.reverse_subsequences_.default
_fill = torch.ops.dml_cuda.fill_value_sequence.default

_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)


def _stream(ordinal: int | None) -> int:
    return 0 if ordinal is None else _raw_stream(ordinal)  # type: ignore[misc]


def _ordinal(x: torch.Tensor) -> int | None:
    device = x.device
    if device.type == "cuda":
        return device.index
    if device.type == "cpu":
        return None
    raise ValueError(f"x is on {device}, must be on the CPU or a CUDA GPU")


def _checked(x: torch.Tensor, lengths: torch.Tensor, dim: int) -> int:
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


def _launch(x: torch.Tensor, lengths: torch.Tensor, dim: int, output: torch.Tensor, in_place: bool) -> None:
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
        stream = 0 if ordinal < 0 else _raw_stream(ordinal)  # type: ignore[misc]
        compiled.dispatch(_lib.Addresses(source, lengths.data_ptr()), 2, to, stream)
    except ValueError as error:
        raise _in_arguments(error, output, in_place) from None


def _in_arguments(error: ValueError, output: torch.Tensor, in_place: bool) -> ValueError:
    name = "x" if in_place else "out"
    layout = f"{name} has shape {list(output.shape)} and strides {list(output.stride())}"
    return _lib.in_arguments(error, {"InputTensor": "x", "SequenceLengthsTensor": "lengths", "OutputTensor": name}, layout)


def _compile(
    x: torch.Tensor, lengths: torch.Tensor, dim: int, output: torch.Tensor, in_place: bool
) -> _lib.Compiled | None:
    front = _checked(x, lengths, dim)
    ordinal = _ordinal(x)
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


def _reverse_impl(x: torch.Tensor, lengths: torch.Tensor, dim: int) -> torch.Tensor:
    output = torch.empty_like(x)
    _launch(x, lengths, dim, output, False)
    return output


def _reverse_in_place_impl(x: torch.Tensor, lengths: torch.Tensor, dim: int) -> None:
    _launch(x, lengths, dim, x, True)


def _fill_impl(
    size: Sequence[int], start: Any, delta: Any, dtype: torch.dtype, device: torch.device
) -> torch.Tensor:
    name = _FILL_TYPES[dtype]
    output = torch.empty(size, dtype=dtype, device=device)
    if output.numel() == 0:
        return output
    ordinal = _ordinal(output)
    bits = [scalar_bits(value, name, what) for value, what in ((start, "start"), (delta, "delta"))]
    address, width = output.data_ptr(), dtype.itemsize
    compiled = _lib.sequence(
        ordinal, (output.numel(),), (width,), width, address & 15 == 0, _lib.DATA_TYPES[name], *bits
    )
    compiled.dispatch(None, 0, address, _stream(ordinal))
    return output


for _key in ("CPU", "CUDA"):
    _library.impl("reverse_subsequences", _reverse_impl, _key)
    _library.impl("_reverse_subsequences", _reverse_impl, _key)
    _library.impl("reverse_subsequences_", _reverse_in_place_impl, _key)
# A fill has no tensor argument that could select the device.
_library.impl("fill_value_sequence", _fill_impl, "BackendSelect")


def _reverse_fake(x: torch.Tensor, lengths: torch.Tensor, dim: int) -> torch.Tensor:
    _checked(x, lengths, dim)
    return torch.empty_like(x)


def _reverse_in_place_fake(x: torch.Tensor, lengths: torch.Tensor, dim: int) -> None:
    _checked(x, lengths, dim)


def _fill_fake(size: Sequence[int], start: Any, delta: Any, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.empty(size, dtype=dtype, device=device)


for _name, _fake in (
    ("reverse_subsequences", _reverse_fake),
    ("_reverse_subsequences", _reverse_fake),
    ("reverse_subsequences_", _reverse_in_place_fake),
    ("fill_value_sequence", _fill_fake),
):
    torch.library.register_fake(f"dml_cuda::{_name}", _fake, lib=_library)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    _, lengths, ctx.dim = inputs
    ctx.save_for_backward(lengths)


def _backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, None, None]:
    # A reversal is its own transpose.
    (lengths,) = ctx.saved_tensors
    return _reverse(gradient, lengths, ctx.dim), None, None


torch.library.register_autograd("dml_cuda::reverse_subsequences", _backward, setup_context=_setup, lib=_library)


def _vmap(
    operator: Any, info: Any, in_dims: tuple[int | None, ...], x: Any, lengths: Any, dim: int
) -> tuple[torch.Tensor, int]:
    of_x, of_lengths, _ = in_dims
    x = x.movedim(of_x, 0) if of_x is not None else x.expand(info.batch_size, *x.shape)
    rank = x.dim() - 1
    front = dim + rank if dim < 0 else dim
    if of_lengths is not None:
        lengths = lengths.movedim(of_lengths, 0)
        lengths = lengths.reshape(lengths.shape[:1] + (1,) * (rank - lengths.dim() + 1) + lengths.shape[1:])
    return operator(x, lengths, front + 1), 0


for _name, _operator in (("reverse_subsequences", _reverse), ("_reverse_subsequences", _reverse_without_gradient)):
    torch.library.register_vmap(f"dml_cuda::{_name}", functools.partial(_vmap, _operator), lib=_library)


class _Reverse(torch.autograd.Function):  # type: ignore[misc]
    """The gradient for the transforms of ``torch.func``, which do not use gradients of ``torch.library``."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: torch.Tensor, lengths: torch.Tensor, dim: int) -> torch.Tensor:
        return _reverse_without_gradient(x, lengths, dim)

    setup_context = staticmethod(_setup)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        (lengths,) = ctx.saved_tensors
        return _dispatch(gradient, lengths, ctx.dim), None, None


def _dispatch(x: torch.Tensor, lengths: torch.Tensor, dim: int) -> torch.Tensor:
    if torch.compiler.is_compiling():
        return _reverse(x, lengths, dim)
    if torch._C._are_functorch_transforms_active():
        return _Reverse.apply(x, lengths, dim)
    if x.requires_grad and torch.is_grad_enabled():
        return _reverse(x, lengths, dim)
    return _reverse_without_gradient(x, lengths, dim)


def _as_lengths(x: torch.Tensor, lengths: Any) -> torch.Tensor:
    if not isinstance(lengths, torch.Tensor):
        raise TypeError(f"lengths is a {type(lengths).__qualname__}, must be a tensor of integers on {x.device}, as x is")
    return lengths.to(torch.int32) if lengths.dtype in _NARROW_LENGTHS else lengths


def _check_tensor(x: Any, name: str) -> None:
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{name} is a {type(x).__qualname__}, must be a tensor")


def reverse_subsequences(x: torch.Tensor, lengths: torch.Tensor, dim: int) -> torch.Tensor:
    """Reverses the first ``length`` elements of every lane of x along a dimension, and copies the other elements.

    x: a tensor with 1 dimension or more, any dtype and any strides, on the CPU or a GPU. The result keeps dense layouts such as
    ``channels_last``.
    lengths: integers that broadcast to x's shape with 1 at dim, on x's device. A length above the size acts as the size. A negative
    length is an error on the CPU and acts as the size on a GPU.
    Works with autograd, ``torch.compile``, ``torch.export`` and ``torch.vmap``.

    >>> import torch, dml_cuda.torch
    >>> dml_cuda.torch.reverse_subsequences(torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]]), torch.tensor([[3], [2]]), 1)
    tensor([[3, 2, 1, 4],
            [6, 5, 7, 8]])
    """
    _check_tensor(x, "x")
    return _dispatch(x, _as_lengths(x, lengths), dim)


def reverse_subsequences_(x: torch.Tensor, lengths: torch.Tensor, dim: int) -> torch.Tensor:
    """Reverses x in place as :func:`reverse_subsequences` does, and returns x.

    No two elements of x may share memory, and x must not require a gradient.

    >>> import torch, dml_cuda.torch
    >>> x = torch.arange(5)
    >>> dml_cuda.torch.reverse_subsequences_(x, torch.tensor([3]), 0)
    tensor([2, 1, 0, 3, 4])
    """
    _check_tensor(x, "x")
    if x.requires_grad and torch.is_grad_enabled():
        raise ValueError("x requires a gradient, must not if it is reversed in place: use reverse_subsequences")
    _reverse_in_place(x, _as_lengths(x, lengths), dim)
    return x


def reverse_padded_sequence(x: torch.Tensor, lengths: torch.Tensor, batch_first: bool = False) -> torch.Tensor:
    """Reverses every sequence of a padded batch. The padding stays where it is.

    x: [T, B, ...], or [B, T, ...] with batch_first. lengths: [B], integers on x's device.

    >>> import torch, dml_cuda.torch
    >>> dml_cuda.torch.reverse_padded_sequence(torch.tensor([[1, 2, 0], [3, 4, 5]]), torch.tensor([2, 3]), batch_first=True)
    tensor([[2, 1, 0],
            [5, 4, 3]])
    """
    _check_tensor(x, "x")
    if x.dim() < 2:
        raise ValueError(f"x has {x.dim()} dimensions, must have at least 2: time and batch")
    lengths = _as_lengths(x, lengths)
    batch = x.shape[0 if batch_first else 1]
    if lengths.dim() != 1 or lengths.shape[0] != batch:
        raise ValueError(f"lengths has shape {list(lengths.shape)}, must have [{batch}], the batch size")
    shape = ([batch, 1] if batch_first else [1, batch]) + [1] * (x.dim() - 2)
    return _dispatch(x, lengths.reshape(shape), 1 if batch_first else 0)


def fill_value_sequence(
    size: Sequence[int] | int,
    start: float,
    delta: float,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
) -> torch.Tensor:
    """A tensor whose element i, in row-major order, is ``start + i * delta``. Integers wrap. Floats are rounded as DirectML's page says.

    dtype: float32, float16, or integers of 8 to 64 bits. Unsigned dtypes accept negative numbers.
    device: None is PyTorch's default device.

    >>> import torch, dml_cuda.torch
    >>> dml_cuda.torch.fill_value_sequence((2, 3), 10, -2, torch.uint8)
    tensor([[10,  8,  6],
            [ 4,  2,  0]], dtype=torch.uint8)
    """
    if dtype not in _FILL_TYPES:
        raise TypeError(f"dtype is {dtype}, must be float32, float16, or integers of 8 to 64 bits")
    sizes = [size] if isinstance(size, int) else list(size)
    place = torch.get_default_device() if device is None else torch.device(device)
    if place.type == "cuda" and place.index is None:
        place = torch.device("cuda", torch.cuda.current_device())
    return _fill(sizes, start, delta, dtype, place)


def _out(x: torch.Tensor, lengths: Any, dim: int, out: Any) -> torch.Tensor:
    """`dml_cuda.reverse_subsequences` of a tensor."""
    if not isinstance(lengths, torch.Tensor):
        lengths = torch.as_tensor(lengths, device=x.device)
    if out is None:
        return reverse_subsequences(x, lengths, dim)
    if out is x:
        return reverse_subsequences_(x, lengths, dim)
    _check_tensor(out, "out")
    if (out.shape, out.dtype, out.device) != (x.shape, x.dtype, x.device):
        raise ValueError(f"out has {out.shape}, {out.dtype} on {out.device}, must have x's {x.shape}, {x.dtype} on {x.device}")
    _launch(x, _as_lengths(x, lengths), dim, out, False)
    return out
