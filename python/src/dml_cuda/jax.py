"""The operators for JAX: they work in ``jit``, ``grad``, ``jvp``, ``vmap``, ``scan``, ``shard_map`` and ``export``, on
the CPU and on GPUs.

XLA calls this library's handlers, which are the custom calls ``dml_cuda_reverse_subsequences`` and
``dml_cuda_fill_value_sequence``, or compiles the same arithmetic of jax.numpy together with what surrounds it.
"""

import functools
import math
import pathlib
import re
import sys
from typing import Any, Literal, SupportsIndex

import jax
import numpy as np
from jax.experimental import jet
from jax.experimental.custom_partitioning import custom_partitioning
from jax.extend.core import Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir
from jax.sharding import NamedSharding, PartitionSpec

from . import _library as lib
from ._arguments import (
    Number,
    Shape,
    axis_from_front,
    axis_of_lanes,
    check_batch,
    fill_shape,
    fill_type,
)
from ._arguments import (
    host_lengths,
    of_type,
    refuse_ambiguous,
    scalar_bits,
    shown,
    wrong_lengths,
)

__all__ = ["fill_value_sequence", "reverse_padded_sequence", "reverse_subsequences"]

Implementation = Literal["kernel", "xla"] | None


def _check_versions(version: tuple[int, ...], header: str) -> None:
    """Refuses a JAX that is too old, and one whose foreign function interface is another than the handlers'."""
    if version < (0, 6, 0):
        raise ImportError(
            f"JAX is {'.'.join(map(str, version))}, but must be 0.6.0 or newer for dml_cuda.jax"
        )
    found = re.search(r"#define XLA_FFI_API_MAJOR (\d+)", header)
    if found and found[1] != "0":
        raise ImportError(
            f"jaxlib has version {found[1]} of XLA's foreign function interface, but must have 0: use another jaxlib or dml-cuda"
        )


_header = pathlib.Path(jax.ffi.include_dir(), "xla/ffi/api/c_api.h")
_check_versions(jax.__version_info__, _header.read_text() if _header.exists() else "")
for _name in ("reverse_subsequences", "fill_value_sequence"):
    for _platform in ("cpu", "CUDA"):
        _handler = getattr(lib.library, f"dml_cuda_xla_{_name}_{_platform.lower()}")
        jax.ffi.register_ffi_target(
            f"dml_cuda_{_name}", jax.ffi.pycapsule(_handler), platform=_platform
        )


# ---- Reversals ------------------------------------------------------------------------------------------------
#
# A primitive has the rules for derivatives and vmap. It is lowered to XLA's own operations, or to a call with the rule
# for partitions, and that to the custom call. Its lengths have as many dimensions as x: 1 or x's size, and 1 at the
# axis.


def _custom_call(x: Any, lengths: Any, axis: int, in_place: bool) -> Any:
    if (
        x.ndim > 8
    ):  # these dimensions fold into those of a descriptor if both arrays are packed
        lengths = jax.numpy.broadcast_to(
            lengths, (*x.shape[:axis], 1, *x.shape[axis + 1 :])
        )
    aliases = {0: 0} if in_place else None
    call = jax.ffi.ffi_call(
        "dml_cuda_reverse_subsequences", jax.typeof(x), input_output_aliases=aliases
    )
    return call(x, lengths, axis=np.int64(axis))


_sharded = custom_partitioning(_custom_call, static_argnums=(2, 3))


def _specs(
    sharding: Any, lengths: Any, axis: int, rank: int
) -> tuple[PartitionSpec, PartitionSpec]:
    """The splits of x and the lengths for a split of the result, which may be any except along the axis."""
    spec = list(getattr(sharding, "spec", ()))
    spec += [None] * (rank - len(spec))
    spec[axis] = None
    of_lengths = [
        part if size != 1 else None for part, size in zip(spec, lengths.shape)
    ]
    return PartitionSpec(*spec), PartitionSpec(*of_lengths)


def _partition(
    axis: int, in_place: bool, mesh: Any, arguments: Any, result: Any
) -> Any:
    specs = _specs(result.sharding, arguments[1], axis, len(result.shape))
    of_x, of_lengths = (NamedSharding(mesh, spec) for spec in specs)
    return (
        mesh,
        lambda x, lengths: _custom_call(x, lengths, axis, in_place),
        of_x,
        (of_x, of_lengths),
    )


def _infer_sharding(
    axis: int, in_place: bool, mesh: Any, arguments: Any, result: Any
) -> Any:
    x, lengths = arguments
    return NamedSharding(mesh, _specs(x.sharding, lengths, axis, len(result.shape))[0])


def _sharding_rule(
    axis: int, in_place: bool, mesh: Any, arguments: Any, results: Any
) -> Any:
    """Shardy's rule: a dimension of the lengths is split as x's, if it is not 1. `_partition` gathers an axis that is
    split."""
    x, lengths = (mlir.ir.RankedTensorType(argument).shape for argument in arguments)
    of_x = [f"x{d}" for d in range(len(x))]
    of_lengths = [f"x{d}" if size != 1 else f"l{d}" for d, size in enumerate(lengths)]
    return f"{' '.join(of_x)}, {' '.join(of_lengths)} -> {' '.join(of_x)}"


_sharded.def_partition(_partition, _infer_sharding, sharding_rule=_sharding_rule)


_reverse_p = Primitive("dml_cuda_reverse_subsequences")
_reverse_p.def_abstract_eval(lambda x, lengths, **_: x)
_reverse_p.def_impl(lambda x, lengths, *, call, **_: jaxpr_as_fun(call)(x, lengths)[0])
mlir.register_lowering(
    _reverse_p, mlir.lower_fun(_reverse_p.impl, multiple_results=False)
)


def _by_xla(x: Any, lengths: Any, axis: int, _in_place: bool) -> Any:
    size = x.shape[axis]
    here = jax.lax.broadcasted_iota(
        np.uint32, [size if d == axis else 1 for d in range(x.ndim)], axis
    )
    return jax.numpy.take_along_axis(
        x, _there(here, lengths, size), axis, mode="promise_in_bounds"
    )


def _there(here: Any, lengths: Any, size: Any) -> Any:
    """The positions that the elements of an axis come from, which are also those that they go to."""
    # With the kernels' clamp: as unsigned numbers, negative lengths are above the size.
    lengths = jax.numpy.minimum(
        lengths.astype(f"uint{8 * lengths.dtype.itemsize}"), size
    ).astype(np.uint32)
    return jax.numpy.where(here < lengths, lengths - 1 - here, here)


def _bind(x: Any, lengths: Any, axis: int, in_place: bool, by_xla: bool) -> Any:
    # JAX looks for calls with a rule for partitions in programs and in parameters such as this one.
    call = jax.make_jaxpr(_by_xla if by_xla else _sharded, static_argnums=(2, 3))(
        x, lengths, axis, in_place
    )
    return _reverse_p.bind(
        x, lengths, axis=axis, in_place=in_place, by_xla=by_xla, call=call
    )


_reverse = jax.jit(_bind, static_argnums=(2, 3, 4), inline=True)


# Nothing runs for it: an eager call returns False, and a program has an unused constant.
_compiling_p = Primitive("dml_cuda_is_compiling")
_compiling_p.def_impl(lambda: False)
_compiling_p.def_abstract_eval(lambda: jax.core.ShapedArray((), np.dtype(bool)))
mlir.register_lowering(
    _compiling_p, mlir.lower_fun(lambda: np.False_, multiple_results=False)
)


def _is_compiling() -> bool:
    return isinstance(_compiling_p.bind(), jax.core.Tracer)


def _transpose(
    gradient: Any, x: Any, lengths: Any, *, axis: int, by_xla: bool, **_: Any
) -> Any:
    """A reversal is its own transpose."""
    if type(gradient) is ad.Zero:
        return [ad.Zero(x.aval), None]
    return [_bind(gradient, lengths, axis, False, by_xla), None]


def _tangent(
    tangent: Any, x: Any, lengths: Any, *, axis: int, by_xla: bool, **_: Any
) -> Any:
    return _bind(tangent, lengths, axis, False, by_xla)


ad.defjvp(_reverse_p, _tangent, None)
ad.primitive_transposes[_reverse_p] = _transpose


def _vmap(
    arguments: Any,
    dimensions: Any,
    *,
    axis: int,
    in_place: bool,
    by_xla: bool,
    **_: Any,
) -> Any:
    (x, lengths), (of_x, of_lengths) = arguments, dimensions
    if of_x is None:
        x, of_x = jax.numpy.broadcast_to(x, (lengths.shape[of_lengths], *x.shape)), 0
    if of_lengths is None:
        lengths = jax.numpy.expand_dims(lengths, of_x)
    else:
        lengths = jax.numpy.moveaxis(lengths, of_lengths, of_x)
    return _bind(x, lengths, axis + (of_x <= axis), in_place, by_xla), of_x


batching.primitive_batchers[_reverse_p] = _vmap


def _taylor(primals: Any, series: Any, **options: Any) -> Any:
    """`jet`'s rule: every coefficient is reversed."""
    x, lengths = primals
    return _reverse_p.bind(x, lengths, **options), [
        _reverse_p.bind(term, lengths, **options) for term in series[0]
    ]


jet.jet_rules[_reverse_p] = _taylor


def _sparse(environment: Any, *values: Any, axis: int, **_: Any) -> Any:
    """The rule of `sparse.sparsify`: stored elements stay where they are, and get new indices."""
    from jax.experimental.sparse import BCOO, bcoo_update_layout, transform

    x, lengths = transform.spvalues_to_arrays(environment, values)
    x = bcoo_update_layout(x, n_batch=0, n_dense=0, on_inefficient=None)
    lane = tuple(
        x.indices[:, d] if size != 1 else 0 for d, size in enumerate(lengths.shape)
    )
    there = _there(x.indices[:, axis].astype(np.uint32), lengths[lane], x.shape[axis])
    indices = x.indices.at[:, axis].set(there.astype(x.indices.dtype))
    reversed_x = BCOO((x.data, indices), shape=x.shape, unique_indices=x.unique_indices)
    return transform.arrays_to_spvalues(environment, [reversed_x])


def _roofline(context: Any, *arrays: Any, **_: Any) -> Any:
    from jax.experimental.roofline import RooflineResult

    bytes_of = lambda kind: math.prod(kind.shape) * kind.dtype.itemsize
    return RooflineResult(
        unfused_hbm_bytes=sum(map(bytes_of, (*context.avals_in, *context.avals_out)))
    )


def _register_interpreters() -> None:
    """Gives the interpreters of JAX that are loaded their rules. Loading them here would take half a second."""
    if sparse := sys.modules.get("jax.experimental.sparse.transform"):
        sparse.sparse_rules_bcoo[_reverse_p] = _sparse
    if roofline := sys.modules.get("jax.experimental.roofline"):
        roofline.register_roofline(_reverse_p)(_roofline)


def _array(x: Any, name: str) -> tuple[Any, np.dtype[Any]]:
    """An array of JAX, or what jax.numpy takes for one, and its dtype."""
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


def _lengths(lengths: Any) -> Any:
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


@functools.lru_cache(maxsize=1024)
def _validate(shape: tuple[int, ...], dtype: np.dtype[Any], axis: int) -> None:
    """Checks while a program is traced what the handler would refuse while it runs, for any lengths."""
    lib.validate_reversal(
        lib.Array(0, shape, None, dtype),
        lib.Array(0, (), None, np.dtype(np.uint32)),
        axis,
    )


def reverse_subsequences(
    x: Any,
    lengths: Any,
    axis: SupportsIndex,
    *,
    in_place: bool = False,
    implementation: Implementation = None,
) -> Any:
    """Reverses the first ``length`` elements of every lane of x along an axis, and copies the other elements.

    x: an array of JAX or NumPy with 1 dimension or more, of any dtype whose elements are whole bytes.
    lengths: integers that broadcast to x's shape with 1 at the axis. One dimension of lengths is an error if it fits
    more than one dimension of x: see :func:`reverse_padded_sequence`. A length above the axis size acts as the axis
    size. A negative length is an error of the kernel on the CPU, and else acts as the axis size.
    in_place: writes the result over x inside of a compiled program. If the program needs x afterwards, or if x is an
    argument that is not donated, XLA copies x first.
    implementation: ``kernel`` is a custom call of this library, ``xla`` is code that XLA fuses with its neighbours.
    None is the kernel in eager calls, in place, where lengths differ along x's last dimension, and where shardings are
    types, else XLA's code.

    >>> import dml_cuda.jax, jax
    >>> dml_cuda.jax.reverse_subsequences(jax.numpy.array([[1, 2, 3, 4], [5, 6, 7, 8]]), jax.numpy.array([[3], [2]]), 1)
    Array([[3, 2, 1, 4],
           [6, 5, 7, 8]], dtype=int32)
    """
    _register_interpreters()
    x, dtype = _array(x, "x")
    lengths = _lengths(lengths)
    front = axis_of_lanes(axis, x.shape, lengths.shape)
    refuse_ambiguous(lengths.shape, x.shape, front)
    lengths = lengths.reshape((1,) * (x.ndim - lengths.ndim) + lengths.shape)
    # Sizes of an exported program may be symbols.
    if all(isinstance(size, int) for size in x.shape) and 0 not in x.shape:
        _validate(x.shape, dtype, front)
    if not isinstance(in_place, (bool, np.bool_)):
        raise TypeError(f"in_place is {of_type(in_place)}, but must be a bool")
    if implementation not in (None, "kernel", "xla"):
        raise ValueError(
            f"implementation is {shown(implementation)}, but must be None, 'kernel' or 'xla'"
        )
    if in_place and implementation == "xla":
        raise ValueError(
            "in_place is True, but must be False for the implementation 'xla': XLA itself decides what its code writes over"
        )
    by_xla = implementation == "xla"
    if (
        implementation is None
        and not in_place
        and lengths.shape[-1] == 1
        and isinstance(x, jax.core.Tracer)
    ):
        # XLA's gather does not know how to split its result where partitions are types.
        by_xla = _is_compiling() and not any(
            part for array in (x, lengths) for part in jax.typeof(array).sharding.spec
        )
    return _reverse(*_as_varying(x, lengths), front, bool(in_place), by_xla)


def _as_varying(x: Any, lengths: Any) -> tuple[Any, Any]:
    """Inside of shard_map, an array that is the same on all devices becomes one that may differ, if the other one
    does."""
    of_x, of_lengths = _varying_axes(x), _varying_axes(lengths)
    if of_x == of_lengths:
        return x, lengths
    cast = (
        functools.partial(jax.lax.pcast, to="varying")
        if hasattr(jax.lax, "pcast")
        else jax.lax.pvary
    )
    return cast(x, tuple(of_lengths - of_x)), cast(lengths, tuple(of_x - of_lengths))


def _varying_axes(array: Any) -> frozenset[Any]:
    """The axes of shard_map's mesh along which an array differs. JAX has renamed this attribute."""
    kind = jax.typeof(array)
    found: frozenset[Any] = kind.mat.varying if hasattr(kind, "mat") else kind.vma
    return found


def reverse_padded_sequence(
    x: Any,
    lengths: Any,
    *,
    batch_axis: SupportsIndex = 0,
    time_axis: SupportsIndex = 1,
    in_place: bool = False,
    implementation: Implementation = None,
) -> Any:
    """Reverses every sequence of a padded batch. The padding stays where it is.

    x: an array of JAX or NumPy with a batch and a time axis. lengths: integers, one for each sequence.
    in_place, implementation: as in :func:`reverse_subsequences`.

    >>> import dml_cuda.jax, jax
    >>> dml_cuda.jax.reverse_padded_sequence(jax.numpy.array([[1, 2, 0], [3, 4, 5]]), jax.numpy.array([2, 3]))
    Array([[2, 1, 0],
           [5, 4, 3]], dtype=int32)
    """
    x, _ = _array(x, "x")
    if x.ndim < 2:
        raise ValueError(
            f"x has shape {x.shape}, but must have at least 2 dimensions: time and batch"
        )
    batch = axis_from_front(batch_axis, x.shape, "batch_axis")
    time = axis_from_front(time_axis, x.shape, "time_axis")
    if batch == time:
        raise ValueError(
            f"batch_axis and time_axis are {batch_axis} and {time_axis}, but must be two axes of x"
        )
    lengths = _lengths(lengths)
    check_batch(
        lengths.shape,
        (x.shape[batch],),
        x.shape[time],
        f"batch_axis={time}, time_axis={batch}",
    )
    shape = tuple(size if d == batch else 1 for d, size in enumerate(x.shape))
    return reverse_subsequences(
        x,
        lengths.reshape(shape),
        time,
        in_place=in_place,
        implementation=implementation,
    )


# ---- Sequences ------------------------------------------------------------------------------------------------


def fill_value_sequence(shape: Shape, start: Number, delta: Number, dtype: Any) -> Any:
    """An array whose element i, in row-major order, is ``start + i * delta``. Integers wrap. Floats are rounded as
    DirectML's page says.

    start, delta: numbers of Python or NumPy, which become a part of the compiled program. Integers may be traced, if
    dtype is one of integers.
    dtype: float32, float16, or integers of 8 to 64 bits. 64 bits need JAX's 64-bit mode.

    >>> import dml_cuda.jax
    >>> dml_cuda.jax.fill_value_sequence((2, 3), 10, -2, "uint8")
    Array([[10,  8,  6],
           [ 4,  2,  0]], dtype=uint8)
    """
    kind, data_type = fill_type(dtype)
    if kind.itemsize == 8 and not jax.config.jax_enable_x64:
        raise TypeError(
            f"dtype is {kind}, but must have at most 32 bits, or jax_enable_x64 must be on"
        )
    sizes = fill_shape(shape, kind)

    def number(value: Any, name: str) -> Any:
        if not isinstance(value, jax.core.Tracer):
            return np.uint64(scalar_bits(value, data_type, name))
        if (
            kind.kind == "f"
            or value.shape != ()
            or not jax.numpy.issubdtype(value.dtype, np.integer)
        ):
            raise TypeError(
                f"{name} is traced by JAX as {value.aval}, but must be a number of Python or NumPy, or an integer for a dtype of integers"
            )
        return value

    first, step = number(start, "start"), number(delta, "delta")
    if kind.kind != "f" and (
        _is_compiling() or not type(first) is type(step) is np.uint64
    ):
        index = (
            jax.lax.iota(np.uint32, math.prod(sizes)).reshape(sizes).astype(kind)
        )  # XLA's integers wrap
        return index * step.astype(kind) + first.astype(kind)
    bits = {"start": first.astype(np.int64), "delta": step.astype(np.int64)}
    return jax.ffi.ffi_call(
        "dml_cuda_fill_value_sequence", jax.ShapeDtypeStruct(sizes, kind)
    )(**bits)
