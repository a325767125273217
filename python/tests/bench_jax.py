"""Compares dml_cuda.jax on a GPU with the library's own dispatch and with a jitted gather. Checks every result. Prints
Markdown: the times, and the goals last. Exits with 1 if a goal is missed."""

import ctypes
import functools
import math
import os
import pathlib
import statistics
import sys
import tempfile
import time

import dml_cuda
import dml_cuda.jax as dj
import jax
import jax.numpy as jnp
import numpy as np
from dml_cuda import _library as lib

CHAIN, INPUTS = 64, 64  # reversals in a program: of each other's results, or of an input each
SHAPES = [(64, 2048, 1024), (64, 512, 1024), (16384, 8192), (32, 128, 512)]


def gather(x, lengths, axis=1):
    t = jnp.arange(x.shape[axis]).reshape([-1 if d == axis else 1 for d in range(x.ndim)])
    return jnp.take_along_axis(x, jnp.where(t < lengths, lengths - 1 - t, t), axis)


def wall(call, most=0.15, rounds=5):
    """Microseconds of a call, of many that are queued one after the other. Each result is freed before the next call,
    which gets its memory."""

    def seconds(n):
        start = time.perf_counter()
        for _ in range(n):
            last = None  # noqa: F841
            last = call()
        jax.block_until_ready(last)
        return (time.perf_counter() - start) / n

    seconds(1)
    n = max(3, min(2000, int(most / rounds / seconds(3))))
    return statistics.median(seconds(n) for _ in range(rounds)) * 1e6


def on_the_device(call):
    """Microseconds from the start of a reversal's kernel to the start of the next, as XLA's profiler has them."""
    jax.block_until_ready(call())
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            for _ in range(4):
                jax.block_until_ready(call())
        (profile,) = pathlib.Path(folder).glob("**/*.xplane.pb")
        planes = jax.profiler.ProfileData.from_file(str(profile)).planes
        starts = sorted(event.start_ns for plane in planes if "GPU" in plane.name for line in plane.lines for event in line.events if "reverse" in event.name)
    assert len(starts) == 4 * CHAIN, f"the profile has {len(starts)} reversals"
    return statistics.median(after - before for before, after in zip(starts, starts[1:])) / 1e3


class Own:
    """The library's own dispatch: a CUDA graph of reversals, each of the result of the one before."""

    def __init__(self):
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), 0)
        self.call("cuCtxSetCurrent", self.context)

    def call(self, name, *arguments):
        code = getattr(self.driver, name)(*arguments)
        if code:
            raise RuntimeError(f"{name} failed with {code}")

    def made(self, name, *arguments):
        handle = ctypes.c_void_p()
        self.call(name, ctypes.byref(handle), *arguments)
        return handle

    def time(self, shape, width, lengths, n):
        size = math.prod(shape) * width
        memory = [self.made("cuMemAlloc_v2", ctypes.c_size_t(size)) for _ in range(3)]  # the input, and two that take turns
        of_lengths = self.made("cuMemAlloc_v2", ctypes.c_size_t(lengths.nbytes))
        self.call("cuMemcpyHtoD_v2", of_lengths, ctypes.c_void_p(lengths.ctypes.data), ctypes.c_size_t(lengths.nbytes))
        for address in memory:
            self.call("cuMemsetD8_v2", address, 7, ctypes.c_size_t(size))
        ones = (1,) * (len(shape) - 1)
        first, out = (lib.Array(address.value, shape, None, np.dtype(f"V{width}"), 0) for address in memory[:2])
        compiled = lib.reversal(first, lib.Array(of_lengths.value, (shape[0], *ones), None, lengths.dtype, 0), out, 1)
        stream, events = self.made("cuStreamCreate", 1), [self.made("cuEventCreate", 0) for _ in range(2)]
        self.call("cuStreamBeginCapture_v2", stream, 2)
        x = memory[0]
        for k in range(n):
            y = memory[1 + k % 2]
            compiled.dispatch(lib.Addresses(x.value, of_lengths.value), 2, y.value, stream.value)
            x = y
        captured = ctypes.c_void_p()
        self.call("cuStreamEndCapture", stream, ctypes.byref(captured))
        graph = self.made("cuGraphInstantiateWithFlags", captured, ctypes.c_uint64(0))
        times = []
        for _ in range(9):
            self.call("cuEventRecord", events[0], stream)
            self.call("cuGraphLaunch", graph, stream)
            self.call("cuEventRecord", events[1], stream)
            self.call("cuStreamSynchronize", stream)
            milliseconds = ctypes.c_float()
            self.call("cuEventElapsedTime", ctypes.byref(milliseconds), *events)
            times.append(milliseconds.value * 1e3)
        for address in (*memory, of_lengths):
            self.call("cuMemFree_v2", address)
        return statistics.median(times[1:])


WORST = {}  # for each goal: the most that meets it, the worst ratio, and where it was measured


def hold_to(goal, most, ratio, where):
    WORST[goal] = max(WORST.get(goal, (most, 0, "")), (most, ratio, str(where)))


def programs_on_the_device():
    own, random = Own(), np.random.default_rng(0)
    print("| a reversal along axis 1, µs | type | a chain, own | the same, jitted | ratio | many inputs, jitted | gather | faster |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for shape in SHAPES:
        for dtype in ("uint8", "float16", "float32"):
            width = np.dtype(dtype).itemsize
            n = max(4, min(INPUTS, 4_000_000_000 // (math.prod(shape) * width)))
            lengths = random.integers(0, shape[1] + 1, (shape[0],) + (1,) * (len(shape) - 1)).astype(np.int32)
            x = jax.random.bits(jax.random.key(0), shape, "uint8").astype(dtype)
            xs, on_gpu = [x + k for k in range(n)], jnp.asarray(lengths)
            # Another input for each call, so that XLA can merge none.
            ours, theirs = (jax.jit(lambda xs, n, reverse=reverse: [reverse(x, n, 1) for x in xs]) for reverse in (dj.reverse_subsequences, gather))
            found, required = ours(xs, on_gpu), theirs(xs, on_gpu)
            assert all((a == b).all() for a, b in zip(found, required)), (shape, dtype)
            del found, required
            # In turns, so that a change of the clocks meets both.
            rounds = [[wall(lambda call=call: call(xs, on_gpu), 0.1) / n for call in (ours, theirs)] for _ in range(5)]
            jitted, of_gather = (statistics.median(times) for times in zip(*rounds))
            x = xs[0]
            del xs
            chain = jax.jit(lambda x, n: functools.reduce(lambda y, _: dj.reverse_subsequences(y, n, 1), range(CHAIN), x))
            assert (chain(x, on_gpu) == x).all()  # an even number of reversals
            chained = on_the_device(lambda: chain(x, on_gpu))
            alone = own.time(shape, width, lengths, CHAIN) / CHAIN
            cells = f"{alone:.1f} | {chained:.1f} | {chained / alone:.3f} | {jitted:.1f} | {of_gather:.1f} | {of_gather / jitted:.2f}"
            print(f"| {list(shape)} | {dtype} | {cells} |", flush=True)
            where = f"{list(shape)} {dtype}"
            hold_to("the library's own dispatch, in a chain", 1.02, chained / alone, where)
            blocks = len(shape) == 3 and width > 1  # whose speed is the kernels' own
            hold_to("a gather, float16 and float32 blocks" if blocks else "a gather", 1.03 if blocks else 1, jitted / of_gather, where)


def calls_of_the_host():
    print("\n| host time of a jitted call, float32, µs | x + 1 | reversal | ratio | gather | in place, donated |\n| --- | --- | --- | --- | --- | --- |")
    for shape in [(8, 64), (32, 128, 512)]:
        x, n = jnp.zeros(shape), jnp.full((shape[0],) + (1,) * (len(shape) - 1), 5)
        add, reverse, gathered = jax.jit(lambda x, n: x + 1), jax.jit(lambda x, n: dj.reverse_subsequences(x, n, 1)), jax.jit(gather)
        donated = jax.jit(lambda x, n: dj.reverse_subsequences(x, n, 1, in_place=True), donate_argnums=0)
        held = [x + 0]

        def in_place():
            held[0] = donated(held[0], n)
            return held[0]

        rounds = [[wall(call, 0.1) for call in (lambda: add(x, n), lambda: reverse(x, n), lambda: gathered(x, n), in_place)] for _ in range(5)]
        plain, ours, theirs, inside = (statistics.median(times) for times in zip(*rounds))
        print(f"| {list(shape)} | {plain:.1f} | {ours:.1f} | {ours / plain:.2f} | {theirs:.1f} | {inside:.1f} |", flush=True)
        hold_to("x + 1, host", 1.1, ours / plain, list(shape))


def main():
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # the library's own dispatch needs memory, too
    begin = time.perf_counter()
    driver = os.popen("nvidia-smi --query-gpu=driver_version --format=csv,noheader").read().split()[0]
    print(f"{jax.devices()[0].device_kind} ({len(jax.devices())}), driver {driver}, JAX {jax.__version__}, dml-cuda {dml_cuda.__version__}\n", flush=True)
    programs_on_the_device()
    calls_of_the_host()
    print(f"\n{time.perf_counter() - begin:.0f} s")
    print("\n| goal, as a ratio of times | at most | worst | at | met |\n| --- | --- | --- | --- | --- |")
    for goal, (most, ratio, where) in WORST.items():
        print(f"| {goal} | {most:.2f} | {ratio:.3f} | {where} | {'yes' if ratio <= most else 'NO'} |")
    return int(any(ratio > most for most, ratio, _ in WORST.values()))


if __name__ == "__main__":
    sys.exit(main())
