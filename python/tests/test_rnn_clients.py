"""What programs of other libraries do with packs. Their code is rebuilt here, with the
library's name. Skipped, and counted, without PyTorch."""

import itertools
import pickle
import unittest
import warnings

from with_torch import DEVICES, dt, torch  # first: without PyTorch it skips this module

from random_rnns import running
from torch.nn.utils import rnn as pytorch

LENGTHS = [20, 18, 7]


class Packs(unittest.TestCase):
    def setUp(self):
        self.enterContext(running("padded"))
        self.x = torch.randn(20, 3, 4)

    def same(self, found, required):
        self.assertIs(type(found), pytorch.PackedSequence)
        for a, b in zip(found, required, strict=True):
            self.assertTrue(a is b or torch.equal(a, b))

    def test_a_pack_is_made_of_its_parts(self):
        pack = dt.pack_padded_sequence(self.x, LENGTHS)
        required = pytorch.pack_padded_sequence(self.x, LENGTHS)
        kind, two = type(pack), [pack.data, pack.batch_sizes]
        for found in (
            kind(part for part in pack),  # skorch's to_device
            kind([*pack]),
            kind(tuple(two)),
            kind(*pack),  # PyTorch's default_convert, accelerate's honor_type
            kind(*two),
            kind(data=pack.data, batch_sizes=pack.batch_sizes),
            kind._make(pack),
            kind(**{name: getattr(pack, name) for name in kind._fields}),
        ):
            self.same(found, required)
        with self.assertRaises(AssertionError):  # as PyTorch's class
            kind(self.x)

    def test_parts_that_skorch_moved_to_another_device_are_a_pack(self):
        for device in DEVICES:
            pack = dt.pack_padded_sequence(self.x, LENGTHS, enforce_sorted=False)
            found = type(pack)(part.to(device) for part in pack)
            self.same(found, pytorch.pack_padded_sequence(self.x.to(device), LENGTHS, enforce_sorted=False))

    def test_data_that_is_read_after_a_call_warns_of_its_gradient(self):
        lstm, x = dt.LSTM(4, 5), self.x.requires_grad_()
        uses = lstm, dt.pad_packed_sequence, lambda pack: lstm(pack.double().float())
        reads = lambda pack: pack.data, lambda pack: pack[0], list
        for use, read in itertools.product(uses, reads):
            pack = dt.pack_padded_sequence(x, LENGTHS)
            use(pack)
            with self.assertWarnsRegex(UserWarning, "^a call took this pack.* Read data before the call$"):
                read(pack)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pack = dt.pack_padded_sequence(x, LENGTHS)
            data, output = pack.data, lstm(pack)[0]
            self.assertTrue(torch.autograd.grad(output.data.sum(), data)[0].any())
            for of in (x.detach(), x):  # without gradients, and by pickle, which has none
                pack = dt.pack_padded_sequence(of, LENGTHS)
                lstm(pack)[0].data, pickle.dumps(pack)
                if of is not x:
                    pack.data
