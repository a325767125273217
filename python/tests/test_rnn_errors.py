"""Errors of RNNs with lengths name the argument, what was found and what is required. Skipped, and counted, without
PyTorch."""

import itertools
import unittest

from with_torch import dt, torch  # first: without PyTorch it skips this module

from test_numpy import check_errors
from test_rnn import BATCH, FEATURES, HIDDEN, LENGTHS, STEPS
from torch.nn.utils import rnn as pytorch


class Errors(unittest.TestCase):
    def test_errors_name_argument_found_and_required(self):
        lstm, gru = (
            kind(FEATURES, HIDDEN, bidirectional=True) for kind in (dt.LSTM, dt.GRU)
        )
        first = dt.GRU(FEATURES, HIDDEN, bidirectional=True, batch_first=True)
        x, lengths, h_0 = (
            torch.zeros(STEPS, BATCH, FEATURES),
            torch.tensor(LENGTHS),
            torch.zeros(2, BATCH, HIDDEN),
        )
        pack = pytorch.pack_padded_sequence(x, lengths, enforce_sorted=False)
        call = lambda rnn, x, lengths, hx=None: lambda: rnn(x, hx, lengths=lengths)
        check_errors(
            self,
            [
                (
                    TypeError,
                    "input is a list, but must be a tensor",
                    call(lstm, [1], lengths),
                ),
                (
                    TypeError,
                    "lengths is given, but must be None, because input is a PackedSequence",
                    call(lstm, pack, lengths),
                ),
                (
                    TypeError,
                    "lengths is 'abcde', but must be a tensor, or integers",
                    call(lstm, x, "abcde"),
                ),
                (
                    ValueError,
                    r"lengths has shape \[\], but must have \[5\], the batch size",
                    call(lstm, x, 3),
                ),
                (
                    TypeError,
                    "lengths has dtype torch.float32, but must have an integer dtype",
                    call(lstm, x, lengths.float()),
                ),
                (
                    ValueError,
                    r"lengths has shape \[4\], but must have \[5\], the batch size",
                    call(lstm, x, lengths[:4]),
                ),
                (
                    ValueError,
                    r"lengths has shape \[5\], but must have \[9\], the batch size; with batch_first=False it would be 5",
                    call(first, x, lengths),
                ),
                (
                    ValueError,
                    r"lengths has shape \[9\], but must have \[5\], the batch size; with batch_first=True it would be 9",
                    call(lstm, x, [9] * 9),
                ),
                (
                    ValueError,
                    r"lengths\[2\] is -1, but must be at least 0",
                    call(lstm, x, torch.tensor([1, 2, -1, 3, 4])),
                ),
                (
                    ValueError,
                    r"lengths\[2\] is -1, but must be at least 0",
                    call(dt.GRU(FEATURES, HIDDEN), x, [1, 2, -1, 3, 4]),
                ),
                (
                    ValueError,
                    "lengths is on meta, but must be on cpu, as input is, or on the CPU",
                    call(lstm, x, lengths.to("meta")),
                ),
                (
                    ValueError,
                    r"input has shape \[9, 6\], but must have three dimensions, \[T, B, F\]",
                    call(lstm, x[:, 0], lengths),
                ),
                (
                    ValueError,
                    r"input has shape \[9, 6\], but must have three dimensions, \[B, T, F\]",
                    call(first, x[:, 0], lengths),
                ),
                (
                    ValueError,
                    r"input has shape \[0, 5, 6\], but must have .* T of at least 1",
                    call(lstm, x[:0], lengths),
                ),
                (RuntimeError, "Expected 6, got 5", call(lstm, x[:, :, :5], lengths)),
                (
                    ValueError,
                    "torch.float64.*torch.float32|torch.float32.*torch.float64",
                    call(lstm, x.double(), lengths),
                ),
                (
                    TypeError,
                    r"hx is a Tensor, but must be \(h_0, c_0\), as this is an LSTM",
                    call(lstm, x, lengths, h_0),
                ),
                (
                    TypeError,
                    "hx is a tuple, but must be the tensor h_0",
                    call(gru, x, lengths, (h_0, h_0)),
                ),
                (
                    RuntimeError,
                    r"Expected hidden size \(2, 5, 8\), got \[2, 5, 7\]",
                    call(gru, x, lengths, h_0[:, :, :7]),
                ),
                (
                    RuntimeError,
                    r"Expected hidden\[1\] size \(2, 5, 8\), got \[1, 5, 8\]",
                    call(lstm, x, lengths, (h_0, h_0[:1])),
                ),
            ],
        )

    def test_lengths_without_their_name_are_no_initial_states(self):
        x, lengths = torch.zeros(STEPS, BATCH, FEATURES), torch.tensor(LENGTHS)
        pack = dt.pack_padded_sequence(x, lengths, enforce_sorted=False)
        every = lengths, LENGTHS, tuple(LENGTHS), lengths.numpy()
        for kind, given in itertools.product((dt.LSTM, dt.GRU, dt.RNN), every):
            rnn = kind(FEATURES, HIDDEN)
            for call in (
                lambda: rnn(x, given),
                lambda: rnn(pack, given),
                lambda: rnn(x, given, lengths=lengths),
            ):
                with self.assertRaisesRegex(
                    TypeError,
                    r"^hx is .*, but must be initial states: pass lengths by name, rnn\(",
                ):
                    call()
