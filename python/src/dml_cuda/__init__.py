"""DirectML's FILL_VALUE_SEQUENCE and REVERSE_SUBSEQUENCES on NumPy arrays, on arrays of NVIDIA GPUs, and in ONNX
Runtime.

PyTorch's functions are in :mod:`dml_cuda.torch`, those of JAX in :mod:`dml_cuda.jax`.
"""

from ._fill_value_sequence import fill_value_sequence
from ._library import ValidationError, Violation, cuda_device_count, library
from ._onnxruntime import onnxruntime_counters, onnxruntime_library_path
from ._reverse_subsequences import reverse_padded_sequence, reverse_subsequences

__version__: str = library.dml_cuda_version().decode()
__all__ = [
    "ValidationError",
    "Violation",
    "cuda_device_count",
    "fill_value_sequence",
    "onnxruntime_counters",
    "onnxruntime_library_path",
    "reverse_padded_sequence",
    "reverse_subsequences",
]
