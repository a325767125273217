"""dml_cuda.torch, on the CPU and on the GPU. Skipped, and counted, without PyTorch. test_torch_gpu.py has what only a
GPU has."""

import doctest
import io
import itertools
import random
import unittest

# First: without PyTorch it skips this module.
from with_torch import CUDA, DEVICES, Module, Seen, dt, model, same, torch

import dml_cuda
import numpy as np
from dml_cuda.torch import packing, rnn, rnn_conversion
from dml_cuda.torch.operators import watched
from test_numpy import check_errors


class Torch(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def test_every_dtype_shape_and_length_type(self):
        dtypes = [
            torch.bool,
            torch.uint8,
            torch.float16,
            torch.bfloat16,
            torch.int32,
            torch.float64,
            torch.complex128,
        ]
        length_types = itertools.cycle(
            [torch.int32, torch.int64, torch.uint32, torch.uint64, torch.uint8]
        )
        shapes = [(7,), (5, 300), (2, 3, 4, 5), (2,) * 10]
        for device, dtype, shape in itertools.product(DEVICES, dtypes, shapes):
            for dim in {0, len(shape) - 1, -len(shape) // 2}:
                x = torch.randint(0, 100, shape, device=device).to(dtype)
                of_lanes = list(shape)
                of_lanes[dim] = 1
                lengths = torch.randint(
                    0, min(shape[dim] + 2, 256), of_lanes, device=device
                )
                same(
                    dt.reverse_subsequences(x, lengths.to(next(length_types)), dim),
                    model(x, lengths, dim),
                )

    def test_strides_and_memory_formats(self):
        for device in DEVICES:
            base = torch.randn(30, 40, device=device)
            for x in (
                base.view(5, 6, 5, 8).to(memory_format=torch.channels_last),
                base.t(),
                base[::2, 3:],
                base[:, ::3],
                base[0].expand(7, 40),
                base.unfold(1, 8, 2),
            ):
                for dim in range(x.dim()):
                    lengths = torch.tensor(5, device=device)
                    same(
                        dt.reverse_subsequences(x, lengths, dim), model(x, lengths, dim)
                    )
                    y = x.clone()
                    self.assertIs(dt.reverse_subsequences_(y, lengths, dim), y)
                    same(y, model(x, lengths, dim))
            out = torch.zeros(60, 40, device=device)[::2]
            self.assertIs(dml_cuda.reverse_subsequences(base, 4, 1, out=out), out)
            same(out, model(base, torch.tensor(4, device=device), 1))

    def test_the_result_has_the_strides_of_empty_like(self):
        random.seed(0)
        for device in DEVICES:
            for _ in range(300):
                rank = random.randint(1, 6)
                size = lambda: (
                    random.choice([1, 1, 2, 3, 4, 0]) if random.random() < 0.95 else 0
                )
                x = torch.zeros([size() for _ in range(rank)], device=device)
                x = x.permute(random.sample(range(rank), rank))
                if random.random() < 0.3:
                    steps = [step * random.choice([0, 1, 1, 2]) for step in x.stride()]
                    x = x.as_strided(x.shape, steps) if x.numel() < 2 else x[..., ::2]
                if random.random() < 0.3:
                    x = x.expand(
                        [
                            size if size != 1 else random.choice([1, 3])
                            for size in x.shape
                        ]
                    )
                found = torch.ops.dml_cuda.reverse_subsequences(
                    x, torch.tensor(1, device=device), random.randrange(rank)
                )
                self.assertEqual(
                    (found.shape, found.stride()),
                    (x.shape, torch.empty_like(x).stride()),
                    x.stride(),
                )

    def test_a_mode_sees_every_operator_and_its_errors_pass(self):
        class Refuses(Seen):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                raise RuntimeError(f"no {func}")

        x, lengths = torch.zeros(2, 3), torch.tensor(1)
        for call in (dt.reverse_subsequences, dt.reverse_subsequences_):
            with self.assertRaisesRegex(RuntimeError, "^no dml_cuda"), Refuses():
                call(x, lengths, 1)

    def test_fills(self):
        for device in DEVICES:
            for dtype in (
                torch.float32,
                torch.float16,
                torch.int8,
                torch.uint8,
                torch.int64,
                torch.uint32,
                torch.uint64,
            ):
                found = dt.fill_value_sequence((3, 50), 100, -2, dtype, device)
                kind = str(dtype).partition(".")[2]
                required = dml_cuda.fill_value_sequence((3, 50), 100, -2, kind)
                self.assertEqual(
                    (
                        found.cpu().numpy() if device == "cuda" else found.numpy()
                    ).tobytes(),
                    required.tobytes(),
                )
            self.assertEqual(
                dt.fill_value_sequence((0, 2), 1, 1, device=device).shape, (0, 2)
            )

    def test_opcheck(self):
        for device in DEVICES:
            x = torch.randn(3, 4, device=device)
            lengths = torch.tensor([[1], [2], [4]], device=device)
            torch.library.opcheck(
                torch.ops.dml_cuda.reverse_subsequences.default,
                (x.requires_grad_(), lengths, 1),
            )
            torch.library.opcheck(
                torch.ops.dml_cuda.reverse_subsequences.default,
                (x.detach().t(), lengths.t(), 0),
            )
            torch.library.opcheck(
                torch.ops.dml_cuda.reverse_subsequences_.default,
                (x.detach().clone(), lengths, 1),
            )
            torch.library.opcheck(
                torch.ops.dml_cuda.fill_value_sequence.default,
                ([3, 4], 1, 2, torch.int32, torch.device(device)),
            )

    def test_vmap_of_either_argument_or_both(self):
        """Gradients and other transforms are in test_torch_transforms.py."""
        for device in DEVICES:
            lengths = torch.tensor([[1], [2], [4]], device=device)
            batch, of_batch = (
                torch.randn(5, 3, 4, device=device),
                torch.randint(0, 5, (5, 3, 1), device=device),
            )
            same(
                torch.vmap(lambda x, l: dt.reverse_subsequences(x, l, 1))(
                    batch, of_batch
                ),
                model(batch, of_batch, 2),
            )
            same(
                torch.vmap(lambda x: dt.reverse_subsequences(x, lengths, 1))(batch),
                model(batch, lengths[None], 2),
            )
            same(
                torch.vmap(lambda l: dt.reverse_subsequences(batch[0], l, -1))(
                    of_batch
                ),
                model(batch[0].expand(5, 3, 4), of_batch, 2),
            )

    def test_lengths_that_change_before_the_backward_pass_are_an_error(self):
        for reverse in (
            lambda x, lengths: dt.reverse_subsequences(x, lengths[:, None], 1),
            lambda x, lengths: dt.reverse_padded_sequence(x, lengths, True),
            lambda x, lengths: torch.gather(x, 1, lengths[:, None]),
        ):
            x, lengths = (
                torch.arange(8.0).view(2, 4).requires_grad_(),
                torch.tensor([2, 3]),
            )
            found, kept = reverse(x, lengths), reverse(x, lengths.clone())
            lengths.fill_(1)
            with self.assertRaisesRegex(
                RuntimeError, "modified by an inplace operation"
            ):
                found.sum().backward()
            kept.sum().backward()

    def test_autograd_sees_a_reversal_in_place(self):
        for reverse in (
            dt.reverse_subsequences_,
            torch.ops.dml_cuda.reverse_subsequences_,
        ):
            weights, x, lengths = (
                torch.randn(4, requires_grad=True),
                torch.arange(4.0),
                torch.tensor(3),
            )
            product = weights * x
            reverse(x, lengths, 0)
            self.assertEqual(x._version, 1)
            with self.assertRaisesRegex(
                RuntimeError, "modified by an inplace operation"
            ):
                product.sum().backward()
            for refused in (
                weights,
                weights[:1].expand(4),
            ):  # what copy_ refuses, in its words
                with self.assertRaises(RuntimeError) as plain:
                    refused.copy_(x)
                with self.assertRaises(RuntimeError) as found:
                    reverse(refused, lengths, 0)
                self.assertEqual(str(found.exception), str(plain.exception))
            with torch.inference_mode():
                inference = torch.arange(4.0)
            with self.assertRaisesRegex(
                RuntimeError, "Inplace update to inference tensor outside InferenceMode"
            ):
                reverse(inference, lengths, 0)
            with torch.autograd.graph.allow_mutation_on_saved_tensors():
                saved = torch.arange(4.0)
                product = weights * saved
                reverse(saved, lengths, 0)
                self.assertEqual(
                    torch.autograd.grad(product.sum(), weights)[0].tolist(),
                    [0, 1, 2, 3],
                )
                self.assertEqual(saved.tolist(), [2, 1, 0, 3])
            part = weights * 1
            reverse(part[1:], lengths, 0)
            part.mul(x).sum().backward()
            self.assertEqual(weights.grad.tolist(), [x[0], x[3], x[2], x[1]])
            with torch.no_grad():
                reverse(weights, lengths, 0)
            with torch.inference_mode():
                x = torch.arange(4.0)
                reverse(x, lengths, 0)
            self.assertEqual(x.tolist(), [2, 1, 0, 3])
        compiled = torch.compile(
            lambda weights, x: (weights * x, dt.reverse_subsequences_(x, lengths, 0))[0]
        )
        with self.assertRaisesRegex(Exception, "modified by an inplace operation"):
            compiled(
                torch.randn(4, requires_grad=True), torch.arange(4.0)
            ).sum().backward()

    def test_what_watches_a_call(self):
        """Each of these must see the operator, and nothing else may: the public operator costs more than a launch."""
        x, lengths, seen = torch.randn(4), torch.tensor(3), []
        note = lambda x, lengths=lengths: seen.append(watched(x, lengths))
        note(x)
        with (
            torch.no_grad(),
            torch.inference_mode(),
            torch.autocast("cpu", torch.bfloat16),
            torch.profiler.profile(),
        ):
            note(x)
        note(x.requires_grad_())  # a gradient has its rule without the dispatcher
        self.assertEqual(seen, [False] * 3)
        x = x.detach()
        del seen[:]

        with Seen():
            note(x)
        with torch.device("cpu"):
            note(x)
        with torch.autograd.forward_ad.dual_level():
            note(x)
        for transform in (torch.func.grad, torch.vmap, torch.func.functionalize):
            transform(lambda x: (note(x), x.sum())[1])(x)
        torch.jit.trace(lambda x: (note(x), x)[1], (x,), check_trace=False)
        for options in ({}, {"pre_dispatch": True}):
            torch.fx.experimental.proxy_tensor.make_fx(
                lambda x: (note(x), x + 1)[1], **options
            )(x)
        with torch._subclasses.FakeTensorMode() as mode:
            fake = mode.from_tensor(x)
        note(fake), note(torch.nn.Parameter(x)), note(x, mode.from_tensor(lengths))
        self.assertEqual(seen, [True] * 12)
        with torch.profiler.profile() as profile:
            (
                dt.reverse_subsequences(x, lengths, 0),
                dt.reverse_subsequences_(x, lengths, 0),
            )
            dt.reverse_padded_sequence(x.view(-1, 1), lengths.view(-1))
        seen = [
            event.name for event in profile.events() if event.name.startswith("dml")
        ]
        self.assertEqual(
            seen,
            [
                f"dml_cuda::_reverse_{of}"
                for of in ("subsequences", "subsequences_", "padded")
            ],
        )

    def test_compiled_in_place_allocates_nothing(self):
        for device in DEVICES:
            x, lengths = (
                torch.randn(5, 6, device=device),
                torch.tensor([[3]], device=device),
            )
            compiled = torch.compile(
                lambda x, l: (dt.reverse_subsequences_(x, l, 1), None)[1],
                fullgraph=True,
            )
            compiled(x, lengths)
            required = model(x, lengths, 1)
            with torch.profiler.profile() as profile:
                compiled(x, lengths)
            same(x, required)
            names = [event.name for event in profile.events()]
            self.assertIn("dml_cuda::reverse_subsequences_", names)
            self.assertFalse(
                [
                    name
                    for name in names
                    if "empty" in name or "copy" in name or "clone" in name
                ],
                names,
            )

    def test_more_dimensions_than_a_descriptor_has(self):
        random.seed(0)
        for device in DEVICES:
            for rank in (9, 12):
                for _ in range(10):
                    x = torch.randn((2,) * rank, device=device).permute(
                        random.sample(range(rank), rank)
                    )
                    dim, sizes = (
                        random.randrange(rank),
                        [random.choice([1, 2]) for _ in range(rank)],
                    )
                    sizes[dim] = 1
                    lengths = torch.randint(0, 4, sizes, device=device)
                    found = dt.reverse_subsequences(x, lengths, dim - rank)
                    same(found, model(x, lengths, dim))
                    dt.reverse_subsequences_(x, lengths, dim)
                    same(x, found)

    def test_lengths_and_fills_as_pytorchs_own_functions_take_them(self):
        for device in DEVICES:
            x = torch.randn(2, 3, device=device)
            for lengths in (
                2,
                2**64,
                [[2], [1]],
                np.array([[3], [0]]),
                torch.tensor([[1], [3]], dtype=torch.uint8, device=device),
            ):
                of_gather = min(lengths, 3) if isinstance(lengths, int) else lengths
                required = model(x, torch.as_tensor(of_gather, device=device), 1)
                same(dt.reverse_subsequences(x, lengths, 1), required)
                same(
                    torch.compile(
                        lambda x: dt.reverse_subsequences(x, lengths, 1),
                        backend="aot_eager",
                    )(x),
                    required,
                )
                same(dt.reverse_subsequences_(x.clone(), lengths, 1), required)
            # PyTorch reads none of them.
            for lengths in (
                np.array([0, 3])[::-1, None],
                np.array([[3], [0]], ">i8"),
                [[2**63], [0]],
            ):
                same(
                    dt.reverse_subsequences(x, lengths, 1),
                    model(x, torch.tensor([[3], [0]], device=device), 1),
                )
            changed, tracked = np.array([[3], [2]]), x.clone().requires_grad_()
            found = dt.reverse_subsequences(tracked, changed, 1)
            changed[:] = 0
            found.backward(x)
            same(tracked.grad, model(x, torch.tensor([[3], [2]], device=device), 1))
            same(
                dt.reverse_padded_sequence(x, [2, 1], batch_first=True),
                model(x, torch.tensor([[2], [1]], device=device), 1),
            )
            same(dt.reverse_padded_sequence(x[None, :0], []), x[None, :0])
            meta = dt.reverse_subsequences(
                x.to("meta"), torch.tensor(2, device="meta"), 1
            )
            self.assertEqual((meta.device.type, meta.shape), ("meta", x.shape))
            with torch.device(device):
                same(
                    dt.fill_value_sequence(3, 1, 2),
                    torch.tensor([1.0, 3, 5], device=device),
                )
        column = lambda x: dt.fill_value_sequence(x.shape[0], 5, 1, torch.int32)[
            :, None
        ]
        fill = lambda x: dt.fill_value_sequence((x.shape[0], 2), 0, 1) + column(x)
        for rows in (3, 5):
            x = torch.zeros(rows, 2)
            required = (
                torch.arange(2.0 * rows).reshape(rows, 2)
                + torch.arange(5, 5 + rows)[:, None]
            )
            same(
                torch.compile(fill, fullgraph=True, dynamic=True, backend="aot_eager")(
                    x
                ),
                required,
            )
        # A fill, and a length that is a symbol.
        both = Module(
            lambda x, _: (fill(x), dt.reverse_subsequences(x, x.shape[0] - 1, 0))
        )
        sizes = ({0: torch.export.Dim("rows", min=2)}, None)
        program = torch.export.export(
            both,
            (torch.zeros(3, 2), torch.zeros(1)),
            dynamic_shapes=sizes,
            strict=False,
        )
        filled, reversed_rows = program.module()(required, torch.zeros(1))
        same(filled, required), same(reversed_rows, model(required, torch.tensor(4), 0))
        with torch.device("meta"):
            self.assertEqual(dt.fill_value_sequence((2, 3), 0, 1).device.type, "meta")
        self.assertEqual(
            dt.fill_value_sequence(torch.Size([2]), 0, 1, device="meta").shape, (2,)
        )

    def test_errors_name_argument_found_and_required(self):
        for device in DEVICES:
            x = torch.zeros(3, 4, device=device)
            length, fill = torch.tensor(1, device=device), dt.fill_value_sequence
            reverse, reverse_ = dt.reverse_subsequences, dt.reverse_subsequences_
            check_errors(
                self,
                [
                    (
                        ValueError,
                        "dim is 2, but must be from -2 to 1, the dimensions of x",
                        lambda: reverse(x, length, 2),
                    ),
                    *(
                        (
                            ValueError,
                            f"dim is {dim}, but must be from -1 to 0, the dimensions of x",
                            lambda dim=dim: torch.func.vmap(
                                lambda a: reverse(a, length, dim)
                            )(x),
                        )
                        for dim in (-2, 1)
                    ),
                    (
                        ValueError,
                        r"lengths has shape \[3, 1\], but must broadcast to \[1\]",
                        lambda: torch.func.vmap(
                            lambda a: reverse_(a, length.expand(3, 1), 0)
                        )(x),
                    ),
                    (
                        TypeError,
                        "lengths is a MaskedArray, but must be a tensor, or integers",
                        lambda: reverse(x, np.ma.array([2], mask=[1]), 1),
                    ),
                    (
                        TypeError,
                        "lengths has dtype torch.float32, but must have an integer dtype: lengths[.]long[(][)], or [(]lengths [*] T[)][.]round[(][)][.]long[(][)] for lengths relative to T$",
                        lambda: reverse(x, length.float(), 1),
                    ),
                    (
                        ValueError,
                        r"lengths has shape \[4\], but must broadcast to \[3, 1\]",
                        lambda: reverse(x, length.expand(4), 1),
                    ),
                    (
                        ValueError,
                        "x has 0 dimensions",
                        lambda: reverse(x[0, 0], length, 0),
                    ),
                    (
                        TypeError,
                        "x is a list, but must be a tensor",
                        lambda: reverse([1], length, 0),
                    ),
                    *(
                        (
                            TypeError,
                            f"dim is {dim!r}, but must be an integer",
                            lambda dim=dim, call=call: call(x, length, dim),
                        )
                        for dim in (None, "1", 1.0, True)
                        for call in (reverse, reverse_)
                    ),
                    *(
                        (TypeError, "lengths ", lambda of=of: reverse(x, of, 1))
                        for of in (True, [[True], [1], [2]])
                    ),
                    (
                        TypeError,
                        "lengths is 'a', but must be a tensor, or integers",
                        lambda: reverse(x, "a", 1),
                    ),
                    (
                        TypeError,
                        "x has layout torch.sparse_coo, but must have torch.strided",
                        lambda: reverse(x.to_sparse(), length, 1),
                    ),
                    (
                        TypeError,
                        "lengths has layout torch.sparse_coo",
                        lambda: reverse(x, length.expand(3, 1).to_sparse(), 1),
                    ),
                    (
                        TypeError,
                        "x is quantized: reverse",
                        lambda: reverse(
                            torch.quantize_per_tensor(x, 1, 0, torch.qint8), length, 1
                        ),
                    ),
                    (
                        ValueError,
                        "lengths is on meta, but must be on",
                        lambda: reverse(x, length.to("meta"), 1),
                    ),
                    (
                        ValueError,
                        "lengths is on meta, but must be on",
                        lambda: dt.reverse_padded_sequence(
                            x, length.expand(4).to("meta")
                        ),
                    ),
                    (
                        TypeError,
                        "lengths has layout torch.sparse_coo",
                        lambda: dt.reverse_padded_sequence(
                            x, length.expand(4).to_sparse()
                        ),
                    ),
                    (
                        ValueError,
                        r"lengths has shape \[3\], but must have \[4\], the batch size; with batch_first=True it would be 3",
                        lambda: dt.reverse_padded_sequence(x, length.expand(3)),
                    ),
                    (
                        TypeError,
                        "dtype is torch.float64, but must be float32, float16",
                        lambda: fill(3, 0, 1, torch.float64),
                    ),
                    (
                        TypeError,
                        "dtype is 'float32', but must be",
                        lambda: fill(2, 1, 1, "float32"),
                    ),
                    (
                        TypeError,
                        "size is 2.5, but must be an integer",
                        lambda: fill(2.5, 1, 1),
                    ),
                    (
                        ValueError,
                        "size is .*-1.*, but must have numbers of at least 0",
                        lambda: fill((2, -1), 0, 1),
                    ),
                    (
                        TypeError,
                        "start is a Tensor, but must be a number: take its item",
                        lambda: fill(3, torch.tensor(1), 1),
                    ),
                    *(
                        (
                            TypeError,
                            f"delta is {delta!r}, but must be a number",
                            lambda delta=delta: fill(3, 1, delta),
                        )
                        for delta in ("a", True)
                    ),
                    (
                        TypeError,
                        "size is True, but must be an integer",
                        lambda: fill((True,), 1, 1),
                    ),
                    (
                        ValueError,
                        "start is 300, but must be from -128 to 255",
                        lambda: fill(3, 300, 1, torch.uint8, device),
                    ),
                    (
                        ValueError,
                        r"lengths\[1, 0\] is -3, but must be at least 0",
                        lambda: reverse(x.cpu(), torch.tensor([[1], [-3], [2]]), 1),
                    ),
                    (
                        ValueError,
                        "lengths is -3, but must be at least 0",
                        lambda: reverse(x.cpu(), torch.tensor(-3), 1),
                    ),
                    (
                        ValueError,
                        "is -1, but must be at least 0",
                        lambda: reverse(
                            torch.zeros((2,) * 10), torch.full((2, 1) * 5, -1), 9
                        ),
                    ),
                    (
                        ValueError,
                        r"x.strides is \[0, 4\] bytes, but must be strides that place no two elements of the sizes \[3, 4\] in the same memory",
                        lambda: reverse_(x[0].expand(3, 4), length, 1),
                    ),
                ],
            )
            memory = torch.arange(20, device=device)
            dml_cuda.reverse_subsequences(
                memory[:10], 3, 0, out=memory[5:15]
            )  # memory of both
            self.assertEqual(memory[5:15].tolist(), [2, 1, 0, 3, 4, 5, 6, 7, 8, 9])
        if CUDA:
            with self.assertRaisesRegex(
                ValueError, "lengths is on cpu, but must be on cuda:0, as x"
            ):
                reverse(torch.zeros(3, device="cuda"), torch.tensor(1), 0)

    def test_nested_tensors_are_refused_wherever_they_are_passed(self):
        rnn = dt.GRU(4, 5, bidirectional=True, batch_first=True)
        dense, length = torch.zeros(2, 3, 4), torch.tensor([1, 2])
        for layout in (torch.strided, torch.jagged):
            x = torch.nested.nested_tensor(
                [torch.zeros(2, 4), torch.zeros(3, 4)], layout=layout
            )
            lengths = torch.nested.nested_tensor(
                [torch.tensor([1]), torch.tensor([2])], layout=layout
            )
            refused = [
                *(
                    ("x", lambda of=of: reverse(x, of, 1))
                    for reverse in (dt.reverse_subsequences, dt.reverse_subsequences_)
                    for of in (length, [1, 2], 1)
                ),
                *(
                    ("x", lambda of=of: dt.reverse_padded_sequence(x, of, True))
                    for of in (length, [1, 2])
                ),
                ("input", lambda: rnn(x, lengths=length)),
                ("x", lambda: dml_cuda.reverse_subsequences(x, 1, 1, out=dense)),
                ("out", lambda: dml_cuda.reverse_subsequences(dense, 1, 1, out=x)),
                ("lengths", lambda: dt.reverse_subsequences(dense, lengths, 1)),
                ("lengths", lambda: dt.reverse_padded_sequence(dense, lengths, True)),
                ("lengths", lambda: rnn(dense, lengths=lengths)),
            ]
            check_errors(
                self,
                [
                    (
                        TypeError,
                        f"^{name} is a nested tensor, but must be dense: pad it",
                        call,
                    )
                    for name, call in refused
                ],
            )
            # As the message says.
            padded, of_rows = (
                torch.nested.to_padded_tensor(x, 0.0),
                [len(row) for row in x.unbind()],
            )
            self.assertEqual(
                dt.reverse_padded_sequence(padded, of_rows, True).shape, (2, 3, 4)
            )

    def test_sequences_that_are_padded_on_the_left(self):
        rows, lengths = [[1, 2, 3], [4], [], [5, 6, 7, 8]], torch.tensor([3, 1, 0, 4])
        left = lambda rows: torch.tensor([[0] * (5 - len(row)) + row for row in rows])
        found = dt.reverse_padded_sequence(left(rows).flip(1), lengths, True).flip(1)
        same(found, left([row[::-1] for row in rows]))

    def test_an_error_has_the_index_of_the_callers_lengths(self):
        rnn = dt.GRU(4, 5, bidirectional=True, batch_first=True)
        x = torch.zeros(2, 3, 4)
        for lengths in (
            [3, -1],
            torch.tensor([3, -1]),
            torch.tensor([3, -1], dtype=torch.int8),
        ):
            calls = [
                lambda: dt.reverse_padded_sequence(x, lengths, True),
                lambda: dt.reverse_padded_sequence(x.transpose(0, 1), lengths),
            ]
            calls += [lambda: rnn(x, lengths=lengths)]
            check_errors(
                self,
                [
                    (ValueError, r"^lengths\[1\] is -1, but must be at least 0$", call)
                    for call in calls
                ],
            )

    def test_a_negative_length_is_an_error_on_the_host_and_acts_as_the_size_on_a_gpu(
        self,
    ):
        for device, kind in itertools.product(
            DEVICES, (torch.int8, torch.int32, torch.int64)
        ):
            x, lengths = (
                torch.randn(3, 4, device=device),
                torch.tensor([1, -2, 3], dtype=kind, device=device),
            )
            of_lanes, ops, y = lengths[:, None], torch.ops.dml_cuda, x.clone()
            required = model(x, torch.where(of_lanes < 0, 4, of_lanes), 1)
            leaf = x.clone().requires_grad_()
            calls = [
                lambda: dt.reverse_subsequences(x, of_lanes, 1),
                lambda: dt.reverse_subsequences(leaf, of_lanes, 1).detach(),
                lambda: dt.reverse_subsequences_(y.copy_(x), of_lanes, 1),
                lambda: dt.reverse_padded_sequence(x, lengths, True),
                lambda: dt.reverse_padded_sequence(x.t(), lengths).t(),
                lambda: dml_cuda.reverse_subsequences(
                    x, of_lanes, 1, out=torch.empty_like(x)
                ),
                lambda: dml_cuda.reverse_padded_sequence(x, lengths, True),
                lambda: torch.vmap(lambda x, n: dt.reverse_subsequences(x, n, 0))(
                    x, lengths
                ),
                lambda: torch.func.jvp(
                    lambda x: dt.reverse_subsequences(x, of_lanes, 1), (x,), (x,)
                )[1],
                *(
                    []
                    if kind == torch.int8
                    else [
                        lambda: ops.reverse_subsequences(x, of_lanes, 1),
                        lambda: (ops.reverse_subsequences_(y.copy_(x), of_lanes, 1), y)[
                            1
                        ],
                    ]
                ),
            ]
            for at, call in enumerate(calls):
                with self.subTest(device=device, kind=kind, call=at):
                    if device == "cpu":
                        self.assertRaisesRegex(
                            (ValueError, RuntimeError),
                            "is -2, but must be at least 0",
                            call,
                        )
                    else:
                        same(call(), required)

    def test_a_subclass_of_tensors_is_a_tensor(self):
        class Subclass(torch.Tensor):
            pass

        found = dml_cuda.reverse_subsequences(
            torch.arange(4).as_subclass(Subclass), 3, 0
        )
        self.assertIs(type(found), Subclass)
        self.assertEqual(found.tolist(), [2, 1, 0, 3])

    def test_torchscript(self):
        class Scripted(torch.nn.Module):
            def forward(self, x: torch.Tensor, lengths: torch.Tensor):
                found = [
                    dt.reverse_padded_sequence(x, lengths),
                    dt.reverse_subsequences(x, lengths[:, None], 0),
                    dt.reverse_padded_sequence(
                        x.transpose(0, 1), lengths, batch_first=True
                    ).transpose(0, 1),
                ]
                dt.reverse_subsequences_(x, lengths[:, None], 0)
                return found + [x], dt.fill_value_sequence(
                    [3], 5, -1, torch.int32, torch.device("cpu")
                )

        file = io.BytesIO()
        torch.jit.save(torch.jit.script(Scripted()), file)
        file.seek(0)
        scripted, x, lengths = (
            torch.jit.load(file),
            torch.randn(5, 2, 3),
            torch.tensor([3, 5]),
        )
        required = dt.reverse_padded_sequence(x, lengths)
        found, filled = scripted(x.clone(), lengths)
        self.assertTrue(all(torch.equal(one, required) for one in found))
        self.assertEqual(filled.tolist(), [5, 4, 3])
        with self.assertRaisesRegex(
            torch.jit.Error, "lengths must have one dimension, the batch size"
        ):
            scripted(x, lengths[:1])

    def test_docstrings_run(self):
        for module, examples in ((dt, 9), (rnn, 4), (rnn_conversion, 4), (packing, 5)):
            result = doctest.testmod(module)
            self.assertEqual((result.failed, result.attempted), (0, examples))
