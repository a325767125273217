"""libdml_cuda_torch.so with a real PyTorch: load orders, a C++ program, AOTInductor. DML_CUDA_TORCH_LIBRARY is its
path, where scripts/install.sh put it. Skipped without it, without PyTorch, or without a C++ compiler."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from programs import run_python

LIBRARY = os.environ.get("DML_CUDA_TORCH_LIBRARY")
FOUND = importlib.util.find_spec("torch")
TORCH = pathlib.Path(FOUND.origin).parent if FOUND and FOUND.origin else None
COMPILER = shutil.which(os.environ.get("CXX", "c++"))
TESTS = pathlib.Path(__file__).parent
EXAMPLE = TESTS / "../../crates/dml-cuda-torch/examples/reverse.cpp"

# What every process below checks of the operators.
USE = """
import torch
device = "cuda" if torch.cuda.is_available() else "cpu"
x, lengths = torch.arange(6.0, device=device).reshape(2, 3), torch.tensor([[2], [3]], device=device)
assert torch.ops.dml_cuda.reverse_subsequences(x, lengths, 1).tolist() == [[1, 0, 2], [5, 4, 3]]
try:
    torch.ops.dml_cuda.reverse_subsequences_(x, lengths, 5)
    raise SystemExit("it must fail")
except RuntimeError as error:
    assert str(error) == "dml_cuda::reverse_subsequences_: dim is 5, but must be from -2 to 1, the dimensions of x", error
torch.ops.dml_cuda.reverse_subsequences_(x, lengths, 1)
assert x.tolist() == [[1, 0, 2], [5, 4, 3]]
"""
STEPS = {
    "package": "import dml_cuda.torch",
    "arrays": "import dml_cuda",
    "torch": "import torch",
    "library": "import os, torch; torch.ops.load_library(os.environ['DML_CUDA_TORCH_LIBRARY'])",
    "use": USE,
}
EXPORT = """
import sys, torch, dml_cuda.torch as dt

class Module(torch.nn.Module):
    def forward(self, x, lengths):
        return dt.reverse_padded_sequence(x * 2, lengths, batch_first=True) + 1

program = torch.export.export(Module(), (torch.zeros(2, 3), torch.tensor([2, 3])))
torch._inductor.aoti_compile_and_package(program, package_path=sys.argv[1])
"""
# Without an operator of this library.
PLAIN = """
import sys, torch

class Module(torch.nn.Module):
    def forward(self, x):
        return x.flip(1)

program = torch.export.export(Module(), (torch.zeros(2, 3),))
torch._inductor.aoti_compile_and_package(program, package_path=sys.argv[1])
torch._inductor.aoti_load_package(sys.argv[1])(torch.zeros(2, 3))
"""
LOAD = """
import os, sys, torch
torch.ops.load_library(os.environ["DML_CUDA_TORCH_LIBRARY"])
x, lengths = torch.arange(6.0).reshape(2, 3), torch.tensor([2, 3])
loaded = torch._inductor.aoti_load_package(sys.argv[1])
assert loaded(x, lengths).tolist() == [[3, 1, 5], [11, 9, 7]], loaded(x, lengths)
"""


@unittest.skipIf(
    TORCH is None or LIBRARY is None, "no PyTorch, or no DML_CUDA_TORCH_LIBRARY"
)
class Library(unittest.TestCase):
    def python(self, code, *arguments, **variables):
        done = run_python("-c", code, *arguments, **variables)
        self.assertEqual(done.returncode, 0, f"{code}\n{done.stdout}\n{done.stderr}")
        self.assertNotIn("libdml_cuda_torch.so:", done.stderr)

    def test_every_load_order(self):
        for order in (
            ["library"],
            ["package"],
            ["library", "package"],
            ["package", "library"],
            ["arrays", "torch", "package"],
            ["torch", "package"],
            ["arrays", "library", "package"],
            ["torch", "library", "library", "arrays", "package"],
        ):
            with self.subTest(order):
                self.python("\n".join(STEPS[step] for step in [*order, "use"]))

    @unittest.skipIf(" " in str(LIBRARY), "LD_PRELOAD takes no spaces")
    def test_preloaded(self):
        preload = {
            "LD_PRELOAD": LIBRARY,
            "LD_LIBRARY_PATH": f"{TORCH / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}",
        }
        for order in (["torch"], ["package"]):
            with self.subTest(order):
                self.python(
                    "\n".join(STEPS[step] for step in [*order, "use"]), **preload
                )

    @unittest.skipIf(COMPILER is None, "no C++ compiler")
    def test_a_program_in_cpp(self):
        with tempfile.TemporaryDirectory() as folder:
            program, own = (
                f"{folder}/reverse",
                str(pathlib.Path(LIBRARY).parent.resolve()),
            )
            libraries = [
                str(TORCH / "lib"),
                *map(str, TORCH.parent.glob("nvidia/*/lib")),
            ]
            cuda = ["-ltorch_cuda"] if (TORCH / "lib/libtorch_cuda.so").exists() else []
            compiled = subprocess.run(
                [
                    COMPILER,
                    "-std=c++20",
                    "-O0",
                    str(EXAMPLE),
                    f"-I{TORCH}/include",
                    f"-L{TORCH}/lib",
                    f"-L{own}",
                    "-Wl,--no-as-needed",
                    "-ltorch",
                    "-ltorch_cpu",
                    *cuda,
                    "-lc10",
                    "-ldml_cuda_torch",
                    f"-Wl,-rpath,{':'.join([own, *libraries])}",
                    f"-Wl,-rpath-link,{':'.join(libraries)}",
                    "-o",
                    program,
                ],
                capture_output=True,
                text=True,
            )
            self.assertEqual(compiled.returncode, 0, compiled.stderr)
            done = subprocess.run([program], capture_output=True, text=True)
            words = "dml_cuda::reverse_subsequences: dim is 2, but must be from -2 to 1, the dimensions of x"
            self.assertEqual(
                (done.stdout, done.returncode),
                (f"3 2 1 4 6 5 7 8 in place too\n{words}\n", 0),
                done.stderr,
            )

    @unittest.skipIf(COMPILER is None, "no C++ compiler")
    def test_a_package_of_aotinductor(self):
        with tempfile.TemporaryDirectory() as folder:
            hidden = {
                "CUDA_VISIBLE_DEVICES": ""
            }  # docs/pytorch.md says what is known of packages for GPUs
            self.python(EXPORT, f"{folder}/model.pt2", **hidden)
            try:
                self.python(LOAD, f"{folder}/model.pt2", **hidden)
            except AssertionError:
                try:
                    self.python(PLAIN, f"{folder}/plain.pt2", **hidden)
                except AssertionError:
                    self.skipTest(
                        "this PyTorch loads no package of AOTInductor, not even of a plain flip"
                    )
                raise
