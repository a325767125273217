"""How Inductor, the compiler of `torch.compile`, lowers the operators: to an index expression where that can be in a
kernel with a neighbour, else to the operator. Inductor cannot look into an operator, so that each of its neighbours is
a kernel and a pass over memory.

The interfaces are private to PyTorch. Where a version's differ, operators stay operators, and a debug log says so."""

import functools
import logging
import math
from collections.abc import Callable, Iterable
from typing import Any

import sympy  # PyTorch also needs it
import torch

from .._arguments import scalar_bits

_Call = Callable[..., Any]
_log = logging.getLogger(__name__)
_operators = torch.ops.dml_cuda
_reverse, _fill = (
    _operators.reverse_subsequences.default,
    _operators.fill_value_sequence.default,
)
# Next to what PyTorch tags as pointwise.
_FUSED = """all amax amin any argmax argmin cat constant_pad_nd embedding flip gather index max mean min prod sum var
var_mean"""
_FUSED_OPERATORS = {_reverse.name(), *(f"aten::{name}" for name in _FUSED.split())}


@functools.lru_cache(maxsize=1)
def register() -> bool:
    """Whether Inductor has the lowerings."""
    try:
        from torch._inductor import ir, lowering, virtualized

        for op, lower in ((_reverse, _lower_reversal), (_fill, _lower_fill)):
            operator = lowering.fallback_handler(op, add_to_fallback_set=False)
            lowered = functools.partial(
                _lower,
                operator,
                lower,
                ir.Pointwise.create,
                virtualized.ops,
                virtualized.V,
            )
            lowering.register_lowering(op, type_promotion_kind=None)(lowered)
    except Exception as error:
        _log.debug(
            "Operators stay operators in PyTorch %s: %r", torch.__version__, error
        )
        return False
    return True


def _lower(
    operator: _Call, lower: _Call, create: Any, ops: Any, virtual: Any, *arguments: Any
) -> Any:
    try:
        found = lower(create, ops, virtual.graph.current_node, *arguments)
        if not isinstance(found, tuple):
            found.data.data.inner_fn_opcount()  # evaluates the expression, which may also fail
    except Exception as error:
        _log.debug("An operator stays one in PyTorch %s: %r", torch.__version__, error)
        found = arguments
    return operator(*found) if isinstance(found, tuple) else found


def is_fused(
    width: int, lengths_vary: bool, whole_rows: bool | None, small: bool, sides: int
) -> bool:
    """The rule, from measurements in benches/TUNING.md. width: bytes of an element. lengths_vary: along x's contiguous
    dimension, where the kernels are much faster than loads at computed indices. whole_rows: that dimension has whole
    vectors. None is a symbol for its size, by which every index would be divided. sides: 1 if something fuses before or
    after the reversal, 2 if on both sides, or after it with x itself."""
    if whole_rows is None:
        return False
    return (
        width * sides > (4 if whole_rows else 2)
        if lengths_vary and not small
        else sides > 0
    )


_SMALL = 1 << 21  # elements


def _fusing(nodes: Iterable[Any], beyond: Callable[[Any], Iterable[Any]]) -> list[Any]:
    """The nodes that Inductor can put into a kernel with a neighbour. Views are replaced by what is beyond them."""
    found = [
        _fusing(beyond(node), beyond)
        if getattr(node.target, "is_view", False)
        else [node]
        for node in nodes
    ]
    calls = [
        node
        for part in found
        for node in part
        if isinstance(node.target, torch._ops.OpOverload)
    ]
    fuses: _Call = lambda target: (
        torch.Tag.pointwise in target.tags or target._schema.name in _FUSED_OPERATORS
    )
    return [node for node in calls if fuses(node.target)]


def _fusing_users(node: Any) -> list[Any]:
    return _fusing(node.users, lambda view: view.users)


def _is_fused(node: Any) -> bool:
    source = node.args[0]
    before, after = (
        len(source.users) == 1 and bool(_fusing([source], lambda view: view.args[:1])),
        _fusing_users(node),
    )
    sides = before + bool(after) * (
        1 + (not before and any(source in user.all_input_nodes for user in after))
    )
    x, lengths = (
        argument.meta["val"] for argument in node.args[:2]
    )  # sizes and strides may be symbols
    is_number: Callable[[Any, int], bool] = lambda value, number: (
        type(value) is int and value == number
    )
    is_row = lambda d: is_number(x.stride(d), 1) and not is_number(x.shape[d], 1)
    row = next(filter(is_row, reversed(range(x.dim()))), x.dim() - 1)
    k = row - x.dim() + lengths.dim()
    lengths_vary = (
        k >= 0
        and not is_number(lengths.shape[k], 1)
        and not is_number(lengths.stride(k), 0)
    )
    whole_rows = (
        x.shape[row] * x.itemsize % 16 == 0 if type(x.shape[row]) is int else None
    )
    small = all(type(size) is int for size in x.shape) and math.prod(x.shape) < _SMALL
    return not x.is_complex() and is_fused(
        x.itemsize, lengths_vary, whole_rows, small, sides
    )


def _lower_reversal(
    create: Any, ops: Any, node: Any, x: Any, lengths: Any, dim: int
) -> Any:
    size, of_lengths = x.get_size(), node.args[1].meta["val"].shape
    dim %= len(size)
    # Generated code is up to 1.5 times as fast with indices of 32 bits.
    kind = (
        torch.int32
        if isinstance(size[dim], (int, sympy.Integer)) and size[dim] < 1 << 31
        else torch.int64
    )
    load, load_length = x.make_loader(), lengths.make_loader()

    def length(at: Any) -> Any:
        """With the kernels' clamp: what is above the size acts as the size, and so does what is negative, whose bits
        are a large number."""
        found, most = (
            ops.to_dtype(load_length(at), torch.int64),
            ops.index_expr(size[dim], torch.int64),
        )
        return ops.where(
            ops.lt(found, ops.constant(0, torch.int64)), most, ops.minimum(found, most)
        )

    def element(at: Any) -> Any:
        of_lane = at[len(at) - len(of_lengths) :]
        place = [
            sympy.S.Zero if isinstance(of, int) and of == 1 else k
            for of, k in zip(of_lengths, of_lane)
        ]
        found = ops.to_dtype(length(place), kind)
        here = ops.index_expr(at[dim], kind)
        there = ops.where(
            ops.lt(here, found),
            ops.sub(ops.sub(found, ops.constant(1, kind)), here),
            here,
        )
        return load(
            [
                *at[:dim],
                ops.indirect_indexing(there, size[dim], check=False, wrap_neg=False),
                *at[dim + 1 :],
            ]
        )

    if _is_fused(node):
        return create(
            device=x.get_device(), dtype=x.get_dtype(), inner_fn=element, ranges=size
        )
    if (
        x.get_device().type == "cpu" and lengths.get_dtype().is_signed
    ):  # where the operator refuses negative lengths
        lengths = create(
            device=x.get_device(),
            dtype=torch.int64,
            inner_fn=length,
            ranges=lengths.get_size(),
        )
    return x, lengths, dim


def _lower_fill(
    create: Any,
    ops: Any,
    node: Any,
    size: Any,
    start: Any,
    delta: Any,
    dtype: torch.dtype,
    device: torch.device,
) -> Any:
    """Lowers a fill of integers. A float must be rounded once, and not every version of Inductor can multiply and add
    so."""
    if dtype.is_floating_point or not _fusing_users(node):
        return size, start, delta, dtype, device

    def number(value: Any, what: str) -> Callable[[], Any]:
        if dtype.itemsize == 8 and isinstance(value, sympy.Expr):
            return lambda: ops.index_expr(value, torch.int64)
        # An error leaves the operator, which raises it when it runs.
        bits = scalar_bits(value, str(dtype).removeprefix("torch.").upper(), what)
        return lambda: ops.constant(bits - (bits >> 63 << 64), torch.int64)

    first, step = number(start, "start"), number(delta, "delta")

    def element(at: Any) -> Any:
        index = functools.reduce(
            lambda index, k: index * size[k] + at[k], range(len(size)), sympy.S.Zero
        )
        # Inductor computes with indices as if they never wrapped, but not with the result of `or`.
        index = ops.bitwise_or(
            ops.index_expr(index, torch.int64), ops.constant(0, torch.int64)
        )
        return ops.to_dtype(ops.add(ops.mul(index, step()), first()), dtype)

    return create(device=device, dtype=dtype, inner_fn=element, ranges=size)
