"""RNNs with lengths, compared with pack_padded_sequence, on the CPU and on the GPU. Skipped, and counted, without
PyTorch. test_rnn_gpu.py has what only a GPU has."""

import itertools
import os
import random
import unittest
import warnings
from unittest import mock

from with_torch import DEVICES, dt, torch  # first: without PyTorch it skips this module

import random_rnns
from random_rnns import leaves, running

from torch.nn.utils import rnn as pytorch

STEPS, BATCH, FEATURES, HIDDEN = 9, 5, 6, 8
LENGTHS = [4, 9, 1, 7, 4]
# Tolerances of float32: packed and plain passes sum gradients with different kernels.
OF_OUTPUTS = {"cpu": 1e-5, "cuda": 2e-5}
OF_GRADIENTS = {"cpu": 1e-5, "cuda": 1e-4}


def kinds():
    """Every module with its name: LSTM with and without projections, GRU, both RNNs."""
    return [
        ("LSTM", dt.LSTM, {}),
        ("LSTM, projected", dt.LSTM, {"proj_size": 3}),
        ("GRU", dt.GRU, {}),
        ("RNN", dt.RNN, {}),
        ("RNN, relu", dt.RNN, {"nonlinearity": "relu"}),
    ]


def packed(rnn, x, lengths, hx=None):
    """PyTorch's way, for lengths from 1 to T: the output and the states."""
    return random_rnns.packed(
        rnn, x, lengths.cpu(), hx, x.shape[1 if rnn.batch_first else 0]
    )


def run(rnn, x, lengths, hx=None):
    output, states = rnn(x, hx, lengths=lengths)
    return output, *leaves(states)


def states(rnn, batch, **options):
    """Random initial states."""
    layers, size = (
        (1 + rnn.bidirectional) * rnn.num_layers,
        rnn.proj_size or rnn.hidden_size,
    )
    h_0 = torch.randn(layers, batch, size, **options)
    return (
        (h_0, torch.randn(layers, batch, rnn.hidden_size, **options))
        if rnn.mode == "LSTM"
        else h_0
    )


def gradients(found, parameters, weights):
    """The gradients of a sum of all results with random weights, so that every element has its own."""
    total = sum((value * weight).sum() for value, weight in zip(found, weights))
    return torch.autograd.grad(total, parameters, allow_unused=True)


class RNNs(unittest.TestCase):
    def setUp(self):
        self.enterContext(running("padded"))  # small calls would run packed
        torch.manual_seed(0)
        # Small operators of many threads wait for each other where others use the cores.
        self.addCleanup(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(1)
        # On the CPU PyTorch says that oneDNN runs no projections.
        warnings.filterwarnings("ignore", "LSTM with projections")
        # cuDNN's default for float32 has the precision of TF32.
        before, torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.allow_tf32, False
        self.addCleanup(setattr, torch.backends.cudnn, "allow_tf32", before)

    def close(self, found, required, tolerance):
        torch.testing.assert_close(found, required, rtol=tolerance, atol=tolerance)

    def test_what_a_call_shares_with_its_caller(self):
        """After a call with lengths everything may be changed in place before the backward pass, whatever they are."""
        for kind, both, lengths in itertools.product(
            (dt.LSTM, dt.GRU, dt.RNN), (False, True), ([7, 7, 7], [7, 3, 5], [7, 0, 2])
        ):
            rnn = kind(4, 5, bidirectional=both)
            x, h = torch.randn(7, 3, 4), torch.randn(1 + both, 3, 5)
            hx = (h, h.clone()) if kind is dt.LSTM else h
            output, states = rnn(x, hx, lengths=lengths)
            results = [output, *(states if kind is dt.LSTM else [states])]
            total = sum(part.relu_().sum() for part in results)
            x.zero_(), h.zero_()
            total.backward()

    def test_random_configurations_equal_packing(self):
        for device in DEVICES:
            draw = random.Random(86)
            for n in range(150):
                chosen = random_rnns.pick(draw, device)
                with self.subTest(device=device, **chosen):
                    self.assertLess(random_rnns.compare(chosen, n, device), 1e-9)

    def test_float32_and_float16_equal_packing(self):
        for device, (name, kind, options), half in itertools.product(
            DEVICES, kinds(), (False, True)
        ):
            with self.subTest(name, device=device, half=half):
                like = {
                    "device": device,
                    "dtype": torch.float16 if half else torch.float32,
                }
                rnn = kind(FEATURES, HIDDEN, 2, bidirectional=True, **like, **options)
                x = torch.randn(STEPS, BATCH, FEATURES, requires_grad=not half, **like)
                lengths = torch.tensor(LENGTHS, device=device)
                with torch.no_grad():
                    self.close(
                        run(rnn, x, lengths),
                        packed(rnn, x, lengths),
                        2e-3 if half else OF_OUTPUTS[device],
                    )
                if not half:
                    found, required = run(rnn, x, lengths), packed(rnn, x, lengths)
                    weights = [torch.randn_like(value) for value in required]
                    of = [x, *rnn.parameters()]
                    self.close(
                        gradients(found, of, weights),
                        gradients(required, of, weights),
                        OF_GRADIENTS[device],
                    )

    def test_a_row_of_length_0_returns_its_states_and_a_length_above_the_size_is_the_size(
        self,
    ):
        lengths = torch.tensor([0, STEPS, 3, 0, STEPS + 4])
        for device, (name, kind, options), both in itertools.product(
            DEVICES, kinds(), (False, True)
        ):
            with self.subTest(name, device=device, both=both):
                rnn = kind(FEATURES, HIDDEN, 2, bidirectional=both, **options).to(
                    device
                )
                x = torch.randn(
                    STEPS, BATCH, FEATURES, device=device, requires_grad=True
                )
                hx = states(rnn, BATCH, device=device, requires_grad=True)
                for given in (lengths, lengths.to(device)):
                    required = packed(rnn, x, lengths.clamp(max=STEPS), hx)
                    found = run(rnn, x, given, hx)
                    self.close(found, required, 1e-5)
                    self.assertFalse(found[0][:, [0, 3]].any())
                    for state, initial in zip(found[1:], leaves(hx)):
                        self.assertTrue(
                            torch.equal(state[:, [0, 3]], initial[:, [0, 3]])
                        )
                    weights = [torch.randn_like(part) for part in found]
                    of = [x, *leaves(hx), *rnn.parameters()]
                    self.close(
                        gradients(found, of, weights),
                        gradients(required, of, weights),
                        OF_GRADIENTS[device],
                    )
                    self.assertFalse(
                        any(state[:, [0, 3]].any() for state in run(rnn, x, given)[1:])
                    )
                    self.assertFalse(
                        any(part.any() for part in run(rnn, x, torch.zeros_like(given)))
                    )

    def test_one_pass_gives_what_two_give(self):
        lengths = torch.tensor([4, 9, 0, 7, STEPS + 4])
        for device, (name, kind, options), (
            layers,
            batch_first,
            bias,
            with_states,
            dtype,
        ) in itertools.product(
            DEVICES,
            kinds(),
            (
                (1, False, True, True, torch.float32),
                (2, True, True, False, torch.float32),
                (2, False, False, True, torch.float64),
                (1, True, False, False, torch.float16),
            ),
        ):
            with self.subTest(
                name,
                device=device,
                layers=layers,
                bias=bias,
                hx=with_states,
                dtype=dtype,
            ):
                like = {"device": device, "dtype": dtype}
                rnn = kind(
                    FEATURES,
                    HIDDEN,
                    layers,
                    bias=bias,
                    batch_first=batch_first,
                    bidirectional=True,
                    dropout=0.5 if layers > 1 else 0,
                    **like,
                    **options,
                )
                module, hx = (
                    rnn,
                    states(rnn, BATCH, requires_grad=True, **like)
                    if with_states
                    else None,
                )
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
                                found.append(run(module, x, lengths.to(device), hx))
                    count = lambda value, like=like: torch.arange(
                        1.0, 1 + value.numel(), **like
                    ).view(value.shape)
                    weights = [count(value).sin() for value in found[-1]]
                    found[-1] += tuple(
                        gradients(
                            found[-1], [x, *leaves(hx), *rnn.parameters()], weights
                        )
                    )
                tolerance = 1e-2 if dtype == torch.float16 else OF_GRADIENTS[device]
                self.close(found[:2], found[2:], tolerance)
                self.assertTrue(all(value.isfinite().all() for value in leaves(found)))
        with (
            mock.patch.dict(os.environ, DML_CUDA_RNN="1"),
            self.assertRaisesRegex(ValueError, "RNN is `1`, but must be `packed`"),
        ):
            run(module, x, lengths.to(device))

    def test_one_pass_has_the_tangents_of_weights_without_gradients(self):
        module, ad = (
            dt.GRU(FEATURES, HIDDEN, bidirectional=True),
            torch.autograd.forward_ad,
        )
        x, found = torch.randn(STEPS, BATCH, FEATURES), []
        for form in ("one_pass", "two_passes"):
            with (
                mock.patch.dict(os.environ, DML_CUDA_RNN=form),
                torch.no_grad(),
                ad.dual_level(),
            ):
                duals = {
                    name: ad.make_dual(weight, weight.cos())
                    for name, weight in module.named_parameters()
                }
                output = torch.func.functional_call(
                    module, duals, (x,), {"lengths": torch.tensor(LENGTHS)}
                )[1]
                found.append(ad.unpack_dual(output).tangent)
        self.close(found[:1], found[1:], OF_GRADIENTS["cpu"])

    def test_an_empty_batch(self):
        for device, (name, kind, options), both in itertools.product(
            DEVICES, kinds(), (False, True)
        ):
            with self.subTest(name, device=device, both=both):
                rnn = kind(FEATURES, HIDDEN, 2, bidirectional=both, **options).to(
                    device
                )
                x, lengths = (
                    torch.randn(STEPS, 0, FEATURES, device=device),
                    torch.zeros(0, dtype=torch.int64),
                )
                for given in (lengths, lengths.to(device)):
                    shapes = [
                        [part.shape for part in parts]
                        for parts in (
                            run(rnn, x, given),
                            [rnn(x)[0], *leaves(rnn(x)[1])],
                        )
                    ]
                    self.assertEqual(*shapes)

    def test_every_type_of_lengths(self):
        dtypes = (
            torch.int8,
            torch.uint8,
            torch.int16,
            torch.uint16,
            torch.int32,
            torch.uint32,
            torch.uint64,
        )
        for device, form_of_all in itertools.product(DEVICES, ("padded", 3)):
            module = dt.LSTM(FEATURES, HIDDEN, bidirectional=True).to(device)
            x, lengths = (
                torch.randn(STEPS, BATCH, FEATURES, device=device),
                torch.tensor(LENGTHS),
            )
            with running(form_of_all):
                required = run(module, x, lengths)
                for given in (
                    LENGTHS,
                    tuple(LENGTHS),
                    lengths.numpy(),
                    *map(lengths.to, dtypes),
                ):
                    self.close(run(module, x, given), required, 0)
                if form_of_all == "padded":
                    for given in map(lengths.to(device).to, dtypes):
                        self.close(run(module, x, given), required, 0)

    def test_tensors_of_inference_mode_train_as_with_packing(self):
        with torch.inference_mode():
            inferred = torch.randn(STEPS, BATCH, FEATURES), torch.tensor(LENGTHS)
        for (_, kind, options), which in itertools.product(
            kinds(), ((0,), (1,), (0, 1))
        ):
            module = kind(FEATURES, HIDDEN, 2, bidirectional=True, **options)
            given = [
                value if n in which else value.clone()
                for n, value in enumerate(inferred)
            ]
            found, required = run(module, *given), packed(module, *given)
            weights, parameters = (
                [torch.randn_like(value) for value in found],
                list(module.parameters()),
            )
            self.close(
                gradients(found, parameters, weights),
                gradients(required, parameters, weights),
                1e-5,
            )
        x = torch.randn(STEPS, BATCH, FEATURES, requires_grad=True)
        (
            dt.reverse_padded_sequence(x, inferred[1]) * inferred[0].clone()
        ).sum().backward()
        self.close(
            x.grad, dt.reverse_padded_sequence(inferred[0].clone(), inferred[1]), 0
        )

    def test_autocast_on_the_cpu_gives_the_dtypes_of_packing(self):
        lengths = torch.tensor(LENGTHS)
        dtypes = torch.float32, torch.bfloat16
        for (_, kind, options), dtype, training in itertools.product(
            kinds(), dtypes, (False, True)
        ):
            module = kind(FEATURES, HIDDEN, 2, bidirectional=True, **options).train(
                training
            )
            x = torch.randn(STEPS, BATCH, FEATURES, dtype=dtype)
            with (
                torch.autocast("cpu", torch.bfloat16),
                torch.set_grad_enabled(training),
            ):
                found, required = run(module, x, lengths), packed(module, x, lengths)
            self.assertEqual(
                *([value.dtype for value in values] for values in (found, required))
            )
            self.close(
                [value.float() for value in found],
                [value.float() for value in required],
                0.05,
            )

    def test_padding_may_have_any_values(self):
        lengths = torch.tensor([4, 9, 0, 7, 1])
        padding = torch.arange(STEPS)[:, None] >= lengths
        for device, (name, kind, options), value in itertools.product(
            DEVICES, kinds(), (float("nan"), float("inf"), 3e38)
        ):
            with self.subTest(name, device=device, value=value):
                module = kind(FEATURES, HIDDEN, 2, bidirectional=True, **options).to(
                    device
                )
                clean = (
                    torch.randn(STEPS, BATCH, FEATURES)
                    .masked_fill(padding[:, :, None], 0)
                    .to(device)
                )
                dirty = clean.masked_fill(
                    padding[:, :, None].to(device), value
                ).requires_grad_()
                clean.requires_grad_()
                on_device = lengths.to(device)
                found, required = (
                    run(module, dirty, on_device),
                    run(module, clean, on_device),
                )
                self.assertTrue(all(map(torch.equal, found, required)))
                self.assertFalse(found[0][padding.to(device)].any())
                weights = [torch.randn_like(part) for part in found]
                of_dirty = gradients(found, [dirty, *module.parameters()], weights)
                of_clean = gradients(required, [clean, *module.parameters()], weights)
                self.assertTrue(all(part.isfinite().all() for part in of_dirty))
                self.assertFalse(of_dirty[0][padding.to(device)].any())
                self.close(of_dirty, of_clean, OF_GRADIENTS[device])
                with torch.no_grad():
                    self.close(run(module, dirty, on_device), required, 1e-6)

    def test_the_states_of_a_relu_do_not_grow_through_padding(self):
        for device in DEVICES:
            rnn = dt.RNN(FEATURES, HIDDEN, nonlinearity="relu", bidirectional=True).to(
                device
            )
            with torch.no_grad():
                for weight in rnn.parameters():
                    weight.fill_(0.5)
            x = torch.randn(2000, 2, FEATURES, device=device, requires_grad=True)
            with mock.patch.dict(os.environ, DML_CUDA_RNN="two_passes"):
                output, h_n = rnn(x, lengths=torch.tensor([3, 5], device=device))
            (output.sum() + h_n.sum()).backward()
            self.assertTrue(
                all(part.grad.isfinite().all() for part in (x, *rnn.parameters()))
            )
            self.close([output, h_n], packed(rnn, x, torch.tensor([3, 5])), 1e-5)

    def test_dropout_is_between_layers_in_training_only(self):
        for device in DEVICES:
            rnn = dt.LSTM(FEATURES, HIDDEN, 2, dropout=0.5, bidirectional=True).to(
                device
            )
            x, lengths = (
                torch.randn(STEPS, BATCH, FEATURES, device=device),
                torch.tensor(LENGTHS, device=device),
            )
            again = lambda: run(rnn, x, lengths)[0]
            self.assertFalse(torch.equal(again(), again()))
            rnn.dropout = 0.0
            self.close(run(rnn, x, lengths), packed(rnn, x, lengths), 1e-5)
            rnn.dropout = 1.0  # the second layer sees zeros
            zeros = dt.LSTM(2 * HIDDEN, HIDDEN, bidirectional=True).to(device)
            zeros.load_state_dict(
                {
                    name.replace("_l1", "_l0"): value
                    for name, value in rnn.state_dict().items()
                    if "_l1" in name
                }
            )
            self.close(
                again(),
                run(zeros, x.new_zeros(STEPS, BATCH, 2 * HIDDEN), lengths)[0],
                1e-6,
            )
            rnn.eval()
            self.close(run(rnn, x, lengths), packed(rnn, x, lengths), 1e-5)

    def test_results_may_be_changed_and_viewed_and_lengths_reused(self):
        for device, both, first, on_device in itertools.product(
            DEVICES, (False, True), (False, True), (False, True)
        ):
            with self.subTest(
                device=device, both=both, batch_first=first, on_device=on_device
            ):
                rnn = dt.LSTM(
                    FEATURES, HIDDEN, 2, bidirectional=both, batch_first=first
                ).to(device)
                x = torch.randn(
                    (BATCH, STEPS, FEATURES) if first else (STEPS, BATCH, FEATURES),
                    device=device,
                )
                lengths = torch.tensor(LENGTHS, device=device if on_device else "cpu")
                required = packed(rnn, x, lengths)
                loss = lambda parts: sum((part * part).sum() for part in parts)
                of_required = torch.autograd.grad(
                    loss((required[0].relu(), *required[1:])), list(rnn.parameters())
                )
                output, *ends = run(rnn, x, lengths)
                output.view(output.shape[0] * output.shape[1], -1)
                h_n = ends[0].clone()
                output.relu_()
                lengths.zero_()
                self.close(ends[0], h_n, 0)
                self.close(
                    torch.autograd.grad(loss((output, *ends)), list(rnn.parameters())),
                    of_required,
                    1e-4,
                )

    def test_a_second_derivative_where_pytorch_has_one(self):
        x, lengths = (
            torch.randn(
                STEPS, BATCH, FEATURES, dtype=torch.float64, requires_grad=True
            ),
            torch.tensor(LENGTHS),
        )

        def second(call, x):
            (first,) = torch.autograd.grad(call(x).square().sum(), x, create_graph=True)
            return torch.autograd.grad(first.square().sum(), x)[0]

        for name, kind, options in kinds():
            for form_of_all in ("padded", 3):
                rnn = kind(FEATURES, HIDDEN, 2, bidirectional=True, **options).double()
                with self.subTest(name), running(form_of_all):
                    self.close(
                        second(lambda x: run(rnn, x, lengths)[0], x),
                        second(lambda x: packed(rnn, x, lengths)[0], x),
                        1e-9,
                    )
        lstm, x = (
            dt.LSTM(FEATURES, HIDDEN),
            x.detach().float().requires_grad_(),
        )  # oneDNN has none
        with torch.backends.mkldnn.flags(enabled=False):
            self.close(
                second(lambda x: run(lstm, x, lengths)[0], x),
                second(lambda x: packed(lstm, x, lengths)[0], x),
                1e-4,
            )
