"""RNNs with lengths in two processes, as DDP and FSDP2 run them, and their distributed checkpoints: over NCCL on two
GPUs where there are two, else over gloo on the CPU. Skipped, and counted, without PyTorch."""

import copy
import os
import tempfile
import unittest

from with_torch import dt, torch  # first: without PyTorch it skips this module

import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch.distributed.fsdp import fully_shard
from torch.nn.utils import rnn as pytorch

GPUS = torch.cuda.device_count()
STEPS, LENGTHS = 9, ([9, 3, 5, 1], [2, 9, 4, 4])  # of each process
NEAR = {"atol": 1e-4, "rtol": 1e-4}  # cuDNN's two forms round differently


def run(model, x, lengths, way):
    if way == "lengths":
        return model(x, lengths=lengths)[0]
    pack, unpack = (
        (dt.pack_padded_sequence, dt.pad_packed_sequence)
        if way == "ours"
        else (pytorch.pack_padded_sequence, pytorch.pad_packed_sequence)
    )
    return unpack(model(pack(x, lengths, enforce_sorted=False))[0])[0]


def process(rank, folder):
    device = torch.device("cuda", rank) if GPUS > 1 else torch.device("cpu")
    if GPUS > 1:
        torch.cuda.set_device(device)
        torch.backends.cudnn.allow_tf32 = False
    store = f"file://{folder}/store"
    dist.init_process_group(
        "nccl" if GPUS > 1 else "gloo", init_method=store, rank=rank, world_size=2
    )
    torch.manual_seed(0)
    rnn = torch.nn.LSTM(6, 8, num_layers=2, bidirectional=True).to(device)
    data = [
        (torch.randn(STEPS, 4, 6).to(device), torch.tensor(lengths))
        for lengths in LENGTHS
    ]
    mesh = dist.device_mesh.init_device_mesh(device.type, (2,))
    wrappers = (
        torch.nn.parallel.DistributedDataParallel,
        lambda module: fully_shard(module, mesh=mesh),
    )
    converted = dt.convert_rnns(copy.deepcopy(rnn))
    of_rank = run(rnn, *data[rank], "theirs").detach()
    for wrap in wrappers:
        required, model = wrap(copy.deepcopy(rnn)), wrap(copy.deepcopy(converted))
        run(required, *data[rank], "theirs").sin().sum().backward()
        for way in ("lengths", "ours", "theirs"):
            model.zero_grad()
            output = run(model, *data[rank], way)
            torch.testing.assert_close(output, of_rank, **NEAR)
            output.sin().sum().backward()
            for weight, same in zip(
                model.parameters(), required.parameters(), strict=True
            ):
                pair = (
                    getattr(part.grad, "full_tensor", lambda grad=part.grad: grad)()
                    for part in (weight, same)
                )
                torch.testing.assert_close(*pair, **NEAR)

    # A checkpoint of PyTorch's module fits the converted one, sharded or not.
    checkpoint.save({"rnn": rnn.state_dict()}, checkpoint_id=f"{folder}/saved")
    for model in (model, converted):
        with torch.no_grad():
            for weight in model.parameters():
                weight.zero_()
        state = {"rnn": model.state_dict()}
        checkpoint.load(state, checkpoint_id=f"{folder}/saved")
        model.load_state_dict(state["rnn"])
        torch.testing.assert_close(run(model, *data[rank], "lengths"), of_rank, **NEAR)
    dist.barrier()
    os._exit(0)  # as in test_torch_sharding.py


class Distributed(unittest.TestCase):
    def test_two_processes(self):
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        with tempfile.TemporaryDirectory() as folder:
            torch.multiprocessing.spawn(process, (folder,), nprocs=2)

    @unittest.skipIf(
        GPUS < 2, "fewer than two GPUs" if GPUS else "no PyTorch with a GPU"
    )
    def test_two_gpus_of_one_process(self):
        x, lengths = torch.randn(STEPS, 4, 6), torch.tensor(LENGTHS[0])
        rnn = dt.LSTM(6, 8, bidirectional=True)
        required = run(torch.nn.LSTM.forward.__get__(rnn), x, lengths, "theirs")
        for current in range(2):
            with torch.cuda.device(current):
                for device in ("cuda:1", "cuda:0"):  # a module that moves
                    for of_lengths in (lengths, lengths.to(device)):
                        output = rnn.to(device)(x.to(device), lengths=of_lengths)[0]
                        torch.testing.assert_close(
                            output.cpu(), required, atol=1e-2, rtol=1e-2
                        )
        first = dt.LSTM(6, 8, bidirectional=True, batch_first=True).to("cuda:0")
        first.load_state_dict(rnn.state_dict())
        batch = x.transpose(0, 1).contiguous().to("cuda:0")
        output, _ = torch.nn.DataParallel(first)(batch, lengths=lengths.to("cuda:0"))
        torch.testing.assert_close(
            output.transpose(0, 1).cpu(), required, atol=1e-2, rtol=1e-2
        )
        output.sum().backward()
        self.assertTrue(all(weight.grad is not None for weight in first.parameters()))
