"""Reversals of padded batches: one length for each sequence."""

from typing import Any

import torch
from torch.overrides import handle_torch_function, has_torch_function_variadic

from .._arguments import check_batch, host_lengths
from .arguments import LENGTHS, as_lengths, check_strided, check_tensor
from .operators import Reversal, in_transform, reverse_subsequences
from .operators import unwatched_padded, watched


def reverse_padded_sequence(
    x: torch.Tensor, lengths: Any, batch_first: bool = False
) -> torch.Tensor:
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
        assert lengths.shape == x.shape[batch : batch + 1], (
            "lengths must have one dimension, the batch size"
        )
        return reverse_subsequences(
            x, lengths.view([-1] + [1] * (x.dim() - 1 - batch)), 1 - batch
        )
    else:
        return _reverse_padded(x, lengths, batch_first)


def _reverse_padded(x: torch.Tensor, lengths: Any, batch_first: bool) -> torch.Tensor:
    dim = 1 if batch_first else 0
    found = _shortest(x, lengths, dim)
    if found is not None:
        return found
    if has_torch_function_variadic(x, lengths):
        return handle_torch_function(
            reverse_padded_sequence, (x, lengths), x, lengths, batch_first=batch_first
        )
    check_tensor(x, "x")
    if x.dim() < 2:
        raise ValueError(
            f"x has shape {[*x.shape]}, but must have at least 2 dimensions: time and batch"
        )
    lengths = as_lengths(x, lengths)
    check_strided(lengths, "lengths")
    option = "batch_first=False" if batch_first else "batch_first=True"
    check_batch([*lengths.shape], [x.shape[1 - dim]], x.shape[dim], option)
    return reverse_batch(x, lengths, of_batch(x, lengths, dim), dim)


def _shortest(x: torch.Tensor, lengths: Any, dim: int) -> torch.Tensor | None:
    """The shortest way for a batch whose time is dimension 0 or 1. None: the longer way has the result, or the error."""
    if watched(x, lengths) or lengths.dtype not in LENGTHS:
        return None
    try:
        if x.requires_grad and torch.is_grad_enabled():
            return Reversal.apply(unwatched_padded, _again, x, lengths, dim)
        return unwatched_padded(x, lengths, dim)  # type: ignore[no-any-return]
    except RuntimeError:
        return None


def _again(x: torch.Tensor, lengths: torch.Tensor, dim: int) -> torch.Tensor:
    found = _shortest(x, lengths, dim)
    return (
        reverse_batch(x, lengths, of_batch(x, lengths, dim), dim)
        if found is None
        else found
    )


def of_batch(x: torch.Tensor, lengths: torch.Tensor, dim: int) -> torch.Tensor:
    """The lengths of a batch whose time is dimension 0 or 1, as they broadcast to x."""
    after = x.dim() - 2 + dim
    return lengths.view(x.shape[1 - dim], *(1,) * after) if after else lengths


def reverse_batch(
    x: torch.Tensor, lengths: torch.Tensor, of_lanes: torch.Tensor, dim: int
) -> torch.Tensor:
    """Reverses by a view of lengths with one dimension. An error has their own index."""
    try:
        return reverse_subsequences(x, of_lanes, dim)
    except ValueError:
        if lengths.is_cpu and not in_transform():
            host_lengths(lengths.numpy())
        raise


reverse_padded_sequence.__module__ = "dml_cuda.torch"
