"""The rule of `torch.func.vmap` for reversals: a batch is one more dimension in front of x and of the lengths."""

from typing import Any

import torch
from torch.library import Library

from .._arguments import axis_of_lanes


def register(library: Library, reverse: Any, reverse_in_place: Any) -> None:
    """Registers the rule for both operators."""

    def of_reversal(
        info: Any, in_dims: tuple[int | None, ...], x: Any, lengths: Any, dim: int
    ) -> tuple[torch.Tensor, int]:
        if in_dims[0] is None:
            x = x.expand(info.batch_size, *x.shape)
        return reverse(*_batched(in_dims, x, lengths, dim)), 0

    def of_reversal_in_place(
        info: Any, in_dims: tuple[int | None, ...], x: Any, lengths: Any, dim: int
    ) -> tuple[None, None]:
        if in_dims[0] is None:
            raise ValueError(
                "x must be batched by vmap, as lengths are, to be reversed in place"
            )
        reverse_in_place(*_batched(in_dims, x, lengths, dim))
        return None, None

    for name, rule in (
        ("reverse_subsequences", of_reversal),
        ("reverse_subsequences_", of_reversal_in_place),
    ):
        torch.library.register_vmap(f"dml_cuda::{name}", rule, lib=library)


def _batched(
    in_dims: tuple[int | None, ...], x: Any, lengths: Any, dim: int
) -> tuple[Any, Any, int]:
    """The arguments with the batch in front. x stays a view."""
    of_x, of_lengths, _ = in_dims
    x = x if of_x is None else x.movedim(of_x, 0)
    lengths = lengths if of_lengths is None else lengths.movedim(of_lengths, 0)
    # What does not fit one element of the batch must not reach the others.
    of_element = lengths.shape if of_lengths is None else lengths.shape[1:]
    axis = axis_of_lanes(dim, [*x.shape[1:]], [*of_element], "dim")
    if of_lengths is not None:
        lengths = lengths.reshape(
            lengths.shape[:1] + (1,) * (x.dim() - 1 - len(of_element)) + of_element
        )
    return x, lengths, axis + 1
