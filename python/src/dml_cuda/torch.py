"""The two operators on PyTorch tensors. They trace, compile, export and differentiate, and CUDA graphs can capture them. On a GPU a call
queues work on PyTorch's current stream. It allocates only the result, copies nothing and waits for nothing.

The reversals are operators in Rust, which PyTorch calls without Python. Their gradients and their shapes for tracing are here. A PyTorch that is
too old for them gets operators in Python instead, which do the same and cost more time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.library import Library

from . import _library as _lib
from . import _tensors
from ._rnn import BidirectionalRNN
from ._scalars import scalar_bits
from ._tensors import NARROW_LENGTHS, as_lengths, check_tensor, checked_dim

__all__ = ["BidirectionalRNN", "fill_value_sequence", "reverse_padded_sequence", "reverse_subsequences", "reverse_subsequences_"]

_FILL_TYPES = {
    torch.float32: "FLOAT32", torch.float16: "FLOAT16", torch.int8: "INT8", torch.int16: "INT16", torch.int32: "INT32",
    torch.int64: "INT64", torch.uint8: "UINT8", torch.uint16: "UINT16", torch.uint32: "UINT32", torch.uint64: "UINT64",
}  # fmt: skip


def _registered() -> bool:
    """Registers the operators of Rust. `libdml_cuda_torch.so` may have done it."""
    found = torch._C._dispatch_has_kernel("dml_cuda::reverse_subsequences")
    return found or _lib.library.dml_cuda_register_torch(None) == 0


_native = _registered()
_library = Library("dml_cuda", "FRAGMENT")
_library.define(
    "fill_value_sequence(SymInt[] size, Scalar start, Scalar delta, ScalarType dtype, Device device) -> Tensor",
    tags=(torch.Tag.pt2_compliant_tag,),
)
if not _native:
    for _schema, _kernel in (
        ("reverse_subsequences(Tensor x, Tensor lengths, int dim) -> Tensor", _tensors.reverse),
        ("_reverse_subsequences(Tensor x, Tensor lengths, int dim) -> Tensor", _tensors.reverse),
        ("reverse_subsequences_(Tensor(a!) x, Tensor lengths, int dim) -> ()", _tensors.reverse_in_place),
        ("_reverse_subsequences_(Tensor(a!) x, Tensor lengths, int dim) -> ()", _tensors.reverse_in_place),
    ):
        _name = _library.define(_schema, tags=(torch.Tag.pt2_compliant_tag,))
        for _key in ("CPU", "CUDA"):
            _library.impl(_name, _kernel, _key)

_reverse = torch.ops.dml_cuda.reverse_subsequences.default
_reverse_in_place = torch.ops.dml_cuda.reverse_subsequences_.default
# The same without what autograd and tracing need, and without the time that it takes in Python.
_reverse_without_gradient = torch.ops.dml_cuda._reverse_subsequences.default
_reverse_without_version = torch.ops.dml_cuda._reverse_subsequences_.default
_library.impl("_reverse_subsequences", torch.library.fallthrough_kernel, "Autograd")
_fill = torch.ops.dml_cuda.fill_value_sequence.default

# What an operator object calls. It saves a call of Python. torch.compile does not know it.
_run: Callable[..., Any] = getattr(_reverse_without_gradient, "_op", _reverse_without_gradient)
_run_in_place: Callable[..., Any] = getattr(_reverse_without_version, "_op", _reverse_without_version)

_is_compiling = torch.compiler.is_compiling
_is_tracing = torch._C._is_tracing
_modes = torch._C._len_torch_dispatch_stack
_in_transform = torch._C._are_functorch_transforms_active
_with_gradient = torch.is_grad_enabled


def _fill_impl(
    size: Sequence[int], start: Any, delta: Any, dtype: torch.dtype, device: torch.device
) -> torch.Tensor:
    name = _FILL_TYPES[dtype]
    output = torch.empty(size, dtype=dtype, device=device)
    if output.numel() == 0:
        return output
    ordinal = _tensors.ordinal_of(output)
    bits = [scalar_bits(value, name, what) for value, what in ((start, "start"), (delta, "delta"))]
    address, width = output.data_ptr(), dtype.itemsize
    compiled = _lib.sequence(
        ordinal, (output.numel(),), (width,), width, address & 15 == 0, _lib.DATA_TYPES[name], *bits
    )
    compiled.dispatch(None, 0, address, _tensors.stream(ordinal))
    return output


# A fill has no tensor argument that could select the device.
_library.impl("fill_value_sequence", _fill_impl, "BackendSelect")


def _reverse_fake(x: torch.Tensor, lengths: torch.Tensor, dim: int) -> torch.Tensor:
    checked_dim(x, lengths, dim)
    return torch.empty_like(x)


def _reverse_in_place_fake(x: torch.Tensor, lengths: torch.Tensor, dim: int) -> None:
    checked_dim(x, lengths, dim)


def _fill_fake(size: Sequence[int], start: Any, delta: Any, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.empty(size, dtype=dtype, device=device)


for _name, _fake in (
    ("reverse_subsequences", _reverse_fake),
    ("_reverse_subsequences", _reverse_fake),
    ("reverse_subsequences_", _reverse_in_place_fake),
    ("_reverse_subsequences_", _reverse_in_place_fake),
    ("fill_value_sequence", _fill_fake),
):
    torch.library.register_fake(f"dml_cuda::{_name}", _fake, lib=_library)


def _count_version(keyset: Any, x: torch.Tensor, lengths: torch.Tensor, dim: int) -> None:
    """A backward pass that saved x is then an error, also where x is only traced."""
    torch.autograd.graph.increment_version(x)
    with torch._C._AutoDispatchBelowADInplaceOrView():
        _reverse_in_place.redispatch(keyset & torch._C._after_ADInplaceOrView_keyset, x, lengths, dim)


_library.impl("reverse_subsequences_", _count_version, "ADInplaceOrView", with_keyset=True)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    _, lengths, ctx.dim = inputs
    ctx.save_for_backward(lengths)


def _backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
    # A reversal is its own transpose.
    (lengths,) = ctx.saved_tensors
    return reverse_subsequences(gradient, lengths, ctx.dim), None, None


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


class _Gradient(torch.autograd.Function):  # type: ignore[misc]
    """The gradient of a plain call. It takes less time than that of ``torch.library``."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, lengths: torch.Tensor, dim: int) -> torch.Tensor:
        ctx.dim = dim
        ctx.save_for_backward(lengths)
        return _run(x, lengths, dim)

    backward = staticmethod(_backward)


# What _Gradient.apply calls outside of transforms, where it has nothing to do. It saves a third of the time.
_apply_with_gradient: Callable[..., torch.Tensor] = super(torch.autograd.Function, _Gradient).apply


class _Transformed(torch.autograd.Function):  # type: ignore[misc]
    """Both gradients for the transforms of ``torch.func`` and for forward-mode AD, which do not use gradients of ``torch.library``."""

    generate_vmap_rule = True
    backward = staticmethod(_backward)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        _setup(ctx, inputs, output)
        ctx.save_for_forward(inputs[1])

    @staticmethod
    def jvp(ctx: Any, tangent: torch.Tensor, _lengths: None, _dim: None) -> torch.Tensor:
        # A reversal is linear.
        return _backward(ctx, tangent)[0]

    @staticmethod
    def forward(x: torch.Tensor, lengths: torch.Tensor, dim: int) -> torch.Tensor:
        return _reverse_without_gradient(x, lengths, dim)


def _refused(error: RuntimeError) -> bool:
    """Whether an operator of Rust refused its arguments, or could not allocate. It has then written nothing."""
    return str(error).startswith("dml_cuda::")


def _explained(error: RuntimeError, x: torch.Tensor, lengths: torch.Tensor, dim: int) -> torch.Tensor:
    """Reverses in Python what an operator of Rust refused. This fails too, in the caller's words."""
    check_tensor(x, "x")
    as_lengths(x, lengths)
    if not _refused(error):
        raise error
    if _in_transform():
        raise ValueError(str(error).partition(": ")[2])
    found = _tensors.reverse(x.detach(), lengths, dim)
    if x.requires_grad and _with_gradient():
        raise error
    return found


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
    try:
        if lengths.dtype in NARROW_LENGTHS:
            lengths = lengths.to(torch.int32)
        if _is_compiling() or _is_tracing() or _modes():
            return _reverse(x, lengths, dim)
        if _in_transform() or forward_ad._current_level >= 0:
            return _Transformed.apply(x, lengths, dim)
        if x.requires_grad and _with_gradient():
            return _apply_with_gradient(x, lengths, dim)
        return _run(x, lengths, dim)
    except AttributeError:
        check_tensor(x, "x")
        as_lengths(x, lengths)
        raise
    except RuntimeError as error:
        return _explained(error, x, lengths, dim)


def reverse_subsequences_(x: torch.Tensor, lengths: torch.Tensor, dim: int) -> torch.Tensor:
    """Reverses x in place as :func:`reverse_subsequences` does, and returns x.

    No two elements of x may share memory, and x must not require a gradient.

    >>> import torch, dml_cuda.torch
    >>> x = torch.arange(5)
    >>> dml_cuda.torch.reverse_subsequences_(x, torch.tensor([3]), 0)
    tensor([2, 1, 0, 3, 4])
    """
    try:
        if x.requires_grad and _with_gradient():
            raise ValueError("x requires a gradient, must not if it is reversed in place: use reverse_subsequences")
        if lengths.dtype in NARROW_LENGTHS:
            lengths = lengths.to(torch.int32)
        if _is_compiling() or _is_tracing() or _modes():
            _reverse_in_place(x, lengths, dim)
        else:
            _run_in_place(x, lengths, dim)
    except AttributeError:
        check_tensor(x, "x")
        as_lengths(x, lengths)
        raise
    except RuntimeError as error:
        check_tensor(x, "x")
        as_lengths(x, lengths)
        if not _refused(error):
            raise
        # As in `_explained`.
        _tensors.reverse_in_place(x, lengths, dim)
    return x


def reverse_padded_sequence(x: torch.Tensor, lengths: torch.Tensor, batch_first: bool = False) -> torch.Tensor:
    """Reverses every sequence of a padded batch. The padding stays where it is.

    x: [T, B, ...], or [B, T, ...] with batch_first. lengths: [B], integers on x's device.

    >>> import torch, dml_cuda.torch
    >>> dml_cuda.torch.reverse_padded_sequence(torch.tensor([[1, 2, 0], [3, 4, 5]]), torch.tensor([2, 3]), batch_first=True)
    tensor([[2, 1, 0],
            [5, 4, 3]])
    """
    check_tensor(x, "x")
    rank = x.dim()
    if rank < 2:
        raise ValueError(f"x has {rank} dimensions, must have at least 2: time and batch")
    lengths = as_lengths(x, lengths)
    batch = x.shape[0 if batch_first else 1]
    if lengths.shape != (batch,):
        raise ValueError(f"lengths has shape {list(lengths.shape)}, must have [{batch}], the batch size")
    after = rank - 1 if batch_first else rank - 2
    of_lanes = lengths.view(batch, *(1,) * after) if after else lengths
    return reverse_subsequences(x, of_lanes, 1 if batch_first else 0)


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
    check_tensor(out, "out")
    if (out.shape, out.dtype, out.device) != (x.shape, x.dtype, x.device):
        raise ValueError(f"out has {out.shape}, {out.dtype} on {out.device}, must have x's {x.shape}, {x.dtype} on {x.device}")
    if out.requires_grad and _with_gradient():
        raise ValueError("out requires a gradient, must not")
    _tensors.launch(x, as_lengths(x, lengths), dim, out, False)
    torch.autograd.graph.increment_version(out)
    return out
