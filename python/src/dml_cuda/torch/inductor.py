"""How Inductor, the compiler of `torch.compile`, lowers the operators: to an index expression where that can be in a
kernel with a neighbour, else to the operator. Inductor cannot look into an operator, so that each of its neighbours is
a kernel and a pass over memory.

The interfaces are private to PyTorch. Where a version's differ, operators stay operators, and a debug log says so."""

import functools
import logging
import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

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
    """Registers the lowerings. Returns whether Inductor took them."""
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


class _Lowered(NamedTuple):
    """What Inductor puts in the place of an operator."""

    expression: Any = None
    """Inductor's own expression. None leaves the operator as it is, with these arguments."""
    arguments: tuple[Any, ...] = ()


def _lower(
    operator: _Call, lower: _Call, create: Any, ops: Any, virtual: Any, *arguments: Any
) -> Any:
    try:
        lowered = lower(create, ops, virtual.graph.current_node, *arguments)
        if lowered.expression is not None:
            lowered.expression.data.data.inner_fn_opcount()  # evaluates it, which may also fail
    except Exception as error:
        _log.debug("An operator stays one in PyTorch %s: %r", torch.__version__, error)
        lowered = _Lowered(arguments=arguments)
    if lowered.expression is None:
        return operator(*lowered.arguments)
    return lowered.expression


def is_fused(
    width: int, lengths_vary: bool, whole_rows: bool | None, small: bool, sides: int
) -> bool:
    """The rule, from measurements in benches/TUNING.md. width: bytes of an element. lengths_vary: along x's contiguous
    dimension, where the kernels are much faster than loads at computed indices. whole_rows: that dimension has whole
    vectors. None is a symbol for its size, by which every index would be divided. small: x has fewer than `_SMALL`
    elements, and no size that is a symbol. sides: 1 if something fuses before or after the reversal, 2 if on both
    sides, or after it with x itself."""
    if whole_rows is None:
        return False
    if lengths_vary and not small:
        fused_bytes = width * sides
        return fused_bytes > (4 if whole_rows else 2)
    return sides > 0


_SMALL = 1 << 21  # elements


def _fusible_neighbours(
    nodes: Iterable[Any], beyond: Callable[[Any], Iterable[Any]]
) -> list[Any]:
    """The nodes that Inductor can put into a kernel with a neighbour. Views are replaced by what is beyond them."""
    found: list[Any] = []
    for node in nodes:
        if getattr(node.target, "is_view", False):
            found += _fusible_neighbours(beyond(node), beyond)
        elif isinstance(node.target, torch._ops.OpOverload) and _is_fusible(
            node.target
        ):
            found.append(node)
    return found


def _is_fusible(target: Any) -> bool:
    is_pointwise = torch.Tag.pointwise in target.tags
    return is_pointwise or target._schema.name in _FUSED_OPERATORS


def _fusible_users(node: Any) -> list[Any]:
    return _fusible_neighbours(node.users, lambda view: view.users)


def _is_number(value: Any, number: int) -> bool:
    """Whether a size or a stride, which may be a symbol, is a number."""
    return type(value) is int and value == number


def _sides(node: Any) -> int:
    """On how many sides something fuses with a reversal. What comes after it with x itself counts twice."""
    source = node.args[0]
    is_alone = len(source.users) == 1
    before = is_alone and bool(
        _fusible_neighbours([source], lambda view: view.args[:1])
    )
    after = _fusible_users(node)
    if not after:
        return int(before)
    has_source = any(source in user.all_input_nodes for user in after)
    return 2 if before or has_source else 1


def _is_fused(node: Any) -> bool:
    """Whether Inductor's own expression replaces the kernel of a reversal."""
    x, lengths = (argument.meta["val"] for argument in node.args[:2])
    if x.is_complex():
        return False
    row = x.dim() - 1
    for d in reversed(range(x.dim())):
        if _is_number(x.stride(d), 1) and not _is_number(x.shape[d], 1):
            row = d
            break
    k = row - x.dim() + lengths.dim()
    lengths_vary = k >= 0 and not (
        _is_number(lengths.shape[k], 1) or _is_number(lengths.stride(k), 0)
    )
    whole_rows = None
    if type(x.shape[row]) is int:
        whole_rows = x.shape[row] * x.itemsize % 16 == 0
    small = all(type(size) is int for size in x.shape) and math.prod(x.shape) < _SMALL
    return is_fused(x.itemsize, lengths_vary, whole_rows, small, _sides(node))


def _lower_reversal(
    create: Any, ops: Any, node: Any, x: Any, lengths: Any, dim: int
) -> _Lowered:
    """Lowers a reversal to an expression of Inductor's, or leaves the operator."""
    size, of_lengths = x.get_size(), node.args[1].meta["val"].shape
    dim %= len(size)
    length = _clamped_length(ops, lengths.make_loader(), size[dim])
    if _is_fused(node):
        inner = _reversed_element(ops, x.make_loader(), length, size, of_lengths, dim)
        return _Lowered(
            create(
                device=x.get_device(), dtype=x.get_dtype(), inner_fn=inner, ranges=size
            )
        )
    # On a CPU the operator refuses negative lengths.
    if x.get_device().type == "cpu" and lengths.get_dtype().is_signed:
        lengths = create(
            device=x.get_device(),
            dtype=torch.int64,
            inner_fn=length,
            ranges=lengths.get_size(),
        )
    return _Lowered(arguments=(x, lengths, dim))


def _clamped_length(ops: Any, load: _Call, size: Any) -> _Call:
    """The expression of a length with the kernels' clamp: what is above the size acts as the size, and so does what is
    negative, whose bits are a large number."""

    def length(at: Any) -> Any:
        found = ops.to_dtype(load(at), torch.int64)
        most = ops.index_expr(size, torch.int64)
        is_negative = ops.lt(found, ops.constant(0, torch.int64))
        return ops.where(is_negative, most, ops.minimum(found, most))

    return length


def _reversed_element(
    ops: Any, load: _Call, length: _Call, size: Any, of_lengths: Any, dim: int
) -> _Call:
    """The expression of an element of the output. of_lengths: the shape of the lengths."""
    # Generated code is up to 1.5 times as fast with indices of 32 bits.
    is_short = isinstance(size[dim], (int, sympy.Integer)) and size[dim] < 1 << 31
    kind = torch.int32 if is_short else torch.int64

    def element(at: Any) -> Any:
        of_lane = at[len(at) - len(of_lengths) :]
        place = []
        for size_of_lengths, k in zip(of_lengths, of_lane):
            is_broadcast = isinstance(size_of_lengths, int) and size_of_lengths == 1
            place.append(sympy.S.Zero if is_broadcast else k)
        found = ops.to_dtype(length(place), kind)
        here = ops.index_expr(at[dim], kind)
        last = ops.sub(found, ops.constant(1, kind))
        there = ops.where(ops.lt(here, found), ops.sub(last, here), here)
        source = ops.indirect_indexing(there, size[dim], check=False, wrap_neg=False)
        return load([*at[:dim], source, *at[dim + 1 :]])

    return element


def _lower_fill(
    create: Any,
    ops: Any,
    node: Any,
    size: Any,
    start: Any,
    delta: Any,
    dtype: torch.dtype,
    device: torch.device,
) -> _Lowered:
    """Lowers a fill of integers. A float must be rounded once, and not every version of Inductor can multiply and add
    so."""
    if dtype.is_floating_point or not _fusible_users(node):
        return _Lowered(arguments=(size, start, delta, dtype, device))

    def number(value: Any, what: str) -> Callable[[], Any]:
        if dtype.itemsize == 8 and isinstance(value, sympy.Expr):
            return lambda: ops.index_expr(value, torch.int64)
        # An error leaves the operator, which raises it when it runs.
        bits = scalar_bits(value, str(dtype).removeprefix("torch.").upper(), what)
        signed = bits - (1 << 64) if bits >> 63 else bits
        return lambda: ops.constant(signed, torch.int64)

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

    return _Lowered(create(device=device, dtype=dtype, inner_fn=element, ranges=size))
