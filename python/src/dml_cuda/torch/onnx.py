"""A reversal in ONNX's standard operators, for PyTorch's exporters. That of `torch.export` has onnxscript."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

_INT64 = 7  # of ONNX's TensorProto


def reverse_subsequences(x: Any, lengths: Any, dim: int) -> Any:
    from onnxscript import opset18

    return _reverse(opset18, x, lengths, dim, len(x.shape), lengths.shape)


def _reverse(op: Any, x: Any, lengths: Any, dim: int, rank: int, of_lengths: Sequence[Any]) -> Any:
    """ReverseSequence if one of the first two dimensions is the axis and only the other has lengths, else a gather."""
    axis = dim % rank
    sizes = [1] * (rank - len(of_lengths)) + list(of_lengths)
    size_of: Callable[[int], Any] = lambda d: op.Gather(op.Shape(x), op.Constant(value_ints=[d]))
    size, zero, one = size_of(axis), op.Constant(value_int=0), op.Constant(value_int=1)
    # With the kernels' clamp: a negative length acts as the size.
    lengths = op.Cast(lengths, to=_INT64)
    lengths = op.Where(op.Less(lengths, zero), size, op.Min(lengths, size))
    if rank >= 2 and axis < 2 and all(of_dim == 1 for d, of_dim in enumerate(sizes) if d != 1 - axis):
        of_batch = op.Expand(op.Reshape(lengths, op.Constant(value_ints=[-1])), size_of(1 - axis))
        return op.ReverseSequence(x, of_batch, batch_axis=1 - axis, time_axis=axis)
    t = op.Range(zero, op.Squeeze(size), one)
    t = op.Reshape(t, op.Constant(value_ints=[-1] + [1] * (rank - 1 - axis)))
    index = op.Where(op.Less(t, lengths), op.Sub(op.Sub(lengths, one), t), t)
    return op.GatherElements(x, op.Expand(index, op.Shape(x)), axis=axis)


class _Graph:
    """onnxscript's calls, for a graph of the exporter of TorchScript."""

    def __init__(self, graph: Any):
        self._graph = graph

    def Constant(self, **value: Any) -> Any:
        return self._graph.op("Constant", value_t=torch.tensor(*value.values()))

    def __getattr__(self, name: str) -> Any:
        return lambda *inputs, **numbers: self._graph.op(name, *inputs, **{f"{key}_i": n for key, n in numbers.items()})


@functools.cache
def register() -> None:
    """Registers the reversal for `torch.onnx.export(dynamo=False)`."""

    @torch.onnx.symbolic_helper.parse_args("v", "v", "i")  # type: ignore[untyped-decorator]
    def symbolic(graph: Any, x: Any, lengths: Any, dim: int) -> Any:
        rank, of_lengths = x.type().dim(), lengths.type().varyingSizes()
        if rank is None or of_lengths is None:
            raise ValueError("x and lengths have an unknown number of dimensions, but must have known ones: trace the model")
        return _reverse(_Graph(graph), x, lengths, dim, rank, of_lengths).setType(x.type())

    torch.onnx.register_custom_op_symbolic("dml_cuda::reverse_subsequences", symbolic, 12)
