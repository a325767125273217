"""RNNs with lengths in programs: compiled, exported, traced, scripted, transformed, and in ONNX. Skipped, and counted,
without PyTorch."""

import importlib.util
import tempfile
import unittest
import warnings

from with_torch import (
    DEVICES,
    Module,
    Seen,
    dt,
    torch,
)  # first: without PyTorch it skips this module

import dml_cuda
from test_rnn import BATCH, FEATURES, LENGTHS, STEPS, HIDDEN, kinds, leaves, packed, run
from torch.nn.utils import rnn as pytorch

VERSION = tuple(map(int, torch.__version__.split(".")[:2]))


class Programs(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        catch = warnings.catch_warnings()
        catch.__enter__()
        self.addCleanup(catch.__exit__, None, None, None)
        warnings.simplefilter("ignore")
        torch._dynamo.reset()
        before, torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.allow_tf32, False
        self.addCleanup(setattr, torch.backends.cudnn, "allow_tf32", before)

    def close(self, found, required, tolerance=1e-6):
        torch.testing.assert_close(found, required, rtol=tolerance, atol=tolerance)

    def test_plain_calls_are_pytorchs_everywhere(self):
        for device, (name, kind, options) in (
            (device, kind) for device in DEVICES for kind in kinds()
        ):
            with self.subTest(name, device=device):
                ours = (
                    kind(FEATURES, HIDDEN, 2, bidirectional=True, **options)
                    .to(device)
                    .eval()
                )
                plain = (
                    kind.__mro__[2](FEATURES, HIDDEN, 2, bidirectional=True, **options)
                    .to(device)
                    .eval()
                )
                plain.load_state_dict(ours.state_dict())
                x = torch.randn(STEPS, BATCH, FEATURES, device=device)
                model, required = (
                    Module(lambda rnn, x, _: rnn(x * 2)[0] + 1, ours),
                    plain(x * 2)[0] + 1,
                )
                self.assertTrue(
                    all(map(torch.equal, leaves(ours(x)), leaves(plain(x))))
                )
                self.assertTrue(
                    all(map(torch.equal, leaves(ours(x[:, 0])), leaves(plain(x[:, 0]))))
                )

                class Scripted(torch.nn.Module):
                    def __init__(self, rnn):
                        super().__init__()
                        self.rnn = rnn

                    def forward(self, x):
                        return self.rnn(x * 2)[0] + 1

                scripted = Scripted(ours).eval()
                programs = [
                    torch.fx.symbolic_trace(scripted),
                    torch.jit.script(scripted),
                    torch.jit.trace(scripted, (x,)),
                    torch.compile(scripted, backend="aot_eager"),
                    *(
                        torch.export.export(scripted, (x,), strict=strict).module()
                        for strict in (True, False)
                    ),
                ]
                for program in programs:
                    self.close(program(x), required, 1e-5)
                if VERSION >= (
                    2,
                    15,
                ):  # PyTorch 2.8 cannot export a module that it has scripted
                    torch._dynamo.reset()
                    nodes = [
                        [
                            node.target
                            for node in torch.export.export(
                                Scripted(rnn).eval(), (x,), strict=True
                            ).graph.nodes
                        ]
                        for rnn in (ours, plain)
                    ]
                    self.assertEqual(*([str(node) for node in part] for part in nodes))
                self.assertEqual(model(x, None).shape, required.shape)

    def test_compile_of_plain_calls(self):
        for kind in (dt.LSTM, dt.GRU, dt.RNN):
            rnn, x = kind(FEATURES, HIDDEN), torch.randn(STEPS, BATCH, FEATURES)
            around = Module(lambda rnn, x, _: rnn(x * 2)[0] + 1, rnn)
            for model, given in ((rnn, (x,)), (around, (x, None))):
                self.close(
                    torch.compile(model, backend="eager")(*given), model(*given), 0
                )

    def test_compile_export_and_trace_with_lengths(self):
        for device in DEVICES:
            rnn = dt.LSTM(FEATURES, HIDDEN, 2, bidirectional=True).to(device).eval()
            x, lengths = (
                torch.randn(STEPS, BATCH, FEATURES, device=device),
                torch.tensor(LENGTHS, device=device),
            )

            def call(rnn, x, lengths):
                output, (h_n, c_n) = rnn(x * 2, lengths=lengths)
                return output + 1, h_n, c_n

            model = Module(call, rnn).eval()
            required = model(x, lengths)
            compiled = torch.compile(model, backend="aot_eager")
            self.close(compiled(x, lengths), required)
            self.close(compiled(x[:7], lengths), model(x[:7], lengths))
            if VERSION >= (2, 15):  # before, PyTorch compiles nothing around an RNN
                self.assertEqual(
                    torch._dynamo.explain(model)(x, lengths).graph_break_count, 1
                )
                with self.assertRaisesRegex(torch._dynamo.exc.Unsupported, "RNN"):
                    torch.compile(model, backend="aot_eager", fullgraph=True)(
                        x, lengths
                    )
            with self.assertRaisesRegex(
                torch._dynamo.exc.Unsupported, "export with strict=False"
            ):
                torch.export.export(model, (x, lengths), strict=True)
            self.close(
                torch.export.export(model, (x, lengths), strict=False).module()(
                    x, lengths
                ),
                required,
            )
            graph = torch.fx.symbolic_trace(
                Module(lambda rnn, x, lengths: rnn(x, lengths=lengths)[0] + 1, rnn)
            )
            self.close(
                graph(x, lengths), rnn(x, lengths=lengths)[0] + 1, 0
            )  # the module is a node
            traced = [
                torch.jit.trace(model, (x, lengths))
            ]  # with gradients, and without
            with torch.no_grad():
                traced.append(torch.jit.trace(model, (x, lengths)))
            for steps, batch in ((STEPS, BATCH), (7, 3), (20, 8)):
                counts = torch.randint(0, steps + 3, (batch,), device=device)
                other = torch.randn(steps, batch, FEATURES, device=device), counts
                for program in traced:
                    self.close(program(*other), model(*other), 1e-5)

    def test_a_packed_model_is_traced_and_exported_as_pytorchs(self):
        class Model(torch.nn.Module):
            def __init__(self, rnn):
                super().__init__()
                self.rnn = rnn

            def forward(self, x, lengths):
                pack = pytorch.pack_padded_sequence(x, lengths, enforce_sorted=False)
                return pytorch.pad_packed_sequence(self.rnn(pack)[0])[0]

        ours = dt.GRU(FEATURES, HIDDEN, bidirectional=True)
        plain = torch.nn.GRU(FEATURES, HIDDEN, bidirectional=True)
        x, lengths = torch.randn(STEPS, BATCH, FEATURES), torch.tensor(LENGTHS)
        graphs = [
            str(torch.jit.trace(Model(rnn), (x, lengths)).inlined_graph).count("aten::")
            for rnn in (ours, plain)
        ]
        self.assertEqual(*graphs)
        self.close(
            torch.jit.script(Model(ours))(x, lengths), Model(ours)(x, lengths), 1e-5
        )

    def test_scripts_compile_pytorchs_packing(self):
        class Model(torch.nn.Module):
            def __init__(self, rnn):
                super().__init__()
                self.rnn = rnn

            def forward(self, x, lengths: torch.Tensor):
                pack = dt.pack_padded_sequence(x, lengths, enforce_sorted=False)
                return dt.pad_packed_sequence(
                    self.rnn(pack)[0], total_length=x.size(0)
                )[0]

        x, lengths = torch.randn(STEPS, BATCH, FEATURES), torch.tensor(LENGTHS)
        for kind in (dt.LSTM, dt.GRU, dt.RNN):
            model = Model(kind(FEATURES, HIDDEN, bidirectional=True))
            self.close(torch.jit.script(model)(x, lengths), model(x, lengths), 1e-5)
        self.close(
            torch.jit.script(dt.pack_padded_sequence)(x, [9] * BATCH)[0],
            x.reshape(-1, FEATURES),
            0,
        )

    def test_a_pack_from_outside_of_a_compiled_function_breaks_its_graph(self):
        rnn, plain = dt.LSTM(FEATURES, HIDDEN), torch.nn.LSTM(FEATURES, HIDDEN)
        x = torch.randn(20, 2, FEATURES)
        pack, holder = dt.pack_padded_sequence(x, [20, 18]), torch.nn.Module()
        holder.pack, named = pack, {"pack": pack}
        required = rnn(dt.pack_padded_sequence(x, [20, 18]))[0].data
        for function, *given in (
            (lambda: rnn(pack)[0].data,),
            (lambda: rnn(holder.pack)[0].data,),
            (lambda: rnn(named["pack"])[0].data,),
            (lambda pack: rnn(pack)[0].data, pack),
            (lambda named: rnn(named["pack"])[0].data, named),
        ):
            self.close(torch.compile(function, backend="aot_eager")(*given), required)
            torch._dynamo.reset()  # PyTorch has decided to leave the function alone
            with self.assertRaisesRegex(
                torch._dynamo.exc.Unsupported,
                "pack inside of it, or pass torch.nn.utils.rnn",
            ):
                torch.compile(function, backend="aot_eager", fullgraph=True)(*given)
        for module in (rnn, plain):
            self.close(
                torch.compile(module, backend="aot_eager")(pack)[0].data,
                module(pack)[0].data,
            )

    @unittest.skipIf(VERSION < (2, 15), "no PyTorch with a GPU")
    def test_a_while_loop_has_a_dynamic_t(self):
        try:
            from torch.export._patches import (
                register_lstm_while_loop_decomposition as loops,
            )
        except ImportError:
            self.fail("PyTorch moved register_lstm_while_loop_decomposition")
        model = Module(
            lambda rnn, x, lengths: rnn(x, lengths=lengths)[0],
            dt.LSTM(FEATURES, HIDDEN, bidirectional=True),
        ).eval()
        x, lengths, dim = (
            torch.randn(STEPS, BATCH, FEATURES),
            torch.tensor(LENGTHS),
            torch.export.Dim,
        )
        with loops(), torch.no_grad():
            program = torch.export.export(
                model,
                (x, lengths),
                strict=False,
                dynamic_shapes=({0: dim("T", min=2, max=99)}, None),
            ).module()
        for steps in (STEPS, 6):
            given = torch.randn(steps, BATCH, FEATURES), lengths
            self.close(program(*given), model(*given), 1e-5)

    def test_transforms_as_the_plain_module(self):
        """For full sequences, nn.GRU itself gives the required tangents and gradients."""
        func = torch.func
        for name, kind, options in kinds():
            if "LSTM" in name:
                continue  # PyTorch has no tangents of oneDNN's
            rnn = (
                kind(FEATURES, HIDDEN, bidirectional=True, **options)
                .double()
                .requires_grad_(False)
            )
            full, (x, v) = (
                torch.full((2,), 3),
                torch.randn(2, 3, 2, FEATURES, dtype=torch.float64),
            )
            found, required = lambda x: run(rnn, x, full)[0], lambda x: rnn(x)[0]
            for what, transform in (
                ("jvp", lambda f: func.jvp(f, (x,), (v,))[1]),
                ("grad", lambda f: func.grad(lambda x: (f(x) ** 2).sum())(x)),
                ("linearize", lambda f: func.linearize(f, x)[1](v)),
                ("vjp", lambda f: func.vjp(f, x)[1](f(x))[0]),
            ):
                with self.subTest(name, transform=what):
                    self.close(transform(found), transform(required), 1e-9)
                    with Seen():
                        self.close(transform(found), transform(required), 1e-9)

    def test_onnx(self):
        if not all(map(importlib.util.find_spec, ("onnxscript", "onnxruntime"))):
            self.skipTest("no onnxscript, or no ONNX Runtime")
        import onnx
        import onnxruntime

        def call(rnn, x, lengths):
            output, states = rnn(x, lengths=lengths)
            return output, *leaves(states)

        padded = Module(dt.reverse_padded_sequence)
        gathered = Module(
            lambda x, lengths: dt.reverse_subsequences_(x + 1, lengths[:, None], 2)
        )
        gru, lstm = (
            Module(call, kind(FEATURES, HIDDEN, bidirectional=True)).eval()
            for kind in (dt.GRU, dt.LSTM)
        )
        x, lengths, dim = (
            torch.randn(STEPS, BATCH, FEATURES),
            torch.tensor(LENGTHS),
            torch.export.Dim,
        )
        modules = [
            (padded, "ReverseSequence"),
            (gathered, "GatherElements"),
            (gru, "ReverseSequence"),
            (lstm, "ReverseSequence"),
        ]

        def check(path, module, sizes):
            for library in (False, True):
                options = onnxruntime.SessionOptions()
                if library:
                    options.add_session_config_entry("dml_cuda.replace_onnx", "1")
                    options.register_custom_ops_library(
                        dml_cuda.onnxruntime_library_path()
                    )
                session = onnxruntime.InferenceSession(
                    path, options, providers=["CPUExecutionProvider"]
                )
                names = [given.name for given in session.get_inputs()]
                for steps, batch in sizes:
                    given = (
                        torch.randn(steps, batch, FEATURES),
                        torch.randint(0, steps + 3, (batch,)),
                    )
                    given = given[: len(names)]
                    with torch.no_grad():
                        required = list(leaves(module(*given)))
                    found = session.run(
                        None, dict(zip(names, (value.numpy() for value in given)))
                    )
                    self.close(
                        [torch.from_numpy(value) for value in found], required, 1e-5
                    )

        # PyTorch 2.8's exporter writes a GRU for one batch size, and fails for an LSTM.
        for module, operator in modules if VERSION > (2, 8) else modules[:2]:
            # Before 2.15 PyTorch's exporter writes out the loop of an RNN, with a fixed number of steps.
            fixed = module in (gru, lstm) and VERSION < (2, 15)
            with (
                self.subTest(operator),
                tempfile.TemporaryDirectory() as folder,
                warnings.catch_warnings(record=True) as caught,
            ):
                warnings.simplefilter("always")
                program = torch.onnx.export(
                    module,
                    (x, lengths),
                    dynamo=True,
                    verbose=False,
                    dynamic_shapes=({0: dim("T"), 1: dim("B")}, {0: dim("B")}),
                )
                self.assertEqual(
                    any(
                        "program has a fixed T" in str(warning.message)
                        for warning in caught
                    ),
                    fixed,
                )
                self.assertIn(operator, [node.op_type for node in program.model.graph])
                program.save(f"{folder}/model.onnx")
                check(
                    f"{folder}/model.onnx",
                    module,
                    ((STEPS, BATCH), (STEPS if fixed else 4, 2)),
                )

        class Packing(torch.nn.Module):
            def __init__(self, rnn):
                super().__init__()
                self.rnn = rnn

            def forward(self, x, lengths):
                pack = dt.pack_padded_sequence(x, lengths, enforce_sorted=False)
                return dt.pad_packed_sequence(
                    self.rnn(pack)[0], total_length=x.size(0)
                )[0]

        # A plain call and packing keep the node of an LSTM.
        plain = Module(
            lambda rnn, x, _: rnn(x)[0], dt.LSTM(FEATURES, HIDDEN, bidirectional=True)
        ).eval()
        with tempfile.TemporaryDirectory() as folder:
            packs = Packing(dt.LSTM(FEATURES, HIDDEN, bidirectional=True)).eval()
            for name, module, dynamo in (
                ("plain", plain, True),
                ("script", plain, False),
                ("packed", packs, False),
            ):
                with self.subTest(name):
                    path = f"{folder}/{name}.onnx"
                    options = (
                        {}
                        if dynamo
                        else {
                            "dynamic_axes": {
                                "x": {0: "T", 1: "B"},
                                "lengths": {0: "B"},
                            },
                            "input_names": ["x", "lengths"],
                        }
                    )
                    torch.onnx.export(
                        module,
                        (x, lengths),
                        path,
                        dynamo=dynamo,
                        verbose=False,
                        **options,
                    )
                    nodes = [node.op_type for node in onnx.load(path).graph.node]
                    if not dynamo or VERSION > (2, 8):
                        self.assertIn("LSTM", nodes)
                        self.assertNotIn("ReverseSequence", nodes)
