"""dml_cuda.torch without each of PyTorch's private names that it uses: it imports, and what needs the name says so."""

import os
import subprocess
import sys
import unittest

import with_torch  # noqa: F401, first: without PyTorch it skips this module
from dml_cuda.torch._private import NAMES

# A child process for each name: what is taken from PyTorch stays taken.
PROGRAM = """if True:
    import os, sys, types, numpy, torch, torch.fx.experimental.proxy_tensor, torch.nn.utils.rnn, torch.export
    import torch.overrides, torch.autograd.forward_ad, dml_cuda
    for name in sys.argv[1:]:
        child = os.fork()
        if child:
            if os.waitpid(child, 0)[1]:
                print(name, "import", flush=True)
            continue
        owner = torch
        for part in name.split(".")[1:-1]:
            owner = getattr(owner, part)
        if owner is torch._VF:
            torch._VF = owner = types.SimpleNamespace(_unpack_dual=None, _pad_packed_sequence=None)
        delattr(owner, name.rpartition(".")[2])
        try:
            import dml_cuda.torch
            from dml_cuda.torch import _private
            missing = _private.private(name)
            for use in (lambda: missing(), lambda: missing.apply, lambda: 1 & missing):
                try:
                    use()
                except RuntimeError as error:
                    assert str(error).startswith(f"PyTorch {torch.__version__} has no {name}, but "), error
                else:
                    raise AssertionError(name)
            assert not _private.exists(name)
        except BaseException as error:
            print(name, repr(error), flush=True)
            os._exit(1)
        os._exit(0)
"""


@unittest.skipUnless(hasattr(os, "fork"), "no fork")
class Private(unittest.TestCase):
    def test_a_missing_name_breaks_its_feature_and_not_the_import(self):
        # PyTorch's own operators need the last.
        names = [
            name for name in NAMES if name != "torch.jit._builtins._register_builtin"
        ]
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", PROGRAM, *names],
            capture_output=True,
            text=True,
        )
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_every_private_name_is_in_the_table(self):
        import pathlib
        import re

        import dml_cuda.torch

        folder = pathlib.Path(dml_cuda.torch.__file__).parent
        found = set()
        for file in folder.glob("*.py"):
            if file.name != "_private.py":
                found |= set(
                    re.findall(
                        r'private\("(torch[^"]*)"\)', file.read_text(encoding="utf-8")
                    )
                )
        self.assertLessEqual(found, set(NAMES))
