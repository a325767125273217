"""dml_cuda.jax on arrays that are split over four devices. Skipped, and counted, without JAX."""

import itertools
import unittest

from test_jax import (
    compiled,
    dj,
    gather,
    jax,
)  # first: without JAX it skips this module

import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

shard_map = getattr(jax, "shard_map", None)
if shard_map is None:
    from jax.experimental.shard_map import shard_map


class Partitions(unittest.TestCase):
    def setUp(self):
        devices = jax.devices() if len(jax.devices()) > 1 else jax.devices("cpu")
        self.mesh = Mesh(np.array(devices[:2]), ("d",))
        # On the host, so that they are on no other device than the mesh's.
        self.x = np.random.default_rng(0).standard_normal((4, 6, 8), np.float32)
        self.lengths = np.array([2, 5, 0, 6], np.int32).reshape(4, 1, 1)
        self.required = np.asarray(gather(self.x, self.lengths, 1))

    def test_shard_map(self):
        reverse = lambda x, n: dj.reverse_subsequences(x, n, 1)
        for of_x, of_lengths in ((P("d"), P("d")), (P(None, None, "d"), P())):
            call = shard_map(
                reverse, mesh=self.mesh, in_specs=(of_x, of_lengths), out_specs=of_x
            )
            np.testing.assert_array_equal(
                jax.jit(call)(self.x, self.lengths), self.required
            )
        # Arrays of which one only differs between devices: so does the result.
        call = lambda out: shard_map(
            reverse, mesh=self.mesh, in_specs=(P(), P("d")), out_specs=out
        )(self.x[:2], self.lengths)
        required = np.concatenate(
            [gather(self.x[:2], self.lengths[n : n + 2], 1) for n in (0, 2)]
        )
        np.testing.assert_array_equal(call(P("d")), required)
        with self.assertRaisesRegex(ValueError, "out_specs"):
            call(P())
        call = shard_map(
            lambda: dj.fill_value_sequence(3, 1, 2, "int32"),
            mesh=self.mesh,
            in_specs=(),
            out_specs=P(),
        )
        np.testing.assert_array_equal(jax.jit(call)(), [1, 3, 5])

    def test_automatic_partitions_along_every_axis(self):
        of_lengths = NamedSharding(self.mesh, P())
        specs = (P("d"), False), (P(None, None, "d"), False), (P(None, "d"), True)
        for implementation, (spec, communicates) in itertools.product(
            ("kernel", "xla"), specs
        ):
            program = jax.jit(
                lambda x, n: (
                    dj.reverse_subsequences(x + 1, n, 1, implementation=implementation)
                    * 2
                )
            )
            x = jax.device_put(self.x, NamedSharding(self.mesh, spec))
            lengths = jax.device_put(self.lengths, of_lengths)
            found = program(x, lengths)
            np.testing.assert_array_equal(
                found, np.asarray(gather(self.x + 1, self.lengths, 1) * 2)
            )
            text = program.lower(x, lengths).compile().as_text()
            self.assertEqual(
                any(
                    name in text for name in ("all-gather", "all-to-all", "all-reduce")
                ),
                communicates,
                text,
            )
            if not communicates:
                self.assertTrue(
                    found.sharding.is_equivalent_to(x.sharding, 3), found.sharding
                )
                self.assertIn(
                    f"[{','.join(str(n // 2 if part else n) for n, part in zip((4, 6, 8), (*spec, None, None)))}]",
                    text,
                )

    def test_lengths_that_are_split(self):
        split = NamedSharding(self.mesh, P("d"))
        arrays = [jax.device_put(array, split) for array in (self.x, self.lengths)]
        text = compiled(lambda x, n: dj.reverse_subsequences(x, n, 1), *arrays)
        self.assertNotRegex(text, "all-gather|all-to-all|collective-permute")
        gradient = jax.jit(
            jax.grad(lambda x, n: (dj.reverse_subsequences(x, n, 1) * x).sum())
        )(*arrays)
        np.testing.assert_array_equal(gradient, 2 * self.required)

    @unittest.skipIf(not hasattr(jax, "set_mesh"), "a JAX without set_mesh")
    def test_a_mesh_whose_partitions_are_types_and_one_that_is_partly_manual(self):
        devices = np.array(
            (jax.devices() if len(jax.devices()) > 3 else jax.devices("cpu"))[:4]
        ).reshape(2, 2)
        mesh = Mesh(
            devices, ("a", "b"), axis_types=(jax.sharding.AxisType.Explicit,) * 2
        )
        with jax.set_mesh(mesh):
            for spec in (P("a"), P("a", None, "b"), P(None, "b"), P(("a", "b"))):
                x, lengths = (
                    jax.device_put(np.asarray(array), NamedSharding(mesh, part))
                    for array, part in ((self.x, spec), (self.lengths, P()))
                )
                sums = jax.value_and_grad(
                    lambda x, n: (dj.reverse_subsequences(x, n, 1) * x).sum()
                )
                found = jax.jit(sums)(x, lengths)[1]
                self.assertTrue(
                    found.sharding.is_equivalent_to(x.sharding, 3), found.sharding
                )
                np.testing.assert_array_equal(found, 2 * self.required)
        mesh = Mesh(devices, ("a", "b"))
        call = lambda x, n: dj.reverse_subsequences(x, n, 1)
        call = jax.jit(
            shard_map(
                call,
                mesh=mesh,
                in_specs=(P("a"), P("a")),
                out_specs=P("a"),
                axis_names={"a"},
            )
        )
        x = jax.device_put(np.asarray(self.x), NamedSharding(mesh, P("a", None, "b")))
        np.testing.assert_array_equal(call(x, np.asarray(self.lengths)), self.required)
