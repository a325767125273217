"""Reversals in models that PyTorch's two exporters write, run by ONNX Runtime. Skipped, and counted, without PyTorch,
onnxscript or ONNX Runtime."""

import importlib.util
import pathlib
import tempfile
import unittest
import warnings

from with_torch import Module, dt, torch  # first: without PyTorch it skips this module

import dml_cuda
import numpy as np

if not all(map(importlib.util.find_spec, ("onnxscript", "onnxruntime"))):
    raise unittest.SkipTest("no onnxscript, or no ONNX Runtime")
import onnx
import onnxruntime

warnings.simplefilter("ignore", DeprecationWarning)


class Program(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x, lengths):
        return self.function(x + 1, lengths) * 2


def in_place(x, lengths):
    y = x * 3
    dt.reverse_subsequences_(y, lengths[:, None], 2)
    return y


# What a program calls on [6, 4, 5] with lengths of 4, and the operator that it becomes.
PROGRAMS = {
    "padded": (dt.reverse_padded_sequence, "ReverseSequence"),
    "batch first": (
        lambda x, n: dt.reverse_padded_sequence(x.transpose(0, 1), n, True),
        "ReverseSequence",
    ),
    "narrow lengths": (
        lambda x, n: dt.reverse_padded_sequence(x, n.to(torch.int16)),
        "ReverseSequence",
    ),
    "a number": (
        lambda x, n: dt.reverse_subsequences(x + (n[:, None] < 1), 3, 0),
        "ReverseSequence",
    ),
    "last dimension": (
        lambda x, n: dt.reverse_subsequences(x, n[:, None], -1),
        "GatherElements",
    ),
    "lanes": (
        lambda x, n: dt.reverse_subsequences(x.transpose(1, 2), n, 0),
        "GatherElements",
    ),
    "in place": (in_place, "GatherElements"),
}
X, LENGTHS = torch.randn(6, 4, 5), torch.tensor([3, 6, 0, 9])


def export(program, **options):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "model.onnx")
        torch.onnx.export(program, (X, LENGTHS), str(path), verbose=False, **options)
        return path.read_bytes()


def by_torch_script(program):
    axes = {"x": {0: "T", 1: "B"}, "lengths": {0: "B"}}
    return export(
        program, dynamo=False, input_names=["x", "lengths"], dynamic_axes=axes
    )


def by_torch_export(program):
    dim = torch.export.Dim
    shapes = {0: dim("T"), 1: dim("B")}, {0: dim("B")}
    return export(program, dynamo=True, dynamic_shapes=shapes)


class Onnx(unittest.TestCase):
    def test_models_give_the_bits_of_the_program(self):
        for name, (function, operator) in PROGRAMS.items():
            program = Program(function)
            for exporter in by_torch_script, by_torch_export:
                with self.subTest(name, exporter=exporter.__name__):
                    model = exporter(program)
                    self.assertIn(
                        operator,
                        [
                            node.op_type
                            for node in onnx.load_from_string(model).graph.node
                        ],
                    )
                    session = onnxruntime.InferenceSession(
                        model, providers=["CPUExecutionProvider"]
                    )
                    names = [given.name for given in session.get_inputs()]
                    for given in (
                        (X, LENGTHS),
                        (torch.randn(7, 2, 5), torch.tensor([7, 4])),
                    ):
                        found = session.run(
                            None,
                            {name: value.numpy() for name, value in zip(names, given)},
                        )[0]
                        np.testing.assert_array_equal(found, program(*given).detach())
                    # A compiled program does not look at its lengths: negative ones act as the size.
                    negative = torch.tensor([2, -1, 0, -(2**40)])
                    found = session.run(
                        None, dict(zip(names, (X.numpy(), negative.numpy())))
                    )[0]
                    if name not in (
                        "narrow lengths",
                        "a number",
                    ):  # of 16 bits, and no length
                        np.testing.assert_array_equal(
                            found, program(X, torch.where(negative < 0, 100, negative))
                        )

    def test_the_library_replaces_the_nodes_of_both(self):
        for exporter in by_torch_script, by_torch_export:
            options = onnxruntime.SessionOptions()
            options.add_session_config_entry("dml_cuda.replace_onnx", "1")
            options.register_custom_ops_library(dml_cuda.onnxruntime_library_path())
            before = dml_cuda.onnxruntime_counters().runs
            model = exporter(Program(dt.reverse_padded_sequence))
            session = onnxruntime.InferenceSession(
                model, options, providers=["CPUExecutionProvider"]
            )
            session.run(
                None,
                dict(
                    zip(
                        (given.name for given in session.get_inputs()),
                        (X.numpy(), LENGTHS.numpy()),
                    )
                ),
            )
            self.assertEqual(dml_cuda.onnxruntime_counters().runs, before + 1)

    def test_only_an_export_to_onnx_decomposes(self):
        program = torch.export.export(
            Program(dt.reverse_padded_sequence), (X, LENGTHS)
        ).run_decompositions()
        self.assertIn("dml_cuda.reverse_subsequences", program.graph_module.code)

    def test_fills(self):
        fills = {
            "int8 wraps": (10, -20, torch.int8),
            "uint8 wraps": (250, 3, torch.uint8),
            "int64": (-5, 2**40, torch.int64),
            "uint64": (-3, 2**62, torch.uint64),
            "float32": (0.1, 0.3, torch.float32),
            "float16": (0.1, 0.3, torch.float16),
        }
        for name, (start, delta, dtype) in fills.items():
            with self.subTest(name):

                def fill(x, lengths):
                    made = dt.fill_value_sequence((x.shape[0], 7), start, delta, dtype)
                    return made, lengths + 1

                program = Module(fill)
                dim = torch.export.Dim
                shapes = ({0: dim("T"), 1: dim("B")}, {0: dim("B")})
                model = export(program, dynamo=True, dynamic_shapes=shapes)
                self.assertIn(
                    "Range",
                    [node.op_type for node in onnx.load_from_string(model).graph.node],
                )
                session = onnxruntime.InferenceSession(
                    model, providers=["CPUExecutionProvider"]
                )
                names = [given.name for given in session.get_inputs()]
                for given in (X, LENGTHS), (torch.randn(9, 2, 5), torch.tensor([7, 4])):
                    found = session.run(
                        None, dict(zip(names, (value.numpy() for value in given)))
                    )[0]
                    np.testing.assert_array_equal(found, program(*given)[0].numpy())

    def test_scripts(self):
        class Scripted(torch.nn.Module):
            def forward(self, x, lengths):
                return dt.reverse_subsequences(x, lengths.unsqueeze(1), 0)

        import dml_cuda.torch.onnx  # noqa: F401: a script is not traced

        model = by_torch_script(torch.jit.script(Scripted()))
        session = onnxruntime.InferenceSession(
            model, providers=["CPUExecutionProvider"]
        )
        found = session.run(None, {"x": X.numpy(), "lengths": LENGTHS.numpy()})[0]
        np.testing.assert_array_equal(found, dt.reverse_padded_sequence(X, LENGTHS))
