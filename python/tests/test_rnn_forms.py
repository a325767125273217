"""The forms in which RNNs with lengths run, chosen by the costs in `dml_cuda.torch.forms`."""

import csv
import itertools
import os
import pathlib
import statistics
import unittest
from unittest import mock

from with_torch import dt, torch  # first: without PyTorch it skips this module

from dml_cuda.torch import forms, padded
from dml_cuda.torch import rnn as rnn_module

RECORDS = pathlib.Path(__file__).parents[2] / "benches/record"


def record(name):
    """The rows of a record of every form: the RNN, [T, B, F], lengths, whether with gradients, and the times."""
    with open(RECORDS / name / "2026-11-28-rnn-forms.csv") as file:
        for row in csv.DictReader(file, delimiter=";"):
            steps, batch, features, hidden, layers = (int(row[name]) for name in ("T", "B", "F", "H", "layers"))
            kind, options = ("RNN", {"nonlinearity": "relu"}) if row["kind"] == "relu" else (row["kind"], {})
            both = row["directions"] == "2"
            rnn = getattr(torch.nn, kind)(features, hidden, layers, bidirectional=both, device="meta", **options)
            size, lengths = (steps, batch, features), [*map(int, row["lengths"].split())]
            yield rnn, size, lengths, row["mode"] == "training", row


class OnGpu:
    """What a choice looks at of a tensor on a GPU."""

    is_cuda = True

    def __init__(self, shape, dtype):
        self.shape, self.dtype = shape, dtype


class Forms(unittest.TestCase):
    def test_lstms_on_a_cpu_run_in_forms_that_were_fast(self):
        """Held to times of packing and of every form, with lengths on the host."""
        gains, best = [], []
        for lstm, size, lengths, with_gradients, row in record("amd-epyc"):
            with torch.set_grad_enabled(with_gradients):
                form = forms.form(lstm, torch.empty(size), size[0], lengths, True)
            packed = float(row["packed"])
            times = {"packed": packed, **{n: float(row[f"kept {n}"]) for n in (1, 2, 4, 8)}}
            if form != "whole":
                gains.append(packed / times[form])
                best.append(packed / min(times.values()))
        self.assertGreater(len(gains), 150)
        self.assertGreater(statistics.geometric_mean(gains), 0.96 * statistics.geometric_mean(best))
        self.assertLessEqual(sum(gain < 1 / 1.05 for gain in gains), 0.01 * len(gains))

    def test_calls_on_a_gpu_run_in_forms_that_were_fast(self):
        gains, best = [], []
        for rnn, size, lengths, with_gradients, row in record("nvidia-h200"):
            x = OnGpu(size, getattr(torch, row["dtype"]))
            is_sparse = sum(lengths) < 0.25 * size[0] * size[1]  # packed for its memory
            for way, is_kept in (("kept", True), ("theirs", False)):
                with torch.set_grad_enabled(with_gradients):
                    form = forms.form(rnn, x, size[0], lengths, is_kept)
                if form != "whole" and not (is_sparse and with_gradients):
                    packed, padded = float(row["packed"]), float(row[f"{way} 1"])
                    gains.append(packed / (packed if form == "packed" else padded))
                    best.append(packed / min(packed, padded))
        self.assertGreater(len(gains), 700)
        self.assertGreater(statistics.geometric_mean(gains), 0.97 * statistics.geometric_mean(best))
        self.assertLessEqual(sum(gain < 1 / 1.05 for gain in gains), 0.007 * len(gains))

    def test_steps_after_the_longest_sequence_are_not_run(self):
        for first, lengths in itertools.product((False, True), ([20] * 4, [20, 5, 0, 7], [0] * 4)):
            lstm, x = dt.LSTM(3, 5, bidirectional=True, batch_first=first), torch.randn(50, 4, 3, requires_grad=True)
            required, of_required = padded.run_padded(lstm, x, torch.tensor(lengths), None)
            steps = []
            run = lambda x, *given: (steps.append(len(x)), torch.lstm(x, *given))[1]
            with mock.patch.dict(padded._PASSES, LSTM=run), mock.patch.object(forms, "form", lambda *_: 1):
                output, states = lstm(x.transpose(0, 1) if first else x, lengths=lengths)
            self.assertEqual(steps, [max(1, *lengths)] * 2)
            self.assertTrue(output.is_contiguous())
            torch.testing.assert_close((output, *states), (required, *of_required))
            gradients = (torch.autograd.grad(found.sum(), x)[0] for found in (output, required))
            torch.testing.assert_close(*gradients)

    def test_forms(self):
        lstm, gru = dt.LSTM(64, 64), dt.GRU(64, 64)
        x, short = torch.randn(200, 16, 64), torch.tensor([200, *range(1, 16)])
        find = lambda rnn, lengths, x=x: forms.form(rnn, x, len(x), forms.on_host(x, lengths), True)
        self.assertEqual(find(gru, torch.full((16,), 200)), "whole")
        self.assertEqual(find(gru, short), "packed")
        self.assertIn(find(lstm, short), (1, 2, 4, 8))
        self.assertNotEqual(
            find(gru, torch.cat((short[:15], torch.zeros(1, dtype=torch.int64)))), "packed"
        )  # it refuses 0
        self.assertEqual(find(gru, torch.zeros(16, dtype=torch.int64)), 1)
        with mock.patch.dict(os.environ, DML_CUDA_RNN="two_passes"):
            self.assertEqual(find(gru, short), 1)
            for of in (torch.nn.utils.rnn, dt):
                pack = of.pack_padded_sequence(x[:3, :2], torch.tensor([1, 3]), enforce_sorted=False)
                with mock.patch.object(rnn_module, "run_padded", side_effect=padded.run_padded) as run:
                    gru(pack)
                run.assert_called_once()
        full = torch.full((16,), 200)
        for rnn in (lstm, gru):
            self.assertTrue(torch.equal(rnn(x, lengths=full)[0], rnn(x)[0]))

    def test_cuts_cover_every_step_of_every_sequence(self):
        for seed, count in itertools.product(range(20), (1, 2, 4, 8)):
            lengths = (
                torch.randint(0, 50, (11,), generator=torch.Generator().manual_seed(seed))
                .sort(descending=True)[0]
                .tolist()
            )
            steps = [0] * len(lengths)
            begin = 0
            for end, active in forms.cuts_of(lengths, count):
                self.assertGreater(end, begin)
                steps = [n + (end - begin) * (row < active) for row, n in enumerate(steps)]
                begin = end
            self.assertTrue(all(n >= length for n, length in zip(steps, lengths)))
            self.assertEqual(begin, lengths[0])
