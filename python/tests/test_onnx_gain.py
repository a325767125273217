"""``python -m dml_cuda onnx``: models with nodes in the graph, in a function, in If and in Loop, and without any."""

import itertools
import pathlib
import re
import tempfile
import unittest

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError:
    raise unittest.SkipTest("no onnx, or no ONNX Runtime") from None

from dml_cuda import _onnx_gain
from programs import run_python

info = helper.make_tensor_value_info
ROW = r" +[\d.]+ +[\d.]+   speedup [\d.]+× to [\d.]+× +(SAME|FASTER|SLOWER|UNSURE)"


def look(*arguments):
    """Runs the command. Returns its exit code, output and errors."""
    run = run_python("-m", "dml_cuda", "onnx", *arguments)
    return run.returncode, run.stdout, run.stderr


def reverse(x, y, name, domain=""):
    return helper.make_node(
        "ReverseSequence",
        [x, "l"],
        [y],
        batch_axis=0,
        time_axis=1,
        name=name,
        domain=domain,
    )


def model(nodes, functions=()):
    shape = ["b", "t", 3]
    graph = helper.make_graph(
        nodes,
        "g",
        [info("x", TensorProto.FLOAT, shape), info("l", TensorProto.INT64, ["b"])],
        [info("y", TensorProto.FLOAT, None)],
        [
            numpy_helper.from_array(np.array(True), "yes"),
            numpy_helper.from_array(np.array(3), "three"),
        ],
    )
    return helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("f", 1)],
        ir_version=8,
        functions=list(functions),
    )


def everywhere():
    """A node in each place that can have one."""
    body = helper.make_graph(
        [reverse("c", "d", "looped"), helper.make_node("Identity", ["k"], ["k2"])],
        "body",
        [
            info("i", TensorProto.INT64, []),
            info("k", TensorProto.BOOL, []),
            info("c", TensorProto.FLOAT, None),
        ],
        [info("k2", TensorProto.BOOL, []), info("d", TensorProto.FLOAT, None)],
    )
    branch = lambda name: helper.make_graph(
        [reverse("p", f"{name}_y", f"of_{name}")],
        name,
        [],
        [info(f"{name}_y", TensorProto.FLOAT, None)],
    )
    function = helper.make_function(
        "f",
        "Reverse",
        ["x", "l"],
        ["y"],
        [reverse("x", "y", "called")],
        [helper.make_opsetid("", 17)],
    )
    return model(
        [
            reverse("x", "p", "plain"),
            helper.make_node(
                "If",
                ["yes"],
                ["q"],
                name="if",
                then_branch=branch("then"),
                else_branch=branch("else"),
            ),
            helper.make_node(
                "Loop", ["three", "yes", "q"], ["r"], name="loop", body=body
            ),
            helper.make_node("Reverse", ["r", "l"], ["y"], domain="f"),
        ],
        [function],
    )


class Gain(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "model.onnx"

    def test_nodes_in_every_place(self):
        onnx.save(everywhere(), self.path)  # ONNX Runtime removes the other branch
        code, out, error = look(self.path, "--shape", "t=7", "--shape", "b=4")
        self.assertEqual((code, error), (0, ""))
        for line in (
            "ReverseSequence `plain`$",
            "ReverseSequence `of_then` in then_branch of If `if`$",
            "ReverseSequence `looped` in body of Loop `loop`$",
            "ReverseSequence `called` in function `Reverse`$",
            r"inputs: x float32 \[4, 7, 3\], l int64 \[4\]$",
            r"this library loaded 4 nodes, and ran 6$",
            "outputs with and without the library: equal bits$",
            rf"{ROW} +whole model$",
            rf"{ROW} +plain$",
        ):
            self.assertRegex(out, f"(?m)^{line}")
        self.assertEqual(
            list(self.path.parent.iterdir()), [self.path]
        )  # no profile is left

    def test_names_are_escaped_in_the_report_and_in_errors(self):
        forged = "\x1b[2J\x9b31m\u202e\r\n      1.0         9.9   speedup 9.00× to 9.99×      FASTER "
        escaped = r"\\x1b\[2J\\x9b31m\\u202e\\r\\n      1.0 .* FASTER "
        made = everywhere()
        for node in made.graph.node:
            node.name = forged + node.name
        made.graph.output[0].name = made.graph.node[-1].output[0] = forged + "y"
        for name in ("b", "t"):
            for dim in (
                dim
                for one in made.graph.input
                for dim in one.type.tensor_type.shape.dim
            ):
                if dim.dim_param == name:
                    dim.dim_param = forged + name
        onnx.save(made, self.path)
        code, out, error = look(self.path)
        self.assertEqual((code, error), (0, ""))
        self.assertTrue(out.replace("\n", "").isprintable())
        self.assertEqual(
            len(
                re.findall(
                    f"(?m)^ReverseSequence `{escaped}plain`$|^ReverseSequence .* If `{escaped}if`$",
                    out,
                )
            ),
            3,
            out,
        )
        self.assertEqual(
            len(re.findall(r"(?m)^ +[\d.]+ +[\d.]+   speedup", out)),
            len(re.findall(f"(?m)^{ROW} ", out)),
        )
        self.assertNotRegex(out, "(?m)^      1.0         9.9")
        for wrong in (
            ["--shape", "x=1"],
            ["--shape", "nothing=1"],
            ["--input", "nothing=1"],
        ):
            code, out, error = look(self.path, *wrong)
            self.assertEqual((code, out.count("\x1b")), (1, 0))
            self.assertTrue(error.endswith("\n") and error[:-1].isprintable(), error)

    def test_a_model_without_such_nodes(self):
        for node in (
            helper.make_node("Identity", ["x"], ["y"]),
            reverse("x", "y", "other", domain="f"),
        ):
            onnx.save(model([node]), self.path)
            self.assertEqual(
                look(self.path),
                (0, "nothing to replace: the model has no ReverseSequence\n", ""),
            )

    def test_wrong_arguments_are_one_line(self):
        onnx.save(everywhere(), self.path)
        for arguments, words in [
            (["--shape", "x=a"], "--shape is x=a, but must be NAME=SIZES"),
            (["--shape", "t=0"], "--shape is t=0, but must be NAME=SIZES"),
            (
                ["--shape", "time=3"],
                r"--shape has the names \['time'\], but must have inputs or dimensions of the model: \['b', 'l', 't', 'x'\]",
            ),
            (
                ["--shape", "t=5,6"],
                r"--shape of t is \[5, 6\], but must be one size, because it is a dimension$",
            ),
            (
                ["--shape", "t=5", "--shape", "t=6"],
                r"--shape of t is \[5\] and \[6\], but must be one of them$",
            ),
            (
                ["--shape", "x=2,3"],
                "the model does not run with inputs of .*; --shape sets other sizes",
            ),
            (
                ["--shape", "x=2,3,3", "--shape", "l=5"],
                r"--shape of b is \[2\] and \[5\], but must be one of them$",
            ),
            (
                ["--input", "other=a.npy"],
                r"--input is other=a.npy, but must be NAME=FILE.npy, with an input of the model: \['l', 'x'\]",
            ),
        ]:
            code, _, error = look(self.path, *arguments)
            self.assertEqual((code, error.count("\n")), (1, 1), error)
            self.assertRegex(error, f"^{re.escape(str(self.path))}: {words}")
        for text in ("not a model", ""):
            self.path.write_text(text)
            self.assertEqual(
                look(self.path),
                (1, "", f"{self.path}: the file is not an ONNX model\n"),
            )
        self.assertEqual(look(self.path.with_name("other"))[0], 1)
        self.assertEqual(look(self.path, "--provider", "other")[0], 2)

    def save(self, nodes, inputs, output=TensorProto.FLOAT, initializers=()):
        named = [one if not isinstance(one, tuple) else info(*one) for one in inputs]
        graph = helper.make_graph(
            nodes, "g", named, [info("y", output, None)], initializers
        )
        onnx.save(
            helper.make_model(
                graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
            ),
            self.path,
        )

    def test_masks_are_those_of_padded_batches(self):
        kinds, node = (
            (TensorProto.BOOL, TensorProto.INT64, TensorProto.INT32),
            helper.make_node,
        )
        for kind, axes in itertools.product(kinds, ("bt", "tb", "bt1")):
            nodes = [
                node("Cast", ["m"], ["c"], to=TensorProto.INT64),
                node("ReduceSum", ["c", "along"], ["s"], keepdims=0),
                node("Reshape", ["s", "flat"], ["l"]),
                reverse("x", "y", "node"),
            ]
            of_axes = {"along": axes.index("t"), "flat": -1}
            constants = [
                numpy_helper.from_array(np.array([value]), name)
                for name, value in of_axes.items()
            ]
            shape = [1 if axis == "1" else axis for axis in axes]
            self.save(
                nodes,
                [("x", TensorProto.FLOAT, ["b", "t", 3]), ("m", kind, shape)],
                initializers=constants,
            )
            mask = _onnx_gain._accepted(str(self.path), ["b=6", "t=9"], [])["m"]
            along_time = np.moveaxis(
                mask.reshape(mask.shape[:2]), axes.index("t"), 1
            ).astype(int)
            self.assertGreater(len({*along_time.sum(1)}), 3)
            self.assertTrue(
                (np.diff(along_time, axis=1) <= 0).all() and along_time.any(1).all()
            )

        inputs = [("x", TensorProto.INT32, ["b", "t"]), ("l", TensorProto.INT64, ["b"])]
        self.save([reverse("x", "y", "node")], inputs, TensorProto.INT32)
        x = _onnx_gain._accepted(str(self.path), ["b=6", "t=9"], [])["x"]
        self.assertTrue(
            len({*x[0]}) > 3 and (x[:, -1] == 0).any(),
            "data differ, so that a reversal shows",
        )

    def test_a_branch_that_is_not_taken_is_not_tried(self):
        made = lambda nodes, name: helper.make_graph(
            nodes, name, [], [info(name, TensorProto.FLOAT, None)]
        )
        branches = {
            "then_branch": made([helper.make_node("Identity", ["x"], ["a"])], "a"),
            "else_branch": made([reverse("x", "d", "taken")], "d"),
        }
        self.save(
            [helper.make_node("If", ["c"], ["y"], **branches)],
            [
                ("c", TensorProto.BOOL, []),
                ("x", TensorProto.FLOAT, ["b", "t", 3]),
                ("l", TensorProto.INT64, ["b"]),
            ],
        )
        out = look(self.path, "--shape", "x=4,5,3")[1]
        for line in (
            "this library loaded 1 nodes, and ran 0$",
            "not tried: 1 of these nodes did not run",
            "outputs .*: not tried, no node ran$",
            rf"{ROW} +whole",
        ):
            self.assertRegex(out, f"(?m)^{line}")
        np.save(self.path.with_name("c.npy"), np.array(False))
        out = look(
            self.path,
            "--shape",
            "x=4,5,3",
            "--input",
            f"c={self.path.with_name('c.npy')}",
        )[1]
        self.assertRegex(
            out, rf"(?ms)ran 1$.*equal bits$.*{ROW} +whole model$.*{ROW} +taken$"
        )
        self.assertNotIn("not tried", out)

    def test_inputs_of_all_types_are_made_or_named(self):
        lengths = ("l", TensorProto.INT64, ["b"])
        self.save(
            [reverse("x", "y", "node")],
            [("x", TensorProto.STRING, ["b", "t"]), lengths],
            TensorProto.STRING,
        )
        self.assertIn("equal bits", look(self.path, "--shape", "x=4,5")[1])
        tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
        kinds = (
            helper.make_sequence_type_proto(tensor),
            helper.make_optional_type_proto(tensor),
        )
        others = [helper.make_value_info("o", kind) for kind in kinds]
        for other in (
            *others,
            *(
                ("o", kind, ["b"])
                for kind in (TensorProto.BFLOAT16, TensorProto.FLOAT8E5M2)
            ),
        ):
            self.save(
                [reverse("x", "y", "node")],
                [("x", TensorProto.FLOAT, ["b", "t", 3]), lengths, other],
            )
            self.assertRegex(
                look(self.path)[2],
                r": the input o is \S+, but must be a tensor of bools, .* Give the model such an input, before a Cast",
            )

    def test_verdicts_are_those_of_bench(self):
        self.assertEqual(
            _onnx_gain._interval([*range(1, 31)]), (9, 22)
        )  # as the test of `report` has it
        for times, verdict in ((10, "SAME"), (5, "FASTER"), (20, "SLOWER")):
            self.assertIn(verdict, _onnx_gain._row("", [10] * 30, [times] * 30))
        self.assertIn("UNSURE", _onnx_gain._row("", [*range(1, 31)], [15] * 30))
