"""The two operators on PyTorch tensors. They trace, compile, export and differentiate, and CUDA graphs can capture
them. On a GPU a call queues work on PyTorch's current stream. It allocates only the result, copies nothing and waits
for nothing."""

from collections.abc import Sequence
from typing import Any

import torch
from torch.overrides import handle_torch_function, has_torch_function_variadic

from .._arguments import check_batch, integer, shown
from .packing import pack_padded_sequence, pad_packed_sequence
from .rnn import GRU, LSTM, RNN, convert_rnns
from .operators import FILL_TYPES, as_lengths, check_strided, check_tensor, fill, register_builtin, reverse_batch
from .operators import reverse_padded, reverse_subsequences, reverse_subsequences_

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "convert_rnns",
    "fill_value_sequence",
    "onnx_translation_table",
    "pack_padded_sequence",
    "pad_packed_sequence",
    "reverse_padded_sequence",
    "reverse_subsequences",
    "reverse_subsequences_",
]


def reverse_padded_sequence(x: torch.Tensor, lengths: Any, batch_first: bool = False) -> torch.Tensor:
    """Reverses every sequence of a padded batch. The padding stays where it is.

    x: [T, B, ...], or [B, T, ...] with batch_first. lengths: [B], as for :func:`reverse_subsequences`. Sequences that
    are padded on the left: ``reverse_padded_sequence(x.flip(1), lengths, True).flip(1)``.

    >>> import torch, dml_cuda.torch
    >>> dml_cuda.torch.reverse_padded_sequence(torch.tensor([[1, 2, 0], [3, 4, 5]]), torch.tensor([2, 3]), True)
    tensor([[2, 1, 0],
            [5, 4, 3]])
    """
    if torch.jit.is_scripting():
        batch = 0 if batch_first else 1
        assert isinstance(lengths, torch.Tensor), "lengths must be a tensor"
        assert lengths.shape == x.shape[batch : batch + 1], "lengths must have one dimension, the batch size"
        return reverse_subsequences(x, lengths.view([-1] + [1] * (x.dim() - 1 - batch)), 1 - batch)
    else:
        return _reverse_padded(x, lengths, batch_first)


def _reverse_padded(x: torch.Tensor, lengths: Any, batch_first: bool) -> torch.Tensor:
    found = reverse_padded(x, lengths, 1 if batch_first else 0)
    if found is not None:
        return found
    if has_torch_function_variadic(x, lengths):
        return handle_torch_function(reverse_padded_sequence, (x, lengths), x, lengths, batch_first=batch_first)
    check_tensor(x, "x")
    rank = x.dim()
    if rank < 2:
        raise ValueError(f"x has {rank} dimensions, but must have at least 2: time and batch")
    lengths = as_lengths(x, lengths)
    check_strided(lengths, "lengths")
    batch = x.shape[0 if batch_first else 1]
    check_batch([*lengths.shape], [batch])
    after = rank - 1 if batch_first else rank - 2
    of_lanes = lengths.view(batch, *(1,) * after) if after else lengths
    return reverse_batch(x, lengths, of_lanes, 1 if batch_first else 0)


def fill_value_sequence(
    size: Sequence[int] | int,
    start: float,
    delta: float,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | int | None = None,
) -> torch.Tensor:
    """A tensor whose element i, in row-major order, is ``start + i * delta``. Integers wrap. Floats are rounded as
    DirectML's page says.

    dtype: float32, float16, or integers of 8 to 64 bits. Unsigned dtypes accept negative numbers.
    device: as for ``torch.arange``. None is PyTorch's default device.

    >>> import torch, dml_cuda.torch
    >>> dml_cuda.torch.fill_value_sequence((2, 3), 10, -2, torch.uint8)
    tensor([[10,  8,  6],
            [ 4,  2,  0]], dtype=torch.uint8)
    """
    if dtype not in FILL_TYPES:
        raise TypeError(f"dtype is {shown(dtype)}, but must be float32, float16, or integers of 8 to 64 bits")
    for value, name in ((start, "start"), (delta, "delta")):
        if isinstance(value, bool) or not isinstance(value, (int, float, torch.SymInt, torch.SymFloat)):
            found = "a tensor: take its item()" if isinstance(value, torch.Tensor) else shown(value)
            raise TypeError(f"{name} is {found}, but must be a number")
        if isinstance(value, int) and not -(2**63) <= value < 2**64:
            raise ValueError(f"{name} is {shown(value)}, but must be a number of {dtype}")
    given = size if isinstance(size, (tuple, list)) else [size]
    sizes = [n if type(n) in (int, torch.SymInt) else integer(n, "size") for n in given]
    if any(isinstance(n, int) and n < 0 for n in sizes):
        raise ValueError(f"size is {sizes}, but must have numbers of at least 0")
    # PyTorch itself finds the device, also while it compiles.
    place = torch.empty(0, device=device).device
    return fill(sizes, start, delta, dtype, place)


register_builtin(fill_value_sequence)


def onnx_translation_table() -> dict[Any, Any]:
    """The reversals in ONNX's standard operators: ``torch.onnx.export(…,
    custom_translation_table=dml_cuda.torch.onnx_translation_table())``.

    A reversal becomes ReverseSequence if one of the first two dimensions is dim and only the other has lengths, else a
    gather. ONNX Runtime then runs the model alone. With :func:`dml_cuda.onnxruntime_library_path` it can run
    ReverseSequence by this library's kernels.

    With ``dynamo=False`` PyTorch's exporter needs no table: this package registers the same translation when the export
    traces a reversal. A module of ``torch.jit.script`` is not traced: call this function once before its export.
    """
    from . import onnx

    onnx.register()
    return {torch.ops.dml_cuda.reverse_subsequences.default: onnx.reverse_subsequences}


def _out(x: torch.Tensor, lengths: Any, dim: int, out: Any) -> torch.Tensor:
    """`dml_cuda.reverse_subsequences` of a tensor."""
    if out is None:
        return reverse_subsequences(x, lengths, dim)
    if out is x:
        return reverse_subsequences_(x, lengths, dim)
    check_tensor(x, "x")
    check_tensor(out, "out")
    if (out.shape, out.dtype, out.device) != (x.shape, x.dtype, x.device):
        raise ValueError(f"out has {out.shape}, {out.dtype} on {out.device}, but must have x's {x.shape}, {x.dtype} on {x.device}")
    return out.copy_(reverse_subsequences(x, lengths, dim))
