"""The primitive of a reversal, with its rules for derivatives, `vmap`, Taylor series and partitions.

    bind ── lowered to ─┬─ XLA's own operations (`_by_xla`)
                        └─ a call with the rule for partitions (`_sharded`) ── lowered to the custom call

The lengths of the primitive have as many dimensions as x: 1 or x's size, and 1 at the axis."""

import functools
import pathlib
import re
from typing import Any

import jax
import numpy as np
from jax.experimental import jet
from jax.experimental.custom_partitioning import custom_partitioning
from jax.extend.core import Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir
from jax.sharding import NamedSharding, PartitionSpec

from .. import _library as lib


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


REVERSE = Primitive("dml_cuda_reverse_subsequences")
REVERSE.def_abstract_eval(lambda x, lengths, **_: x)
REVERSE.def_impl(lambda x, lengths, *, call, **_: jaxpr_as_fun(call)(x, lengths)[0])
mlir.register_lowering(REVERSE, mlir.lower_fun(REVERSE.impl, multiple_results=False))


def _by_xla(x: Any, lengths: Any, axis: int, _in_place: bool) -> Any:
    size = x.shape[axis]
    here = jax.lax.broadcasted_iota(
        np.uint32, [size if d == axis else 1 for d in range(x.ndim)], axis
    )
    return jax.numpy.take_along_axis(
        x, positions(here, lengths, size), axis, mode="promise_in_bounds"
    )


def positions(here: Any, lengths: Any, size: Any) -> Any:
    """The positions that the elements of an axis come from, which are also those that they go to."""
    # With the kernels' clamp: as unsigned numbers, negative lengths are above the size.
    lengths = jax.numpy.minimum(
        lengths.astype(f"uint{8 * lengths.dtype.itemsize}"), size
    ).astype(np.uint32)
    return jax.numpy.where(here < lengths, lengths - 1 - here, here)


def bind(x: Any, lengths: Any, axis: int, in_place: bool, by_xla: bool) -> Any:
    # JAX looks for calls with a rule for partitions in programs and in parameters such as this one.
    call = jax.make_jaxpr(_by_xla if by_xla else _sharded, static_argnums=(2, 3))(
        x, lengths, axis, in_place
    )
    return REVERSE.bind(
        x, lengths, axis=axis, in_place=in_place, by_xla=by_xla, call=call
    )


reverse = jax.jit(bind, static_argnums=(2, 3, 4), inline=True)


# Nothing runs for it: an eager call returns False, and a program has an unused constant.
_IS_COMPILING = Primitive("dml_cuda_is_compiling")
_IS_COMPILING.def_impl(lambda: False)
_IS_COMPILING.def_abstract_eval(lambda: jax.core.ShapedArray((), np.dtype(bool)))
mlir.register_lowering(
    _IS_COMPILING, mlir.lower_fun(lambda: np.False_, multiple_results=False)
)


def is_compiling() -> bool:
    return isinstance(_IS_COMPILING.bind(), jax.core.Tracer)


def _transpose(
    gradient: Any, x: Any, lengths: Any, *, axis: int, by_xla: bool, **_: Any
) -> Any:
    """A reversal is its own transpose."""
    if type(gradient) is ad.Zero:
        return [ad.Zero(x.aval), None]
    return [bind(gradient, lengths, axis, False, by_xla), None]


def _tangent(
    tangent: Any, x: Any, lengths: Any, *, axis: int, by_xla: bool, **_: Any
) -> Any:
    return bind(tangent, lengths, axis, False, by_xla)


ad.defjvp(REVERSE, _tangent, None)
ad.primitive_transposes[REVERSE] = _transpose


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
    return bind(x, lengths, axis + (of_x <= axis), in_place, by_xla), of_x


batching.primitive_batchers[REVERSE] = _vmap


def _taylor(primals: Any, series: Any, **options: Any) -> Any:
    """`jet`'s rule: every coefficient is reversed."""
    x, lengths = primals
    return REVERSE.bind(x, lengths, **options), [
        REVERSE.bind(term, lengths, **options) for term in series[0]
    ]


jet.jet_rules[REVERSE] = _taylor


def as_varying(x: Any, lengths: Any) -> tuple[Any, Any]:
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
