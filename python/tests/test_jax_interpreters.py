"""dml_cuda.jax in the interpreters of JAX that `jnp.flip` runs in, besides the transformations of `test_jax.py`: each
must give what it gives for a gather. Skipped, and counted, without JAX."""

import importlib.util
import unittest

from programs import run_python
from test_jax import (
    REVERSE,
    dj,
    gather,
    jax,
    jnp,
)  # first: without JAX it skips this module

import jax.export
import numpy as np
from jax.experimental import checkify, jet, sparse
from jax.experimental import pallas as pl
from jax.experimental.ode import odeint
from jax.experimental import roofline
from jax.experimental.xla_metadata import set_xla_metadata
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

shard_map = getattr(jax, "shard_map", None)
if shard_map is None:
    from jax.experimental.shard_map import shard_map

X, W = (
    jnp.asarray(np.random.default_rng(k).integers(-4, 5, (4, 6)), jnp.float32)
    for k in range(2)
)
BOTH = jnp.stack([X, W])
LENGTHS = jnp.array([[3], [6], [0], [5]])


def checked(f):
    error, found = jax.jit(checkify.checkify(f, errors=checkify.all_checks))(X)
    error.throw()
    return found


def with_rules(f):
    """f inside of functions that have their own rules for derivatives and vmap."""
    forward, backward, batched = (
        jax.custom_jvp(f),
        jax.custom_vjp(f),
        jax.custom_batching.custom_vmap(f),
    )
    forward.defjvp(lambda x, tangents: (f(*x), f(*tangents)))
    backward.defvjp(lambda x: (f(x), None), lambda _, gradient: (f(gradient),))
    batched.def_vmap(lambda _, is_batched, x: (jax.vmap(f)(x), *is_batched))
    gradient = lambda function: jax.grad(lambda x: (function(x) ** 2 * W).sum())(X)
    return (
        gradient(forward),
        jax.jvp(forward, (X,), (W,)),
        gradient(backward),
        jax.vmap(batched)(BOTH),
    )


def exported(f):
    """The second derivative of an exported program that was bytes."""
    checks = [jax.export.DisabledSafetyCheck.custom_call(REVERSE)]
    program = jax.export.export(jax.jit(lambda x: f(x) ** 3), disabled_checks=checks)(
        X
    ).serialize(vjp_order=2)
    call = jax.export.deserialize(program).call
    return jax.grad(lambda x: (jax.grad(lambda x: (call(x) * W).sum())(x) * W).sum())(X)


def of_jaxpr(f):
    program = jax.make_jaxpr(f)(X)
    program.pretty_print(source_info=True, name_stack=True)
    return jax.core.eval_jaxpr(program.jaxpr, program.consts, X)


def in_references(f):
    def call(x):
        array = jax.new_ref(x)
        array[...] = f(array[...])
        return array[...]

    return jax.jit(call)(X)


def with_option(option, f):
    with option:
        return jax.jit(f)(X)


def split(f):
    devices = (jax.devices() if len(jax.devices()) > 1 else jax.devices("cpu"))[:2]
    call = shard_map(
        lambda x: f(x[0])[None],
        mesh=Mesh(np.array(devices), ("d",)),
        in_specs=P("d"),
        out_specs=P("d"),
    )
    return jax.jit(call)(np.asarray(BOTH)), jax.pmap(f, devices=devices)(
        np.asarray(BOTH)
    )


INTERPRETERS = {
    "jet": lambda f: jet.jet(lambda x: f(x**3) * x, (X,), ((W, X, W),)),
    "jet of jit": lambda f: jet.jet(jax.jit(lambda x: f(x * x)), (X,), ((W, X),)),
    "jet of grad": lambda f: jet.jet(
        jax.grad(lambda x: (f(x) ** 3).sum()), (X,), ((W, X),)
    ),
    "grad of jet": lambda f: jax.grad(
        lambda x: jet.jet(lambda x: f(x**3), (x,), ((W, x),))[1][1].sum()
    )(X),
    "jet of vmap": lambda f: jet.jet(
        jax.vmap(lambda x: f(x**2)), (BOTH,), ((BOTH, BOTH),)
    ),
    "vmap of jet": lambda f: jax.jit(
        jax.vmap(lambda x: jet.jet(lambda x: f(x**2), (x,), ((W, x),)))
    )(BOTH),
    "linear_transpose of scan": lambda f: jax.linear_transpose(
        lambda x: jax.lax.scan(lambda x, _: (f(x), None), x, None, length=3)[0], X
    )(W),
    "complex numbers": lambda f: (
        jax.vjp(f, X + 1j * W)[1](W + 2j * X),
        jax.jvp(f, (X + 1j,), (W * 1j,)),
        jax.linear_transpose(f, X + 1j)(W + 1j),
    ),
    "vmap with a named axis": lambda f: jax.vmap(
        lambda x: f(x) + jax.lax.psum(f(x), "i"), axis_name="i"
    )(BOTH),
    "rules of its own": with_rules,
    "sequential_vmap": lambda f: jax.vmap(jax.custom_batching.sequential_vmap(f))(BOTH),
    "checkpoint with a policy": lambda f: jax.grad(
        lambda x: jax.checkpoint(
            lambda x: (f(x) ** 3).sum(), policy=jax.checkpoint_policies.dots_saveable
        )(x)
    )(X),
    "linearize of checkpoint": lambda f: jax.linearize(
        jax.checkpoint(lambda x: f(x) * x), X
    )[1](W),
    "checkify": checked,
    "jaxpr": of_jaxpr,
    "closure_convert": lambda f: (lambda call, constants: call(X, *constants))(
        *jax.closure_convert(f, X)
    ),
    "export": exported,
    "shard_map, pmap": split,
    "odeint": lambda f: jax.grad(
        lambda x: odeint(lambda y, t: f(y) * 0, x, jnp.array([0.0, 1.0]))[-1].sum()
    )(X),
    "custom_linear_solve": lambda f: jax.grad(
        lambda x: jax.lax.custom_linear_solve(
            f, x, lambda _, x: f(x), lambda _, x: f(x)
        ).sum()
    )(X),
    "debug_nans": lambda f: with_option(jax.debug_nans(True), f),
    "debug_key_reuse": lambda f: with_option(jax.debug_key_reuse(True), f),
    "xla_metadata": lambda f: with_option(set_xla_metadata(a="b"), f),
    "disable_jit": lambda f: with_option(
        jax.disable_jit(), jax.grad(lambda x: (f(x) ** 3).sum())
    ),
    "pure_callback": lambda f: jax.jit(
        lambda x: jax.pure_callback(lambda x: np.asarray(f(x)), x, x)
    )(X),
}
if hasattr(jax, "new_ref"):
    INTERPRETERS["references"] = in_references

WAYS = {
    "kernel": lambda x: dj.reverse_subsequences(x, LENGTHS, 1, implementation="kernel"),
    "xla": lambda x: dj.reverse_subsequences(x, LENGTHS, 1, implementation="xla"),
}


class Interpreters(unittest.TestCase):
    def test_they_run_the_reversal_as_they_run_a_gather(self):
        for name, interpret in INTERPRETERS.items():
            required = interpret(lambda x: gather(x, LENGTHS, 1))
            for way, reverse in WAYS.items():
                with self.subTest(way, interpreter=name):
                    jax.tree.map(
                        np.testing.assert_array_equal, interpret(reverse), required
                    )

    def test_sparse_arrays(self):
        x = X * (X > 0)
        deep = jnp.stack([x, W * x, x + W], 2)
        of_lanes = jnp.array([[[3, 0, 9]], [[6, 6, 1]], [[1, 2, 3]], [[0, 5, 4]]])
        for stored in (
            {},
            {"n_batch": 1},
            {"n_dense": 1},
            {"nse": 23},
            {"n_batch": 1, "n_dense": 1},
        ):
            given, lengths = (deep, of_lanes) if len(stored) == 2 else (x, LENGTHS)
            for n, axis in (
                (lengths, 1),
                (jnp.int32(-3), 0),
                (jnp.uint8(2), given.ndim - 1),
            ):
                with self.subTest(stored=stored, axis=axis):
                    call = sparse.sparsify(
                        lambda x, n=n, axis=axis: dj.reverse_subsequences(x, n, axis)
                    )
                    found = call(sparse.BCOO.fromdense(given, **stored))
                    self.assertIsInstance(found, sparse.BCOO)
                    np.testing.assert_array_equal(
                        found.todense(), gather(given, jnp.where(n < 0, 9, n), axis)
                    )
        for way, reverse in WAYS.items():
            call = jax.jit(sparse.sparsify(reverse))
            gradient = sparse.grad(lambda x, call=call: (call(x).todense() * W).sum())
            found = gradient(sparse.BCOO.fromdense(x)).todense()
            np.testing.assert_array_equal(found, gather(W, LENGTHS, 1) * (x != 0), way)

    def test_kernels_of_pallas_that_are_interpreted(self):
        for options in (
            {},
            {"implementation": "kernel"},
            {"implementation": "xla"},
            {"in_place": True},
        ):

            def kernel(x, n, out, options=options):
                out[...] = dj.reverse_subsequences(x[...], n[...], 1, **options)

            found = pl.pallas_call(
                kernel, out_shape=jax.ShapeDtypeStruct(X.shape, X.dtype), interpret=True
            )(X, LENGTHS)
            np.testing.assert_array_equal(found, gather(X, LENGTHS, 1))

    def test_roofline_counts_bytes(self):
        for way, reverse in WAYS.items():
            kind, found = roofline.roofline(lambda x, reverse=reverse: reverse(x))(X)
            self.assertEqual(
                (kind.shape, found.unfused_hbm_bytes),
                (X.shape, 2 * X.nbytes + LENGTHS.nbytes),
                way,
            )

    @unittest.skipIf(importlib.util.find_spec("tensorflow") is None, "no TensorFlow")
    def test_jax2tf(self):
        from jax.experimental import jax2tf

        call = jax2tf.convert(
            jax.value_and_grad(lambda x: (WAYS["xla"](x) ** 3 * W).sum())
        )
        jax.tree.map(
            np.testing.assert_array_equal,
            [part.numpy() for part in call(np.asarray(X))],
            list(
                jax.value_and_grad(lambda x: (gather(x, LENGTHS, 1) ** 3 * W).sum())(X)
            ),
        )

    def test_importing_loads_no_interpreter_that_takes_long(self):
        program = "import sys, dml_cuda.jax; print([name for name in sys.modules if 'sparse' in name and 'experimental' in name])"
        self.assertEqual(run_python("-c", program).stdout, "[]\n")
