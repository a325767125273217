"""Programs that Inductor compiles, with reversals and fills among other operators: right, and in as few kernels as the
same program with a gather."""

import re
import tempfile
import unittest
from unittest import mock

from with_torch import (
    CUDA,
    Module,
    dt,
    model,
    same,
    torch,
)  # first: without PyTorch it skips this module

import dml_cuda.torch.inductor as inductor
from programs import run_python
from torch._inductor.utils import run_and_get_code

DEVICE = "cuda" if CUDA else "cpu"


def gather(x, lengths, dim):
    """The result of `model`, where a negative length acts as the size."""
    lengths = torch.as_tensor(lengths, device=x.device).to(torch.int64)
    return model(x, torch.where(lengths < 0, x.shape[dim], lengths), dim)


def tensor(*shape):
    """Small integers, so that sums and products are exact."""
    return torch.randint(-4, 5, shape, device=DEVICE).float()


def lengths(*shape):
    return torch.randint(0, 8, shape, device=DEVICE)


def copied(x, y):
    x = x * 2
    x.copy_(y)
    return x


B, LANES = (3, 1, 1), (3, 1, 5)  # of [3, 7, 5]
# A program of r, x and lengths n; the shape of the lengths; how many kernels of Inductor there are, and of ours.
PROGRAMS = {
    "alone": (lambda r, x, n: r(x, n, 1), B, 0, 1),
    "before": (lambda r, x, n: r(x + 1, n, 1), B, 1, 0),
    "after": (lambda r, x, n: (r(x, n, 1) * 2).relu(), B, 1, 0),
    "both sides": (lambda r, x, n: r(x + 1, n, 1) * 2 - 1, B, 1, 0),
    "residual": (lambda r, x, n: x + r(x, n, 1), B, 1, 0),
    "both directions": (lambda r, x, n: torch.cat((x * 2, r(x * 3, n, 1)), 2), B, 1, 0),
    "two uses": (lambda r, x, n: (r(x, n, 1) + 1, r(x, n, 1) * 2), B, 1, 0),
    "reduction": (lambda r, x, n: r(x, n, 1).sum(2), B, 1, 0),
    "maximum": (lambda r, x, n: r(x, n, 1).amax((0, 2)), B, 1, 0),
    "two reversals": (lambda r, x, n: r(r(x * 3, n, 1) + 1, n[:1], 1), B, 1, 0),
    "along another": (lambda r, x, n: r(r(x, n, 1), n[0], 0), B, 1, 0),
    "embedding": (
        lambda r, x, n: r(
            torch.nn.functional.embedding(n.view(3, 1).expand(3, 7), x[0]), n, 1
        ),
        B,
        1,
        0,
    ),
    "transposed": (lambda r, x, n: r(x.transpose(1, 2), n, 2) + 1, B, 1, 0),
    "views": (
        lambda r, x, n: (
            r(x.reshape(3, 35)[:, 3:].unsqueeze(1), n, 2).squeeze(1).view(8, 12) * 2
        ),
        B,
        1,
        0,
    ),
    "time first": (
        lambda r, x, n: (
            r(x.transpose(0, 1).contiguous(), n[:, :, 0], 0).transpose(0, 1) * 3
        ),
        B,
        1,
        0,
    ),
    "channels last": (
        lambda r, x, n: (
            r(
                x[..., None].contiguous(memory_format=torch.channels_last),
                n[..., None],
                1,
            )
            + 1
        ),
        B,
        1,
        0,
    ),
    "lanes": (lambda r, x, n: r(x * 2, n, 1) + 1, LANES, 1, 0),
    "one length": (lambda r, x, n: r(x, n, -2) + 1, (), 1, 0),
    "fewer dimensions": (lambda r, x, n: r(x, n[0], 1) + 1, B, 1, 0),
    "expanded lengths": (lambda r, x, n: r(x, n.expand(3, 1, 5), 1) + 1, B, 1, 0),
    "computed lengths": (lambda r, x, n: r(x, (n * 3 - 4) % 9, 1) + 1, B, 1, 0),
    "counted lengths": (
        lambda r, x, n: r(x, (x > 0).sum(1, keepdim=True), 1) + 1,
        B,
        None,
        0,
    ),
    "numbers": (lambda r, x, n: r(x, [[[2]], [[0]], [[9]]], 1) + 1, B, 1, 0),
    "product": (lambda r, x, n: r(x, n, 1) @ x.transpose(1, 2), B, 0, 1),
    "copied": (lambda r, x, n: copied(x, r(x, n, 1)) + 1, B, 1, 0),
    "no elements": (lambda r, x, n: r(x[:, :0] + 1, n, 1) * 2, B, 0, 0),
    "negative": (lambda r, x, n: r(x, n - 4, 1) + 1, B, 1, 0),
    "negative, alone": (lambda r, x, n: r(x, n - 4, 1), B, None, 1),
    "long": (lambda r, x, n: r(x, n << 40, 1) + 1, B, 1, 0),
}
MANY = (
    "both sides",
    "residual",
    "alone",
)  # of every dtype, with dynamic shapes, in modes
ALONE_ON_THE_CPU = (
    1  # a kernel for the lengths, since there the operator refuses negative ones
)


def compiled(f, *arguments, **options):
    """The results of f, and how many kernels its code calls: of Inductor's, of ours."""
    torch._dynamo.reset()
    options = {"fullgraph": True, **options}
    with torch._inductor.config.patch(force_disable_caches=True):
        found, codes = run_and_get_code(torch.compile(f, **options), *arguments)
    calls = codes[-1][codes[-1].index("async_compile.wait(") :]
    return (
        found,
        len(re.findall(r"^ +(?:cpp_fused\w*\(|triton_\w+\.run\()", calls, re.M)),
        len(re.findall(r"torch\.ops\.dml_cuda\.\w+\.default\(", calls)),
    )


class Compiled(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def check(self, f, x, n, kernels=None, ours=None, exact=True, **options):
        found, *counts = compiled(
            lambda x, n: f(dt.reverse_subsequences, x, n), x, n, **options
        )
        # Inductor may compute more precisely than the operators in turn.
        required = (
            f(gather, x, n)
            if exact
            else compiled(lambda x, n: f(gather, x, n), x, n, **options)[0]
        )
        of = lambda results: results if isinstance(results, tuple) else (results,)
        for got, want in zip(of(found), of(required)):
            same(got, want)
        more = ALONE_ON_THE_CPU if ours and n.dtype.is_signed and not CUDA else 0
        if kernels is not None:
            self.assertEqual(counts, [kernels + more, ours])
        elif ours is not None:
            self.assertEqual(counts[1], ours)

    def test_programs(self):
        for name, (f, shape, kernels, ours) in PROGRAMS.items():
            with self.subTest(name):
                self.check(f, tensor(3, 7, 5), lengths(*shape), kernels, ours)

    def test_every_dtype_of_x_and_of_lengths(self):
        dtypes = [
            "uint8",
            "int8",
            "int16",
            "int32",
            "int64",
            "float16",
            "bfloat16",
            "float32",
            "float64",
            "bool",
            "complex64",
            "uint16",
            "uint32",
        ]
        of_lengths = ["int32", "int64", "uint32", "uint64", "uint8", "int16"]
        many = lambda r, x, n: tuple(PROGRAMS[name][0](r, x, n) for name in MANY)
        # PyTorch adds no such tensors.
        only_moved = lambda r, x, n: (
            r(x[:, 1:], n, 1).to(torch.int64) + 1,
            r(x, n, 1).to(torch.float32),
            r(x, n, 1),
        )
        for k, name in enumerate(dtypes):
            x = tensor(3, 7, 5).to(getattr(torch, name))
            n = lengths(3, 1, 1).to(getattr(torch, of_lengths[k % len(of_lengths)]))
            f = only_moved if name in ("bool", "uint16", "uint32") else many
            with self.subTest(name):
                self.check(
                    f,
                    x,
                    n,
                    ours=3 if name.startswith("complex") else 1,
                    exact=f is many,
                )

    def test_dynamic_shapes(self):
        for name in (*MANY, "reduction", "lanes", "both directions"):
            f, shape, *_ = PROGRAMS[name]
            torch._dynamo.reset()
            dynamic = torch.compile(
                lambda x, n: f(dt.reverse_subsequences, x, n),
                fullgraph=True,
                dynamic=True,
            )
            rows = torch.compile(
                lambda x, n: f(dt.reverse_subsequences, x, n), fullgraph=True
            )
            for t in (7, 4, 30):
                x, n = tensor(3, t, 5), lengths(*shape)
                torch._dynamo.mark_dynamic(
                    x, 1
                )  # rows of a known size, which are fused
                with self.subTest(name, t=t):
                    (
                        same(rows(x, n), f(gather, x, n)),
                        same(dynamic(x, n), f(gather, x, n)),
                    )

    def test_training(self):
        """The backward pass of a reversal is one, and lowered alike."""
        for name in (
            "both sides",
            "residual",
            "both directions",
            "reduction",
            "two reversals",
            "lanes",
            "transposed",
        ):
            f, shape, *_ = PROGRAMS[name]
            x, n = tensor(3, 7, 5).requires_grad_(), lengths(*shape)
            value, _, ours = compiled(
                lambda x, n: (f(dt.reverse_subsequences, x, n) ** 2).sum(), x, n
            )
            required = (f(gather, x, n) ** 2).sum()
            with self.subTest(name):
                same(value.detach(), required.detach()), self.assertEqual(ours, 0)
                same(*(torch.autograd.grad(of, x)[0] for of in (value, required)))

    def test_modes_autocast_and_max_autotune(self):
        many = lambda r, x, n: tuple(PROGRAMS[name][0](r, x, n) for name in MANY)
        for mode in ("reduce-overhead", "max-autotune"):
            with self.subTest(mode):
                # On a GPU these modes record the calls in CUDA graphs, where they are not counted.
                self.check(
                    many,
                    tensor(3, 7, 5),
                    lengths(3, 1, 1),
                    ours=None if CUDA else 1,
                    mode=mode,
                )
        with self.subTest("autocast"), torch.autocast(DEVICE, torch.bfloat16):
            self.check(
                lambda r, x, n: many(r, x @ x.transpose(1, 2), n),
                tensor(3, 7, 5),
                lengths(3, 1, 1),
                exact=CUDA,
            )

    def test_fills(self):
        """dml_cuda.torch.inductor has arithmetic of its own here as well. Eager calls are the kernels."""
        n = lengths(6)
        for name in (
            "int8",
            "uint8",
            "int16",
            "int32",
            "int64",
            "uint64",
            "float32",
            "float16",
        ):
            dtype, integers = getattr(torch, name), "int" in name
            large = 1 << 20 if name.endswith("64") else 90
            numbers = (
                ((0, 1), (7, -3), (100, large), (-1, 1))
                if integers
                else ((0, 1), (0.1, -0.7))
            )
            fills = lambda n: [
                dt.fill_value_sequence((3, 50), start, delta, dtype, n.device)
                for start, delta in numbers
            ]
            uses = lambda n: [
                use
                for fill in fills(n)
                for use in (
                    fill.to(torch.float64) + n[:1],
                    fill[1:].view(-1).to(torch.int64) + 1,
                )
            ]
            for f, kernels in (
                (uses, 0 if integers else len(numbers)),
                (fills, len(numbers)),
            ):
                found, _, ours = compiled(f, n)
                with self.subTest(name):
                    for got, required in zip(found, f(n)):
                        same(got, required)
                    self.assertEqual(ours, kernels)
        # PyTorch 2.8's code for what is left of vectors is wrong for overflows on some processors.
        count = 8 if torch.__version__.startswith("2.8.") else 9
        wide = lambda n: (
            dt.fill_value_sequence(count, -(2**62), 2**61 + 1, torch.int64, n.device)
            * 2
        )
        same(compiled(wide, n)[0], wide(n))
        mask = lambda n: (
            dt.fill_value_sequence((9,), 0, 1, torch.int64, n.device)[None] < n[:, None]
        )
        found, *counts = compiled(mask, n)
        same(found, mask(n)), self.assertEqual(counts, [1, 0])
        symbols = lambda n: (
            dt.fill_value_sequence(
                (n.shape[0], 2), n.shape[0], -n.shape[0], torch.int64, n.device
            )
            + 1
        )
        same(compiled(symbols, n, dynamic=True)[0], symbols(n))
        wrong = torch.compile(
            lambda n: dt.fill_value_sequence(3, 300, 1, torch.uint8, n.device) + 1
        )
        with self.assertRaisesRegex(
            Exception, "start is 300, but must be from -128 to 255"
        ):
            wrong(n)

    def test_in_place(self):
        """An operator that writes over its input, alone and between other operators."""
        f = lambda x, n: dt.reverse_subsequences_(x * 2, n, 1) + 1
        x, n = tensor(3, 7, 5), lengths(3, 1, 1)
        found, kernels, ours = compiled(f, x, n)
        same(found, f(x, n)), self.assertEqual((kernels, ours), (2, 1))

    def test_package_of_aotinductor(self):
        f = Module(lambda x, n: dt.reverse_subsequences(x + 1, n, 1) * 2)
        x, n = tensor(3, 7, 5), lengths(3, 1, 1)
        with tempfile.TemporaryDirectory() as folder:
            program = torch.export.export(f, (x, n))
            package = torch._inductor.aoti_compile_and_package(
                program, package_path=f"{folder}/model.pt2"
            )
            run = f"import sys, torch; print(torch._inductor.aoti_load_package(sys.argv[1])(*torch.load(sys.argv[2])).tolist())"
            torch.save((x, n), f"{folder}/inputs.pt")
            done = run_python("-c", run, package, f"{folder}/inputs.pt")
            if (
                done.returncode < 0 or "Error" in done.stderr
            ):  # a version that loads no package of its own, either
                plain = torch._inductor.aoti_compile_and_package(
                    torch.export.export(Module(lambda x, n: x.flip(1)), (x, n)),
                    package_path=f"{folder}/plain.pt2",
                )
                of_flip = run_python("-c", run, plain, f"{folder}/inputs.pt")
                self.assertNotEqual(of_flip.returncode, 0, done.stderr)
                self.skipTest("a PyTorch that loads no package")
        self.assertEqual(done.stdout.strip(), str(f(x, n).tolist()))

    def test_the_rule(self):
        """The rule sees what it says it does."""
        seen, rule = [], inductor.is_fused
        x, whole = (
            torch.zeros(2, 1500, 1025, device=DEVICE),
            torch.zeros(2, 1500, 1024, device=DEVICE),
        )
        n = torch.ones(2, 1, 1, dtype=torch.int64, device=DEVICE)
        r = dt.reverse_subsequences
        with mock.patch.object(
            inductor,
            "is_fused",
            lambda *inputs: (seen.append(inputs), rule(*inputs))[1],
        ):
            for f, x, n in [
                (lambda x, n: r(x, n, 1), x, n),
                (lambda x, n: r(x, n, 1) + 1, x, n.expand(2, 1, 1025)),
                (lambda x, n: r(x, n, 1) + 1, x, n.expand(2, 1, 1025).contiguous()),
                (
                    lambda x, n: x + r(x, n, 1),
                    whole.half(),
                    n.expand(2, 1, 1024).contiguous(),
                ),
                (
                    lambda x, n: r(x + 1, n, 1).sum(2),
                    x[:, :5],
                    n.expand(2, 1, 1025).contiguous(),
                ),
                (
                    lambda x, n: r(x.transpose(1, 2), n, 2) * 2,
                    x,
                    n.expand(2, 1025, 1).contiguous(),
                ),
                (
                    lambda x, n: r(x * 2, n, 2).sum(),
                    x,
                    n.expand(2, 1500, 1).contiguous(),
                ),
            ]:
                compiled(f, x, n)
        self.assertEqual(
            seen,
            [
                (4, False, False, False, 0),
                (4, False, False, False, 1),
                (4, True, False, False, 1),
                (2, True, True, False, 2),
                (4, True, False, True, 2),
                (4, True, False, False, 1),
                (4, False, False, False, 2),
            ],
        )
        self.assertFalse(rule(4, False, None, False, 2))
        self.assertEqual(
            [
                width * sides
                for width in (1, 2, 4, 8)
                for sides in (1, 2)
                if not rule(width, True, True, False, sides)
            ],
            [1, 2, 2, 4, 4],
        )
        self.assertEqual(
            [
                width * sides
                for width in (1, 2, 4, 8)
                for sides in (1, 2)
                if not rule(width, True, False, False, sides)
            ],
            [1, 2, 2],
        )

    def test_a_version_whose_interfaces_differ(self):
        for module, name in (
            ("lowering", "register_lowering"),
            ("ir", "Pointwise"),
            ("virtualized", "ops"),
        ):
            program = f"""
import logging, torch, torch._inductor.lowering, torch._inductor.ir, torch._inductor.virtualized, dml_cuda.torch as dt
import dml_cuda.torch.inductor as inductor
class Other:
    def __getattr__(self, name): raise AttributeError(name)
from unittest import mock
logging.getLogger("dml_cuda").setLevel(logging.DEBUG), logging.basicConfig(format="%(name)s %(message)s")
with mock.patch.object(torch._inductor.{module}, "{name}", Other()):
    inductor.register()
f = lambda x: dt.reverse_subsequences(x + 1, 3, 1) * 2
x = torch.arange(12.0).reshape(2, 6)
print(torch.equal(torch.compile(f)(x), f(x)))
"""
            done = run_python(
                "-c", program, TORCHINDUCTOR_FORCE_DISABLE_CACHES="1", CI="1"
            )
            self.assertEqual(done.stdout, "True\n", done.stderr)
            self.assertRegex(
                done.stderr,
                r"dml_cuda.torch.inductor (O|An o)perators? stays? (operators|one) in PyTorch",
            )
