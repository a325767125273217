"""A reversal in ONNX's standard operators, for PyTorch's exporter. Needs onnxscript, as the exporter does."""

from typing import Any

from onnxscript import INT64
from onnxscript import opset18 as op


def reverse_subsequences(x: Any, lengths: Any, dim: int) -> Any:
    """ReverseSequence if one of the first two dimensions is the axis and only the other has lengths, else a gather."""
    rank = len(x.shape)
    axis = dim % rank
    sizes = [1] * (rank - len(lengths.shape)) + list(lengths.shape)
    size = op.Shape(x, start=axis, end=axis + 1)
    lengths = op.Min(op.Cast(lengths, to=INT64.dtype), size)
    if rank >= 2 and axis < 2 and all(of_dim == 1 for d, of_dim in enumerate(sizes) if d != 1 - axis):
        batch = op.Shape(x, start=1 - axis, end=2 - axis)
        of_batch = op.Expand(op.Reshape(lengths, op.Constant(value_ints=[-1])), batch)
        return op.ReverseSequence(x, of_batch, batch_axis=1 - axis, time_axis=axis)
    zero, one = op.Constant(value_int=0), op.Constant(value_int=1)
    t = op.Range(zero, op.Squeeze(size), one)
    t = op.Reshape(t, op.Constant(value_ints=[-1] + [1] * (rank - 1 - axis)))
    index = op.Where(op.Less(t, lengths), op.Sub(op.Sub(lengths, one), t), t)
    return op.GatherElements(x, op.Expand(index, op.Shape(x)), axis=axis)
