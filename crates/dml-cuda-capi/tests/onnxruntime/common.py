"""Shared by the tests with ONNX Runtime: models of one node, sessions with and without the library, and a slow
reference for both operators. DML_CUDA_LIBRARY names the library."""

import ctypes
import os

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

LIBRARY = os.path.abspath(os.environ["DML_CUDA_LIBRARY"])
ONNX_TYPES = {
    np.dtype(np.float32): TensorProto.FLOAT,
    np.dtype(np.float64): TensorProto.DOUBLE,
    np.dtype(np.float16): TensorProto.FLOAT16,
    np.dtype(np.bool_): TensorProto.BOOL,
    np.dtype(np.object_): TensorProto.STRING,
    **{
        np.dtype(f"{sign}{bits}"): getattr(TensorProto, f"{sign}{bits}".upper())
        for sign in ("int", "uint")
        for bits in (8, 16, 32, 64)
    },
}
ort.set_default_logger_severity(4)


def model(nodes, inputs, outputs, constants=(), opset=17, functions=()):
    """inputs, outputs: (name, dtype or ONNX type, shape); constants: name to value. Functions are in the domain `f`."""
    number = lambda dtype: (
        dtype if isinstance(dtype, int) else ONNX_TYPES[np.dtype(dtype)]
    )
    info = lambda name, dtype, shape: helper.make_tensor_value_info(
        name, number(dtype), shape
    )
    constants = [
        numpy_helper.from_array(np.array(value), name)
        for name, value in dict(constants).items()
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [info(*i) for i in inputs],
        [info(*o) for o in outputs],
        constants,
    )
    opsets = [
        helper.make_opsetid("", opset),
        helper.make_opsetid("dml_cuda", 1),
        helper.make_opsetid("f", 1),
    ]
    made = helper.make_model(
        graph,
        opset_imports=opsets,
        ir_version=8 if opset < 24 else 11,
        functions=list(functions),
    )
    return made.SerializeToString()


def session(
    serialized,
    library=True,
    replace=True,
    providers=("CPUExecutionProvider",),
    **entries,
):
    """replace: True for both operators, False for neither, None for no entry, or the entry's value."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    if library:
        if replace is not None:
            options.add_session_config_entry(
                "dml_cuda.replace_onnx",
                {True: "ReverseSequence,Range", False: "0"}.get(replace, replace),
            )
        options.register_custom_ops_library(LIBRARY)
    for name, value in entries.items():
        setattr(options, name, value)
    return ort.InferenceSession(serialized, options, providers=list(providers))


def reverse_sequence(dtype, shape, time=0, dynamic=False):
    node = helper.make_node(
        "ReverseSequence",
        ["x", "l"],
        ["y"],
        time_axis=time,
        batch_axis=1 - time,
        name="node",
    )
    dims = [f"d{k}" for k in range(len(shape))] if dynamic else list(shape)
    return model(
        [node],
        [("x", dtype, dims), ("l", np.int64, [dims[1 - time]])],
        [("y", dtype, dims)],
    )


def ranges(dtype):
    """A Range of a, b and c."""
    node = helper.make_node("Range", ["a", "b", "c"], ["y"], name="node")
    return model([node], [(name, dtype, []) for name in "abc"], [("y", dtype, ["n"])])


def fills(dtype):
    """A fill of the shape s from a on, in steps of d."""
    node = helper.make_node(
        "FillValueSequence", ["s", "a", "d"], ["y"], domain="dml_cuda"
    )
    return model(
        [node],
        [("s", np.int64, ["r"]), ("a", dtype, []), ("d", dtype, [])],
        [("y", dtype, None)],
    )


def scalars(dtype, **named):
    return {name: np.array(value, dtype) for name, value in named.items()}


class Counters(ctypes.Structure):
    _fields_ = [
        ("nodes", ctypes.c_uint64),
        ("runs", ctypes.c_uint64),
        ("in_place_runs", ctypes.c_uint64),
    ]


def counters():
    """nodes, runs, in_place_runs of this process so far."""
    found = Counters()
    status = ctypes.CDLL(LIBRARY).dml_cuda_onnxruntime_counters(
        ctypes.byref(found), None
    )
    assert status == 0
    return found.nodes, found.runs, found.in_place_runs


def reverse(x, lengths, axis):
    """Reverses the first `length` elements of every lane; lengths have x's shape with 1 at the axis, or broadcast to
    it."""
    x = np.asarray(x)
    shape = list(x.shape)
    shape[axis] = 1
    lengths = np.minimum(
        np.broadcast_to(lengths, shape).astype(np.uint64), np.uint64(x.shape[axis])
    ).astype(np.int64)
    t = np.arange(x.shape[axis]).reshape(
        [-1 if d == axis % x.ndim else 1 for d in range(x.ndim)]
    )
    return np.take_along_axis(x, np.where(t < lengths, lengths - 1 - t, t), axis)


def of_lanes(lengths, rank, time):
    """The lengths of the batch, in the shape of the lanes."""
    return np.asarray(lengths).reshape(
        [-1 if d == 1 - time else 1 for d in range(rank)]
    )


def same(found, required):
    """Equal types, shapes and bits; NaN equals NaN."""
    described = [(array.dtype, array.shape) for array in (found, required)]
    assert described[0] == described[1], described
    if found.dtype.kind == "O":
        assert found.tolist() == required.tolist()
    else:
        assert np.array_equal(found, required, equal_nan=found.dtype.kind == "f"), (
            found,
            required,
        )


def values(random, dtype, shape):
    dtype = np.dtype(dtype)
    count = int(np.prod(shape))
    if dtype == np.object_:
        texts = ["", "a", "ä€", "with\0nul", "long " * 50]
        return np.array(
            [texts[k % len(texts)] + str(k) for k in range(count)], dtype=object
        ).reshape(shape)
    if dtype == np.bool_:
        return random.integers(0, 2, shape).astype(bool)
    bits = random.integers(0, 256, count * dtype.itemsize, dtype=np.uint8)
    return bits.view(dtype).reshape(shape)
