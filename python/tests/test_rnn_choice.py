"""The form in which an RNN with lengths runs, chosen by the rule in `dml_cuda.torch.rnn_choice`."""

import contextlib
import csv
import gzip
import itertools
import os
import pathlib
import statistics
import unittest
from unittest import mock

from with_torch import dt, torch  # first: without PyTorch it skips this module

from dml_cuda.torch import rnn_choice, rnn_pass, rnn_passes
from dml_cuda.torch import rnn as rnn_module
from dml_cuda.torch.packing import Padded
from dml_cuda.torch.rnn_choice import Batch
from random_rnns import running
from torch.nn.utils import rnn as pytorch

RECORDS = pathlib.Path(__file__).parents[2] / "benches/record"


def record(path):
    """The rows of a record of every form: the RNN, [T, B, F], the batch, whether with gradients, and the times."""
    with (gzip.open if path.endswith(".gz") else open)(RECORDS / path, "rt") as file:
        for row in csv.DictReader(file, delimiter=";"):
            steps, batch, features, hidden, layers = (
                int(row[name]) for name in ("T", "B", "F", "H", "layers")
            )
            kind, options = (
                ("RNN", {"nonlinearity": "relu"})
                if row["kind"] == "relu"
                else (row["kind"], {})
            )
            both = row["directions"] == "2"
            rnn = getattr(torch.nn, kind)(
                features, hidden, layers, bidirectional=both, device="meta", **options
            )
            lengths = [*map(int, row["lengths"].split())]
            yield (
                rnn,
                (steps, batch, features),
                Batch.of(steps, lengths),
                row["mode"] == "training",
                row,
            )


class OnGpu:
    """What a choice looks at of a tensor on a GPU."""

    is_cuda = True

    def __init__(self, shape, dtype):
        self.shape, self.dtype = shape, dtype


class Choice(unittest.TestCase):
    def check_gains(self, times, share_of_best, share_of_slower):
        """times: of packing, of the chosen form, and of every form, of each case. The mean speedup is at least a share
        of the best possible one, and few cases are more than 5 % slower than packing."""
        gains = [packed / chosen for packed, chosen, _ in times]
        best = [packed / min(every) for packed, _, every in times]
        self.assertGreater(len(times), 90)
        self.assertGreater(
            statistics.geometric_mean(gains),
            share_of_best * statistics.geometric_mean(best),
        )
        self.assertLessEqual(
            sum(gain < 1 / 1.05 for gain in gains), share_of_slower * len(gains)
        )

    def test_recorded_lstms_on_a_cpu_run_in_fast_forms(self):
        for path in (
            "amd-epyc/2026-11-28-rnn-forms.csv.gz",
            "intel-xeon/2026-11-29-rnn-forms-1-thread.csv.gz",
            "intel-xeon/2026-11-29-rnn-forms-2-threads.csv.gz",
        ):
            times = {True: [], False: []}
            for lstm, size, batch, with_gradients, row in record(path):
                with torch.set_grad_enabled(with_gradients):
                    form = rnn_choice.rule(lstm, torch.empty(size), batch, True)
                if form != "whole":
                    forms = {
                        "packed": "packed",
                        "padded": "kept 1",
                        "segments": "kept 4",
                    }
                    every = {name: float(row[column]) for name, column in forms.items()}
                    times[with_gradients].append(
                        (every["packed"], every[form], every.values())
                    )
            with self.subTest(path):
                self.check_gains(times[True], 0.87, 0.03)
                self.check_gains(times[False], 0.7, 0.03)

    def test_recorded_calls_on_a_gpu_run_in_fast_forms(self):
        for way, is_kept, share_of_slower in (
            ("kept", True, 0.015),
            ("theirs", False, 0.02),
        ):
            times = []
            for rnn, size, batch, with_gradients, row in record(
                "nvidia-h200/2026-11-28-rnn-forms.csv.gz"
            ):
                x = OnGpu(size, getattr(torch, row["dtype"]))
                with torch.set_grad_enabled(with_gradients):
                    form = rnn_choice.rule(rnn, x, batch, is_kept)
                is_sparse = (
                    with_gradients and batch.rows < 0.25 * batch.steps * batch.size
                )  # packed for its memory
                if form != "whole" and not is_sparse:
                    every = {
                        "packed": float(row["packed"]),
                        "padded": float(row[f"{way} 1"]),
                    }
                    times.append((every["packed"], every[form], every.values()))
            self.check_gains(times, 0.97, share_of_slower)

    def test_training_of_large_modules_on_a_gpu_is_padded(self):
        lstm = torch.nn.LSTM(512, 512, device="meta")
        for expected, changed in (
            ("padded", {}),
            ("padded", {"dtype": torch.float16}),
            ("packed", {"dtype": torch.bfloat16}),  # not measured
            ("packed", {"batch": 7}),
            ("packed", {"is_kept": False}),
            ("packed", {"with_gradients": False}),
            ("packed", {"length": 10}),  # memory grows with the padded batch
        ):
            case = {
                "dtype": torch.float32,
                "batch": 8,
                "is_kept": True,
                "with_gradients": True,
                "length": 60,
                **changed,
            }
            x = OnGpu((100, case["batch"], 512), case["dtype"])
            batch = Batch.of(100, [100] + [case["length"]] * (case["batch"] - 1))
            with self.subTest(changed), torch.set_grad_enabled(case["with_gradients"]):
                found = rnn_choice.rule(lstm, x, batch, case["is_kept"])
                self.assertEqual(found, expected)

    def test_steps_after_the_longest_sequence_are_not_run(self):
        for first, lengths in itertools.product(
            (False, True), ([20] * 4, [20, 5, 0, 7], [0] * 4)
        ):
            lstm, x = (
                dt.LSTM(3, 5, bidirectional=True, batch_first=first),
                torch.randn(50, 4, 3, requires_grad=True),
            )
            required, of_required = rnn_passes.run_padded(
                lstm, x, torch.tensor(lengths), None
            )
            steps = []
            run = lambda x, *given: (steps.append(len(x)), torch.lstm(x, *given))[1]
            with mock.patch.dict(rnn_pass._CALLS, LSTM=run), running("padded"):
                output, states = lstm(
                    x.transpose(0, 1) if first else x, lengths=lengths
                )
            self.assertEqual(steps, [max(1, *lengths)] * 2)
            self.assertTrue(output.is_contiguous())
            torch.testing.assert_close((output, *states), (required, *of_required))
            gradients = (
                torch.autograd.grad(found.sum(), x)[0] for found in (output, required)
            )
            torch.testing.assert_close(*gradients)

    def test_the_rule_on_a_cpu(self):
        lstm, gru = dt.LSTM(64, 64), dt.GRU(64, 64)
        x = torch.randn(200, 16, 64)
        full, sparse, dense = [200] * 16, [200, *range(1, 16)], [200, *[150] * 15]
        empty = [*sparse[:15], 0]

        def find(rnn, lengths, x=x, is_kept=True):
            return rnn_choice.rule(rnn, x, Batch.of(len(x), lengths), is_kept)

        self.assertEqual([find(rnn, full) for rnn in (lstm, gru)], ["whole", "whole"])
        self.assertEqual(
            [find(rnn, full, is_kept=False) for rnn in (lstm, gru)], ["whole", "packed"]
        )
        short, full_of_short = torch.randn(15, 16, 64), [15] * 16
        self.assertEqual(
            [find(rnn, full_of_short, short) for rnn in (lstm, gru)],
            ["packed", "whole"],
        )
        self.assertEqual(
            [find(lstm, dense), find(lstm, sparse)], ["padded", "segments"]
        )
        self.assertEqual([find(gru, dense), find(gru, sparse)], ["packed", "packed"])
        with torch.no_grad():
            self.assertEqual(
                [find(lstm, dense), find(lstm, sparse)], ["padded", "packed"]
            )
        # Packing is exact in every dtype, and oneDNN's LSTM is for float32 alone.
        self.assertEqual(find(lstm, dense, x.double()), "packed")
        # Packing rejects a length of 0.
        self.assertEqual(
            [find(gru, empty), find(lstm, empty), find(lstm, [0] * 16)],
            ["padded", "segments", "padded"],
        )
        # Short and small batches are faster packed.
        self.assertEqual(
            [find(lstm, [n, *[n - 1] * 15], x[:n]) for n in (15, 16)],
            ["packed", "padded"],
        )
        with torch.no_grad():
            self.assertEqual(
                [find(lstm, [200, *[199] * n], x[:, : n + 1]) for n in (6, 7)],
                ["packed", "padded"],
            )
        for rnn in (lstm, gru):
            self.assertTrue(torch.equal(rnn(x, lengths=full)[0], rnn(x)[0]))

    def test_the_environment_forces_a_form(self):
        x, lengths = torch.randn(3, 2, 64), torch.tensor([1, 3])
        gru = dt.GRU(64, 64)
        for forced, form in (
            ("two_passes", "padded"),
            ("one_pass", "padded"),
            ("packed", "packed"),
        ):
            with self.subTest(forced), mock.patch.dict(os.environ, DML_CUDA_RNN=forced):
                self.assertEqual(
                    rnn_choice.rule(gru, x, Batch.of(3, [1, 3]), True), form
                )
                self.assertEqual(
                    rnn_choice.rule(gru, x, Batch.of(3, [0, 3]), True), "padded"
                )
                for of in (pytorch, dt):
                    pack = of.pack_padded_sequence(x, lengths, enforce_sorted=False)
                    with mock.patch.object(
                        rnn_module, "run_padded", side_effect=rnn_passes.run_padded
                    ) as run:
                        gru(pack)
                    self.assertEqual(run.call_count, form == "padded")

    def test_the_log_names_each_form_of_a_module_once(self):
        lstm, x = dt.LSTM(3, 5), torch.randn(20, 2, 3)
        with self.assertLogs("dml_cuda.torch", "DEBUG") as logged:
            for lengths in (
                [20, 20],
                [20, 19],
                [20, 20],
                [20, 18],
                torch.tensor([20, 18]),
            ):
                lstm(x, lengths=lengths)
        self.assertEqual(
            [record.getMessage() for record in logged.records],
            [
                "LSTM(3, 5) runs whole: T=20, B=2, 40 rows filled",
                "LSTM(3, 5) runs padded: T=20, B=2, 39 rows filled",
            ],
        )

    def test_a_default_device_or_a_mode_of_functions_changes_nothing(self):
        class Mode(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                return func(*args, **(kwargs or {}))

        lstm, x = dt.LSTM(3, 5, 2, bidirectional=True), torch.randn(20, 9, 3)

        def results(lengths):
            packs = (
                of.pack_padded_sequence(x, lengths, enforce_sorted=False)
                for of in (pytorch, dt)
            )
            outputs = [
                pytorch.pad_packed_sequence(lstm(pack)[0], total_length=20)[0]
                for pack in packs
            ]
            return [
                *outputs,
                lstm(x, lengths=lengths)[0],
                lstm(x, lengths=torch.tensor(lengths, device="cpu"))[0],
            ]

        for lengths in ([20] * 9, [20] * 8 + [19], [20] + [2] * 8):
            for form in (None, "packed", "padded", "segments"):
                forced = contextlib.nullcontext() if form is None else running(form)
                with (
                    forced,
                    mock.patch.object(
                        rnn_choice, "rule", side_effect=rnn_choice.rule
                    ) as rule,
                ):
                    required, forms = results(lengths), rule.call_args_list
                    # What lands on the default device has no data.
                    for mode in (torch.device("meta"), Mode()):
                        rule.reset_mock()
                        with mode:
                            found = results(lengths)
                        torch.testing.assert_close(found, required)
                        calls = rule.call_args_list, forms
                        self.assertEqual(
                            *(
                                [str(call.args[2:]) for call in of_one]
                                for of_one in calls
                            )
                        )

    def test_a_pack_that_no_module_runs_padded_is_pytorchs(self):
        sparse, dense = [30, *[3] * 19], [30, *[25] * 19]
        x = torch.randn(30, 20, 4)

        def is_kept(x, lengths):
            pack = dt.pack_padded_sequence(x, lengths)
            for found, required in zip(
                pack, pytorch.pack_padded_sequence(x, lengths), strict=True
            ):
                self.assertTrue(found is required or torch.equal(found, required))
            return type(pack) is Padded

        self.assertTrue(
            is_kept(x, dense) and is_kept(x, sparse) and is_kept(x.double(), [30] * 20)
        )
        self.assertFalse(
            is_kept(x.double(), dense)
            or is_kept(x.long(), dense)
            or is_kept(x[:15], [15, *[9] * 19])
        )
        with torch.no_grad():
            self.assertTrue(is_kept(x, dense))
            self.assertFalse(is_kept(x, sparse))

    def test_segments_cover_every_step_of_every_sequence(self):
        for seed, count in itertools.product(range(20), (1, 2, 4, 8)):
            draw = torch.Generator().manual_seed(seed)
            lengths = (
                torch.randint(0, 50, (11,), generator=draw)
                .sort(descending=True)[0]
                .tolist()
            )
            steps = [0] * len(lengths)
            begin = 0
            with mock.patch.object(rnn_choice, "SEGMENTS", count):
                segments = rnn_choice.segments_of(lengths)
            for end, active in segments:
                self.assertGreater(end, begin)
                steps = [
                    n + (end - begin) * (row < active) for row, n in enumerate(steps)
                ]
                begin = end
            self.assertTrue(all(n >= length for n, length in zip(steps, lengths)))
            self.assertEqual(begin, lengths[0])
