"""Compares dml_cuda.jax on a GPU with the library's own dispatch and with a jitted gather, and shows what XLA makes of its calls. Checks
every result. Prints Markdown.

python3 bench_jax.py FOLDER    a folder with libdml_cuda.so; without it, the installed package
"""

import ctypes
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
HERE = pathlib.Path(__file__).resolve().parent
SHAPES = [(64, 2048, 1024), (64, 512, 1024), (16384, 8192), (32, 128, 512)]
# Calls the handler and counts the calls. `traits` are the handler's answer to XLA: 1 is "fit for command buffers".
COUNTING = """
#include <stddef.h>
#include "xla/ffi/api/c_api.h"
extern XLA_FFI_Error* dml_cuda_xla_reverse_subsequences_cuda(XLA_FFI_CallFrame*);
int calls;
XLA_FFI_Error* counted(XLA_FFI_CallFrame* frame) {
  calls += frame->extension_start == NULL;
  return dml_cuda_xla_reverse_subsequences_cuda(frame);
}
XLA_FFI_Error* counted_without_traits(XLA_FFI_CallFrame* frame) {
  XLA_FFI_Error* error = counted(frame);
  if (frame->extension_start) ((XLA_FFI_Metadata_Extension*)frame->extension_start)->metadata->traits = 0;
  return error;
}
"""


def package(folder):
    """Puts the package with that folder's library on the path."""
    made = pathlib.Path(tempfile.mkdtemp(), "dml_cuda")
    shutil.copytree(HERE.parent / "src/dml_cuda", made, ignore=shutil.ignore_patterns("_native", "__pycache__"))
    (made / "_native").mkdir()
    shutil.copy(pathlib.Path(folder, "libdml_cuda.so"), made / "_native/lib_native.so")
    sys.path.insert(0, str(made.parent))


def gather(x, lengths, axis=1):
    t = jnp.arange(x.shape[axis]).reshape([-1 if d == axis else 1 for d in range(x.ndim)])
    return jnp.take_along_axis(x, jnp.where(t < lengths, lengths - 1 - t, t), axis)


def wall(call, most=0.15, rounds=5):
    """Microseconds of a call, of many that are queued one after the other."""
    jax.block_until_ready(call())
    start = time.perf_counter()
    for _ in range(3):
        last = call()
    jax.block_until_ready(last)
    times, n = [], max(3, min(2000, int(most / rounds / ((time.perf_counter() - start) / 3))))
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(n):
            last = call()
        jax.block_until_ready(last)
        times.append((time.perf_counter() - start) / n * 1e6)
    return statistics.median(times)


class Own:
    """The library's own dispatch: a CUDA graph of as many reversals as there are inputs."""

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
        strides = packed_strides(shape, width)
        size = strides[0] * shape[0]
        memory = [self.made("cuMemAlloc_v2", ctypes.c_size_t(size)) for _ in range(2 * n)]
        of_lengths = self.made("cuMemAlloc_v2", ctypes.c_size_t(lengths.nbytes))
        self.call("cuMemcpyHtoD_v2", of_lengths, ctypes.c_void_p(lengths.ctypes.data), ctypes.c_size_t(lengths.nbytes))
        for address in memory:
            self.call("cuMemsetD8_v2", address, 7, ctypes.c_size_t(size))
        ones = (1,) * (len(shape) - 1)
        first, out = (lib.Array(address.value, shape, strides, width) for address in (memory[0], memory[n]))
        compiled = lib.reversal(0, first, lib.Array(of_lengths.value, (shape[0], *ones), (4, *[4 for _ in ones]), 4), out, 1)
        stream, events = self.made("cuStreamCreate", 1), [self.made("cuEventCreate", 0) for _ in range(2)]
        self.call("cuStreamBeginCapture_v2", stream, 2)
        for x, y in zip(memory, memory[n:]):
            compiled.dispatch(lib.Addresses(x.value, of_lengths.value), 2, y.value, stream.value)
        graph = self.made_from_capture(stream)
        times = []
        for _ in range(7):
            self.call("cuEventRecord", events[0], stream)
            self.call("cuGraphLaunch", graph, stream)
            self.call("cuEventRecord", events[1], stream)
            self.call("cuStreamSynchronize", stream)
            milliseconds = ctypes.c_float()
            self.call("cuEventElapsedTime", ctypes.byref(milliseconds), *events)
            times.append(milliseconds.value * 1e3 / n)
        for address in (*memory, of_lengths):
            self.call("cuMemFree_v2", address)
        return statistics.median(times[1:])

    def made_from_capture(self, stream):
        graph = ctypes.c_void_p()
        self.call("cuStreamEndCapture", stream, ctypes.byref(graph))
        return self.made("cuGraphInstantiateWithFlags", graph, ctypes.c_uint64(0))


def tables():
    own, random = Own(), np.random.default_rng(0)
    print("| shape, a reversal along axis 1 | type | own, µs | dml_cuda.jax, µs | ratio | gather, µs | faster |\n| --- | --- | --- | --- | --- | --- | --- |")
    for shape in SHAPES:
        for dtype in ("uint8", "float16", "float32"):
            n = max(4, min(64, 4_000_000_000 // (np.prod(shape) * np.dtype(dtype).itemsize)))
            lengths = random.integers(0, shape[1] + 1, (shape[0],) + (1,) * (len(shape) - 1)).astype(np.int32)
            x = jax.random.bits(jax.random.key(0), shape, "uint8").astype(dtype)
            xs, on_gpu = [x + k for k in range(n)], jnp.asarray(lengths)
            # Another input for each call, so that XLA can merge none.
            ours, theirs = (jax.jit(lambda xs, n, reverse=reverse: [reverse(x, n, 1) for x in xs]) for reverse in (dj.reverse_subsequences, gather))
            required = theirs(xs, on_gpu)
            assert all((found == wanted).all() for found, wanted in zip(ours(xs, on_gpu), required)), (shape, dtype)
            del required
            times = [wall(lambda call=call: call(xs, on_gpu)) / n for call in (ours, theirs)]
            del xs
            alone = own.time(shape, np.dtype(dtype).itemsize, lengths, n)
            print(f"| {list(shape)} | {dtype} | {alone:.1f} | {times[0]:.1f} | {times[0] / alone:.3f} | {times[1]:.1f} | {times[1] / times[0]:.2f} |", flush=True)
    print("\n| host time of a jitted call, float32, µs | x + 1 | reversal | ratio | gather | in place, donated |\n| --- | --- | --- | --- | --- | --- |")
    for shape in [(8, 64), (32, 128, 512)]:
        x, n = jnp.zeros(shape), jnp.full((shape[0],) + (1,) * (len(shape) - 1), 5)
        add, reverse, gathered = jax.jit(lambda x, n: x + 1), jax.jit(lambda x, n: dj.reverse_subsequences(x, n, 1)), jax.jit(gather)
        donated = jax.jit(lambda x, n: dj.reverse_subsequences(x, n, 1, in_place=True), donate_argnums=0)
        held = [x + 0]

        def in_place():
            held[0] = donated(held[0], n)
            return held[0]

        rounds = [[wall(call) for call in (lambda: add(x, n), lambda: reverse(x, n), lambda: gathered(x, n), in_place)] for _ in range(3)]
        plain, ours, theirs, inside = (statistics.median(times) for times in zip(*rounds))
        print(f"| {list(shape)} | {plain:.1f} | {ours:.1f} | {ours / plain:.2f} | {theirs:.1f} | {inside:.1f} |", flush=True)


def programs():
    """What XLA makes of a donated call, and a shard_map if there are two GPUs."""
    x, n = jnp.arange(24.0).reshape(4, 6), jnp.array([[3], [6], [0], [2]])
    donated = jax.jit(lambda x, n: dj.reverse_subsequences(x, n, 1, in_place=True), donate_argnums=0).lower(x, n).compile().as_text()
    assert "output_to_operand_aliasing" in donated and " copy(" not in donated and "copy-start" not in donated, donated
    print("\nA donated call, compiled, has no copy:\n\n```text")
    print("\n".join(line.split(", metadata")[0] for line in donated.splitlines() if line.startswith("HloModule") or "custom-call(" in line))
    print("```")
    if len(jax.devices()) < 2:
        return print("\nOne GPU: no shard_map over two")
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    mesh = Mesh(np.array(jax.devices()[:2]), ("d",))
    for of_x, of_lengths in ((P("d"), P("d")), (P(None, None, "d"), P())):
        x, n = jax.random.normal(jax.random.key(0), (8, 100, 64)), jnp.arange(8).reshape(8, 1, 1) * 12
        required = np.asarray(gather(x, n))
        call = jax.jit(jax.shard_map(lambda x, n: dj.reverse_subsequences(x, n, 1), mesh=mesh, in_specs=(of_x, of_lengths), out_specs=of_x))
        for _ in range(3):
            np.testing.assert_array_equal(call(x, n), required)
        arrays = [jax.device_put(array, NamedSharding(mesh, spec)) for array, spec in ((x, of_x), (n, of_lengths))]
        found = jax.jit(lambda x, n: dj.reverse_subsequences(x, n, 1))(*arrays)
        np.testing.assert_array_equal(found, required)
        assert len(found.sharding.device_set) == 2
        print(f"\nTwo GPUs, x split as {of_x}: shard_map and jit are right")


def graphs():
    """Counts the handler's calls: of a call in a CUDA graph, XLA calls the handler when it records the graph, not when it launches it."""
    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "counting.c").write_text(COUNTING)
    target = folder / "counting.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-I", jax.ffi.include_dir(), folder / "counting.c", lib.PATH, f"-Wl,-rpath,{lib.PATH.parent}", "-o", target], check=True)
    counting = ctypes.CDLL(str(target))
    calls, counts = ctypes.c_int.in_dll(counting, "calls"), {}
    for name in ("counted", "counted_without_traits"):
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(counting, name)), platform="CUDA")

        @jax.jit
        def chain(x, lengths, name=name):
            for k in range(8):
                x = jax.ffi.ffi_call(name, jax.typeof(x))(x, lengths + k, axis=np.int64(1))
            return x

        calls.value = 0
        for run in range(10):  # the first call of this process may be recorded at once
            x, lengths = jnp.arange(240.0).reshape(4, 60) + run, jnp.array([[3], [50], [0], [20]]) + run
            required = np.asarray(x)
            for k in range(8):
                required = np.asarray(gather(jnp.asarray(required), jnp.minimum(lengths + k, 60)))
            np.testing.assert_array_equal(chain(x, lengths), required)
        counts[name] = calls.value
    print(f"\nThe handler's calls for 10 runs of a program with 8 reversals: {counts['counted']} with the trait, {counts['counted_without_traits']} without it")
    assert counts["counted_without_traits"] >= 80
    print("XLA records them in a CUDA graph" if counts["counted"] < counts["counted_without_traits"] else "XLA records NO graph")


def main():
    begin = time.perf_counter()
    driver = os.popen("nvidia-smi --query-gpu=driver_version --format=csv,noheader").read().split()[0]
    print(f"{jax.devices()[0].device_kind} ({len(jax.devices())}), driver {driver}, JAX {jax.__version__}, dml-cuda {dml_cuda.__version__}\n", flush=True)
    programs()
    print(flush=True)
    # In processes of their own: the first call of the first is recorded, and XLA's smallest graph has one call in the second.
    for flags in ("", "--xla_gpu_graph_min_graph_size=1"):
        command = [sys.executable, __file__, *sys.argv[1:], "--graphs"]
        done = subprocess.run(command, env={**os.environ, "XLA_FLAGS": flags}, capture_output=True, text=True)
        print(f"XLA_FLAGS=\"{flags}\": {done.stdout.strip() or done.stderr[-3000:]}\n", flush=True)
    tables()
    print(f"\n{time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        package(sys.argv[1])
import dml_cuda  # noqa: E402
import dml_cuda.jax as dj  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from dml_cuda import _library as lib  # noqa: E402
from dml_cuda._arrays import packed_strides  # noqa: E402

if __name__ == "__main__":
    graphs() if "--graphs" in sys.argv else main()
