"""dml_cuda.torch's packs, compared with PyTorch's. Skipped, and counted, without PyTorch."""

import concurrent.futures
import contextlib
import copy
import io
import itertools
import pickle
import unittest
import warnings
from unittest import mock

from with_torch import (
    CUDA,
    DEVICES,
    dt,
    torch,
)  # first: without PyTorch it skips this module

from dml_cuda.torch.packing import Padded
from random_rnns import running
import torch.utils.checkpoint
from torch.nn.utils import rnn as pytorch
from torch.nn.utils.rnn import PackedSequence

LENGTHS = torch.tensor([4, 7, 1, 7, 2])
SORTED = LENGTHS.sort(descending=True)[0]


def batch(first=False, steps=9, device="cpu"):
    torch.manual_seed(0)
    x = torch.randn(steps, 5, 6, device=device)
    x[(torch.arange(steps)[:, None] >= LENGTHS).to(device)] = float("nan")
    return x.transpose(0, 1) if first else x


class Values(torch.utils.data.Dataset):
    def __len__(self):
        return 3

    def __getitem__(self, index):
        return float(index)


def collate(values):
    return dt.pack_padded_sequence(torch.full((4, 2, 3), values[0]), [4, 2])


class Packing(unittest.TestCase):
    def setUp(self):
        self.enterContext(running("padded"))  # small calls would run packed

    def same(self, found, required):
        for a, b in zip(found, required, strict=True):
            self.assertTrue((a is None and b is None) or torch.equal(a, b), (a, b))

    def test_reading_gives_what_pytorch_packs(self):
        for device, first, (lengths, is_sorted) in itertools.product(
            DEVICES,
            (False, True),
            (
                (LENGTHS, False),
                (SORTED, True),
                (SORTED, False),
                (LENGTHS.tolist(), False),
                (LENGTHS.float() + 0.5, False),
            ),
        ):
            x = batch(first, device=device).nan_to_num(3)
            if isinstance(lengths, torch.Tensor) and lengths.is_floating_point():
                lengths = lengths.tolist()
            found, required = (
                pack(x, lengths, first, is_sorted)
                for pack in (dt.pack_padded_sequence, pytorch.pack_padded_sequence)
            )
            self.assertTrue(
                isinstance(found, PackedSequence)
                and isinstance(found, tuple)
                and type(found) is Padded
            )
            self.same(
                [found.batch_sizes, found.sorted_indices, found.unsorted_indices],
                required[1:],
            )
            self.assertTrue(found.is_kept)
            for args in (((first,)), (first, -1.0), (not first, 2.0, 8)):
                a, b = (
                    dt.pad_packed_sequence(found, *args),
                    pytorch.pad_packed_sequence(required, *args),
                )
                self.same(a, b)
                self.assertEqual(
                    *((part[0].stride(), part[1].device) for part in (a, b))
                )
            self.same(found, required)
            self.assertFalse(found.is_kept)
            self.same(
                dt.pad_packed_sequence(found), pytorch.pad_packed_sequence(required)
            )
            self.assertEqual(
                (len(found), repr(found), found.is_cuda),
                (4, repr(required), required.is_cuda),
            )
            self.same(
                [found[0], found[-1], *found[1:3]],
                [required[0], required[-1], *required[1:3]],
            )

    def test_whoever_reads_a_pack_first_does_not_take_its_gradients(self):
        readers = {
            "data": lambda pack: pack.data,
            "iteration": list,
            "repr": repr,
            "PyTorch's unpacking": pytorch.pad_packed_sequence,
            "a packed pass": dt.GRU(4, 5),
        }
        contexts = (
            torch.no_grad,
            torch.inference_mode,
            lambda: torch.set_grad_enabled(True),
        )
        for (name, read), context in itertools.product(readers.items(), contexts):
            with self.subTest(name):
                x = torch.randn(6, 3, 4, requires_grad=True)
                pack = dt.pack_padded_sequence(x, [6, 2, 4], enforce_sorted=False)
                with context():
                    read(pack)
                dt.GRU(4, 5)(pack)[1].sum().backward()
                self.assertGreater(x.grad.abs().sum(), 0)

    def test_packs_in_checkpoints_and_transforms(self):
        for rnn, use_reentrant in itertools.product(
            (dt.GRU(4, 5), dt.LSTM(4, 5)), (False, True)
        ):
            gradients = []
            for of in (pytorch, dt):
                x, scale = (
                    torch.ones(6, 3, 4, requires_grad=True),
                    torch.ones((), requires_grad=True),
                )
                pack = of.pack_padded_sequence(x, [6, 2, 4], enforce_sorted=False)
                run = lambda scale, pack=pack: rnn(pack)[0].data * scale
                torch.utils.checkpoint.checkpoint(
                    run, scale, use_reentrant=use_reentrant
                ).sum().backward()
                gradients.append(x.grad)
            torch.testing.assert_close(*gradients)
        for with_gradient in (False, True):
            x = torch.ones(6, 3, 4, requires_grad=with_gradient)
            pack = dt.pack_padded_sequence(x, [6, 2, 4], enforce_sorted=False)
            torch.func.grad(lambda scale, pack=pack: (pack.data * scale).sum())(
                torch.ones(())
            )
            self.assertEqual(copy.copy(pack).data.sum(), 48)
            if not with_gradient:
                self.assertEqual(pickle.loads(pickle.dumps(pack)).data.sum(), 48)

    def test_threads_read_the_same_data(self):
        for _ in range(40):
            pack = dt.pack_padded_sequence(torch.ones(40, 8, 64), [40] * 8)
            with concurrent.futures.ThreadPoolExecutor(8) as threads:
                found = list(
                    threads.map(lambda _, pack=pack: pack.data.data_ptr(), range(8))
                )
            self.assertEqual(found, [pack.data.data_ptr()] * 8)
        with self.assertRaises(AttributeError):
            pack.data = torch.zeros(3)

    def test_errors_are_pytorchs(self):
        x = batch()
        for given in (
            (x, torch.tensor([4, 7, 0, 7, 2]), False, False),
            (x, LENGTHS),
            (x, LENGTHS[:4]),
            (x, [4, 3]),
            (x, torch.tensor(3)),
            (x, torch.tensor([10, 9, 8, 7, 6])),
            (x, torch.tensor([4, 3, 2, 1, -1])),
            (x[:0], LENGTHS, False, False),
            (x[0, 0, 0], [1]),
            (x, "abc"),
        ):
            errors = []
            for pack in (pytorch.pack_padded_sequence, dt.pack_padded_sequence):
                try:
                    errors.append(("packs", str(pack(*given))))
                except Exception as error:
                    errors.append((type(error), str(error)))
            self.assertEqual(*errors)
        pack = dt.pack_padded_sequence(x, LENGTHS, enforce_sorted=False)
        with self.assertRaisesRegex(
            ValueError, "total_length=3 and max sequence length being 7"
        ):
            dt.pad_packed_sequence(pack, total_length=3)

    def test_values_are_those_at_pack_time(self):
        x, lengths = batch().nan_to_num(0), LENGTHS.clone()
        pack, required = (
            dt.pack_padded_sequence(x, lengths, enforce_sorted=False),
            pytorch.pack_padded_sequence(x, LENGTHS, enforce_sorted=False),
        )
        x.zero_(), lengths.fill_(1)
        output, counts = dt.pad_packed_sequence(pack)
        output.zero_(), counts.zero_()
        self.same(pack, required)

    def test_a_change_of_the_data_is_seen(self):
        lstm, x = dt.LSTM(6, 8, bidirectional=True), batch()
        packs = [
            pack(x, LENGTHS, enforce_sorted=False)
            for pack in (dt.pack_padded_sequence, pytorch.pack_padded_sequence)
        ]
        for pack in packs:
            pack.data.mul_(2)
        outputs = [pytorch.pad_packed_sequence(lstm(pack)[0])[0] for pack in packs]
        torch.testing.assert_close(*outputs)
        replaced = [pack._replace(data=pack.data + 1) for pack in packs]
        self.assertIsInstance(replaced[0], PackedSequence)
        self.same(*replaced)
        torch.testing.assert_close(
            *(pytorch.pad_packed_sequence(lstm(pack)[0])[0] for pack in replaced)
        )
        torch.testing.assert_close(
            *(dt.pad_packed_sequence(lstm(pack)[0])[0] for pack in replaced)
        )

    def test_copies_pickles_and_conversions(self):
        x = batch(steps=7)
        required = pytorch.pack_padded_sequence(x, LENGTHS, enforce_sorted=False)
        for change in (
            copy.copy,
            copy.deepcopy,
            lambda pack: pickle.loads(pickle.dumps(pack)),
            lambda pack: pack.to("cpu"),
            lambda pack: pack.double(),
            lambda pack: pack.to(torch.float16),
            lambda pack: pack.cpu(),
            self.saved,
            *(
                [
                    lambda pack: pack.cuda(),
                    lambda pack: pack.pin_memory(),
                    lambda pack: pack.to("cuda", non_blocking=True),
                ]
                if CUDA
                else []
            ),
        ):
            found = change(dt.pack_padded_sequence(x, LENGTHS, enforce_sorted=False))
            self.same(found, change(required))
            self.assertEqual(found.data.device, change(required).data.device)
        kept = dt.pack_padded_sequence(x, LENGTHS, enforce_sorted=False)
        self.assertIs(kept.to("cpu"), kept)
        self.assertTrue(
            kept.double().is_kept
            and copy.copy(kept).is_kept
            and copy.deepcopy(kept).is_kept
        )
        # A file holds no padding, and needs this library no more than PyTorch's does. The pack stays as it was.
        pickle.dumps(kept)
        self.assertTrue(kept.is_kept)
        with torch.serialization.safe_globals([PackedSequence]):  # PyTorch's own advice
            self.same(self.saved(kept, weights_only=True), required)
        self.assertEqual(*(len(pickle.dumps(pack)) for pack in (kept, required)))
        tree = torch.utils._pytree.tree_map(lambda part: part * 1, kept)
        self.same(tree, required)
        tuple(kept)
        self.same(pickle.loads(pickle.dumps(kept)), required)
        self.same(kept.to("cpu"), required)

    def saved(self, pack, weights_only=False):
        file = io.BytesIO()
        torch.save(pack, file)
        file.seek(0)
        return torch.load(file, weights_only=weights_only)

    def test_a_pack_is_used_as_a_tuple(self):
        for use in (
            lambda pack: pack + (1,),
            lambda pack: (1,) + pack,
            lambda pack: pack + pack,
            lambda pack: pack * 2,
            lambda pack: 2 * pack,
            lambda pack: [
                pack == tuple(pack),
                tuple(pack) == pack,
                pack != tuple(pack),
                pack == 3,
                pack != None,
            ],
            lambda pack: [
                pack <= tuple(pack),
                pack < tuple(pack),
                tuple(pack) > pack,
                pack == copy.copy(pack),
            ],
            lambda pack: [
                hash(pack) == hash(tuple(pack)),
                {pack: 1}[tuple(pack)],
                {tuple(pack): 1}[pack],
            ],
            lambda pack: [None in pack, pack.count(None), pack.index(pack.data)],
            lambda pack: list(reversed(pack)),
            lambda pack: pack._asdict().values(),
            lambda pack: (lambda data, *rest: rest)(*pack),
        ):
            results = []
            for of in (pytorch, dt):
                results.append(
                    list(use(of.pack_padded_sequence(torch.ones(3, 2), [3, 2])))
                )
            for found, required in zip(*results, strict=True):
                self.assertEqual(type(found), type(required))
                self.assertTrue(
                    torch.equal(found, required)
                    if torch.is_tensor(found)
                    else found == required
                )
        for use in (
            lambda pack: pack + 1,
            lambda pack: 1 + pack,
            lambda pack: pack == (1, 2, 3, 4),
        ):
            errors = []
            for of in (pytorch, dt):
                with self.assertRaises((TypeError, RuntimeError)) as error:
                    use(of.pack_padded_sequence(torch.ones(3, 2), [3, 2]))
                errors.append(type(error.exception))
            self.assertEqual(*errors)

    def test_a_worker_of_a_data_loader_sends_packs(self):
        loader = torch.utils.data.DataLoader(
            Values(), num_workers=1, collate_fn=collate
        )
        for index, pack in enumerate(loader):
            self.assertTrue(pack.is_kept)
            self.same(
                pack,
                pytorch.pack_padded_sequence(
                    torch.full((4, 2, 3), float(index)), [4, 2]
                ),
            )

    def test_a_loader_without_batches_takes_a_pack_apart(self):
        pack = dt.pack_padded_sequence(torch.randn(5, 2, 3), [5, 2])
        (found,) = torch.utils.data.DataLoader([pack], batch_size=None)
        self.same(found, pack)

    def test_the_functions_may_replace_pytorchs(self):
        x, required = (
            torch.randn(3, 2, 6),
            pytorch.pack_padded_sequence(torch.ones(3, 2), [3, 1]).batch_sizes,
        )
        names = "pack_padded_sequence", "pad_packed_sequence"
        with contextlib.ExitStack() as stack:
            for name in names:
                stack.enter_context(mock.patch.object(pytorch, name, getattr(dt, name)))
            packed = pytorch.pack_padded_sequence(x, [3, 1])
            output, _ = pytorch.pad_packed_sequence(dt.GRU(6, 8)(packed)[0])
            with self.assertRaisesRegex(RuntimeError, "lengths"):
                pytorch.pack_padded_sequence(x, [1, 3])
        self.assertTrue(torch.equal(packed.batch_sizes, required))
        self.assertEqual(output.shape, (3, 2, 8))

    def test_a_module_and_a_pack_may_disagree_on_batch_first(self):
        for of_rnn, of_pack, pack in itertools.product(
            (False, True),
            (False, True),
            (dt.pack_padded_sequence, pytorch.pack_padded_sequence),
        ):
            lstm, plain = (
                dt.LSTM(6, 8, 2, bidirectional=True, batch_first=of_rnn),
                torch.nn.LSTM(6, 8, 2, bidirectional=True, batch_first=True),
            )
            plain.load_state_dict(lstm.state_dict())
            x, hx = batch(of_pack), tuple(torch.randn(4, 5, 8) for _ in range(2))
            found, states = lstm(pack(x, LENGTHS, of_pack, False), hx)
            required, of_required = plain(
                pytorch.pack_padded_sequence(x, LENGTHS, of_pack, False), hx
            )
            torch.testing.assert_close(
                [dt.pad_packed_sequence(found, True)[0], *states],
                [pytorch.pad_packed_sequence(required, True)[0], *of_required],
            )

    def test_stacked_modules_stay_padded(self):
        first, second = dt.LSTM(6, 8, bidirectional=True), dt.LSTM(16, 4)
        pack = dt.pack_padded_sequence(batch(), LENGTHS, enforce_sorted=False)
        middle = first(pack)[0]
        self.assertTrue(type(middle) is Padded and middle.is_kept)
        found = dt.pad_packed_sequence(second(middle)[0])[0]
        required = second(
            pytorch.PackedSequence(
                *first(
                    pytorch.pack_padded_sequence(batch(), LENGTHS, enforce_sorted=False)
                )[0]
            )
        )[0]
        torch.testing.assert_close(found, pytorch.pad_packed_sequence(required)[0])
        # PyTorch's own module and function read a pack.
        plain = torch.nn.LSTM(6, 8, bidirectional=True)
        torch.testing.assert_close(
            *(
                pytorch.pad_packed_sequence(plain(p)[0])[0]
                for p in (
                    dt.pack_padded_sequence(batch(), LENGTHS, enforce_sorted=False),
                    pytorch.pack_padded_sequence(
                        batch(), LENGTHS, enforce_sorted=False
                    ),
                )
            )
        )

    def test_traces(self):
        class Model(torch.nn.Module):
            def __init__(self, pack, unpack):
                super().__init__()
                self.rnn, self.pack, self.unpack = (
                    dt.GRU(6, 8, bidirectional=True),
                    pack,
                    unpack,
                )

            def forward(self, x, lengths):
                return self.unpack(
                    self.rnn(self.pack(x, lengths, enforce_sorted=False))[0]
                )[0]

        model = Model(dt.pack_padded_sequence, dt.pad_packed_sequence)
        x = batch().nan_to_num(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            traced = torch.jit.trace(model, (x, LENGTHS))
            other = torch.tensor([3, 9, 2, 2, 6])
            torch.testing.assert_close(traced(x, other), model(x, other))
            # C code reads the tuple.
            with self.assertRaisesRegex(RuntimeError, "value of type Padded"):
                torch.jit.trace(
                    lambda pack: pack[0] * 2,
                    (dt.pack_padded_sequence(x, LENGTHS, enforce_sorted=False),),
                )
        compiled = torch.compile(model, backend="aot_eager")
        torch.testing.assert_close(compiled(x, LENGTHS), model(x, LENGTHS))
        # As docs/pytorch.md says, a compiled function takes PyTorch's pack.
        pack = dt.pack_padded_sequence(x, LENGTHS, enforce_sorted=False)
        compiled = torch.compile(
            lambda pack: dt.pad_packed_sequence(model.rnn(pack)[0])[0],
            backend="aot_eager",
        )
        torch.testing.assert_close(compiled(PackedSequence(*pack)), model(x, LENGTHS))
        torch._dynamo.reset()

    @unittest.skipIf(not CUDA, "no PyTorch with a GPU")
    def test_lengths_on_a_gpu(self):
        x, lengths = batch(device="cuda"), LENGTHS.cuda()
        lstm = dt.LSTM(6, 8, 2, bidirectional=True).cuda()
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error")
        try:
            pack = dt.pack_padded_sequence(x, lengths, enforce_sorted=False)
            output, counts = dt.pad_packed_sequence(lstm(pack)[0])
        finally:
            torch.cuda.set_sync_debug_mode("default")
        self.assertEqual((output.shape[0], counts.device), (9, x.device))
        required = pytorch.pad_packed_sequence(
            lstm(pytorch.pack_padded_sequence(x, LENGTHS, enforce_sorted=False))[0],
            total_length=9,
        )[0]
        torch.testing.assert_close(output, required, rtol=1e-2, atol=1e-2)
        self.same(pack, pytorch.pack_padded_sequence(x, LENGTHS, enforce_sorted=False))
        for total in (5, 12):
            self.assertEqual(
                len(
                    dt.pad_packed_sequence(
                        lstm(dt.pack_padded_sequence(x, lengths, enforce_sorted=False))[
                            0
                        ],
                        total_length=total,
                    )[0]
                ),
                total,
            )
        with self.assertRaisesRegex(RuntimeError, "sorted"):  # found when it is read
            dt.pack_padded_sequence(x, lengths).batch_sizes
