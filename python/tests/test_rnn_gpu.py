"""RNNs with lengths and cuDNN: their weights, CUDA graphs, autocast, and that nothing waits. Skipped, and
counted, without PyTorch or without a GPU."""

import copy
import itertools
import os
import pickle
import unittest
import warnings
from unittest import mock

from with_torch import CUDA, dt, torch  # first: without PyTorch it skips this module

from dml_cuda.torch import rnn_choice, rnn_one_pass
from test_rnn import BATCH, FEATURES, HIDDEN, LENGTHS, STEPS, kinds, packed, run, states


@unittest.skipIf(not CUDA, "no PyTorch with a GPU")
class OnAGpu(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def module(self, kind=None, dtype=None, layers=2, **options):
        return (kind or dt.LSTM)(
            FEATURES, HIDDEN, layers, bidirectional=True, **options
        ).to("cuda", dtype or torch.float32)

    def arguments(self, dtype=None):
        return torch.randn(
            STEPS, BATCH, FEATURES, device="cuda", dtype=dtype
        ), torch.tensor(LENGTHS, device="cuda")

    def complaints(self, call):
        """PyTorch's warnings that the weights are not one block for cuDNN."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        return [
            str(warning.message)
            for warning in caught
            if "contiguous chunk" in str(warning.message)
        ]

    def test_the_weights_of_a_pass_are_one_block_for_cudnn(self):
        for (name, kind, options), dtype, bias, form in itertools.product(
            kinds(),
            (torch.float32, torch.float16),
            (True, False),
            ("one_pass", "two_passes"),
        ):
            with (
                self.subTest(name, dtype=dtype, bias=bias, form=form),
                mock.patch.dict(os.environ, DML_CUDA_RNN=form),
            ):
                module, (x, lengths) = (
                    self.module(kind, dtype, bias=bias, **options),
                    self.arguments(dtype),
                )

                def train(module=module, x=x, lengths=lengths):
                    module(x, lengths=lengths)[0].float().square().sum().backward()

                self.assertEqual(self.complaints(train), [])
                torch.optim.SGD(module.parameters(), lr=0.01).step()
                self.assertEqual(self.complaints(train), [])
                self.assertEqual(
                    self.complaints(lambda: module(x)), []
                )  # PyTorch's layout stays
                for other in (
                    copy.deepcopy(module),
                    pickle.loads(pickle.dumps(module)),
                ):
                    self.assertEqual(
                        self.complaints(lambda other=other: other(x, lengths=lengths)),
                        [],
                    )
                    self.assertNotEqual(
                        self.complaints(lambda other=other: other(x)), []
                    )  # as PyTorch's copies

    def test_writes_that_change_no_version_are_seen(self):
        module, (x, lengths) = self.module().eval(), self.arguments()
        with torch.no_grad():
            first = module(x, lengths=lengths)[0]
            for weight in module.parameters():
                weight.data.mul_(0.5)
            second = module(x, lengths=lengths)[0]
            self.assertFalse(torch.equal(first, second))
            torch.testing.assert_close(
                second, packed(module, x, lengths)[0], rtol=5e-3, atol=5e-3
            )
            with torch.inference_mode():
                inferred = torch.nn.utils.parameters_to_vector(module.parameters())
            module.weight_ih_l0.data.copy_(torch.full_like(module.weight_ih_l0, 0.1))
            self.assertFalse(torch.equal(module(x, lengths=lengths)[0], second))
            self.assertTrue(inferred.is_inference())
            graph, optimizer = (
                torch.cuda.CUDAGraph(),
                torch.optim.SGD(module.parameters(), 0.1),
            )
            for weight in module.parameters():
                weight.grad = torch.ones_like(weight)
            torch.cuda.synchronize()
            with torch.cuda.graph(graph):
                optimizer.step()
            before = module(x, lengths=lengths)[0]
            graph.replay()
            self.assertFalse(torch.equal(module(x, lengths=lengths)[0], before))
            found, required = (
                module(x, lengths=lengths)[0],
                packed(module, x, lengths)[0],
            )
            torch.testing.assert_close(found, required, rtol=5e-3, atol=5e-3)

    def test_c_n_has_the_same_bits_after_4000_steps_of_padding(self):
        for dtype, hidden in itertools.product(
            (torch.float16, torch.float32), (64, 128, 256)
        ):
            module = dt.LSTM(128, hidden, 2, bidirectional=True).to("cuda", dtype)
            x, lengths = (
                torch.randn(4096, 8, 128, device="cuda", dtype=dtype),
                torch.full((8,), 64, device="cuda"),
            )
            with torch.no_grad():
                short, long = (
                    module(part, lengths=lengths)[1] for part in (x[:128], x)
                )
            torch.testing.assert_close(long, short, rtol=0, atol=0)

    def test_nothing_waits(self):
        for (name, kind, options), with_states in itertools.product(
            kinds(), (False, True)
        ):
            with self.subTest(name, hx=with_states):
                module, (x, lengths) = (
                    self.module(kind, dropout=0.5, **options),
                    self.arguments(),
                )
                hx = states(module, BATCH, device="cuda") if with_states else None
                module(x, hx, lengths=lengths)[0].sum().backward()
                torch.cuda.synchronize()
                torch.cuda.set_sync_debug_mode("error")
                try:
                    module(x, hx, lengths=lengths)[0].sum().backward()
                finally:
                    torch.cuda.set_sync_debug_mode("default")

    def test_pinned_lengths_may_change_after_a_call(self):
        module, (x, lengths) = self.module().eval(), self.arguments()
        for form in ("one_pass", "two_passes", "packed"):
            with (
                self.subTest(form),
                mock.patch.dict(os.environ, DML_CUDA_RNN=form),
                torch.no_grad(),
            ):
                expected = run(module, x, lengths)[0]
                pinned = lengths.cpu().pin_memory()
                torch.cuda._sleep(100_000_000)  # the GPU is behind the host
                found = run(module, x, pinned)[0]
                pinned.fill_(1)
                # Packing rounds otherwise.
                torch.testing.assert_close(found, expected, rtol=0, atol=1e-3)

    def test_gradients_need_training_mode_as_pytorchs_own_do(self):
        module, (x, lengths) = self.module().eval(), self.arguments()
        for output in (module(x, lengths=lengths)[0], module(x)[0]):
            with self.assertRaisesRegex(RuntimeError, "training mode"):
                output.sum().backward()

    def test_a_negative_length_acts_as_t(self):
        module, (x, lengths) = self.module(), self.arguments()
        lengths[2] = len(x)
        required = run(module, x, lengths)
        lengths[2] = -3
        self.assertTrue(all(map(torch.equal, run(module, x, lengths), required)))
        kept = dt.pack_padded_sequence(x, lengths, enforce_sorted=False)
        self.assertEqual(dt.pad_packed_sequence(kept)[1][2], len(x))

    def test_cuda_graphs(self):
        for (name, kind, options), dtype in itertools.product(
            kinds(), (torch.float32, torch.float16)
        ):
            with self.subTest(name, dtype=dtype), torch.no_grad():
                module, (x, lengths) = (
                    self.module(kind, dtype, **options).eval(),
                    self.arguments(dtype),
                )
                run(module, x, lengths)
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    found = run(module, x, lengths)
                for _ in range(3):
                    (
                        x.copy_(torch.randn_like(x)),
                        lengths.copy_(torch.randint(0, STEPS + 3, (BATCH,))),
                    )
                    graph.replay()
                    torch.testing.assert_close(
                        found, run(module, x, lengths), rtol=0, atol=0
                    )

    def test_one_pass_is_captured_without_a_warm_up_and_sees_new_weights(self):
        dtypes = torch.float32, torch.float16
        for (name, kind, options), dtype, bias in itertools.product(
            kinds(), dtypes, (True, False)
        ):
            with self.subTest(name, dtype=dtype, bias=bias), torch.no_grad():
                rnn = (
                    kind(64, 400, 2, bias=bias, bidirectional=True, **options)
                    .to("cuda", dtype)
                    .eval()
                )
                module, x = rnn, torch.randn(32, BATCH, 64, device="cuda", dtype=dtype)
                lengths, graph = (
                    torch.tensor([32, 0, 7, 31, 1], device="cuda"),
                    torch.cuda.CUDAGraph(),
                )
                run(module, x, lengths)

                def capture(module=module, x=x, lengths=lengths, graph=graph):
                    with (
                        torch.cuda.graph(graph),
                        mock.patch.dict(os.environ, DML_CUDA_RNN="one_pass"),
                    ):
                        return run(module, x, lengths)

                found = []
                self.assertEqual(self.complaints(lambda: found.extend(capture())), [])
                for _ in range(2):
                    for weight in module.parameters():
                        weight.mul_(0.7)
                    graph.replay()
                    torch.testing.assert_close(
                        found, list(run(module, x, lengths)), rtol=5e-3, atol=5e-3
                    )

    def test_the_form_of_a_captured_call(self):
        if torch.cuda.get_device_capability() != (9, 0):
            self.skipTest("the rule is an H100's and an H200's")
        half, single, double, nn = torch.float16, torch.float32, torch.float64, torch.nn
        tf32, cudnn = (
            mock.patch.object(rnn_one_pass, "_has_tf32", lambda: True),
            torch.backends.cudnn,
        )
        self.assertEqual(rnn_one_pass._has_tf32(), cudnn.allow_tf32)
        for kind, shape, hidden, dtype, required in (
            (nn.LSTM, (256, 64, 512), 512, single, True),
            (nn.LSTM, (256, 64, 512), 512, double, False),
            (nn.LSTM, (256, 16, 512), 512, double, True),
            (nn.GRU, (200, 8, 512), 1024, half, True),
            (nn.LSTM, (200, 8, 512), 1024, half, False),
            (nn.LSTM, (200, 64, 512), 1024, half, True),
            (nn.LSTM, (200, 8, 80), 1024, half, True),
            (nn.LSTM, (200, 128, 256), 256, half, False),
            (nn.GRU, (200, 1, 512), 2048, half, False),
            (nn.GRU, (200, 1, 512), 2048, single, True),
            (nn.LSTM, (300, 64, 80), 192, single, False),
            (nn.LSTM, (300, 64, 80), 192, double, True),
            (nn.RNN, (300, 64, 80), 384, single, False),
            (nn.RNN, (300, 64, 80), 400, single, True),
            (nn.LSTM, (64, 512, 512), 512, single, False),
            (nn.LSTM, (24, 1, 504), 1024, single, False),
        ):
            with (
                self.subTest(kind=kind, shape=shape, hidden=hidden, dtype=dtype),
                tf32,
                mock.patch.dict(os.environ),
            ):
                os.environ.pop("DML_CUDA_RNN", None)
                rnn = kind(shape[2], hidden, bidirectional=True, device="meta")
                x = torch.empty(shape, device="cuda", dtype=dtype)
                self.assertFalse(rnn_one_pass.is_one_pass(rnn, 0, x))  # eager
                with mock.patch("torch.cuda.is_current_stream_capturing", lambda: True):
                    self.assertEqual(rnn_one_pass.is_one_pass(rnn, 0, x), required)

    def test_a_captured_training_step(self):
        module, (x, lengths) = self.module(), self.arguments()
        x.requires_grad_()

        def step():
            module.zero_grad(set_to_none=False)
            x.grad = None
            output, *ends = run(module, x, lengths)
            (output.square().sum() + sum(state.sum() for state in ends)).backward()
            return [x.grad, *(weight.grad for weight in module.parameters())]

        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = step()
        for _ in range(3):
            with torch.no_grad():
                (
                    x.copy_(torch.randn_like(x)),
                    lengths.copy_(torch.randint(0, STEPS + 3, (BATCH,))),
                )
            graph.replay()
            replayed = [value.clone() for value in found]
            torch.testing.assert_close(
                replayed, [value.clone() for value in step()], rtol=1e-5, atol=1e-5
            )

    def test_autocast(self):
        module, (x, lengths) = self.module(), self.arguments()
        for dtype in (torch.float16, torch.bfloat16):
            with torch.autocast("cuda", dtype):
                # PyTorch runs RNNs in float16 under both.
                required = torch.nn.LSTM(FEATURES, HIDDEN).cuda()(x)[0].dtype
                output, h_n, _ = run(
                    module, x, lengths, states(module, BATCH, device="cuda")
                )
                output.float().sum().backward()
            self.assertEqual((output.dtype, h_n.dtype), (required, required))
            self.assertTrue(
                all(weight.grad.isfinite().all() for weight in module.parameters())
            )

    def test_packs_are_captured(self):
        module, (x, lengths) = self.module().eval(), self.arguments()

        def call():
            pack = dt.pack_padded_sequence(x, lengths, enforce_sorted=False)
            return dt.pad_packed_sequence(module(pack)[0])[0]

        with torch.no_grad():
            call()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                found = call()
            x.copy_(torch.randn_like(x)), lengths.copy_(torch.tensor([9, 2, 5, 1, 3]))
            graph.replay()
            torch.testing.assert_close(found, call(), rtol=0, atol=0)

    def test_training_does_not_grow_with_one_long_sequence(self):
        module, x = dt.LSTM(64, 64).cuda(), torch.randn(400, 16, 64, device="cuda")
        lengths = torch.tensor([400, *[10] * 15])
        batch = rnn_choice.Batch.of(400, rnn_choice.on_host(x, lengths))
        self.assertEqual(rnn_choice.rule(module, x, batch, True), "packed")
        self.assertIsNone(rnn_choice.on_host(x, lengths.cuda()))
