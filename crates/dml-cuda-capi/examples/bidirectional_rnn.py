"""A bidirectional GRU as exporters write it: the backward half is between two ReverseSequence nodes, so that padding
stays at the end. Makes the model, which does not depend on this library, and runs it with ONNX Runtime's kernels and
with this library's.

    python bidirectional_rnn.py PATH/libdml_cuda.so [model.onnx]
"""

import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

TIME, BATCH, FEATURES, HIDDEN = 12, 5, 8, 16


def make_model():
    random = np.random.default_rng(0)
    weights = {
        f"{name}_{half}": random.standard_normal(shape).astype(np.float32) * 0.3
        for half in ("forward", "backward")
        for name, shape in (("W", (1, 3 * HIDDEN, FEATURES)), ("R", (1, 3 * HIDDEN, HIDDEN)), ("B", (1, 6 * HIDDEN)))
    }

    def gru(x, half, y):
        return helper.make_node("GRU", [x, f"W_{half}", f"R_{half}", f"B_{half}", "lengths"], [y], hidden_size=HIDDEN)

    def reverse(x, y):
        return helper.make_node("ReverseSequence", [x, "lengths_int64"], [y], time_axis=0, batch_axis=1, name=y)

    nodes = [
        helper.make_node("Cast", ["lengths"], ["lengths_int64"], to=TensorProto.INT64),
        gru("x", "forward", "forward"),
        reverse("x", "x_reversed"),
        gru("x_reversed", "backward", "backward_reversed"),
        helper.make_node("Squeeze", ["backward_reversed", "one"], ["backward_squeezed"]),
        reverse("backward_squeezed", "backward"),
        helper.make_node("Squeeze", ["forward", "one"], ["forward_squeezed"]),
        helper.make_node("Concat", ["forward_squeezed", "backward"], ["y"], axis=2),
    ]
    graph = helper.make_graph(
        nodes,
        "bidirectional_gru",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["time", "batch", FEATURES]),
            helper.make_tensor_value_info("lengths", TensorProto.INT32, ["batch"]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["time", "batch", 2 * HIDDEN])],
        [numpy_helper.from_array(value, name) for name, value in {**weights, "one": np.array([1])}.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def run(model, library=None):
    options = onnxruntime.SessionOptions()
    if library:
        options.add_session_config_entry("dml_cuda.replace_onnx", "1")
        options.register_custom_ops_library(library)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    random = np.random.default_rng(1)
    lengths = random.integers(1, TIME + 1, BATCH).astype(np.int32)
    x = random.standard_normal((TIME, BATCH, FEATURES)).astype(np.float32)
    return session.run(None, {"x": x, "lengths": lengths})[0].copy()


if __name__ == "__main__":
    made = make_model()
    if len(sys.argv) > 2:
        onnx.save(made, sys.argv[2])
    same = np.array_equal(run(made), run(made, sys.argv[1]))
    print("equal bits" if same else "other bits")
    sys.exit(not same)
