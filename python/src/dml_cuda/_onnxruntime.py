"""Where ONNX Runtime finds the library, and what the library did in its sessions."""

import ctypes
from typing import NamedTuple

from . import _library as lib


def onnxruntime_library_path() -> str:
    """The path of the library that ONNX Runtime loads:
    ``options.register_custom_ops_library(dml_cuda.onnxruntime_library_path())``.

    >>> import dml_cuda, os
    >>> os.path.exists(dml_cuda.onnxruntime_library_path())
    True
    """
    return str(lib.PATH)


class OnnxRuntimeCounters(NamedTuple):
    """Counts of this library's work in ONNX Runtime's sessions of this process, including closed ones."""

    nodes: int
    """Nodes that sessions loaded with this library, including those that never ran."""
    runs: int
    """Runs of such nodes."""
    in_place_runs: int
    """Runs whose output was their input."""


def onnxruntime_counters() -> OnnxRuntimeCounters:
    """Counts what this library did in ONNX Runtime, so that a program can check that it is in use.

    >>> import dml_cuda
    >>> nodes, runs, in_place_runs = dml_cuda.onnxruntime_counters()
    """
    counts = (ctypes.c_uint64 * 3)()
    lib.check(lib.library.dml_cuda_onnxruntime_counters, counts)
    return OnnxRuntimeCounters(*counts)
