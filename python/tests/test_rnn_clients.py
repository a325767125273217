"""What programs of other libraries do with packs, and with modules that convert_rnns changed. Their code is rebuilt
here, with the library's name. Skipped, and counted, without PyTorch."""

import abc
import copy
import functools
import itertools
import pickle
import unittest
import warnings
from unittest import mock

from with_torch import DEVICES, dt, torch  # first: without PyTorch it skips this module

from dml_cuda.torch import rnn as rnn_module
from dml_cuda.torch.rnn_passes import run_padded
from dml_cuda.torch.rnn import WithLengths
from random_rnns import leaves, running
from torch import nn
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
            self.same(
                found,
                pytorch.pack_padded_sequence(
                    self.x.to(device), LENGTHS, enforce_sorted=False
                ),
            )

    def test_data_that_is_read_after_a_call_warns_of_its_gradient(self):
        lstm, x = dt.LSTM(4, 5), self.x.requires_grad_()
        uses = lstm, dt.pad_packed_sequence, lambda pack: lstm(pack.double().float())
        reads = lambda pack: pack.data, lambda pack: pack[0], list
        for use, read in itertools.product(uses, reads):
            pack = dt.pack_padded_sequence(x, LENGTHS)
            use(pack)
            with self.assertWarnsRegex(
                UserWarning, "^a call took this pack.* Read data before the call$"
            ):
                read(pack)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pack = dt.pack_padded_sequence(x, LENGTHS)
            data, output = pack.data, lstm(pack)[0]
            self.assertTrue(torch.autograd.grad(output.data.sum(), data)[0].any())
            for of in (
                x.detach(),
                x,
            ):  # without gradients, and by pickle, which has none
                pack = dt.pack_padded_sequence(of, LENGTHS)
                lstm(pack)[0].data, pickle.dumps(pack)
                if of is not x:
                    pack.data


class Rnn(abc.ABC, nn.RNNBase):
    """pytorch_forecasting.layers.RNN."""

    @abc.abstractmethod
    def handle_no_encoding(self, hidden_state, no_encoding, initial_hidden_state):
        """A state for sequences without steps."""

    def forward(self, x, hx=None, lengths=None, enforce_sorted=True):
        if isinstance(x, pytorch.PackedSequence) or lengths is None:
            return super().forward(x, hx=hx)
        pack_lengths = lengths.where(lengths > 0, torch.ones_like(lengths))
        packed = pytorch.pack_padded_sequence(
            x,
            pack_lengths.cpu(),
            enforce_sorted=enforce_sorted,
            batch_first=self.batch_first,
        )
        packed_out, hidden_state = super().forward(packed, hx=hx)
        if lengths.min() == 0:
            no_encoding = (lengths == 0)[None, :, None]
            hidden_state = self.handle_no_encoding(hidden_state, no_encoding, hx)
        return packed_out, hidden_state


class Lstm(Rnn, nn.LSTM):
    def handle_no_encoding(self, hidden_state, no_encoding, initial_hidden_state):
        return tuple(
            a.masked_scatter(no_encoding, b)
            for a, b in zip(hidden_state, initial_hidden_state)
        )


class Gru(Rnn, nn.GRU):
    def handle_no_encoding(self, hidden_state, no_encoding, initial_hidden_state):
        return hidden_state.masked_scatter(no_encoding, initial_hidden_state)


class OfOwnState(Lstm):
    def permute_hidden(self, hx, permutation):
        return super().permute_hidden(hx, permutation)


def results(rnn, x, lengths, hx):
    """Outputs, states and gradients of calls with lengths, with PyTorch's pack, and with this library's."""
    found = []
    rnn.zero_grad()
    packs = [
        of.pack_padded_sequence(x, [20, 9, 7], True, False) for of in (pytorch, dt)
    ]
    for output, states in (
        rnn(x, hx, lengths, enforce_sorted=False),
        *(rnn(pack, hx) for pack in packs),
    ):
        found += [pytorch.pad_packed_sequence(output)[0], *leaves(states)]
    sum(part.square().sum() for part in found).backward()
    return [*found, *(weight.grad.clone() for weight in rnn.parameters())]


class Modules(unittest.TestCase):
    def test_pytorch_forecastings_subclasses_are_converted_and_equal(self):
        x, lengths = torch.randn(3, 20, 4), torch.tensor([20, 0, 7])
        for kind, form in itertools.product((Lstm, Gru), ("padded", "packed", 3)):
            before = kind(4, 5, 2, bidirectional=True, batch_first=True)
            hx = torch.randn(4, 3, 5)
            hx = (hx, hx + 1) if kind is Lstm else hx
            required = results(before, x, lengths, hx)
            after = dt.convert_rnns(copy.deepcopy(before))
            self.assertTrue(isinstance(after, kind) and isinstance(after, WithLengths))
            with (
                running(form),
                mock.patch.object(
                    rnn_module, "run_padded", side_effect=run_padded
                ) as padded,
            ):
                for same in (
                    after,
                    pickle.loads(pickle.dumps(after)),
                    copy.deepcopy(after),
                ):
                    self.assertIs(type(same), type(after))
                    torch.testing.assert_close(results(same, x, lengths, hx), required)
            self.assertEqual(padded.call_count, 0 if form == "packed" else 9)
            self.assertIs(type(dt.restore_rnns(after)), kind)
            torch.testing.assert_close(results(after, x, lengths, hx), required)

    def test_a_subclass_that_changes_what_this_library_calls_is_left_alone(self):
        rnn = OfOwnState(4, 5)
        with self.assertWarnsRegex(
            UserWarning,
            "^the module has a class of its own, test_rnn_clients.OfOwnState, and",
        ):
            dt.convert_rnns(rnn)
        self.assertIs(type(rnn), OfOwnState)

    def test_a_module_with_a_hook_of_accelerate_is_converted_and_restored(self):
        def add_hook(module):  # accelerate.hooks.add_hook_to_module
            module._old_forward = module.forward
            new_forward = lambda module, *args, **named: (
                calls.append(module),
                module._old_forward(*args, **named),
            )[1]
            module.forward = functools.update_wrapper(
                functools.partial(new_forward, module), module._old_forward
            )

        def remove_hook(module):
            module.forward = module._old_forward
            del module._old_forward

        for first in (add_hook, dt.convert_rnns):
            calls, rnn, x = [], nn.LSTM(4, 5), torch.randn(20, 3, 4)
            for change in (first, dt.convert_rnns if first is add_hook else add_hook):
                change(rnn)
            rnn(x, lengths=LENGTHS)
            dt.restore_rnns(rnn)
            required = rnn(x)
            self.assertEqual(calls, [rnn, rnn])
            self.assertIs(type(rnn), nn.LSTM)
            remove_hook(rnn)
            torch.testing.assert_close(
                dt.convert_rnns(rnn)(x, lengths=[20] * 3), required
            )
            self.assertEqual(len(calls), 2)

    def test_a_module_whose_forward_a_program_set_is_left_alone(self):
        rnn = nn.Sequential(nn.LSTM(4, 5))
        before = rnn[0].forward
        rnn[0].forward = lambda *given: before(*given)
        with self.assertWarnsRegex(
            UserWarning,
            "^0 has a forward that was set on the instance, and stays as it is$",
        ):
            dt.convert_rnns(rnn)
        self.assertIs(type(rnn[0]), nn.LSTM)
