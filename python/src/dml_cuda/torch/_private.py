"""The private names of PyTorch that this package uses, and what for. PyTorch 2.8 to 2.15 have all of them. A version
without one of them still imports the package: what needs the name raises an error that says so."""

import functools
import importlib
from typing import Any

import torch

NAMES = {
    "torch._C._AutoDispatchBelowADInplaceOrView": "reversals in place",
    "torch._C._AutoDispatchBelowAutograd": "traced and transformed reversals",
    "torch._C._DisableTorchDispatch": "traced and transformed reversals",
    "torch._C._after_ADInplaceOrView_keyset": "reversals in place",
    "torch._C._after_autograd_keyset": "traced and transformed reversals",
    "torch._C._are_functorch_transforms_active": "reversals",
    "torch._C._cuda_getCurrentRawStream": "fill_value_sequence on a GPU",
    "torch._C._dispatch_has_kernel": "operators that libdml_cuda_torch.so registered",
    "torch._C._dispatch_tls_is_dispatch_key_included": "reversals",
    "torch._C._functorch.get_single_level_autograd_function_allowed": "traced and transformed reversals",
    "torch._C._functorch.set_single_level_autograd_function_allowed": "traced and transformed reversals",
    "torch._C._is_torch_function_mode_enabled": "reversals",
    "torch._C._is_tracing": "reversals",
    "torch._C._len_torch_dispatch_stack": "reversals",
    "torch._decomp.decomposition_table": "the error of torch.onnx.export without a translation table",
    "torch._decomp.meta_table": "the error of torch.onnx.export without a translation table",
    "torch._VF._pad_packed_sequence": "RNNs with lengths",
    "torch._VF._unpack_dual": "forward-mode derivatives",
    "torch._compile._disable_dynamo": "RNNs with lengths beside torch.compile",
    "torch._dynamo.exc.Unsupported": "packs beside torch.compile",
    "torch._guards.TracingContext": "packs beside torch.compile",
    "torch.autograd.forward_ad._current_level": "reversals",
    "torch.autograd.forward_ad._set_fwd_grad_enabled": "traced and transformed reversals",
    "torch.autograd.function._SingleLevelFunction": "gradients of reversals",
    "torch.jit._builtins._register_builtin": "torch.jit.script of this package's functions",
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
    words = f"PyTorch {torch.__version__} has no {name}, but dml_cuda.torch needs it for {NAMES[name]}"
    module, _, rest = name.partition(".")
    found: Any = importlib.import_module(module)
    for part in rest.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            return _Missing("Missing", (), {"__doc__": words})
    return found
