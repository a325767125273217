"""RNNs over padded batches, and the two operators on PyTorch tensors.

:func:`convert_rnns` makes the ``nn.LSTM``, ``nn.GRU`` and ``nn.RNN`` of a model run padded batches without cuDNN's
packed passes where that is faster. :func:`pack_padded_sequence` and :func:`pad_packed_sequence`, in the place of PyTorch's, feed them.
:class:`LSTM`, :class:`GRU` and :class:`RNN` also take ``lengths=``.

The operators trace, compile, export and differentiate, and CUDA graphs can capture them. On a GPU a call queues work on
PyTorch's current stream. With lengths on that GPU it usually allocates only the result, copies nothing and waits for
nothing. x is copied if its dimensions do not fold into 8, and if autograd follows a reversal in place."""

from collections.abc import Sequence
from typing import Any

import torch

from .._arguments import integer, of_type, shown
from .arguments import check_tensor
from .padded_reversal import reverse_padded_sequence
from .operators import (
    FILL_TYPES,
    fill,
    register_builtin,
    reverse_subsequences,
    reverse_subsequences_,
)
from .packing import pack_padded_sequence, pad_packed_sequence
from .rnn import GRU, LSTM, RNN
from .rnn_conversion import convert_rnns, restore_rnns

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "convert_rnns",
    "fill_value_sequence",
    "pack_padded_sequence",
    "pad_packed_sequence",
    "restore_rnns",
    "reverse_padded_sequence",
    "reverse_subsequences",
    "reverse_subsequences_",
]


def fill_value_sequence(
    size: Sequence[int] | int,
    start: float,
    delta: float,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | int | None = None,
) -> torch.Tensor:
    """A tensor whose element i, in row-major order, is ``start + i * delta``. Integers wrap. Floats are one
    fused multiply-add, rounded once (docs/directml.md).

    dtype: float32, float16, or integers of 8 to 64 bits. Unsigned dtypes accept negative numbers.
    device: as for ``torch.arange``. None is PyTorch's default device.

    >>> import torch, dml_cuda.torch
    >>> dml_cuda.torch.fill_value_sequence((2, 3), 10, -2, torch.uint8)
    tensor([[10,  8,  6],
            [ 4,  2,  0]], dtype=torch.uint8)
    """
    if dtype not in FILL_TYPES:
        raise TypeError(
            f"dtype is {shown(dtype)}, but must be float32, float16, or integers of 8 to 64 bits"
        )
    for value, name in ((start, "start"), (delta, "delta")):
        if isinstance(value, bool) or not isinstance(
            value, (int, float, torch.SymInt, torch.SymFloat)
        ):
            advice = ": take its item()" if isinstance(value, torch.Tensor) else ""
            raise TypeError(
                f"{name} is {of_type(value) if advice else shown(value)}, but must be a number{advice}"
            )
        if isinstance(value, int) and not -(2**63) <= value < 2**64:
            raise ValueError(
                f"{name} is {shown(value)}, but must be a number of {dtype}"
            )
    given = size if isinstance(size, (tuple, list)) else [size]
    sizes = [n if type(n) in (int, torch.SymInt) else integer(n, "size") for n in given]
    if any(isinstance(n, int) and n < 0 for n in sizes):
        raise ValueError(f"size is {sizes}, but must have numbers of at least 0")
    # PyTorch itself finds the device, also while it compiles.
    place = torch.empty(0, device=device).device
    return fill(sizes, start, delta, dtype, place)


register_builtin(fill_value_sequence)


def _out(x: torch.Tensor, lengths: Any, dim: int, out: Any) -> torch.Tensor:
    """`dml_cuda.reverse_subsequences` of a tensor."""
    if out is None:
        return reverse_subsequences(x, lengths, dim)
    if out is x:
        return reverse_subsequences_(x, lengths, dim)
    check_tensor(x, "x")
    check_tensor(out, "out")
    if (out.shape, out.dtype, out.device) != (x.shape, x.dtype, x.device):
        raise ValueError(
            f"out has {out.shape}, {out.dtype} on {out.device}, but must have x's {x.shape}, {x.dtype} on {x.device}"
        )
    return out.copy_(reverse_subsequences(x, lengths, dim))
