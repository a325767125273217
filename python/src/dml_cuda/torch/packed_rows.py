"""Where the rows of a pack are in a padded batch. A row is the features of one step of one sequence.

    padded, [T, B]        pack: the rows of step 0, then those of step 1, ...
    a0 b0 c0
    a1 b1  -              a0 b0 c0 a1 b1 a2      batch sizes 3 2 1, lengths 3 2 1
    a2  -  -

A pack has its sequences in falling order of their lengths. Its batch sizes are on the host, and nothing here waits for a
GPU."""

from typing import Any

import numpy as np
import torch

from ._private import private


def padded_of(
    packed: Any, batch_first: bool, padding_value: float, total_length: int
) -> torch.Tensor:
    """PyTorch's ``pad_packed_sequence`` without the lengths, for whose order it waits for a GPU."""
    data, sizes, _, back = packed
    padded, _ = private("torch._VF._pad_packed_sequence")(
        data, sizes, batch_first, padding_value, total_length
    )
    return (
        padded if back is None else padded.index_select(0 if batch_first else 1, back)
    )  # type: ignore[no-any-return]


def without_sign(lengths: torch.Tensor) -> torch.Tensor:
    """A copy of int64 lengths on a GPU, in which a negative one acts as T, as in the kernels, which read no sign."""
    return lengths & (2**63 - 1)


def padding_of(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Where x, [T, B, ...], is padding."""
    step = torch.arange(x.shape[0], device=x.device).view(-1, *[1] * (x.dim() - 1))
    return step >= lengths.to(x.device, non_blocking=True).view(
        -1, *[1] * (x.dim() - 2)
    )


def lengths_of(sizes: Any) -> Any:
    """The lengths of sequences in falling order, of a pack's batch sizes. Both are arrays on the host."""
    ended = sizes - np.append(sizes[1:], 0)
    return np.repeat(np.arange(1, len(sizes) + 1), ended)[::-1].copy()


def rows_of(
    sizes: torch.Tensor, count: int, batch: int, device: torch.device
) -> torch.Tensor:
    """The rows in a padded batch of a pack's rows. Nothing waits."""
    of_steps = sizes.to(device, non_blocking=True)
    step, row = (
        torch.arange(len(sizes), device=device),
        torch.arange(count, device=device),
    )
    before = of_steps.cumsum(0) - of_steps
    return (
        torch.repeat_interleave(step * batch - before, of_steps, output_size=count)
        + row
    )
