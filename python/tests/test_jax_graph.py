"""Shows that XLA records the calls of dml_cuda.jax in a CUDA graph. It counts the handler's calls: for a call in a
graph, XLA calls the handler when it records the graph, and not when it launches it. On a CPU every run calls. Skipped,
and counted, without JAX."""

import ctypes
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from test_jax import gather, jax, jnp  # first: without JAX it skips this module

import numpy as np
from dml_cuda import _library as lib
from programs import run_python

RUNS, CALLS = 20, 8
COUNTING = """
#include "xla/ffi/api/c_api.h"
XLA_FFI_Error* (*handler)(XLA_FFI_CallFrame*);
int calls;
XLA_FFI_Error* counted(XLA_FFI_CallFrame* frame) {
  calls += frame->stage == XLA_FFI_ExecutionStage_EXECUTE && frame->args.size == 2;
  return handler(frame);
}
/* As `counted`, but not marked as fit for command buffers. */
XLA_FFI_Error* unmarked(XLA_FFI_CallFrame* frame) {
  XLA_FFI_Error* error = counted(frame);
  if (frame->extension_start && frame->extension_start->type == XLA_FFI_Extension_Metadata)
    ((XLA_FFI_Metadata_Extension*)frame->extension_start)->metadata->traits = 0;
  return error;
}
"""


def count(name):
    """How often XLA calls the handler for `RUNS` runs of a program with `CALLS` reversals."""
    cuda = jax.default_backend() != "cpu"
    with tempfile.TemporaryDirectory() as folder:
        source, target = (
            pathlib.Path(folder, "counting.c"),
            pathlib.Path(folder, "counting.so"),
        )
        source.write_text(COUNTING)
        subprocess.run(
            [
                "cc",
                "-shared",
                "-fPIC",
                "-I",
                jax.ffi.include_dir(),
                source,
                "-o",
                target,
            ],
            check=True,
        )
        counting = ctypes.CDLL(str(target))
    handler = getattr(
        lib.library, f"dml_cuda_xla_reverse_subsequences_{'cuda' if cuda else 'cpu'}"
    )
    ctypes.c_void_p.in_dll(counting, "handler").value = ctypes.cast(
        handler, ctypes.c_void_p
    ).value
    jax.ffi.register_ffi_target(
        name,
        jax.ffi.pycapsule(getattr(counting, name)),
        platform="CUDA" if cuda else "cpu",
    )

    @jax.jit
    def chain(x, lengths):
        for k in range(CALLS):
            x = jax.ffi.ffi_call(name, jax.typeof(x))(x, lengths + k, axis=np.int64(1))
        return x

    cases = []
    for shift in range(2):
        x, lengths = (
            jnp.arange(240.0).reshape(4, 60) + shift,
            jnp.array([[3], [50], [0], [20]]) + shift,
        )
        required = x
        for k in range(CALLS):
            required = gather(required, lengths + k, 1)
        cases.append((x, lengths, np.asarray(required)))
    # The first call of this process may come while XLA records. Graphs that are launched again see other values.
    for run in range(RUNS):
        x, lengths, required = cases[run % len(cases)]
        np.testing.assert_array_equal(chain(x, lengths), required)
    print("calls", ctypes.c_int.in_dll(counting, "calls").value)


@unittest.skipIf(shutil.which("cc") is None, "no C compiler")
class Graph(unittest.TestCase):
    def test_xla_records_calls_that_are_marked_as_fit(self):
        every = RUNS * CALLS
        for flags in ("", "--xla_gpu_graph_min_graph_size=1"):
            calls = {}
            for name in ("counted", "unmarked"):
                done = run_python(__file__, name, XLA_FLAGS=flags)
                self.assertEqual(done.returncode, 0, done.stderr[-3000:])
                calls[name] = int(done.stdout.split()[-1])
            print(
                f'XLA_FLAGS="{flags}": the handler\'s calls for {every} reversals: {calls["counted"]}, not marked {calls["unmarked"]}'
            )
            self.assertEqual(calls["unmarked"], every)
            if jax.default_backend() == "cpu":
                self.assertEqual(calls["counted"], every)
            else:
                self.assertLess(calls["counted"], every / 2, "XLA records no graph")


if __name__ == "__main__":
    count(sys.argv[1])
