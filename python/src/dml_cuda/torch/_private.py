"""The private names of PyTorch that this package uses, what for, and the versions in which each was seen. A version
without one of them still imports the package: what needs the name raises an error that says so."""

import functools
import importlib
from typing import Any

import torch

_SEEN = "2.8 to 2.15"
NAMES = {
    "torch._C._AutoDispatchBelowADInplaceOrView": ("reversals in place", _SEEN),
    "torch._C._AutoDispatchBelowAutograd": ("traced and transformed reversals", _SEEN),
    "torch._C._DisableTorchDispatch": ("traced and transformed reversals", _SEEN),
    "torch._C._after_ADInplaceOrView_keyset": ("reversals in place", _SEEN),
    "torch._C._after_autograd_keyset": ("traced and transformed reversals", _SEEN),
    "torch._C._are_functorch_transforms_active": ("reversals", _SEEN),
    "torch._C._cuda_getCurrentRawStream": ("fill_value_sequence on a GPU", _SEEN),
    "torch._C._dispatch_has_kernel": (
        "operators that libdml_cuda_torch.so registered",
        _SEEN,
    ),
    "torch._C._dispatch_tls_is_dispatch_key_included": ("reversals", _SEEN),
    "torch._C._functorch.get_single_level_autograd_function_allowed": (
        "traced and transformed reversals",
        _SEEN,
    ),
    "torch._C._functorch.set_single_level_autograd_function_allowed": (
        "traced and transformed reversals",
        _SEEN,
    ),
    "torch._C._is_torch_function_mode_enabled": ("reversals", _SEEN),
    "torch._C._is_tracing": ("reversals", _SEEN),
    "torch._C._len_torch_dispatch_stack": ("reversals", _SEEN),
    "torch._decomp.decomposition_table": (
        "the error of torch.onnx.export without a translation table",
        _SEEN,
    ),
    "torch._decomp.meta_table": (
        "the error of torch.onnx.export without a translation table",
        _SEEN,
    ),
    "torch._VF._pad_packed_sequence": ("RNNs with lengths", _SEEN),
    "torch._VF._unpack_dual": ("forward-mode derivatives", _SEEN),
    "torch._compile._disable_dynamo": ("RNNs with lengths beside torch.compile", _SEEN),
    "torch._dynamo.exc.Unsupported": ("packs beside torch.compile", _SEEN),
    "torch._guards.TracingContext": ("packs beside torch.compile", _SEEN),
    "torch.autograd.forward_ad._current_level": ("reversals", _SEEN),
    "torch.autograd.forward_ad._set_fwd_grad_enabled": (
        "traced and transformed reversals",
        _SEEN,
    ),
    "torch.autograd.function._SingleLevelFunction": ("gradients of reversals", _SEEN),
    "torch.jit._builtins._register_builtin": (
        "torch.jit.script of this package's functions",
        _SEEN,
    ),
}


class _Missing(type):
    """Raises whatever is done with it: called, read, combined, or derived from and then used."""

    def _raise(cls, *_: Any, **__: Any) -> Any:
        raise RuntimeError(cls.__doc__)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return cls._raise()

    __call__ = __rand__ = _raise


def exists(name: str) -> bool:
    return not isinstance(private(name), _Missing)


@functools.cache
def private(name: str) -> Any:
    """The object with this name, which must be in NAMES."""
    words = f"PyTorch {torch.__version__} has no {name}, but dml_cuda.torch needs it for {NAMES[name][0]}"
    module, _, rest = name.partition(".")
    found: Any = importlib.import_module(module)
    for part in rest.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            return _Missing("Missing", (), {"__doc__": words})
    return found
