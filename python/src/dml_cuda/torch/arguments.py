"""The arguments of PyTorch's functions: what they are turned into, and errors that name them.

Eager calls that this package's kernels accept do not come here, unless something watches them. An error of a kernel
does: `raise_named` looks for what is wrong with the arguments, and else says what the kernel said."""

from typing import Any, NoReturn

import numpy as np
import torch

from .._arguments import axis_from_front, check_kind, host_lengths, is_masked
from .._arguments import of_type, shown, wrong_lengths

LENGTHS = frozenset((torch.int32, torch.uint32, torch.int64, torch.uint64))
_NARROW_LENGTHS = frozenset((torch.int8, torch.uint8, torch.int16, torch.uint16))


def as_lengths(x: torch.Tensor, lengths: Any) -> torch.Tensor:
    """Lengths as a tensor of a dtype that the operators take."""
    if not isinstance(lengths, torch.Tensor):
        check_tensor(x, "x")
        lengths = _made_near(x, lengths)
    check_tensor(lengths, "lengths")
    if lengths.dtype in LENGTHS:
        return lengths
    if lengths.dtype in _NARROW_LENGTHS:
        return lengths.to(torch.int32)
    raise wrong_lengths(lengths.dtype, ".long()")


def _made_near(x: torch.Tensor, lengths: Any) -> torch.Tensor:
    """A tensor of Python's or NumPy's numbers on x's device. It is a copy, which the backward pass may keep."""
    try:
        if isinstance(lengths, torch.SymInt):
            return torch.full((), lengths, dtype=torch.int64, device=x.device)
        if isinstance(lengths, int) and not isinstance(lengths, bool):
            fitting = max(-(2**63), min(lengths, 2**63 - 1))
            return torch.full((), fitting, dtype=torch.int64, device=x.device)
        if not torch.compiler.is_compiling():
            check_kind(lengths)
        made = torch.tensor(lengths, device=x.device)
        # PyTorch makes floats of an empty list.
        is_empty = isinstance(lengths, (list, tuple)) and not made.numel()
        return made.long() if is_empty else made
    except (TypeError, ValueError, RuntimeError):
        if not isinstance(lengths, (np.ndarray, list, tuple)) or is_masked(lengths):
            raise TypeError(
                f"lengths is {shown(lengths)}, but must be a tensor, or integers"
            ) from None
        # Integers that PyTorch does not read: above int64, in another byte order, or with negative strides.
        host = host_lengths(lengths).astype(np.uint64)
        return torch.tensor(host, device=x.device)


def check_tensor(x: Any, name: str) -> None:
    """Refuses what is no dense tensor."""
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{name} is {of_type(x)}, but must be a tensor")
    if x.is_nested:
        advice = "pad it (torch.nested.to_padded_tensor), and take [len(row) for row in x.unbind()] as the lengths of x"
        raise TypeError(
            f"{name} is a nested tensor, but must be dense: {advice}"
        ) from None


def check_strided(x: torch.Tensor, name: str) -> None:
    """Refuses sparse layouts."""
    if x.layout is not torch.strided:
        raise TypeError(
            f"{name} has layout {x.layout}, but must have torch.strided: see to_dense()"
        ) from None


def raise_named(error: Exception, x: Any, lengths: Any, dim: Any) -> NoReturn:
    """Raises an operator's error in the caller's words."""
    check_tensor(x, "x")
    if not isinstance(dim, (int, torch.SymInt)):
        raise TypeError(f"dim is {shown(dim)}, but must be an integer") from None
    for name, tensor in (("x", x), ("lengths", lengths)):
        if not isinstance(tensor, torch.Tensor):
            continue  # numbers
        check_tensor(tensor, name)
        if tensor.is_quantized:
            raise TypeError(f"{name} is quantized: reverse its int_repr()") from None
        check_strided(tensor, name)
    axis_from_front(dim, x.shape, "dim")  # an integer may be too large for PyTorch
    words = str(error)
    if words.startswith("dml_cuda::") and not isinstance(error, torch.OutOfMemoryError):
        # The exception of a kernel has nothing but its text. An allocation that failed fails again, with PyTorch's own
        # error.
        if "PyTorch's aoti_torch_" in words:
            torch.empty_like(x)
        raise ValueError(words.partition(": ")[2]) from None
    raise error
