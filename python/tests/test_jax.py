"""dml_cuda.jax: results compared with NumPy's, transformations, errors. Skipped, and counted, without JAX.
Tests run on JAX's default device: the GPU, if JAX has one, which REQUIRE_CUDA=1 asks for. `test_jax_interface.py`
compares structures with XLA's header, and `test_jax_graph.py` shows that XLA records calls in CUDA graphs."""

import doctest
import importlib.util
import itertools
import os
import pathlib
import re
import runpy
import unittest
from unittest import mock

import dml_cuda
import numpy as np
from test_numpy import check_errors, model

# For `test_jax_sharding.py`. JAX reads it when it first uses a device.
os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
)
try:
    import jax
except ModuleNotFoundError:
    raise unittest.SkipTest("no JAX") from None
import dml_cuda.jax as dj
from dml_cuda.jax import primitive
import jax.export
import jax.numpy as jnp

if os.environ.get("REQUIRE_CUDA") == "1" and jax.default_backend() == "cpu":
    raise SystemExit("REQUIRE_CUDA=1, and there is no JAX with a GPU")
REVERSE, FILL = "dml_cuda_reverse_subsequences", "dml_cuda_fill_value_sequence"


def gather(x, lengths, axis):
    """The reversal without this library."""
    size = x.shape[axis]
    t = jnp.arange(size).reshape(
        [-1 if d == axis % x.ndim else 1 for d in range(x.ndim)]
    )
    lengths = jnp.minimum(lengths, size)
    return jnp.take_along_axis(x, jnp.where(t < lengths, lengths - 1 - t, t), axis)


def compiled(function, *arguments, **options):
    return jax.jit(function, **options).lower(*arguments).compile().as_text()


class Flax(unittest.TestCase):
    def test_the_patch_of_the_page_gives_flaxs_bits(self):
        if importlib.util.find_spec("flax") is None:
            self.skipTest("no flax")
        from flax import linen, nnx
        import flax.linen.recurrent
        import flax.nnx.nn.recurrent

        page = pathlib.Path(__file__).resolve().parents[2] / "docs" / "jax.md"
        patch = next(
            block
            for block in re.findall(
                r"(?ms)^```python\n(.*?)^```", page.read_text(encoding="utf-8")
            )
            if "flax" in block
        )
        x, lengths = (
            jax.random.normal(jax.random.key(0), (3, 7, 5)),
            jnp.array([4, 7, 1]),
        )
        of_linen = linen.Bidirectional(
            linen.RNN(linen.GRUCell(6)), linen.RNN(linen.GRUCell(6))
        )
        weights = of_linen.init(jax.random.key(1), x)
        cell = lambda seed: nnx.RNN(nnx.GRUCell(5, 6, rngs=nnx.Rngs(seed)))
        of_nnx = nnx.Bidirectional(cell(0), cell(1))
        calls = [
            lambda time_major=time_major, call=call: call(time_major)
            for time_major in (False, True)
            for call in (
                lambda time_major: of_linen.apply(
                    weights,
                    x.swapaxes(0, 1) if time_major else x,
                    seq_lengths=lengths,
                    time_major=time_major,
                ),
                lambda time_major: of_nnx(
                    x.swapaxes(0, 1) if time_major else x,
                    seq_lengths=lengths,
                    time_major=time_major,
                ),
                lambda time_major: linen.RNN(linen.GRUCell(6), reverse=True).apply(
                    {"params": {"cell": weights["params"]["forward_rnn"]["cell"]}}, x
                ),
            )
        ]
        modules = flax.linen.recurrent, flax.nnx.nn.recurrent
        before = [module.flip_sequences for module in modules]
        padded = jnp.where(jnp.arange(7)[:, None] < lengths[:, None, None], x, 0)
        np.testing.assert_array_equal(
            dj.reverse_padded_sequence(padded, lengths),
            before[0](padded, lengths, 1, False),
        )
        required = [call() for call in calls]
        try:
            exec(patch, {})
            with mock.patch.object(
                dj, "reverse_subsequences", wraps=dj.reverse_subsequences
            ) as used:
                found = [call() for call in calls]
        finally:
            for module, function in zip(modules, before):
                module.flip_sequences = function
        self.assertGreaterEqual(used.call_count, 4)
        for k, (one, other) in enumerate(zip(found, required)):
            self.assertEqual(one.shape, other.shape)
            one, other = (
                part.swapaxes(0, 1) if part.shape[0] == 7 else part
                for part in (one, other)
            )
            for row, length in enumerate(
                lengths if k % 3 < 2 else [7] * 3
            ):  # flax also turns the padding around
                self.assertTrue(
                    bool((one[row, :length] == other[row, :length]).all()), (k, row)
                )


class Jax(unittest.TestCase):
    def setUp(self):
        self.x = jax.random.normal(jax.random.key(0), (3, 5, 4))
        self.lengths = jnp.array([2, 5, 0]).reshape(3, 1, 1)

    def same(self, found, required):
        found, required = np.asarray(found), np.asarray(required)
        self.assertEqual((found.shape, found.dtype), (required.shape, required.dtype))
        self.assertEqual(found.tobytes(), required.tobytes())

    def test_every_transform_as_a_gather(self):
        """The programs of test_torch_transforms.py. All numbers are small integers, so that both are exact."""
        x, w = (
            jnp.asarray(np.random.default_rng(k).integers(-4, 5, (3, 5)), jnp.float32)
            for k in range(2)
        )
        lengths = jnp.array([[2], [5], [0]])
        ways = {
            "copying": lambda x: dj.reverse_subsequences(2 * x, lengths, 1),
            "kernel": lambda x: dj.reverse_subsequences(
                2 * x, lengths, 1, implementation="kernel"
            ),
            "xla": lambda x: dj.reverse_subsequences(
                2 * x, lengths, 1, implementation="xla"
            ),
            "padded": lambda x: dj.reverse_padded_sequence(2 * x, lengths[:, 0]),
            "in place": lambda x: dj.reverse_subsequences(
                2 * x, lengths, 1, in_place=True
            ),
        }
        transforms = {
            "value": lambda f: f(x),
            "grad": lambda f: jax.grad(lambda x: (f(x) * w).sum())(x),
            "grad through integers": lambda f: jax.grad(
                lambda x: f(x.astype(int)).sum().astype(float) + x.sum()
            )(x),
            "vjp": lambda f: jax.vjp(f, x)[1](w)[0],
            "jvp": lambda f: jax.jvp(f, (x,), (w,)),
            "jacfwd": lambda f: jax.jacfwd(f)(x),
            "jacrev": lambda f: jax.jacrev(f)(x),
            "hessian": lambda f: jax.hessian(lambda x: (f(x) ** 3 * w).sum())(x),
            "linearize": lambda f: jax.linearize(lambda x: f(x) * x, x)[1](w),
            "linear_transpose": lambda f: jax.linear_transpose(f, x)(w),
            "vmap": lambda f: jax.vmap(f)(jnp.stack([x, w])),
            "vmap of grad": lambda f: jax.vmap(jax.grad(lambda x: (f(x) * w).sum()))(
                jnp.stack([x, w])
            ),
            "vmap of jvp": lambda f: jax.vmap(lambda x, w: jax.jvp(f, (x,), (w,)))(
                jnp.stack([x, w]), jnp.stack([w, x])
            ),
            "grad of vmap": lambda f: jax.grad(lambda xs: (jax.vmap(f)(xs) * w).sum())(
                jnp.stack([x, w])
            ),
            "jvp of grad": lambda f: jax.jvp(
                jax.grad(lambda x: (f(x) ** 2).sum()), (x,), (w,)
            ),
            "jvp of jvp": lambda f: jax.jvp(
                lambda x: jax.jvp(f, (x * x,), (w,))[1] * x, (x,), (w,)
            ),
            "checkpoint": lambda f: jax.grad(
                lambda x: (jax.checkpoint(f)(x) ** 2).sum()
            )(x),
            "scan": lambda f: jax.lax.scan(lambda x, _: (f(x), x), x, None, length=3),
            "grad of scan": lambda f: jax.grad(
                lambda x: jax.lax.scan(lambda x, _: (f(x), None), x, None, length=3)[
                    0
                ].sum()
            )(x),
            "jvp of while_loop": lambda f: jax.jvp(
                lambda x: jax.lax.fori_loop(0, 3, lambda _, x: f(x), x), (x,), (w,)
            ),
            "cond": lambda f: jax.grad(
                lambda x: jax.lax.cond(x[0, 0] > 9, lambda x: x, f, x).sum()
            )(x),
            "map": lambda f: jax.lax.map(f, jnp.stack([x, w])),
            "custom_jvp inside": lambda f: jax.jvp(
                jax.nn.relu, *(((v,)) for v in jax.jvp(f, (x,), (w,)))
            ),
            "eval_shape": lambda f: jnp.zeros(jax.eval_shape(f, x).shape),
            "export": lambda f: jax.export.export(
                jax.jit(f),
                disabled_checks=[jax.export.DisabledSafetyCheck.custom_call(REVERSE)],
            )(x).call(x),
        }
        plain = lambda x: gather(2 * x, lengths, 1)
        for name, transform in transforms.items():
            required = transform(plain)
            for way, reverse in ways.items():
                forms = (
                    [transform]
                    if name == "export"
                    else [transform, lambda f, of=transform: jax.jit(lambda: of(f))()]
                )
                for form in forms:
                    with self.subTest(way, transform=name):
                        jax.tree.map(
                            np.testing.assert_array_equal, form(reverse), required
                        )

    def use_64_bits(self):
        jax.config.update("jax_enable_x64", True)
        self.addCleanup(jax.config.update, "jax_enable_x64", False)

    def test_every_dtype_shape_and_length_type(self):
        self.use_64_bits()
        names = [
            "bool_",
            "int8",
            "uint8",
            "int16",
            "uint16",
            "int32",
            "uint32",
            "int64",
            "uint64",
            "float16",
            "bfloat16",
            "float32",
            "float64",
        ]
        names += [
            "float8_" + kind
            for kind in (
                "e3m4",
                "e4m3",
                "e4m3b11fnuz",
                "e4m3fn",
                "e4m3fnuz",
                "e5m2",
                "e5m2fnuz",
                "e8m0fnu",
            )
        ]
        length_kinds = itertools.cycle(
            [
                "int8",
                "uint8",
                "int16",
                "uint16",
                "int32",
                "uint32",
                "int64",
                "uint64",
                jnp.int4,
            ]
        )
        shapes = [
            ((7,), 0),
            ((3, 4, 5), -3),
            ((1, 1), 0),
            ((5, 3), 1),
            ((2, 3, 4, 5), 2),
            ((2,) * 10, -4),
        ]
        random = np.random.default_rng(0)
        kinds = [
            getattr(jnp, name).dtype
            for name in (*names, "complex64", "complex128")
            if hasattr(jnp, name)
        ]
        self.assertGreater(len(kinds), 20)
        for n, kind in enumerate(kinds):
            for shape, axis in shapes[n % 2 :: 2]:
                x = jnp.asarray(random.integers(0, 100, shape).astype(kind))
                lengths = random.integers(
                    0,
                    6,
                    [1 if d == axis % len(shape) else n for d, n in enumerate(shape)],
                )
                found = dj.reverse_subsequences(
                    x, jnp.asarray(lengths.astype(next(length_kinds))), axis
                )
                self.same(found, model(np.asarray(x), lengths, axis))

    def test_lengths_broadcast_and_may_be_of_the_host(self):
        x = np.asarray(self.x)
        for lengths in (
            2,
            [[[1]], [[2]], [[9]]],
            np.arange(4),
            np.array([[3]]),
            np.full((3, 1, 4), 4),
            1 << 40,
            np.uint64(1 << 63),
        ):
            self.same(dj.reverse_subsequences(self.x, lengths, 1), model(x, lengths, 1))
            self.same(
                jax.jit(
                    lambda x, lengths=lengths: dj.reverse_subsequences(x, lengths, -2)
                )(self.x),
                model(x, lengths, 1),
            )
        for lengths in (
            jnp.int32(3),
            jnp.arange(4),
            jnp.uint8([[[4]], [[0]], [[255]]]),
        ):
            self.same(
                jax.jit(dj.reverse_subsequences, static_argnums=2)(self.x, lengths, 1),
                model(x, lengths, 1),
            )
        self.same(
            jax.jit(lambda x, n: dj.reverse_subsequences(x, [[[n]], [[2]], [[0]]], 1))(
                self.x, 4
            ),
            model(x, [[[4]], [[2]], [[0]]], 1),
        )

    def test_dimensions_that_do_not_fold(self):
        x = jnp.arange(3.0 * 2**10).reshape((2,) * 5 + (3,) + (2,) * 5)
        lengths = jnp.arange(2**5).reshape((2, 1) * 2 + (2, 1) + (1, 2) * 2 + (1,)) % 5
        for implementation in (None, "kernel", "xla"):
            call = lambda x, n: dj.reverse_subsequences(
                x, n, 5, implementation=implementation
            )
            self.same(call(x, lengths), gather(x, lengths, 5))
            self.same(
                jax.jit(jax.vmap(call, (10, None), 10))(x, lengths[..., 0]),
                gather(x, lengths, 5),
            )

    def test_padded_sequences(self):
        lengths = jnp.array([2, 5, 0])
        required = model(np.asarray(self.x), self.lengths, 1)
        self.same(dj.reverse_padded_sequence(self.x, lengths), required)
        swapped = jax.jit(
            lambda x: dj.reverse_padded_sequence(x, lengths, batch_axis=-2, time_axis=0)
        )(self.x.swapaxes(0, 1))
        self.same(swapped.swapaxes(0, 1), required)

    def test_fills(self):
        """dml_cuda.jax has arithmetic of its own for integers of compiled programs, so that XLA can fuse it."""
        self.use_64_bits()
        traced = jax.jit(dj.fill_value_sequence, static_argnums=(0, 3))
        for name in (
            "float32",
            "float16",
            "int8",
            "uint8",
            "int16",
            "uint16",
            "int32",
            "uint32",
            "int64",
            "uint64",
        ):
            is_integer = "int" in name
            most = np.iinfo(name).max if is_integer else 0
            others = (
                ((most, most), (np.int8(-1), most // 3), (0, 1))
                if is_integer
                else ((0.1, np.float32(-0.7)),)
            )
            for start, delta in ((7, -3), *others):
                required = dml_cuda.fill_value_sequence((3, 50), start, delta, name)
                self.same(dj.fill_value_sequence((3, 50), start, delta, name), required)
                self.same(
                    jax.jit(
                        lambda: dj.fill_value_sequence((3, 50), start, delta, name)
                    )(),
                    required,
                )
                if is_integer:
                    signed = [
                        np.array(int(number) % 2**64, np.uint64).astype(np.int64)
                        for number in (start, delta)
                    ]
                    self.same(traced((3, 50), *signed, name), required)
        starts = jax.vmap(lambda start: dj.fill_value_sequence(3, start, 2, "int16"))(
            jnp.array([5, -1])
        )
        self.same(starts, np.int16([[5, 7, 9], [-1, 1, 3]]))
        for shape in ((), (0, 3), 5):
            self.same(
                dj.fill_value_sequence(shape, 4, 1, "int8"),
                dml_cuda.fill_value_sequence(shape, 4, 1, "int8"),
            )

    def test_what_xla_computes_is_what_the_kernels_compute(self):
        """XLA's code and the kernels return the same elements, although dml_cuda.jax computes them for XLA."""
        self.use_64_bits()
        random = np.random.default_rng(1)
        both = [
            jax.jit(
                lambda x, n, kind=kind: dj.reverse_subsequences(
                    x, n, 1, implementation=kind
                )
            )
            for kind in ("kernel", "xla")
        ]
        for name in ("bool_", "uint8", "bfloat16", "float32", "int64", "complex128"):
            for dtype in ("int32", "uint32", "int64", "uint64"):
                x = jnp.asarray(
                    random.integers(0, 100, (6, 9, 5)).astype(getattr(jnp, name))
                )
                lengths = random.integers(0, 10, (6, 1, random.choice([1, 5]))).astype(
                    dtype
                )
                lengths[0], lengths[1] = np.iinfo(dtype).max, 10  # above the size
                self.same(*(call(x, jnp.asarray(lengths)) for call in both))

    def test_which_implementation_none_is(self):
        reverse = lambda options: (
            lambda x, n: dj.reverse_subsequences(x, n, 1, **options)
        )
        by_kernel = lambda *arguments, **options: (
            REVERSE in compiled(reverse(options), *arguments)
        )
        lanes = jnp.array([[[1, 2, 0, 5]]])
        cases = [
            by_kernel(self.x, self.lengths),
            by_kernel(self.x, lanes),
            by_kernel(self.x, self.lengths, in_place=True),
        ]
        self.assertEqual(cases, [False, True, True])
        # An array that a program holds as a constant is like its arguments.
        of_constant = lambda **options: (
            REVERSE in compiled(lambda n: reverse(options)(self.x, n), self.lengths)
        )
        self.assertEqual(
            [of_constant(), of_constant(implementation="kernel")], [False, True]
        )
        chosen = lambda implementation: by_kernel(
            self.x, self.lengths, implementation=implementation
        )
        self.assertEqual([chosen("kernel"), chosen("xla")], [True, False])
        text = compiled(
            lambda x, n: jax.nn.relu(dj.reverse_subsequences(x + 1, n, 1) * 2),
            self.x,
            self.lengths,
        )
        self.assertEqual(text.count(" fusion("), 1, text)
        text = compiled(
            lambda n: dj.fill_value_sequence(9, 0, 1, "int32")[None] < n[:, None],
            jnp.arange(3),
        )
        self.assertEqual((text.count(" fusion("), FILL in text), (1, False), text)
        self.assertIn(
            FILL, compiled(lambda: dj.fill_value_sequence(9, 0, 1, "float32"))
        )
        with mock.patch.object(
            primitive, "_by_xla", side_effect=AssertionError
        ):  # eager calls
            x = self.x * 3
            self.same(
                jax.grad(
                    lambda x: (dj.reverse_subsequences(x, self.lengths, 1) * x).sum()
                )(x),
                2 * gather(x, self.lengths, 1),
            )
            with mock.patch.object(jax.lax, "iota", side_effect=AssertionError):
                self.same(dj.fill_value_sequence(3, 1, 2, "int32"), np.int32([1, 3, 5]))

    def test_empty_arrays(self):
        for shape, axis in [((0,), 0), ((0, 3), 1), ((3, 0), 1), ((2, 0, 3), 0)]:
            found = jax.jit(dj.reverse_subsequences, static_argnums=2)(
                jnp.zeros(shape, "bfloat16"), jnp.int32(1), axis
            )
            self.assertEqual((found.shape, found.dtype), (shape, jnp.bfloat16))

    def test_vmap_of_any_axis_of_either_argument_nested(self):
        x, lengths = (
            jax.random.normal(jax.random.key(1), (6, 6, 6, 6)),
            jnp.arange(36).reshape(6, 6),
        )

        def along(reverse, axis):
            """A length for each element of the dimension after the axis."""
            shape = lambda x: [
                6 if d == (axis + 1) % x.ndim else 1 for d in range(x.ndim)
            ]
            return lambda x, n: reverse(x, n.ravel()[:6].reshape(shape(x)), axis)

        for of_x, of_lengths in [
            (0, None),
            (1, None),
            (3, None),
            (None, 0),
            (None, 1),
            (0, 0),
            (1, 1),
            (3, 0),
            (2, 1),
        ]:
            for axis in range(4 - (of_x is not None)):
                call = lambda reverse: jax.vmap(
                    along(reverse, axis), (of_x, of_lengths)
                )
                self.same(
                    jax.jit(call(dj.reverse_subsequences))(x, lengths),
                    call(gather)(x, lengths),
                )
        wide, twice = jnp.stack([x, 2 * x], 2), jnp.stack([lengths, lengths + 1])
        nested = lambda reverse: jax.vmap(
            jax.vmap(along(reverse, 1), (3, 1)), (2, 0), 1
        )
        self.same(
            jax.jit(nested(dj.reverse_subsequences))(wide, twice),
            nested(gather)(wide, twice),
        )
        of_gradient = lambda reverse: jax.vmap(
            jax.grad(lambda x, n: (along(reverse, 0)(x, n) * x).sum()), (1, None)
        )
        self.same(
            of_gradient(dj.reverse_subsequences)(x, lengths),
            of_gradient(gather)(x, lengths),
        )

    def test_loops_over_lengths(self):
        scanned = lambda reverse: jax.lax.scan(
            lambda x, n: (reverse(x, n, 1), None), self.x, jnp.array([2, 5, 3])
        )[0]
        looped = lambda reverse: jax.lax.while_loop(
            lambda s: s[0] < 4,
            lambda s: (s[0] + 1, reverse(s[1], s[0], 1)),
            (1, self.x),
        )[1]
        for loop in (scanned, looped):
            self.same(
                jax.jit(loop, static_argnums=0)(dj.reverse_subsequences), loop(gather)
            )

    @unittest.skipIf(
        importlib.util.find_spec("flatbuffers") is None,
        "no flatbuffers, which jax.export needs",
    )
    def test_export_with_symbolic_sizes_and_back(self):
        checks = [
            jax.export.DisabledSafetyCheck.custom_call(name) for name in (REVERSE, FILL)
        ]
        program = jax.jit(
            lambda x, n: (
                dj.reverse_subsequences(x, n, 1, implementation="kernel")
                + dj.fill_value_sequence((5, 4), 0.5, 1, "float32")
            )
        )
        batch, size = jax.export.symbolic_shape("batch, t")
        kinds = [
            jax.ShapeDtypeStruct((batch, *kind.shape[1:]), kind.dtype)
            for kind in (self.x, self.lengths)
        ]
        exported = jax.export.export(program, disabled_checks=checks)(
            *kinds
        ).serialize()
        self.same(
            jax.export.deserialize(exported).call(self.x, self.lengths),
            program(self.x, self.lengths),
        )
        with self.assertRaisesRegex(ValueError, REVERSE):
            jax.export.export(program)(*kinds)
        by_xla = jax.jit(
            lambda x, n: (
                dj.reverse_subsequences(x, n, 1)
                + dj.fill_value_sequence((5, 4), 1, 2, "int32")
            )
        )
        exported = jax.export.export(by_xla)(
            *kinds
        ).serialize()  # no custom call, so no check
        self.same(
            jax.export.deserialize(exported).call(self.x, self.lengths),
            by_xla(self.x, self.lengths),
        )
        # Lengths of the host.
        x = jnp.arange(12.0).reshape(2, 6)
        for lengths, required in (
            ([[3], [9]], [[3], [6]]),
            (2, [[2], [2]]),
            (None, [[6], [6]]),
        ):
            call = jax.jit(
                lambda x: dj.reverse_subsequences(
                    x, x.shape[1] if lengths is None else lengths, 1
                )
            )
            exported = jax.export.export(call, disabled_checks=checks)(
                jax.ShapeDtypeStruct((2, size), np.float32)
            )
            np.testing.assert_array_equal(
                exported.call(x), model(np.asarray(x), required, 1)
            )

    def test_what_jax_takes_for_an_array(self):
        class Parameter:
            def __init__(self, value):
                self.value = value

            def __jax_array__(self):
                return self.value

        x, lengths = jnp.arange(12.0).reshape(3, 4), jnp.array([1, 4, 3])
        required = model(np.asarray(x), lengths[:, None], 1)
        for of_x, of_lengths in (
            (np.asarray(x), lengths),
            (Parameter(x), Parameter(lengths)),
            (x, [1, 2**70, 3]),
        ):
            found = dj.reverse_padded_sequence(of_x, of_lengths)
            self.assertIsInstance(found, jax.Array)
            np.testing.assert_array_equal(found, required)
        weak = jnp.broadcast_to(jnp.asarray(2.0), (4,))
        for call in (
            dj.reverse_subsequences,
            jax.jit(dj.reverse_subsequences, static_argnums=2),
            jax.grad(lambda x, n, d: dj.reverse_subsequences(x, n, d).sum()),
        ):
            self.assertEqual(
                (call(weak, 3, 0) * jnp.ones(4, jnp.bfloat16)).dtype,
                jnp.bfloat16,
                "x's weak type is lost",
            )

    def test_in_place_without_a_copy(self):
        in_place = lambda x, n: dj.reverse_subsequences(x, n, 1, in_place=True)
        required = gather(self.x, self.lengths, 1)
        donated = compiled(in_place, self.x, self.lengths, donate_argnums=0)
        self.assertIn("output_to_operand_aliasing={{}: (0, {})}", donated)
        self.assertNotIn(" copy(", donated)
        self.assertIn(" copy(", compiled(in_place, self.x, self.lengths))
        self.assertNotIn(
            "output_to_operand_aliasing",
            compiled(
                lambda x, n: dj.reverse_subsequences(x, n, 1), self.x, self.lengths
            ),
        )
        given = self.x + 0
        self.same(jax.jit(in_place, donate_argnums=0)(given, self.lengths), required)
        self.assertTrue(given.is_deleted())
        # XLA needs x afterwards, and copies it.
        both = jax.jit(lambda x, n: (in_place(x, n), x + 1))(self.x, self.lengths)
        self.same(both[0], required)
        self.same(both[1], self.x + 1)
        self.same(
            jax.grad(lambda x: (in_place(x, self.lengths) * x).sum())(self.x),
            2 * required,
        )

    def test_the_packages_function_goes_here(self):
        found = jax.jit(lambda x, n: dml_cuda.reverse_subsequences(x, n, 1))(
            self.x, self.lengths
        )
        self.same(found, gather(self.x, self.lengths, 1))
        self.same(
            dml_cuda.reverse_subsequences(
                self.x, [[[2]], [[5]], [[0]]], axis=np.int64(-2)
            ),
            found,
        )
        padded = lambda x, n: dml_cuda.reverse_padded_sequence(x, n, batch_first=True)
        for lengths in ([2, 5, 0], self.lengths[:, 0, 0]):
            self.same(padded(self.x, lengths), found)
            self.same(jax.jit(padded)(self.x, jnp.asarray(lengths)), found)

    def test_gru(self):
        with mock.patch("builtins.print") as said:
            runpy.run_path(
                str(
                    pathlib.Path(__file__).parents[1]
                    / "examples/bidirectional_gru_jax.py"
                ),
                run_name="__main__",
            )
        said.assert_called_once()

    def test_docstrings(self):
        results = doctest.testmod(dj)
        self.assertEqual((results.failed, results.attempted), (0, 6))


class Errors(unittest.TestCase):
    def test_errors_while_a_program_is_traced(self):
        x, n = jnp.arange(12.0).reshape(3, 4), jnp.array([[1], [2], [3]])
        reverse, padded, fill = (
            dj.reverse_subsequences,
            dj.reverse_padded_sequence,
            dj.fill_value_sequence,
        )
        traced = "is traced by JAX as .*, but must be a number of Python or NumPy, or an integer for a dtype of integers"
        huge = jax.ShapeDtypeStruct((1 << 16, 1 << 17), np.int8)
        check_errors(
            self,
            [
                (
                    TypeError,
                    "x is a list, but must be an array of JAX or NumPy",
                    lambda: reverse([1, 2], 1, 0),
                ),
                (
                    TypeError,
                    "x is a numpy.ma.MaskedArray, but must be an array of JAX or NumPy",
                    lambda: reverse(np.ma.array([1, 2]), 1, 0),
                ),
                (
                    TypeError,
                    "in_place is a str, but must be a bool",
                    lambda: reverse(x, 1, 0, in_place="no"),
                ),
                (
                    TypeError,
                    "lengths is a list, but must be integers on the host",
                    lambda: reverse(x, [[1], [1, 2], [3]], 1),
                ),
                (
                    ValueError,
                    r"lengths has shape \(4,\), but must have \(3,\), the batch size; with batch_axis=1, time_axis=0 it would be 4",
                    lambda: padded(x, [1, 2, 3, 3]),
                ),
                (
                    TypeError,
                    "x is a .*ShapeDtypeStruct, but must be an array of JAX",
                    lambda: dml_cuda.reverse_subsequences(huge, 1, 0),
                ),
                (
                    TypeError,
                    "x has dtype int4, but must have one whose elements are whole bytes",
                    lambda: reverse(x.astype("int4"), 1, 0),
                ),
                (
                    TypeError,
                    "x has dtype key<fry>, but must have one of numbers or bool: see jax.random.key_data for keys",
                    lambda: reverse(jax.random.split(jax.random.key(0)), 2, 0),
                ),
                (
                    ValueError,
                    "axis is 2, but must be from -2 to 1, the dimensions of x",
                    lambda: jax.jit(lambda x: reverse(x, 1, 2))(x),
                ),
                (
                    TypeError,
                    "lengths has dtype float32, but must have an integer dtype: lengths[.]astype[(]int[)], or",
                    lambda: jax.jit(lambda x: reverse(x, x, 1))(x),
                ),
                (
                    TypeError,
                    "lengths has dtype bool, but must have an integer dtype",
                    lambda: reverse(x, n > 1, 1),
                ),
                (
                    ValueError,
                    r"lengths has shape \(4,\), but must broadcast to \(3, 1\), x's with 1 at axis",
                    lambda: reverse(x, jnp.arange(4), 1),
                ),
                (
                    ValueError,
                    r"lengths has shape \(3,\), but must have 3 dimensions, as x has, .*; reverse_padded_sequence takes",
                    lambda: reverse(jnp.zeros((3, 4, 3)), jnp.arange(3), 1),
                ),
                (
                    ValueError,
                    r"lengths\[1, 0\] is -2, but must be at least 0",
                    lambda: jax.jit(lambda x: reverse(x, [[1], [-2], [3]], 1))(x),
                ),
                (
                    ValueError,
                    "x.shape is .*, but must be at most 4294967295 elements",
                    lambda: jax.eval_shape(lambda x: reverse(x, 1, 0), huge),
                ),
                (
                    ValueError,
                    r"x has shape \(4,\), but must have at least 2",
                    lambda: padded(x[0], n),
                ),
                (
                    ValueError,
                    "batch_axis and time_axis are 1 and -1, but must be two axes of x",
                    lambda: padded(x, n, batch_axis=1, time_axis=-1),
                ),
                (
                    ValueError,
                    "time_axis is 2, but must be from -2 to 1",
                    lambda: padded(x, n, time_axis=2),
                ),
                (
                    TypeError,
                    f"start {traced}",
                    lambda: jax.jit(lambda s: fill(3, s, 1, "float32"))(1.0),
                ),
                (
                    TypeError,
                    r"delta is traced by JAX as .*float32\[\]",
                    lambda: jax.jit(lambda s: fill(3, 1, s, "int32"))(1.0),
                ),
                (
                    TypeError,
                    r"start is traced by JAX as .*int32\[2\]",
                    lambda: jax.jit(lambda s: fill(3, s, 1, "int32"))(jnp.arange(2)),
                ),
                (
                    ValueError,
                    "implementation is 'cudnn', but must be None, 'kernel' or 'xla'",
                    lambda: reverse(x, 1, 0, implementation="cudnn"),
                ),
                (
                    ValueError,
                    "in_place is True, but must be False for the implementation 'xla'",
                    lambda: padded(x, n[:, 0], in_place=True, implementation="xla"),
                ),
                (
                    TypeError,
                    "dtype is bfloat16, but must be float32, float16",
                    lambda: fill(3, 0, 1, jnp.bfloat16),
                ),
                (
                    TypeError,
                    "dtype is int64, but must have at most 32 bits, or jax_enable_x64 must be on",
                    lambda: fill(3, 0, 1, "int64"),
                ),
                (
                    TypeError,
                    "out is given, but must be None for arrays of JAX",
                    lambda: dml_cuda.reverse_subsequences(x, 1, 0, out=x),
                ),
                (
                    TypeError,
                    "stream is given, but must be None for arrays of JAX",
                    lambda: dml_cuda.reverse_subsequences(x, 1, 0, stream=0),
                ),
                (
                    TypeError,
                    "compile_options is given, but must be None for arrays of JAX",
                    lambda: dml_cuda.reverse_subsequences(x, 1, 0, compile_options=""),
                ),
            ],
        )

    @unittest.skipIf(
        jax.default_backend() != "cpu", "a GPU reads no length on the host"
    )
    def test_negative_lengths_on_the_cpu(self):
        for lengths, words in (
            (
                jnp.array([[1], [-2], [3]]),
                r"lengths\[1, 0\] is -2, but must be at least 0",
            ),
            (jnp.int8(-3), r"lengths\[0, 0\] is -3"),
        ):
            with self.assertRaisesRegex((ValueError, RuntimeError), words):
                call = jax.jit(
                    lambda x, n: dj.reverse_subsequences(
                        x, n, 1, implementation="kernel"
                    )
                )
                call(jnp.zeros((3, 4)), lengths).block_until_ready()

    def test_negative_lengths_on_a_gpu_and_of_xla_act_as_the_axis(self):
        x = jnp.arange(12.0).reshape(3, 4)
        for implementation in (
            ("xla",) if jax.default_backend() == "cpu" else ("kernel", "xla")
        ):
            found = dj.reverse_subsequences(
                x, jnp.array([[1], [-2], [3]]), 1, implementation=implementation
            )
            np.testing.assert_array_equal(
                found, model(np.asarray(x), [[1], [4], [3]], 1)
            )

    def test_calls_of_others_that_do_not_fit(self):
        x, n, axis = (
            jnp.zeros((3, 4)),
            jnp.ones((3, 1), np.int32),
            {"axis": np.int64(1)},
        )
        kind = jax.ShapeDtypeStruct((3, 4), np.float32)
        bits = {"start": np.int64(0), "delta": np.int64(0)}
        for words, name, result, arguments, attributes in [
            (
                "the call has 1 arguments and 1 results, but must have 2 and 1",
                REVERSE,
                kind,
                (x,),
                axis,
            ),
            (
                "the call must have an attribute `axis` of type i64",
                REVERSE,
                kind,
                (x, n),
                {},
            ),
            (
                "the call must have an attribute `axis` of type i64",
                REVERSE,
                kind,
                (x, n),
                {"axis": "1"},
            ),
            (
                "axis is 2, but must be from -2 to 1, the dimensions of x",
                REVERSE,
                kind,
                (x, n),
                {"axis": np.int64(2)},
            ),
            (
                "lengths has type FLOAT32, but must have integers of 32 or 64 bits",
                REVERSE,
                kind,
                (x, x),
                axis,
            ),
            (
                r"the result has shape \[4, 3\], but must have x's \[3, 4\]",
                REVERSE,
                jax.ShapeDtypeStruct((4, 3), np.float32),
                (x, n),
                axis,
            ),
            (
                r"lengths has shape \[3, 4\], but must broadcast to \[3, 1\], x's with 1 at axis",
                REVERSE,
                kind,
                (x, jnp.ones((3, 4), np.int32)),
                axis,
            ),
            (
                "the call has 1 arguments and 1 results, but must have 0 and 1",
                FILL,
                kind,
                (x,),
                bits,
            ),
            (
                "the result has XLA's type 1, but must have float32, float16",
                FILL,
                jax.ShapeDtypeStruct((3,), bool),
                (),
                bits,
            ),
        ]:
            with (
                self.subTest(words),
                self.assertRaisesRegex((ValueError, RuntimeError), words),
            ):
                call = jax.ffi.ffi_call(name, result)
                compiled = jax.jit(
                    lambda *arguments, call=call, given=attributes: call(
                        *arguments, **given
                    )
                )
                jax.block_until_ready(compiled(*arguments))
