"""PyTorch and its devices, for the tests of dml_cuda.torch. Without PyTorch, a module that imports this one is skipped,
and counted. REQUIRE_CUDA=1 asks for a GPU."""

import os
import unittest

try:
    import torch
except ImportError:
    raise unittest.SkipTest("no PyTorch") from None
import dml_cuda.torch as dt
from torch.utils._python_dispatch import TorchDispatchMode

CUDA = torch.cuda.is_available()
if os.environ.get("REQUIRE_CUDA") == "1" and not CUDA:
    raise SystemExit("REQUIRE_CUDA=1, and there is no PyTorch with a GPU")
DEVICES = ["cpu"] + (["cuda"] if CUDA else [])


class Seen(TorchDispatchMode):
    """A mode that sees every operator."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Module(torch.nn.Module):
    """Calls a function of its parts and of two tensors."""

    def __init__(self, function, *parts):
        super().__init__()
        self.function, self.parts = function, torch.nn.ModuleList(parts)

    def forward(self, x, lengths):
        return self.function(*self.parts, x, lengths)


def model(x, lengths, dim):
    """The reversal as a gather, without this library."""
    size = x.shape[dim]
    t = torch.arange(size, device=x.device).reshape(
        [-1 if d == dim % x.dim() else 1 for d in range(x.dim())]
    )
    clamped = lengths.to(torch.int64).clamp(max=size)
    index = torch.where(t < clamped, clamped - 1 - t, t).expand(x.shape)
    return x.gather(dim, index)


def same(found, required):
    described = [(x.shape, x.dtype, x.device) for x in (found, required)]
    assert described[0] == described[1], described
    bits = lambda x: x.contiguous().view(torch.uint8) if x.dim() else x
    assert torch.equal(bits(found), bits(required)), (found, required)
