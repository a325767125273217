"""The operators in ONNX's standard operators, for PyTorch's two exporters.

`torch.onnx.export(dynamo=True)` decomposes what it does not know, and operators.py then calls the functions here.
`dynamo=False` traces, and needs a symbolic function, which is registered when it traces a reversal. A module of
`torch.jit.script` is not traced: import this module before its export.

A reversal becomes ReverseSequence if one of the first two dimensions is dim and only the other has lengths, else a
gather. ONNX Runtime then runs the model alone, and this library can run its ReverseSequence."""

import math
from collections.abc import Sequence
from typing import Any

import torch

_INT64 = 7  # of ONNX's TensorProto
_OPSET = 10  # that has ReverseSequence


def _is_reverse_sequence(rank: int, axis: int, of_lengths: Sequence[Any]) -> bool:
    """Whether ONNX's ReverseSequence is the reversal. of_lengths: the sizes of the lengths."""
    sizes = [1] * (rank - len(of_lengths)) + list(of_lengths)
    return (
        rank >= 2
        and axis < 2
        and all(size == 1 for d, size in enumerate(sizes) if d != 1 - axis)
    )


def decomposed_reversal(
    x: torch.Tensor, lengths: torch.Tensor, dim: int
) -> torch.Tensor:
    axis = dim % x.dim()
    size = x.shape[axis]
    # With the kernels' clamp: a negative length acts as the size.
    lengths = lengths.to(torch.int64)
    lengths = torch.where(lengths < 0, size, lengths.clamp(max=size))
    if _is_reverse_sequence(x.dim(), axis, lengths.shape):
        of_batch = lengths.reshape(-1).expand(x.shape[1 - axis])
        axes = {"batch_axis": 1 - axis, "time_axis": axis}
        return torch.onnx.ops.symbolic(
            "ReverseSequence",
            (x, of_batch),
            axes,
            dtype=x.dtype,
            shape=x.shape,
            version=_OPSET,
        )  # type: ignore[no-any-return]
    t = torch.arange(size, device=x.device).reshape([-1] + [1] * (x.dim() - 1 - axis))
    index = torch.where(t < lengths, lengths - 1 - t, t)
    return x.gather(axis, index.expand(x.shape))


def decomposed_fill(
    size: Sequence[Any],
    start: Any,
    delta: Any,
    dtype: torch.dtype,
    device: torch.device,
) -> torch.Tensor:
    """Computes floats in float64, in which a product of two float32 is exact."""
    index = torch.arange(math.prod(size), device=device)
    if not dtype.is_floating_point:
        first, step = (_wrapped(value) for value in (start, delta))
        return (index * step + first).to(dtype).reshape(size)
    first, step = (
        torch.full((), value, dtype=dtype, device=device).double()
        for value in (start, delta)
    )
    found = torch.addcmul(first, index.float().double(), step)
    return found.float().to(dtype).reshape(size)


def _wrapped(value: Any) -> Any:
    """An integer of 64 bits with a sign that has value's bits."""
    return value - 2**64 if isinstance(value, int) and value >= 2**63 else value


class _Graph:
    """A graph of the exporter of TorchScript."""

    def __init__(self, graph: Any):
        self._graph = graph

    def Constant(self, value: Any) -> Any:
        return self._graph.op("Constant", value_t=torch.tensor(value, device="cpu"))

    def __getattr__(self, name: str) -> Any:
        return lambda *inputs, **numbers: self._graph.op(
            name, *inputs, **{f"{key}_i": n for key, n in numbers.items()}
        )


@torch.onnx.symbolic_helper.parse_args("v", "v", "i")  # type: ignore[untyped-decorator]
def _symbolic(graph: Any, x: Any, lengths: Any, dim: int) -> Any:
    op: Any = _Graph(graph)
    rank, of_lengths = x.type().dim(), lengths.type().varyingSizes()
    if rank is None or of_lengths is None:
        raise ValueError(
            "x and lengths have an unknown number of dimensions, but must have known ones: trace the model"
        )
    axis = dim % rank
    size, zero, one = (
        op.Gather(op.Shape(x), op.Constant([axis])),
        op.Constant(0),
        op.Constant(1),
    )
    lengths = op.Cast(lengths, to=_INT64)
    lengths = op.Where(op.Less(lengths, zero), size, op.Min(lengths, size))
    if _is_reverse_sequence(rank, axis, of_lengths):
        of_batch = op.Expand(
            op.Reshape(lengths, op.Constant([-1])),
            op.Gather(op.Shape(x), op.Constant([1 - axis])),
        )
        found = op.ReverseSequence(x, of_batch, batch_axis=1 - axis, time_axis=axis)
    else:
        t = op.Range(zero, op.Squeeze(size), one)
        t = op.Reshape(t, op.Constant([-1] + [1] * (rank - 1 - axis)))
        index = op.Where(op.Less(t, lengths), op.Sub(op.Sub(lengths, one), t), t)
        found = op.GatherElements(x, op.Expand(index, op.Shape(x)), axis=axis)
    return found.setType(x.type())


torch.onnx.register_custom_op_symbolic("dml_cuda::reverse_subsequences", _symbolic, 12)
