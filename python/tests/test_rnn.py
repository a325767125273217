"""dml_cuda.torch.BidirectionalRNN, compared with pack_padded_sequence, on the CPU and on the GPU. Skipped, and counted,
without PyTorch. test_rnn_gpu.py has what only a GPU has."""

import copy
import importlib.util
import itertools
import os
import pickle
import tempfile
import unittest
import warnings
from unittest import mock

from with_torch import DEVICES, Module, Seen, dt, torch  # first: without PyTorch it skips this module

import dml_cuda
from test_numpy import check_errors

STEPS, BATCH, FEATURES, HIDDEN = 9, 5, 6, 8
LENGTHS = [4, 9, 1, 7, 4]
# Tolerances of float32. On a GPU, of three layers of nn.RNN the outputs of packing differ by up to 1.4e-5, and packed
# and plain passes sum gradients with different kernels.
OF_OUTPUTS = {"cpu": 1e-5, "cuda": 2e-5}
OF_GRADIENTS = {"cpu": 1e-5, "cuda": 1e-4}


def kinds():
    """Every module with its name: LSTM with and without projections, GRU, both RNNs."""
    nn = torch.nn
    return [
        ("LSTM", nn.LSTM, {}),
        ("LSTM, projected", nn.LSTM, {"proj_size": 3}),
        ("GRU", nn.GRU, {}),
        ("RNN", nn.RNN, {}),
        ("RNN, relu", nn.RNN, {"nonlinearity": "relu"}),
    ]


class Plain(dt.BidirectionalRNN):
    """Returns (output, h_n) for an LSTM, too."""

    def __call__(self, *given):
        output, states = super().__call__(*given)
        return output, getattr(states, "h_n", states)


def packed(rnn, x, lengths, hx=None):
    """PyTorch's way. Its lengths must be from 1 to T, on the host."""
    nn, lengths = torch.nn.utils.rnn, lengths.cpu()
    batch_first, steps = rnn.batch_first, x.shape[1 if rnn.batch_first else 0]
    output, states = rnn(nn.pack_padded_sequence(x, lengths, batch_first, enforce_sorted=False), hx)
    output, _ = nn.pad_packed_sequence(output, batch_first, total_length=steps)
    return output, states[0] if isinstance(rnn, torch.nn.LSTM) else states


def states(rnn, batch, **options):
    """Random initial states."""
    layers, size = 2 * rnn.num_layers, rnn.proj_size or rnn.hidden_size
    h_0 = torch.randn(layers, batch, size, **options)
    return (h_0, torch.randn(layers, batch, rnn.hidden_size, **options)) if isinstance(rnn, torch.nn.LSTM) else h_0


def leaves(*values):
    """The tensors of arguments, flat."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif value is not None:
            yield from leaves(*value)


def gradients(found, parameters, weights):
    """The gradients of a sum of both outputs with random weights, so that every element has its own."""
    total = sum((value * weight).sum() for value, weight in zip(found, weights))
    return torch.autograd.grad(total, parameters)


class BidirectionalRNN(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        # On the CPU PyTorch says that oneDNN runs no projections.
        warnings.filterwarnings("ignore", "LSTM with projections")
        # cuDNN's default for float32 has the precision of TF32.
        before, torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.allow_tf32, False
        self.addCleanup(setattr, torch.backends.cudnn, "allow_tf32", before)

    def close(self, found, required, tolerance):
        torch.testing.assert_close(found, required, rtol=tolerance, atol=tolerance)

    def test_outputs_states_and_gradients_equal_those_of_packing(self):
        for device, (name, kind, options), layers, batch_first, (bias, with_states), half in itertools.product(
            DEVICES, kinds(), (1, 2, 3), (False, True), ((True, False), (True, True), (False, True)), (False, True)
        ):
            with self.subTest(name, device=device, layers=layers, batch_first=batch_first, bias=bias,
                    hx=with_states, half=half):
                like = {"device": device, "dtype": torch.float16 if half else torch.float32}
                rnn = kind(FEATURES, HIDDEN, layers, bias=bias, batch_first=batch_first,
                    bidirectional=True, **like, **options)
                module = Plain(rnn)
                x = torch.randn((BATCH, STEPS, FEATURES) if batch_first else (STEPS, BATCH, FEATURES),
                    requires_grad=not half, **like)
                hx = states(rnn, BATCH, requires_grad=not half, **like) if with_states else None
                lengths = torch.tensor(LENGTHS, device=device)
                with torch.no_grad():
                    required = packed(rnn, x, lengths, hx)
                    self.close(module(x, lengths, hx), required, 2e-3 if half else OF_OUTPUTS[device])
                if not half:
                    found, required = module(x, lengths, hx), packed(rnn, x, lengths, hx)
                    self.close(found, required, OF_OUTPUTS[device])
                    weights = [torch.randn_like(value) for value in required]
                    of = [x, *leaves(hx), *rnn.parameters()]
                    self.close(gradients(found, of, weights), gradients(required, of, weights), OF_GRADIENTS[device])

    def test_weights_that_hooks_compute(self):
        from torch.nn.utils import prune, weight_norm

        x, lengths = torch.randn(STEPS, BATCH, FEATURES), torch.tensor(LENGTHS)
        for change in (lambda rnn: prune.l1_unstructured(rnn, "weight_hh_l0", 0.5), lambda rnn: weight_norm(rnn, "weight_ih_l0_reverse")):
            rnn = torch.nn.GRU(FEATURES, HIDDEN, bidirectional=True)
            change(rnn)
            module = Plain(rnn)
            optimizer = torch.optim.SGD(module.parameters(), 0.5)
            for _ in range(3):
                optimizer.zero_grad()
                output = module(x, lengths)[0]
                self.close(output, packed(rnn, x, lengths, None)[0], 1e-5)
                output.square().sum().backward()
                optimizer.step()
        rnn.register_forward_pre_hook(lambda module, given: (given[0] + 1,))
        with self.assertRaisesRegex(ValueError, "changes its arguments: give"):
            module(x, lengths)

    def test_lengths_of_0_and_above_the_size(self):
        for device, (name, kind, options) in itertools.product(DEVICES, kinds()):
            with self.subTest(name, device=device):
                rnn = kind(FEATURES, HIDDEN, 2, bidirectional=True, **options).to(device)
                module, lengths = Plain(rnn), torch.tensor([0, STEPS, 3, 0, STEPS + 4], device=device)
                x = torch.randn(STEPS, BATCH, FEATURES, device=device, requires_grad=True)
                hx = states(rnn, BATCH, device=device, requires_grad=True)
                output, h_n = module(x, lengths, hx)
                some = torch.tensor([1, 2, 4], device=device)
                of_some = [state[:, some].detach().requires_grad_() for state in leaves(hx)]
                of_rnn = tuple(of_some) if rnn.mode == "LSTM" else of_some[0]
                required = packed(rnn, x[:, some], lengths[some].clamp(max=STEPS), of_rnn)
                self.close((output[:, some], h_n[:, some]), required, 1e-5)
                for row in (0, 3):
                    self.assertFalse(output[:, row].any())
                    self.assertTrue(torch.equal(h_n[:, row], hx[0][:, row] if rnn.mode == "LSTM" else hx[:, row]))
                self.assertFalse(module(x, lengths)[1][:, [0, 3]].any())  # without hx the states are zeros
                # The output of an empty row depends on nothing, and its state on h_0 alone.
                weights = [torch.randn_like(output), torch.randn_like(h_n)]
                of_weights = gradients((output, h_n), list(rnn.parameters()), weights)
                of_required = gradients(required, list(rnn.parameters()), [weight[:, some] for weight in weights])
                self.close(of_weights, of_required, OF_GRADIENTS[device])
                output, h_n = module(x, lengths, hx)
                of_x, of_h, *of_c = gradients((output, h_n), [x, *leaves(hx)], weights)
                for row in (0, 3):
                    self.assertFalse(of_x[:, row].any() or any(state[:, row].any() for state in of_c))
                    self.assertTrue(torch.equal(of_h[:, row], weights[1][:, row]))

    def test_one_pass_gives_what_two_give(self):
        lengths = torch.tensor([4, 9, 0, 7, STEPS + 4])
        for device, (name, kind, options), (layers, batch_first, bias, with_states, dtype) in itertools.product(
            DEVICES, kinds(), ((1, False, True, True, torch.float32), (2, True, True, False, torch.float32),
                (2, False, False, True, torch.float64), (1, True, False, False, torch.float16))
        ):
            with self.subTest(name, device=device, layers=layers, bias=bias, hx=with_states, dtype=dtype):
                like = {"device": device, "dtype": dtype}
                rnn = kind(FEATURES, HIDDEN, layers, bias=bias, batch_first=batch_first, bidirectional=True,
                    dropout=0.5 if layers > 1 else 0, **like, **options)
                module, hx = Plain(rnn), states(rnn, BATCH, requires_grad=True, **like) if with_states else None
                if with_states and rnn.mode == "GRU":  # one for all layers
                    hx = hx[:1].expand_as(hx)
                x = torch.randn(STEPS, BATCH, FEATURES, **like)
                x[torch.arange(STEPS)[:, None] >= lengths] = float("nan")
                x = (x.transpose(0, 1) if batch_first else x).requires_grad_()
                found = []
                for form in ("one_pass", "two_passes"):
                    with mock.patch.dict(os.environ, DML_CUDA_RNN=form):
                        for with_gradient in (False, True):
                            torch.manual_seed(1)
                            with torch.set_grad_enabled(with_gradient):
                                found.append(module(x, lengths.to(device), hx))
                    count = lambda value, like=like: torch.arange(1.0, 1 + value.numel(), **like).view(value.shape)
                    weights = [count(value).sin() for value in found[-1]]
                    found[-1] += gradients(found[-1], [x, *leaves(hx), *rnn.parameters()], weights)
                tolerance = 1e-2 if dtype == torch.float16 else OF_GRADIENTS[device]
                self.close(found[:2], found[2:], tolerance)
                self.assertTrue(all(value.isfinite().all() for value in leaves(found)))
        with mock.patch.dict(os.environ, DML_CUDA_RNN="1"), self.assertRaisesRegex(ValueError, "RNN is `1`, must be `one_"):
            module(x, lengths.to(device))

    def test_one_pass_has_the_tangents_of_weights_without_gradients(self):
        module, ad = Plain(torch.nn.GRU(FEATURES, HIDDEN, bidirectional=True)), torch.autograd.forward_ad
        x, found = torch.randn(STEPS, BATCH, FEATURES), []
        for form in ("one_pass", "two_passes"):
            with mock.patch.dict(os.environ, DML_CUDA_RNN=form), torch.no_grad(), ad.dual_level():
                duals = {name: ad.make_dual(weight, weight.cos()) for name, weight in module.named_parameters()}
                output = torch.func.functional_call(module, duals, (x, torch.tensor(LENGTHS)))[0]
                found.append(ad.unpack_dual(output).tangent)
        self.close(found[:1], found[1:], OF_GRADIENTS["cpu"])

    def test_an_empty_batch(self):
        for device, (name, kind, options) in itertools.product(DEVICES, kinds()):
            with self.subTest(name, device=device):
                rnn = kind(FEATURES, HIDDEN, 2, bidirectional=True, **options).to(device)
                x = torch.randn(STEPS, 0, FEATURES, device=device)
                output, h_n = Plain(rnn)(x, torch.zeros(0, dtype=torch.int64, device=device))
                required = rnn(x)
                self.assertEqual((output.shape, h_n.shape), (required[0].shape, next(leaves(required[1])).shape))

    def test_every_type_of_lengths_and_lengths_on_the_host_as_packing_takes_them(self):
        dtypes = (torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32, torch.uint32, torch.uint64)
        for device in DEVICES:
            module = Plain(torch.nn.GRU(FEATURES, HIDDEN, bidirectional=True).to(device))
            x, lengths = torch.randn(STEPS, BATCH, FEATURES, device=device), torch.tensor(LENGTHS)
            on_device = lengths.to(device)
            required = module(x, on_device)
            for given in (lengths, LENGTHS, tuple(LENGTHS), lengths.numpy(), *map(on_device.to, dtypes)):
                self.assertTrue(all(map(torch.equal, module(x, given), required)), given)

    def test_the_states_of_an_lstm_are_no_pair(self):
        x, lengths, nn = torch.randn(STEPS, BATCH, FEATURES), torch.tensor(LENGTHS), torch.nn
        for layers in (1, 2):
            gru, lstm = (dt.BidirectionalRNN(kind(FEATURES, HIDDEN, layers, bidirectional=True))
                for kind in (nn.GRU, nn.LSTM))
            self.assertEqual(gru(x, lengths)[1].shape, (2 * layers, BATCH, HIDDEN))  # of a GRU it is a tensor
            states = lstm(x, lengths)[1]
            self.close(states.h_n, packed(lstm.rnn, x, lengths)[1], 1e-5)
            words = "object without c_n, must be used by name: states.h_n.* use pack_padded_sequence"
            for wrong in (lambda: [h_n for _, (h_n, c_n) in [lstm(x, lengths)]], lambda: states[0],
                    lambda: states[-2:], lambda: list(states)):
                with self.assertRaisesRegex(TypeError, words):
                    wrong()
            # What looks into the results of a module finds h_n.
            self.close(torch.utils._pytree.tree_leaves(states), [states.h_n], 0)
            self.close(torch.func.vjp(lambda x: lstm(x, lengths), x)[0][1].h_n, states.h_n, 1e-6)
            self.close(copy.deepcopy(states.h_n.detach()),
                pickle.loads(pickle.dumps(type(states)(states.h_n.detach()))).h_n, 0)
            exported = torch.export.export(lstm, (x, lengths), strict=False).module()
            self.close(exported(x, lengths)[1].h_n, states.h_n, 1e-6)
            wrapped = Module(lambda lstm, x, lengths: lstm(x, lengths)[1].h_n * 2, lstm)
            self.close(torch.compile(wrapped, backend="aot_eager")(x, lengths), 2 * states.h_n, 1e-6)
            torch._dynamo.reset()
            with self.assertRaisesRegex(torch._dynamo.exc.Unsupported, "disable"):  # docs/pytorch.md says so
                torch.compile(wrapped, backend="aot_eager", fullgraph=True)(x, lengths)
            with self.assertRaisesRegex(torch._dynamo.exc.Unsupported, "export with strict=False"):
                torch.export.export(wrapped, (x, lengths), strict=True)
            with self.assertRaisesRegex(TypeError, "cannot compile a BidirectionalRNN: use torch.jit.trace, or torch.export"):
                torch.jit.script(wrapped)

    def test_data_parallel_gathers_the_states_of_an_lstm(self):
        x, lengths = torch.randn(STEPS, BATCH, FEATURES), torch.tensor(LENGTHS)
        lstm = dt.BidirectionalRNN(torch.nn.LSTM(FEATURES, HIDDEN, bidirectional=True))
        of_gpus = [lstm(x[:, part], lengths[part]) for part in (slice(2), slice(2, BATCH))]
        gathering = torch.nn.parallel.scatter_gather
        with mock.patch.object(gathering.Gather, "apply", lambda device, dim, *tensors: torch.cat(tensors, dim)):
            output, states = gathering.gather(of_gpus, "cpu", 1)
        required = lstm(x, lengths)
        self.close((output, states.h_n), (required[0], required[1].h_n), 1e-6)
        with self.assertRaisesRegex(TypeError, "by name: states.h_n"):
            h_n, c_n = states

    def test_tensors_of_inference_mode_train_as_with_packing(self):
        with torch.inference_mode():
            inferred = torch.randn(STEPS, BATCH, FEATURES), torch.tensor(LENGTHS)
        for (_, kind, options), which in itertools.product(kinds(), ((0,), (1,), (0, 1))):
            module = Plain(kind(FEATURES, HIDDEN, 2, bidirectional=True, **options))
            given = [value if n in which else value.clone() for n, value in enumerate(inferred)]
            found, required = module(*given), packed(module.rnn, *given)
            weights, parameters = [torch.randn_like(value) for value in found], list(module.parameters())
            self.close(gradients(found, parameters, weights), gradients(required, parameters, weights), 1e-5)
        x = torch.randn(STEPS, BATCH, FEATURES, requires_grad=True)
        (dt.reverse_padded_sequence(x, inferred[1]) * inferred[0].clone()).sum().backward()
        self.close(x.grad, dt.reverse_padded_sequence(inferred[0].clone(), inferred[1]), 0)

    def test_autocast_on_the_cpu_gives_the_dtypes_of_packing(self):
        lengths = torch.tensor(LENGTHS)
        dtypes = torch.float32, torch.bfloat16
        for (_, kind, options), dtype, training in itertools.product(kinds(), dtypes, (False, True)):
            module = Plain(kind(FEATURES, HIDDEN, 2, bidirectional=True, **options)).train(training)
            x = torch.randn(STEPS, BATCH, FEATURES, dtype=dtype)
            with torch.autocast("cpu", torch.bfloat16), torch.set_grad_enabled(training):
                found, required = module(x, lengths), packed(module.rnn, x, lengths)
            self.assertEqual(*([value.dtype for value in values] for values in (found, required)))
            self.close([value.float() for value in found], [value.float() for value in required], 0.05)

    def test_attributes_of_the_wrapped_module_are_read(self):
        rnn = torch.nn.GRU(FEATURES, HIDDEN, 2, bidirectional=True, batch_first=True)
        module = pickle.loads(pickle.dumps(copy.deepcopy(dt.BidirectionalRNN(rnn))))
        for name in ("input_size", "hidden_size", "num_layers", "batch_first", "bidirectional", "dropout", "mode", "bias"):
            self.assertEqual(getattr(module, name), getattr(rnn, name))
        self.assertIs(module.weight_hh_l0, module.rnn.weight_hh_l0)
        self.assertEqual([name for name, _ in module.named_parameters()], [f"rnn.{name}" for name, _ in rnn.named_parameters()])
        with self.assertRaisesRegex(AttributeError, "'GRU' object has no attribute 'other'"):
            module.other

    def test_checkpoints_of_the_wrapped_module_load(self):
        x, lengths, nn = torch.randn(STEPS, BATCH, FEATURES), torch.tensor(LENGTHS), torch.nn
        for change in (lambda rnn: rnn, lambda rnn: nn.utils.parametrizations.weight_norm(rnn, "weight_hh_l0")):
            make = lambda change=change: change(nn.GRU(FEATURES, HIDDEN, 2, bidirectional=True))
            rnn = make()
            before = nn.Sequential(nn.Linear(FEATURES, FEATURES), rnn)
            after = nn.Sequential(copy.deepcopy(before[0]), dt.BidirectionalRNN(make()))
            kept = before.state_dict()
            names = list(kept)
            for state, into in ((kept, after), (after.state_dict(), after), (rnn.state_dict(), after[1])):
                self.assertEqual(str(into.load_state_dict(state)), "<All keys matched successfully>")
                self.close(after[1](x, lengths), packed(rnn, x, lengths), 1e-5)
            self.assertEqual(list(kept), names)  # the caller's dict keeps its names
            with self.assertRaisesRegex(RuntimeError, "Unexpected key.*rnn.other"):
                after.load_state_dict({**kept, "1.other": torch.zeros(1)})

    def test_padding_may_have_any_values(self):
        lengths = torch.tensor([4, 9, 0, 7, 1])
        padding = torch.arange(STEPS)[:, None] >= lengths
        for device, (name, kind, options), value in itertools.product(DEVICES, kinds(), (float("nan"), float("inf"), 3e38)):
            with self.subTest(name, device=device, value=value):
                module = Plain(kind(FEATURES, HIDDEN, 2, bidirectional=True, **options).to(device))
                clean = torch.randn(STEPS, BATCH, FEATURES).masked_fill(padding[:, :, None], 0).to(device)
                dirty = clean.masked_fill(padding[:, :, None].to(device), value).requires_grad_()
                clean.requires_grad_()
                on_device = lengths.to(device)
                found, required = module(dirty, on_device), module(clean, on_device)
                self.assertTrue(all(map(torch.equal, found, required)))
                self.assertFalse(found[0][padding.to(device)].any())
                weights = [torch.randn_like(part) for part in found]
                of_dirty = gradients(found, [dirty, *module.parameters()], weights)
                of_clean = gradients(required, [clean, *module.parameters()], weights)
                self.assertTrue(all(part.isfinite().all() for part in of_dirty))
                self.assertFalse(of_dirty[0][padding.to(device)].any())
                self.close(of_dirty, of_clean, OF_GRADIENTS[device])
                with torch.no_grad():
                    self.close(module(dirty, on_device), required, 1e-6)

    def test_dropout_is_between_layers_in_training_only(self):
        for device in DEVICES:
            rnn = torch.nn.LSTM(FEATURES, HIDDEN, 3, dropout=0.5, bidirectional=True).to(device)
            module, lengths = Plain(rnn), torch.tensor(LENGTHS, device=device)
            layers = [torch.nn.LSTM(FEATURES if k == 0 else 2 * HIDDEN, HIDDEN, bidirectional=True).to(device)
                for k in range(3)]
            for k, layer in enumerate(layers):
                layer.load_state_dict({name.replace(f"_l{k}", "_l0"): value
                    for name, value in rnn.state_dict().items() if f"_l{k}" in name})
            x = torch.randn(STEPS, BATCH, FEATURES, device=device)
            with torch.no_grad():
                torch.manual_seed(1)
                found = module(x, lengths)
                torch.manual_seed(1)
                for k, layer in enumerate(layers):
                    x_k = x if k == 0 else torch.nn.functional.dropout(x_k, 0.5)
                    x_k, h_k = Plain(layer)(x_k, lengths)
                self.close((found[0], found[1][4:]), (x_k, h_k), 1e-6)
                self.assertFalse(torch.equal(found[0], module(x, lengths)[0]))
                module.eval()
                self.close(module(x, lengths), packed(rnn, x, lengths), 1e-5)
                rnn.train()  # the wrapped module's flag counts, as its dropout does
                self.assertFalse(torch.equal(module(x, lengths)[0], module(x, lengths)[0]))

    def test_the_weights_are_the_wrapped_modules(self):
        for device in DEVICES:
            rnn = torch.nn.GRU(FEATURES, HIDDEN, 2, bidirectional=True).to(device)
            names, before = list(rnn.state_dict()), [id(weight) for weight in rnn.parameters()]
            kept = copy.deepcopy(rnn.state_dict())
            optimizer = torch.optim.SGD(rnn.parameters(), lr=0.1)
            module, lengths = Plain(rnn), torch.tensor(LENGTHS, device=device)
            x = torch.randn(STEPS, BATCH, FEATURES, device=device)
            self.assertEqual([id(weight) for weight in module.parameters()], before)
            self.assertEqual((list(rnn.state_dict()), list(module.state_dict())), (names, [f"rnn.{name}" for name in names]))
            self.close(rnn.state_dict(), kept, 0)
            first = module(x, lengths)
            first[0].sum().backward()
            optimizer.step()
            self.assertFalse(torch.equal(module(x, lengths)[0], first[0]))
            for same in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
                addresses = [{weight.data_ptr() for weight in one.parameters()} for one in (same, module)]
                self.assertTrue(addresses[0].isdisjoint(addresses[1]))
                self.close(same(x, lengths), module(x, lengths), 1e-6)
            rnn.load_state_dict(kept)
            self.close(module(x, lengths), first, 1e-6)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # PyTorch warns of the weights' layout on a GPU
                self.close(packed(rnn, x, lengths), first, 1e-5)
            # Other weights for one call.
            zeros = {f"rnn.{name}": torch.zeros_like(value) for name, value in rnn.state_dict().items()}
            self.assertFalse(torch.func.functional_call(module, zeros, (x, lengths))[0].any())
            self.close(module(x, lengths), first, 1e-6)
            with torch.no_grad():
                self.close(module.double()(x.double(), lengths)[0].float(), first[0], 1e-5)
            self.assertEqual([id(weight) for weight in module.parameters()], before)
            self.assertEqual(module.to("cpu")(x.double().cpu(), lengths.cpu())[0].device.type, "cpu")

    def test_compile_export_and_trace(self):
        for device in DEVICES:
            rnn = torch.nn.LSTM(FEATURES, HIDDEN, bidirectional=True).to(device).eval()
            x, lengths = torch.randn(STEPS, BATCH, FEATURES, device=device), torch.tensor(LENGTHS, device=device)
            plain = Module(lambda rnn, x, lengths: rnn(x * 2)[0] + lengths[:, None], copy.deepcopy(rnn)).eval()
            model = Module(lambda rnn, x, lengths: rnn(x * 2, lengths)[0] + 1, Plain(rnn)).eval()
            required = model(x, lengths)
            torch._dynamo.reset()
            compiled = torch.compile(model, backend="aot_eager")
            self.close(compiled(x, lengths), required, 1e-6)
            self.close(compiled(x[:7], lengths), model(x[:7], lengths), 1e-6)
            # What surrounds the module is compiled. With PyTorch's own RNNs nothing is.
            graphs = [torch._dynamo.explain(one)(x, lengths).graph_count for one in (model, plain)]
            self.assertEqual(graphs[0], 2)
            self.assertGreaterEqual(*graphs)
            self.close(torch.export.export(model, (x, lengths), strict=False).module()(x, lengths), required, 1e-6)
            self.close(torch.fx.symbolic_trace(model)(x, lengths), required, 0)  # the module is a node
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the checks of the arguments are not recorded
                traced = [torch.jit.trace(model, (x, lengths))]  # with gradients, and without
                with torch.no_grad():
                    traced.append(torch.jit.trace(model, (x, lengths)))
            for steps, batch in ((STEPS, BATCH), (7, 3), (20, 8)):
                counts = torch.randint(0, steps + 3, (batch,), device=device)
                other = torch.randn(steps, batch, FEATURES, device=device), counts
                for program in traced:
                    self.close(program(*other), model(*other), 1e-6)

    def test_transforms_as_the_wrapped_module(self):
        """For full sequences, nn.GRU itself gives the required tangents and gradients."""
        func = torch.func
        for name, kind, options in kinds():
            if "project" in name:
                continue  # PyTorch has no tangents of oneDNN's projections
            rnn = kind(FEATURES, HIDDEN, bidirectional=True, **options).double().requires_grad_(False)
            module, full = Plain(rnn), torch.full((2,), 3)
            x, v = torch.randn(2, 3, 2, FEATURES, dtype=torch.float64)
            found, required = lambda x: module(x, full)[0], lambda x: rnn(x)[0]
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
        import onnxruntime

        padded = Module(dt.reverse_padded_sequence)
        gathered = Module(lambda x, lengths: dt.reverse_subsequences_(x + 1, lengths[:, None], 2))
        gru, lstm = (Plain(kind(FEATURES, HIDDEN, bidirectional=True)).eval() for kind in (torch.nn.GRU, torch.nn.LSTM))
        x, lengths, dim = torch.randn(STEPS, BATCH, FEATURES), torch.tensor(LENGTHS), torch.export.Dim
        table = dt.onnx_translation_table()
        modules = [(padded, "ReverseSequence"), (gathered, "GatherElements"), (gru, "ReverseSequence"), (lstm, "ReverseSequence")]
        version = tuple(map(int, torch.__version__.split(".")[:2]))
        # PyTorch 2.8's exporter writes a GRU for one batch size, and fails for an LSTM.
        for module, operator in modules if version > (2, 8) else modules[:2]:
            # Before 2.15 PyTorch's exporter writes out the loop of an RNN, with a fixed number of steps.
            fixed = isinstance(module, dt.BidirectionalRNN) and version < (2, 15)
            catch = warnings.catch_warnings(record=True)
            with self.subTest(operator), tempfile.TemporaryDirectory() as folder, catch as caught:
                warnings.simplefilter("always")
                program = torch.onnx.export(
                    module, (x, lengths), dynamo=True, custom_translation_table=table, verbose=False,
                    dynamic_shapes=({0: dim("T"), 1: dim("B")}, {0: dim("B")}),
                )  # fmt: skip
                self.assertEqual(any("program has a fixed T" in str(warning.message) for warning in caught), fixed)
                self.assertIn(operator, [node.op_type for node in program.model.graph])
                program.save(f"{folder}/model.onnx")
                for library in (False, True):
                    options = onnxruntime.SessionOptions()
                    if library:
                        options.add_session_config_entry("dml_cuda.replace_onnx", "1")
                        options.register_custom_ops_library(dml_cuda.onnxruntime_library_path())
                    session = onnxruntime.InferenceSession(f"{folder}/model.onnx", options, providers=["CPUExecutionProvider"])
                    names = [given.name for given in session.get_inputs()]
                    for steps, batch in ((STEPS, BATCH), (STEPS if fixed else 4, 2)):
                        given = torch.randn(steps, batch, FEATURES), torch.randint(0, steps + 3, (batch,))
                        with torch.no_grad():
                            required = list(leaves(module(*given)))
                        found = session.run(None, dict(zip(names, (value.numpy() for value in given))))
                        self.close([torch.from_numpy(value) for value in found], required, 1e-5)

    def test_errors_name_argument_found_and_required(self):
        nn, wrap = torch.nn, Plain

        class Own(nn.LSTM):
            def forward(self, x, hx=None):
                return super().forward(x + 1, hx)

        check_errors(self, [
            (TypeError, "Own with a forward of its own", lambda: wrap(Own(2, 3, bidirectional=True))),
            (TypeError, "rnn is a torch.nn.modules.linear.Linear, must be a torch.nn.LSTM, torch.nn.GRU or torch.nn.RNN", lambda: wrap(nn.Linear(2, 3))),
            (TypeError, "rnn is a torch.nn.modules.rnn.LSTMCell, must be", lambda: wrap(nn.LSTMCell(2, 3))),
            (ValueError, "rnn.bidirectional is False, must be True", lambda: wrap(nn.GRU(2, 3))),
        ])  # fmt: skip
        lstm, gru = (Plain(kind(FEATURES, HIDDEN, bidirectional=True)) for kind in (nn.LSTM, nn.GRU))
        first = Plain(nn.GRU(FEATURES, HIDDEN, bidirectional=True, batch_first=True))
        replaced = Plain(nn.LSTM(FEATURES, HIDDEN, bidirectional=True))
        replaced.rnn = nn.Linear(1, 1)
        x, lengths, h_0 = torch.zeros(STEPS, BATCH, FEATURES), torch.tensor(LENGTHS), torch.zeros(2, BATCH, HIDDEN)
        check_errors(self, [
            (TypeError, "rnn is a torch.nn.modules.linear.Linear, must be a torch.nn.LSTM", lambda: replaced(x, lengths)),
            (TypeError, "x is a list, must be a tensor", lambda: lstm([1], lengths)),
            (TypeError, "lengths is 'abcde', must be a tensor, or integers", lambda: lstm(x, "abcde")),
            (ValueError, r"lengths has shape \[\], must have \[5\], the batch size", lambda: lstm(x, 3)),
            (TypeError, "lengths has dtype torch.float32, must have an integer dtype", lambda: lstm(x, lengths.float())),
            (ValueError, r"lengths has shape \[4\], must have \[5\], the batch size", lambda: lstm(x, lengths[:4])),
            (ValueError, r"lengths has shape \[5\], must have \[9\], the batch size", lambda: first(x, lengths)),
            (ValueError, r"lengths\[.*\] is -1, must be at least 0", lambda: lstm(x, torch.tensor([1, 2, -1, 3, 4]))),
            (ValueError, "lengths is on meta, must be on cpu, as x is, or on the CPU", lambda: lstm(x, lengths.to("meta"))),
            (ValueError, r"x has shape \[9, 6\], must have three dimensions, \[T, B, F\]", lambda: lstm(x[:, 0], lengths)),
            (ValueError, r"x has shape \[9, 6\], must have three dimensions, \[B, T, F\]", lambda: first(x[:, 0], lengths)),
            (ValueError, r"x has shape \[0, 5, 6\], must have .* T of at least 1", lambda: lstm(x[:0], lengths)),
            (RuntimeError, "Expected 6, got 5", lambda: lstm(x[:, :, :5], lengths)),
            (ValueError, "torch.float64.*torch.float32|torch.float32.*torch.float64", lambda: lstm(x.double(), lengths)),
            (TypeError, r"hx is a Tensor, must be \(h_0, c_0\), as rnn is an LSTM", lambda: lstm(x, lengths, h_0)),
            (TypeError, "hx is a tuple, must be the tensor h_0", lambda: gru(x, lengths, (h_0, h_0))),
            (RuntimeError, r"Expected hidden size \(2, 5, 8\), got \[2, 5, 7\]", lambda: gru(x, lengths, h_0[:, :, :7])),
            (RuntimeError, r"Expected hidden\[1\] size \(2, 5, 8\), got \[1, 5, 8\]", lambda: lstm(x, lengths, (h_0, h_0[:1]))),
        ])  # fmt: skip
