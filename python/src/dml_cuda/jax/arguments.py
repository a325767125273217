"""Arrays and lengths as the functions for JAX take them."""

import re
from typing import Any

import jax
import numpy as np

from .._arguments import host_lengths, of_type, wrong_lengths


def as_array(x: Any, name: str) -> tuple[Any, np.dtype[Any]]:
    """Returns x as an array of JAX, and its dtype. x: an array of JAX, a NumPy array, or what has `__jax_array__`."""
    if (
        isinstance(x, np.ndarray)
        and not isinstance(x, np.ma.MaskedArray)
        or hasattr(type(x), "__jax_array__")
    ):
        x = jax.numpy.asarray(x)
    if not isinstance(x, jax.Array):
        raise TypeError(
            f"{name} is {of_type(x, full=True)}, but must be an array of JAX or NumPy"
        )
    try:
        dtype = np.dtype(x.dtype)
    except TypeError:
        raise TypeError(
            f"{name} has dtype {x.dtype}, but must have one of numbers or bool: see jax.random.key_data for keys"
        ) from None
    # int4 and similar types are packed on some devices.
    if re.fullmatch(r"u?(int|float)[1-7](_.*)?", dtype.name):
        raise TypeError(
            f"{name} has dtype {x.dtype}, but must have one whose elements are whole bytes"
        )
    return x, dtype


def as_lengths(lengths: Any) -> Any:
    """The lengths as integers of 32 or 64 bits. Numbers of the host are checked now, and become a constant of the
    program."""
    leaves = jax.tree.leaves(lengths) if isinstance(lengths, (list, tuple)) else ()
    has_arrays = any(isinstance(leaf, jax.Array) for leaf in leaves)
    if has_arrays or hasattr(type(lengths), "__jax_array__"):
        lengths = jax.numpy.asarray(lengths)
    if not isinstance(lengths, jax.Array):
        return np.minimum(host_lengths(lengths), np.iinfo(np.uint32).max).astype(
            np.uint32
        )
    if not jax.numpy.issubdtype(lengths.dtype, np.integer):
        raise wrong_lengths(lengths.dtype)
    return lengths if lengths.dtype.itemsize >= 4 else lengths.astype(np.int32)
