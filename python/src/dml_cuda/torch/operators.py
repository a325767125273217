"""PyTorch's operators `dml_cuda::*`: what autograd, transforms, tracers and distributed tensors need to know of them.

The kernels of the reversals are in Rust, and PyTorch calls them without Python. A reversal is linear, and its own
transpose: its tangent is the same reversal of the tangent, its gradient the same reversal of the gradient. One rule at
the autograd key says so, as PyTorch's generated code does for `flip`. Transforms, traces, compiled and exported
programs take it. An eager call that nothing watches usually skips it, because it takes more time than a launch: such a
call runs `Reversal` itself if x requires a gradient, else only the kernel. In place with a gradient, it takes the
rule."""

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.autograd import forward_ad
from torch.library import Library
from torch.overrides import handle_torch_function, has_torch_function_variadic

from .. import _library as _lib
from .._arguments import axis_of_lanes, scalar_bits
from . import vmap
from ._private import exists, private
from .arguments import LENGTHS, as_lengths, raise_named
from .sharding import is_distributed

VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
if VERSION < (2, 8):
    raise ImportError(
        f"dml_cuda.torch needs PyTorch 2.8 or newer, found {torch.__version__}"
    )
# libdml_cuda_torch.so may have registered the operators.
_HAS_KERNEL = "torch._C._dispatch_has_kernel"
if not (exists(_HAS_KERNEL) and private(_HAS_KERNEL)("dml_cuda::reverse_subsequences")):
    _lib.check(_lib.library.dml_cuda_register_torch)

# A module that is imported again replaces the kernels that it had registered, not the operator that it had defined.
if "_definition" not in vars(torch.ops.dml_cuda):
    torch.ops.dml_cuda._definition = Library("dml_cuda", "FRAGMENT")
    torch.ops.dml_cuda._definition.define(
        "fill_value_sequence(SymInt[] size, Scalar start, Scalar delta, ScalarType dtype, Device device) -> Tensor",
        tags=(torch.Tag.pt2_compliant_tag,),
    )
if "_library" in vars(torch.ops.dml_cuda):
    torch.ops.dml_cuda._library._destroy()
_library = torch.ops.dml_cuda._library = Library("dml_cuda", "FRAGMENT")
_ops = torch.ops.dml_cuda
_reverse = _ops.reverse_subsequences.default
_reverse_in_place = _ops.reverse_subsequences_.default
fill = _ops.fill_value_sequence.default

FILL_TYPES = {getattr(torch, name.lower()): name for name in _lib.FILL_TYPES}

_is_compiling = torch.compiler.is_compiling
is_tracing = private("torch._C._is_tracing")
_modes = private("torch._C._len_torch_dispatch_stack")
_function_modes = private("torch._C._is_torch_function_mode_enabled")
_includes = private("torch._C._dispatch_tls_is_dispatch_key_included")
_PRE_DISPATCH = torch._C.DispatchKey.PreDispatch
in_transform = private("torch._C._are_functorch_transforms_active")
_with_gradient = torch.is_grad_enabled
_Tensor = torch.Tensor
_BelowAutograd = private("torch._C._AutoDispatchBelowAutograd")
_after_autograd = private("torch._C._after_autograd_keyset")
_set_tangents = private("torch.autograd.forward_ad._set_fwd_grad_enabled")
_is_single_level = private(
    "torch._C._functorch.get_single_level_autograd_function_allowed"
)
_set_single_level = private(
    "torch._C._functorch.set_single_level_autograd_function_allowed"
)
_unpack_dual = private("torch._VF._unpack_dual")
_DisableDispatch = private("torch._C._DisableTorchDispatch")


def is_traced_or_exported() -> bool:
    """Whether torch.jit.trace or torch.export records the call."""
    return bool(torch.compiler.is_exporting() or is_tracing())


class Reversal(private("torch.autograd.function._SingleLevelFunction")):  # type: ignore[misc]
    """A reversal at one level of autograd. torch.func has a level for each transform, and calls the operator at each.
    below: how the level below reverses x. again: how to reverse a gradient or a tangent."""

    @staticmethod
    def forward(
        ctx: Any,
        below: Any,
        again: Any,
        x: torch.Tensor,
        lengths: torch.Tensor,
        dim: int,
    ) -> torch.Tensor:
        ctx.again, ctx.dim = again, dim
        lengths = (
            lengths.clone() if lengths.is_inference() else lengths
        )  # PyTorch does not save those
        ctx.save_for_backward(lengths)
        ctx.save_for_forward(lengths)
        return below(x, lengths, dim)  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
        (lengths,) = ctx.saved_tensors
        return None, None, ctx.again(gradient, lengths, ctx.dim), None, None

    @staticmethod
    def jvp(
        ctx: Any, _below: None, _again: None, tangent: torch.Tensor, *_: None
    ) -> torch.Tensor:
        (lengths,) = ctx.saved_tensors
        return ctx.again(tangent, lengths, ctx.dim)  # type: ignore[no-any-return]


def follows(x: torch.Tensor) -> bool:
    """Whether autograd follows what happens to x, by gradients or by tangents."""
    if (x.requires_grad and _with_gradient()) or in_transform():
        return True
    if x.layout is not torch.strided:
        return False  # the operator refuses it
    # Compiled programs enter levels of tangents only in C++. No mode sees this look.
    with _DisableDispatch():
        return _unpack_dual(x, level=0)[1] is not None


def _autograd(
    keyset: Any, x: torch.Tensor, lengths: torch.Tensor, dim: int
) -> torch.Tensor:
    if _is_exported_to_onnx():
        from . import onnx  # noqa: F401: registers the reversal for traces
    if not follows(x):
        with _BelowAutograd():
            return _reverse.redispatch(keyset & _after_autograd, x, lengths, dim)
    with_gradient, allowed = _with_gradient(), _is_single_level()

    def below(x: torch.Tensor, lengths: torch.Tensor, dim: int) -> torch.Tensor:
        # PyTorch has turned gradients off for the function. The levels below need them.
        with (
            _BelowAutograd(),
            torch.set_grad_enabled(with_gradient),
            _set_tangents(True),
        ):
            return _reverse.redispatch(keyset & _after_autograd, x, lengths, dim)

    _set_single_level(True)
    try:
        return Reversal.apply(below, reverse_subsequences, x, lengths, dim)
    finally:
        _set_single_level(allowed)


def _autograd_in_place(
    keyset: Any, x: torch.Tensor, lengths: torch.Tensor, dim: int
) -> None:
    # Few transforms work on an exported program that has PyTorch's wrapper for operators in place. copy_ refuses an
    # inference tensor.
    if follows(x) or torch.compiler.is_exporting() or x.is_inference():
        x.copy_(_reverse(x, lengths, dim))
        return
    version = x._version
    with private("torch._C._AutoDispatchBelowADInplaceOrView")():
        _reverse_in_place.redispatch(
            keyset & private("torch._C._after_ADInplaceOrView_keyset"), x, lengths, dim
        )
    if (
        x._version == version
    ):  # x is only traced. The kernels count, so that a backward pass that saved x is an error.
        torch.autograd.graph.increment_version(x)


_library.impl("reverse_subsequences", _autograd, "Autograd", with_keyset=True)
_library.impl("reverse_subsequences_", _autograd_in_place, "Autograd", with_keyset=True)


vmap.register(_library, _reverse, _reverse_in_place)


def _is_exported_to_onnx() -> bool:
    """Whether `torch.onnx.export` runs. Loading it takes longer than loading this package."""
    return "torch.onnx" in sys.modules and torch.onnx.is_in_onnx_export()


def _decompose(name: str, *given: Any) -> Any:
    """What the exporter to ONNX makes of an operator. Others keep the operator."""
    if not _is_exported_to_onnx():
        return NotImplemented
    from . import onnx

    return getattr(onnx, name)(*given)


def _register_lowerings() -> None:
    """Registers the lowerings with Inductor, if it is loaded. Loading it takes seconds. Every program passes the rules
    below before Inductor lowers it."""
    if "torch._inductor.lowering" in sys.modules:
        from . import inductor

        # Where the environment variable CI is set, Inductor refuses to leave an operator with a decomposition as it is.
        if not inductor.register() and exists(_DECOMPOSITIONS):
            private(_DECOMPOSITIONS).pop(_reverse, None)
            private(_DECOMPOSITIONS).pop(fill, None)


def _reverse_fake(x: torch.Tensor, lengths: torch.Tensor, dim: int) -> torch.Tensor:
    _register_lowerings()
    _check_shapes(x, lengths, dim)
    return torch.empty_like(x)


def _check_shapes(x: torch.Tensor, lengths: torch.Tensor, dim: int) -> None:
    """Checks what the kernels check, where sizes may be symbols."""
    as_lengths(x, lengths)
    if lengths.device != x.device:
        raise ValueError(
            f"lengths is on {lengths.device}, but must be on {x.device}, as x is"
        )
    axis_of_lanes(dim, [*x.shape], [*lengths.shape], "dim")


def _fill_fake(
    size: Sequence[int],
    start: Any,
    delta: Any,
    dtype: torch.dtype,
    device: torch.device,
) -> torch.Tensor:
    _register_lowerings()
    return torch.empty(size, dtype=dtype, device=device)


def _fill(
    size: Sequence[int],
    start: Any,
    delta: Any,
    dtype: torch.dtype,
    device: torch.device,
) -> torch.Tensor:
    name = FILL_TYPES[dtype]
    bits = [
        scalar_bits(value, name, what)
        for value, what in ((start, "start"), (delta, "delta"))
    ]
    output = torch.empty(size, dtype=dtype, device=device)
    if output.numel() == 0 or output.is_meta:
        return output
    if output.device.type not in ("cpu", "cuda"):
        raise ValueError(
            f"device is {output.device}, but must be the CPU or a CUDA GPU"
        )
    ordinal = output.device.index if output.is_cuda else None
    stream = (
        0 if ordinal is None else private("torch._C._cuda_getCurrentRawStream")(ordinal)
    )
    of_output = _lib.Array(
        output.data_ptr(), (output.numel(),), None, np.dtype(name.lower()), ordinal
    )
    _lib.fill(of_output, name, bits, _lib.RESULT, stream)
    return output


for _name, _fake in (
    ("reverse_subsequences", _reverse_fake),
    ("reverse_subsequences_", _check_shapes),
):
    torch.library.register_fake(f"dml_cuda::{_name}", _fake, lib=_library)
    torch.library.register_fake(f"dml_cuda::_{_name}", _fake, lib=_library)
torch.library.register_fake("dml_cuda::fill_value_sequence", _fill_fake, lib=_library)
_DECOMPOSITIONS, _META = "torch._decomp.decomposition_table", "torch._decomp.meta_table"
if exists(_DECOMPOSITIONS) and exists(_META):
    private(_DECOMPOSITIONS)[_reverse] = functools.partial(
        _decompose, "decomposed_reversal"
    )
    private(_DECOMPOSITIONS)[fill] = functools.partial(_decompose, "decomposed_fill")
    # Fake tensors prefer these.
    private(_META)[_reverse] = _reverse_fake
    private(_META)[fill] = _fill_fake
# A fill has no tensor argument that could select the device.
_library.impl("fill_value_sequence", _fill, "BackendSelect")

# Where nothing watches a call, the kernels run without the rule above, which takes more time than a launch.
_UNWATCHED = "_reverse_subsequences", "_reverse_subsequences_", "_reverse_padded"
for _name in _UNWATCHED:
    _library.impl(_name, torch.library.fallthrough_kernel, "Autograd")


def _direct(name: str) -> Any:
    """The operator of a name as a function. `_op` is what PyTorch's object for an operator calls in turn."""
    operator = getattr(_ops, name).default
    return getattr(operator, "_op", operator)


_unwatched, _unwatched_in_place, unwatched_padded = map(_direct, _UNWATCHED)


def watched(
    x: torch.Tensor, lengths: torch.Tensor, by_function_modes: bool = True
) -> bool:
    """Whether a tangent, a transform, a mode, a tracer or a subclass of tensors has to see a call, or x or lengths is no
    plain tensor, but for example a Parameter or a list. by_function_modes: a mode of functions counts, such as PyTorch's
    default device is."""
    return bool(
        _is_compiling()
        or type(x) is not _Tensor
        or type(lengths) is not _Tensor
        or _modes()
        or (by_function_modes and _function_modes())
        or in_transform()
        or forward_ad._current_level >= 0
        or is_tracing()
        or _includes(_PRE_DISPATCH)
    )


def reverse_subsequences(x: torch.Tensor, lengths: Any, dim: int) -> torch.Tensor:
    """Reverses the first ``length`` elements of every sequence of x along a dimension, and copies the other elements.

    x: a tensor with 1 dimension or more, any dtype and any strides, on the CPU or a GPU. The result keeps dense layouts
    such as ``channels_last``.
    lengths: integers that broadcast to x's shape with 1 at dim: a tensor on x's device, or Python numbers, which are
    copied there. A length above the size acts as the size. A negative length is an error on the CPU and acts as the
    size on a GPU. Works with autograd, ``torch.func``, ``torch.compile`` and ``torch.export``, as ``torch.flip`` does.

    >>> import torch, dml_cuda.torch
    >>> dml_cuda.torch.reverse_subsequences(torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]]), torch.tensor([[3], [2]]), 1)
    tensor([[3, 2, 1, 4],
            [6, 5, 7, 8]])
    """
    if dim is True or dim is False:  # PyTorch takes it for a number
        raise TypeError(f"dim is {dim}, but must be an integer")
    try:
        if watched(x, lengths):
            if has_torch_function_variadic(x, lengths):
                return handle_torch_function(
                    reverse_subsequences, (x, lengths), x, lengths, dim
                )
            lengths = as_lengths(x, lengths)
            if not _is_compiling():
                is_distributed(x, _reverse)
            return _reverse(x, lengths, dim)
        if lengths.dtype not in LENGTHS:
            lengths = as_lengths(x, lengths)
        if x.requires_grad and _with_gradient():
            return Reversal.apply(_unwatched, reverse_subsequences, x, lengths, dim)
        return _unwatched(x, lengths, dim)  # type: ignore[no-any-return]
    except (AttributeError, RuntimeError) as error:
        raise_named(error, x, lengths, dim)


def reverse_subsequences_(x: torch.Tensor, lengths: Any, dim: int) -> torch.Tensor:
    """Reverses x in place as :func:`reverse_subsequences` does, and returns x.

    No two elements of x may share memory. Where autograd follows x, and inside of ``torch.func``'s transforms, this is
    ``x.copy_(reverse_subsequences(x, lengths, dim))``, which allocates a tensor and copies it, and refuses what
    ``copy_`` refuses: a leaf that requires a gradient, an expanded tensor.

    >>> import torch, dml_cuda.torch
    >>> x = torch.arange(5)
    >>> dml_cuda.torch.reverse_subsequences_(x, torch.tensor([3]), 0)
    tensor([2, 1, 0, 3, 4])
    """
    if dim is True or dim is False:
        raise TypeError(f"dim is {dim}, but must be an integer")
    try:
        if (
            not _is_compiling()
            and type(x) is _Tensor
            and x.is_inference()
            and not torch.is_inference_mode_enabled()
        ):
            x.copy_(x)  # PyTorch's own error
        if not (
            watched(x, lengths)
            or (x.requires_grad and _with_gradient())
            or lengths.dtype not in LENGTHS
        ):
            _unwatched_in_place(x, lengths, dim)
            return x
        if has_torch_function_variadic(x, lengths):
            return handle_torch_function(
                reverse_subsequences_, (x, lengths), x, lengths, dim
            )
        lengths = as_lengths(x, lengths)
        if not _is_compiling() and (
            in_transform()
            or is_distributed(x, _reverse)
            or is_tracing()
            and _is_exported_to_onnx()
        ):
            # functionalize, DTensor and ONNX's exporter accept no operators in place but PyTorch's own.
            x.copy_(_reverse(x, lengths, dim))
        else:
            _reverse_in_place(x, lengths, dim)
    except (AttributeError, RuntimeError) as error:
        raise_named(error, x, lengths, dim)
    return x


def register_builtin(function: Callable[..., Any]) -> None:
    """Registers a function of this package with torch.jit.script."""
    name = "torch.jit._builtins._register_builtin"
    if exists(name):
        private(name)(function, f"dml_cuda::{function.__name__}")


for _function in (reverse_subsequences, reverse_subsequences_):
    _function.__module__ = "dml_cuda.torch"
    register_builtin(_function)
