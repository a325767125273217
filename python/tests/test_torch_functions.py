"""The functions of libtorch that the library looks up by name: each is in the installed PyTorch, and those of its C
interface in its header."""

import ctypes
import pathlib
import re
import unittest

try:
    import torch
except ImportError:
    torch = None

SOURCE = (
    pathlib.Path(__file__).parents[2]
    / "crates"
    / "dml-cuda-capi"
    / "src"
    / "torch"
    / "libtorch.rs"
)


@unittest.skipUnless(
    torch and SOURCE.exists(), "no PyTorch, or no source of the library"
)
class Functions(unittest.TestCase):
    def test_pytorch_has_every_function_that_the_library_looks_up(self):
        folder = pathlib.Path(torch.__file__).parent
        header = (
            folder / "include/torch/csrc/inductor/aoti_torch/c/shim.h"
        ).read_text()
        cpu, gpu = (
            folder / "lib" / name for name in ("libtorch_cpu.so", "libtorch_cuda.so")
        )
        names = re.findall(r"^ {8}\w+ = (\w+)\(.*;$", SOURCE.read_text(), re.MULTILINE)
        self.assertIn("aoti_torch_get_current_cuda_stream", names)
        self.assertEqual(len(names), 29)
        for name in names:
            with self.subTest(name, pytorch=torch.__version__):
                of_gpu = "cuda_stream" in name
                if gpu.exists() or not of_gpu:
                    getattr(
                        ctypes.CDLL(str(gpu if of_gpu else cpu)), name
                    )  # an AttributeError if it is missing
                if name.startswith("aoti_"):
                    self.assertRegex(header, rf"\b{name}\(")


if __name__ == "__main__":
    unittest.main()
