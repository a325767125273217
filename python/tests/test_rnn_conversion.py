"""dml_cuda.torch.convert_rnns, and what programs do with the modules that it converts. Skipped, and counted, without
PyTorch."""

import copy
import importlib.util
import pickle
import subprocess
import sys
import tempfile
import unittest
import warnings

from with_torch import dt, torch  # first: without PyTorch it skips this module

from random_rnns import running
from test_rnn import BATCH, FEATURES, HIDDEN, LENGTHS, STEPS, kinds, leaves, packed, run
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune, weight_norm
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Own(nn.LSTM):
    def forward(self, x, hx=None):
        return super().forward(x + 1, hx)


class TextEncoder(nn.Module):
    """The structure of the text encoder of StyleTTS 2 and Kokoro, as their programs write it."""

    def __init__(self, channels=12, kernel=5, depth=2, symbols=20):
        super().__init__()
        self.embedding = nn.Embedding(symbols, channels)
        self.cnn = nn.ModuleList(
            nn.Sequential(
                parametrizations.weight_norm(
                    nn.Conv1d(channels, channels, kernel, padding=kernel // 2)
                ),
                nn.LeakyReLU(0.2),
                nn.Dropout(0.2),
            )
            for _ in range(depth)
        )
        self.lstm = nn.LSTM(
            channels, channels // 2, 1, batch_first=True, bidirectional=True
        )

    def forward(self, x, input_lengths, m):
        x = self.embedding(x).transpose(1, 2)
        m = m.unsqueeze(1)
        x = x.masked_fill(m, 0.0)
        for c in self.cnn:
            x = c(x).masked_fill(m, 0.0)
        x = x.transpose(1, 2)
        lengths = input_lengths.cpu().numpy()
        x = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        self.lstm.flatten_parameters()
        x, _ = self.lstm(x)
        x, _ = pad_packed_sequence(x, batch_first=True)
        x = x.transpose(-1, -2)
        x_pad = torch.zeros([x.shape[0], x.shape[1], m.shape[-1]])
        x_pad[:, :, : x.shape[-1]] = x
        return x_pad.masked_fill(m, 0.0)


class Conversion(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        warnings.filterwarnings("ignore", "LSTM with projections")
        self.x, self.lengths = (
            torch.randn(STEPS, BATCH, FEATURES),
            torch.tensor(LENGTHS),
        )

    def check(self, rnn, tolerance=1e-5):
        with running("padded"):
            torch.testing.assert_close(
                run(rnn, self.x, self.lengths),
                packed(rnn, self.x, self.lengths),
                rtol=tolerance,
                atol=tolerance,
            )

    def test_everything_stays_but_the_class(self):
        for kind in (nn.LSTM, nn.GRU, nn.RNN):
            root, calls = kind(FEATURES, HIDDEN), []
            before = {name: id(value) for name, value in root.named_parameters()}
            root.register_forward_hook(lambda *_: calls.append(1))
            model = nn.Sequential(
                nn.Linear(2, 2),
                root,
                nn.ModuleDict(
                    {"again": root, "other": kind(3, 4, 2, bidirectional=True)}
                ),
            )
            names = list(model.state_dict())
            self.assertIs(dt.convert_rnns(model), model)
            self.assertIs(model[1], root)
            self.assertIs(type(root), getattr(dt, kind.__name__))
            self.assertIs(type(model[2]["other"]), type(root))
            self.assertIsInstance(root, kind)
            self.assertEqual(
                {name: id(value) for name, value in root.named_parameters()}, before
            )
            self.assertEqual(list(model.state_dict()), names)
            self.check(root)
            self.assertTrue(calls)
            self.assertIs(type(dt.convert_rnns(root)), type(root))  # again
            self.assertIs(type(dt.convert_rnns(kind(2, 3))), type(root))  # the root
            self.assertEqual(repr(root), f"{kind.__name__}({FEATURES}, {HIDDEN})")

    def test_what_is_left_alone_is_named(self):
        with self.assertWarnsRegex(
            UserWarning,
            r"^0 has a class of its own, test_rnn_conversion.Own, and stays as it is$",
        ):
            model = dt.convert_rnns(nn.Sequential(Own(2, 3), nn.LSTMCell(2, 3)))
        self.assertIs(type(model[0]), Own)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            quantized = torch.ao.quantization.quantize_dynamic(
                nn.Sequential(nn.LSTM(2, 3))
            )
        with self.assertWarnsRegex(
            UserWarning, r"^0 is quantized, torch.ao.nn.quantized.dynamic"
        ):
            dt.convert_rnns(quantized)

    def test_a_model_without_rnns_warns(self):
        with self.assertWarnsRegex(
            UserWarning,
            "^Sequential has no torch.nn.LSTM, GRU or RNN among its modules",
        ):
            dt.convert_rnns(nn.Sequential(nn.Linear(2, 2), nn.LSTMCell(2, 3)))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            dt.convert_rnns(dt.LSTM(2, 3))

    def test_what_is_restored_is_pytorchs(self):
        model = nn.Sequential(
            nn.LSTM(FEATURES, HIDDEN), nn.GRU(HIDDEN, HIDDEN), dt.RNN(HIDDEN, HIDDEN)
        )
        dt.convert_rnns(model[:2])
        model[1](model[0](self.x, lengths=self.lengths)[0], lengths=self.lengths)
        weights = [id(weight) for weight in model.parameters()]
        self.assertIs(dt.restore_rnns(model), model)
        self.assertEqual([type(part) for part in model], [nn.LSTM, nn.GRU, nn.RNN])
        self.assertEqual([id(weight) for weight in model.parameters()], weights)
        self.assertEqual(vars(model[0]).keys(), vars(nn.LSTM(2, 3)).keys())
        dt.restore_rnns(model)  # again
        with tempfile.TemporaryDirectory() as folder:
            torch.save(model, f"{folder}/model")
            program = "import sys, torch; torch.load(sys.argv[1], weights_only=False); assert 'dml_cuda' not in sys.modules"
            subprocess.run(
                [
                    sys.executable,
                    "-I",
                    "-W",
                    "ignore",
                    "-c",
                    program,
                    f"{folder}/model",
                ],
                check=True,
            )
        self.check(dt.convert_rnns(model)[0])
        self.assertTrue(
            torch.ao.quantization.quantize_dynamic(dt.restore_rnns(model))[
                0
            ].__module__.startswith("torch.ao")
        )

    def test_parametrized_modules_are_restored(self):
        for kind in (nn.LSTM, dt.LSTM):
            rnn = dt.convert_rnns(
                parametrizations.weight_norm(kind(FEATURES, HIDDEN), "weight_hh_l0")
            )
            parametrizations.weight_norm(rnn, "weight_ih_l0")
            required = rnn(self.x)
            dt.restore_rnns(rnn)
            self.assertNotIsInstance(rnn, dt.LSTM)
            torch.testing.assert_close(rnn(self.x), required)
            parametrize.remove_parametrizations(rnn, "weight_hh_l0")
            parametrize.remove_parametrizations(rnn, "weight_ih_l0")
            self.assertIs(type(rnn), nn.LSTM)

    def test_subclasses_of_this_librarys_classes_keep_their_forward(self):
        class Both(Own, dt.LSTM):
            pass

        both = Both(FEATURES, HIDDEN)
        torch.testing.assert_close(both(self.x)[0], both._plain(self.x + 1, None)[0])
        with self.assertWarnsRegex(
            UserWarning, "the module has a class of its own, .*Both, and stays as it is"
        ):
            dt.restore_rnns(both)
        with self.assertRaises(Exception):  # and not another program
            torch.jit.script(both)

    def test_quantization_after_the_conversion_warns(self):
        with self.assertWarnsRegex(
            UserWarning,
            r"dml_cuda.torch.LSTM stays as it is, because quantization knows only torch.nn.LSTM",
        ):
            model = torch.ao.quantization.quantize_dynamic(
                nn.Sequential(dt.LSTM(FEATURES, HIDDEN), nn.Linear(2, 2))
            )
        self.check(model[0])

    def test_parametrized_modules_keep_their_properties(self):
        for kind in (nn.LSTM, nn.GRU):
            rnn = parametrizations.weight_norm(
                kind(FEATURES, HIDDEN, bidirectional=True), "weight_hh_l0"
            )
            names = list(rnn.state_dict())
            dt.convert_rnns(rnn)
            self.assertEqual(list(rnn.state_dict()), names)
            self.assertTrue(
                parametrize.is_parametrized(rnn)
                and isinstance(rnn, getattr(dt, kind.__name__))
            )
            with torch.no_grad():
                rnn.parametrizations.weight_hh_l0.original0.mul_(2)
            self.check(rnn)
            rnn(self.x, lengths=self.lengths)[0].sum().backward()
            self.assertTrue(rnn.parametrizations.weight_hh_l0.original1.grad.any())
            parametrize.remove_parametrizations(rnn, "weight_hh_l0")
            self.assertIs(type(rnn), getattr(dt, kind.__name__))
            self.check(rnn)

    def test_weights_that_hooks_compute_and_tied_weights(self):
        for change in (
            lambda rnn: prune.l1_unstructured(rnn, "weight_hh_l0", 0.5),
            lambda rnn: weight_norm(rnn, "weight_ih_l0_reverse"),
            lambda rnn: setattr(rnn, "weight_ih_l0_reverse", rnn.weight_ih_l0),
        ):
            rnn = nn.GRU(FEATURES, HIDDEN, bidirectional=True)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                change(rnn)
            dt.convert_rnns(rnn)
            optimizer = torch.optim.SGD(rnn.parameters(), 0.1)
            for _ in range(3):
                optimizer.zero_grad()
                with running("packed"):
                    required = rnn(self.x, lengths=self.lengths)[0]
                with running("padded"):
                    output = rnn(self.x, lengths=self.lengths)[0]
                torch.testing.assert_close(output, required)
                output.square().sum().backward()
                optimizer.step()

    def test_copies_pickles_conversions_and_other_weights_for_one_call(self):
        for name, kind, options in kinds():
            with self.subTest(name):
                rnn = kind(FEATURES, HIDDEN, 2, bidirectional=True, **options)
                required = run(rnn, self.x, self.lengths)
                for same in (
                    copy.deepcopy(rnn),
                    pickle.loads(pickle.dumps(rnn)),
                    copy.copy(rnn),
                    rnn.to("cpu"),
                ):
                    self.assertIs(type(same), kind)
                    torch.testing.assert_close(
                        run(same, self.x, self.lengths), required
                    )
                zeros = {
                    name: torch.zeros_like(value)
                    for name, value in rnn.state_dict().items()
                }
                found = torch.func.functional_call(
                    rnn, zeros, (self.x,), {"lengths": self.lengths}
                )
                self.assertFalse(any(part.any() for part in leaves(found)))
                double = copy.deepcopy(rnn).double()
                torch.testing.assert_close(
                    [
                        part.float()
                        for part in run(double, self.x.double(), self.lengths)
                    ],
                    list(required),
                )
                rnn.weight_hh_l0 = nn.Parameter(torch.zeros_like(rnn.weight_hh_l0))
                self.check(rnn)

    def test_an_encoder_of_a_public_project_is_converted_by_one_line(self):
        tokens, lengths = torch.randint(0, 20, (4, 11)), torch.tensor([11, 6, 2, 9])
        mask = torch.arange(11)[None] >= lengths[:, None]
        before = TextEncoder().eval()
        after = dt.convert_rnns(copy.deepcopy(before))
        self.assertEqual(list(after.state_dict()), list(before.state_dict()))
        results = []
        for model in (before, after):
            output = model(tokens, lengths, mask)
            output.square().sum().backward()
            results.append([output, *(weight.grad for weight in model.parameters())])
        torch.testing.assert_close(*results)
        after.load_state_dict(before.state_dict())

    def test_checkpoints(self):
        import torch.distributed.checkpoint as dcp

        before = nn.Sequential(
            nn.Linear(FEATURES, FEATURES),
            nn.LSTM(FEATURES, HIDDEN, 2, bidirectional=True),
        )
        for converted in (False, True):
            after = nn.Sequential(
                nn.Linear(FEATURES, FEATURES),
                nn.LSTM(FEATURES, HIDDEN, 2, bidirectional=True),
            )
            if converted:
                dt.convert_rnns(after)
            with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                dcp.save({"model": before.state_dict()}, checkpoint_id=folder)
                state = {"model": after.state_dict()}
                dcp.load(state, checkpoint_id=folder)
                after.load_state_dict(state["model"])
            for a, b in zip(after.parameters(), before.parameters()):
                self.assertTrue(torch.equal(a, b))
        if importlib.util.find_spec("safetensors"):
            from safetensors.torch import load_model, save_model

            with tempfile.TemporaryDirectory() as folder:
                save_model(before, f"{folder}/model.safetensors")
                after = dt.convert_rnns(
                    nn.Sequential(
                        nn.Linear(FEATURES, FEATURES),
                        nn.LSTM(FEATURES, HIDDEN, 2, bidirectional=True),
                    )
                )
                self.assertEqual(
                    load_model(after, f"{folder}/model.safetensors"), (set(), [])
                )
                self.assertTrue(
                    torch.equal(after[1].weight_hh_l1, before[1].weight_hh_l1)
                )

    def test_from_pretrained(self):
        if not importlib.util.find_spec("transformers"):
            return
        from transformers import PretrainedConfig, PreTrainedModel

        class Model(PreTrainedModel):
            config_class = PretrainedConfig

            def __init__(self, config, convert=False):
                super().__init__(config)
                self.rnn = nn.LSTM(FEATURES, HIDDEN, bidirectional=True)
                if convert:
                    dt.convert_rnns(self)
                self.post_init()

        with tempfile.TemporaryDirectory() as folder:
            before = Model(PretrainedConfig())
            before.save_pretrained(folder)
            after, report = Model.from_pretrained(
                folder, convert=True, output_loading_info=True
            )
            self.assertFalse(report["missing_keys"] or report["unexpected_keys"])
            self.assertIs(type(after.rnn), dt.LSTM)
            for a, b in zip(after.parameters(), before.parameters()):
                self.assertTrue(torch.equal(a, b))

    def test_the_replicas_of_data_parallel(self):
        model = dt.LSTM(FEATURES, HIDDEN, batch_first=True, bidirectional=True)
        replica = model._replicate_for_data_parallel()
        for name, weight in model.named_parameters():
            setattr(replica, name, weight * 1)
        replica._flat_weights = [
            getattr(replica, name) for name in model._flat_weights_names
        ]
        x = self.x.transpose(0, 1)
        torch.testing.assert_close(
            replica(x, lengths=self.lengths), model(x, lengths=self.lengths)
        )
