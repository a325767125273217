"""Rules for interpreters of JAX that few programs load: sparse arrays and the roofline."""

import math
import sys
from typing import Any

import numpy as np

from .primitive import REVERSE, positions


def _sparse(environment: Any, *values: Any, axis: int, **_: Any) -> Any:
    """The rule of `sparse.sparsify`: stored elements stay where they are, and get new indices."""
    from jax.experimental.sparse import BCOO, bcoo_update_layout, transform

    x, lengths = transform.spvalues_to_arrays(environment, values)
    x = bcoo_update_layout(x, n_batch=0, n_dense=0, on_inefficient=None)
    lane = tuple(
        x.indices[:, d] if size != 1 else 0 for d, size in enumerate(lengths.shape)
    )
    there = positions(
        x.indices[:, axis].astype(np.uint32), lengths[lane], x.shape[axis]
    )
    indices = x.indices.at[:, axis].set(there.astype(x.indices.dtype))
    reversed_x = BCOO((x.data, indices), shape=x.shape, unique_indices=x.unique_indices)
    return transform.arrays_to_spvalues(environment, [reversed_x])


def _roofline(context: Any, *arrays: Any, **_: Any) -> Any:
    from jax.experimental.roofline import RooflineResult

    bytes_of = lambda kind: math.prod(kind.shape) * kind.dtype.itemsize
    return RooflineResult(
        unfused_hbm_bytes=sum(map(bytes_of, (*context.avals_in, *context.avals_out)))
    )


def register_interpreters() -> None:
    """Gives the interpreters of JAX that are loaded their rules. Loading them here would take half a second."""
    if sparse := sys.modules.get("jax.experimental.sparse.transform"):
        sparse.sparse_rules_bcoo[REVERSE] = _sparse
    if roofline := sys.modules.get("jax.experimental.roofline"):
        roofline.register_roofline(REVERSE)(_roofline)
