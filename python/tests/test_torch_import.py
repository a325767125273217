"""What an import of dml_cuda.torch needs, and that neither it nor first calls change anything. Skipped, and counted,
without PyTorch."""

import pathlib
import unittest

from with_torch import dt  # first: without PyTorch it skips this module
from programs import run_python


class Import(unittest.TestCase):
    def test_help_and_the_packages_page_begin_with_rnns(self):
        page = pathlib.Path(__file__).parents[1] / "README.md"
        for text in (dt.__doc__, page.read_text(encoding="utf-8")):
            self.assertIn(
                "convert_rnns",
                text.split("reverse_subsequences")[0].split("operators trace")[0],
            )

    def test_the_module_can_be_imported_again(self):
        program = """if True:
            import sys, torch, dml_cuda.torch as before
            for name in [name for name in sys.modules if name.startswith("dml_cuda")]:
                del sys.modules[name]
            import dml_cuda.torch as after
            assert after is not before
            for module in (before, after):
                x = torch.arange(4.0, requires_grad=True)
                assert module.reverse_subsequences(x, 3, 0).tolist() == [2, 1, 0, 3]
                assert module.fill_value_sequence(3, 1, 2).tolist() == [1, 3, 5]
                mapped = torch.func.vmap(lambda x: module.reverse_subsequences(x, torch.tensor(2), 0))
                assert mapped(torch.zeros(2, 3)).shape == (2, 3)
        """
        done = run_python("-c", program)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_an_import_and_first_calls_need_no_home_and_change_nothing(self):
        program = """if True:
            import logging, os, pwd, signal, sys, tempfile, warnings

            def missing(*_):
                raise KeyError("getpwuid(): uid not found: 12345")

            pwd.getpwuid = tempfile.gettempdir = tempfile._get_default_tempdir = missing
            import torch
            state = lambda: (
                dict(os.environ), list(warnings.filters), [signal.getsignal(number) for number in range(1, 32)],
                logging.root.level, list(logging.root.handlers), torch.get_default_dtype(), torch.get_num_threads(),
                torch.are_deterministic_algorithms_enabled(), torch.is_grad_enabled(), torch.backends.mkldnn.enabled,
            )
            before = state()
            import dml_cuda.torch as dt
            x = torch.randn(4, 2, 3, requires_grad=True)
            dt.reverse_padded_sequence(x, torch.tensor([3, 4])).sum().backward()
            lstm = dt.convert_rnns(torch.nn.LSTM(3, 5, bidirectional=True))
            lstm(x, lengths=torch.tensor([3, 4]))[0].sum().backward()
            dt.pad_packed_sequence(lstm(dt.pack_padded_sequence(x, [4, 3]))[0])
            print(state() == before, [name for name in ("torch._dynamo", "torch._inductor", "dml_cuda.torch.inductor") if name in sys.modules])
        """
        done = run_python("-c", program)
        self.assertEqual(done.stdout, "True []\n", done.stderr)
