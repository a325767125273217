"""``python -m dml_cuda`` prints a page to paste into an issue. It has nothing secret: the home folder is ``~``.
``python -m dml_cuda onnx`` looks at a model."""

import argparse
import ctypes
import functools
import importlib
import os
import pathlib
import platform
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import numpy as np

from . import __version__
from ._library import PATH, check, library

# What changes which code runs, or how.
_VARIABLES = """CUDA_CACHE_DISABLE CUDA_CACHE_MAXSIZE CUDA_CACHE_PATH CUDA_DISABLE_PTX_JIT CUDA_FORCE_PTX_JIT
CUDA_LAUNCH_BLOCKING CUDA_MODULE_LOADING CUDA_MPS_PIPE_DIRECTORY CUDA_VISIBLE_DEVICES DML_CUDA_COMPILE_OPTIONS
DML_CUDA_REPLACE_ONNX DML_CUDA_RNN JAX_PLATFORMS LD_LIBRARY_PATH LD_PRELOAD"""


def _release() -> str:
    commit = pathlib.Path(__file__).with_name("COMMIT")  # from scripts/release.sh
    return f"{__version__}, {commit.read_text().strip() if commit.exists() else 'built from a checkout'}"


def _soname() -> str:
    return f"{PATH}, {re.findall(rb'libdml_cuda[.]so[.][0-9.]*[0-9]', PATH.read_bytes())[0].decode()}"


def _gpus() -> str:
    query = [
        "nvidia-smi",
        "--query-gpu=name,compute_cap,driver_version",
        "--format=csv,noheader",
    ]
    try:
        run = subprocess.run(query, capture_output=True, text=True, timeout=60)
        return (run.stdout + run.stderr).strip().replace("\n", "; ")
    except FileNotFoundError:
        return "unknown, nvidia-smi is not installed"


def _count() -> int:
    count = ctypes.c_uint32()
    check(library.dml_cuda_cuda_device_count, ctypes.byref(count))
    return count.value


def _integration(name: str) -> str:
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        return "not installed" if error.name == name else f"does not import: {error}"
    if name == "cupy":  # has nothing to register
        return str(module.__version__)
    try:
        if name == "onnxruntime":
            module.SessionOptions().register_custom_ops_library(str(PATH))
        else:
            importlib.import_module(f"dml_cuda.{name}")
    except Exception as error:
        return f"{module.__version__}, does not register: {error}"
    return f"{module.__version__}, registers"


def _facts() -> Iterator[tuple[str, Callable[[], object]]]:
    yield "dml-cuda", _release
    yield "library", _soname
    yield (
        "system",
        lambda: (
            f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.platform()}"
        ),
    )
    yield "GPU, compute capability, driver", _gpus
    yield "GPUs that the library sees", _count
    yield (
        "driver's cache",
        lambda: os.environ.get("CUDA_CACHE_PATH", "~/.nv/ComputeCache"),
    )
    for name in ("onnxruntime", "torch", "jax", "cupy"):
        yield name, functools.partial(_integration, name)
    for name in filter(os.environ.__contains__, _VARIABLES.split()):
        yield name, functools.partial(os.environ.get, name)


def _printable(text: str) -> str:
    """A line with escapes for what would control a terminal or begin another line, such as in the names of a model."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _write(line: str) -> None:
    """Prints a line at once: the next one's work may end the process."""
    try:
        print(_printable(line), flush=True)
    except OSError as error:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # Python writes what is left when it ends
        sys.exit(f"the output cannot be written: {error.strerror}")


if sys.stdout is None:
    sys.exit("the output cannot be written: standard output is closed")
sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # ends quietly if its reader has ended
about = "Without a command: prints a page to paste into an issue."
parser = argparse.ArgumentParser("python -m dml_cuda", description=about)
about = """Lists the nodes of a model that this library replaces. Runs it with and without the library, compares the
outputs, prints medians."""
commands = parser.add_subparsers(dest="command")
onnx = commands.add_parser(
    "onnx", help="what a model gains in ONNX Runtime", description=about
)
onnx.add_argument("model")
onnx.add_argument("--provider", choices=("cpu", "cuda"), default="cpu")
about = "an input's shape, x=50,8,16, or a dimension's size, batch=8; else 64"
onnx.add_argument(
    "--shape", action="append", default=[], metavar="NAME=SIZES", help=about
)
about = "an input's values; else random ones, and masks of padded batches"
onnx.add_argument(
    "--input", action="append", default=[], metavar="NAME=FILE.npy", help=about
)
arguments = parser.parse_args()
if arguments.command:
    try:
        gain = importlib.import_module("dml_cuda._onnx_gain")
        for line in gain.report(
            arguments.model, arguments.provider, arguments.shape, arguments.input
        ):
            _write(line)
    except ModuleNotFoundError as error:
        sys.exit(f"{error.name} is not installed: pip install onnx onnxruntime")
    except Exception as error:
        sys.exit(_printable(f"{arguments.model}: {error}"))
    sys.exit()
for name, fact in _facts():
    try:
        text = fact()
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    # An unknown home folder stays `~`.
    text = re.sub(
        rf"(?<![^:, ]){re.escape(os.path.expanduser('~'))}(?![^/:, ])", "~", str(text)
    )
    _write(f"{name}: {text}")
