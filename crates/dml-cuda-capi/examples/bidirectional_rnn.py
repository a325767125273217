"""A bidirectional GRU as exporters write it: the backward half is between two ReverseSequence nodes, so that padding
stays at the end. Makes the model, which does not depend on this library, and runs it with ONNX Runtime's kernels and
with this library's.

    python bidirectional_rnn.py PATH/libdml_cuda.so [model.onnx]
"""

import sys

import numpy as np
import onnx
import onnxruntime

TIME, BATCH, FEATURES, HIDDEN = 12, 5, 8, 16
MODEL = f"""<ir_version: 8, opset_import: ["": 17]>
bidirectional_gru (float[time, batch, {FEATURES}] x, int32[batch] lengths) => (float[time, batch, {2 * HIDDEN}] y) {{
  lengths_int64 = Cast <to = {onnx.TensorProto.INT64}> (lengths)
  forward = GRU <hidden_size = {HIDDEN}> (x, W_forward, R_forward, B_forward, lengths)
  [x_reversed] x_reversed = ReverseSequence <time_axis = 0, batch_axis = 1> (x, lengths_int64)
  backward_reversed = GRU <hidden_size = {HIDDEN}> (x_reversed, W_backward, R_backward, B_backward, lengths)
  backward_squeezed = Squeeze (backward_reversed, one)
  [backward] backward = ReverseSequence <time_axis = 0, batch_axis = 1> (backward_squeezed, lengths_int64)
  forward_squeezed = Squeeze (forward, one)
  y = Concat <axis = 2> (forward_squeezed, backward)
}}"""


def make_model():
    random = np.random.default_rng(0)
    values = {"one": np.array([1])}
    for half in ("forward", "backward"):
        for name, shape in (
            ("W", (1, 3 * HIDDEN, FEATURES)),
            ("R", (1, 3 * HIDDEN, HIDDEN)),
            ("B", (1, 6 * HIDDEN)),
        ):
            values[f"{name}_{half}"] = (
                random.standard_normal(shape).astype(np.float32) * 0.3
            )
    model = onnx.parser.parse_model(MODEL)
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(value, name) for name, value in values.items()
    )
    onnx.checker.check_model(model)
    return model


def run(model, library=None):
    options = onnxruntime.SessionOptions()
    if library:
        options.add_session_config_entry("dml_cuda.replace_onnx", "1")
        options.register_custom_ops_library(library)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
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
