"""Reversals of distributed tensors."""

import functools
import sys
from typing import Any

import torch


@functools.lru_cache(maxsize=1)
def _register_sharding(operator: Any) -> None:
    """For distributed tensors: sharded along any dimension but the axis, the lengths too where they have that
    dimension, else replicated."""
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.experimental import register_sharding

    @register_sharding(operator)  # type: ignore[untyped-decorator]
    def _placements(
        x: Any, lengths: Any, dim: int
    ) -> list[tuple[list[Any], list[Any]]]:
        found = [([Replicate()], [Replicate(), Replicate(), None])]
        missing = x.ndim - len(lengths.shape)
        for d in range(x.ndim):
            if d != dim % x.ndim:
                has_dimension = d >= missing and lengths.shape[d - missing] != 1
                of_lengths = Shard(d - missing) if has_dimension else Replicate()
                found.append(([Shard(d)], [Shard(d), of_lengths, None]))
        return found


def is_distributed(x: torch.Tensor, operator: Any) -> bool:
    """Whether x is a DTensor, for which the operator of a reversal then is ready."""
    module = sys.modules.get("torch.distributed.tensor")
    if module is None or not isinstance(x, module.DTensor):
        return False
    _register_sharding(operator)
    return True
