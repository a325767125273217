"""Reversals of distributed tensors in two processes, on the CPU. Skipped, and counted, without PyTorch."""

import os
import tempfile
import unittest

from with_torch import dt, model, torch  # first: without PyTorch it skips this module

import torch.distributed as dist
from torch.distributed.tensor import Replicate, Shard, distribute_tensor


def process(rank, folder):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2
    )
    mesh = dist.device_mesh.init_device_mesh("cpu", (2,))
    torch.manual_seed(0)
    x, w = torch.randn(4, 7, 6), torch.randn(4, 7, 6)
    for of_lanes in ([4, 1, 6], [4, 1, 1], [6], []):
        lengths = torch.randint(0, 8, of_lanes)
        required = model(x, lengths, 1)
        for of_x in (Shard(0), Shard(2), Replicate(), Shard(1)):
            for of_lengths in (
                Replicate(),
                *(Shard(d) for d, size in enumerate(of_lanes) if size > 1),
            ):
                a = distribute_tensor(x, mesh, [of_x]).requires_grad_()
                n = distribute_tensor(lengths, mesh, [of_lengths])
                found = dt.reverse_subsequences(a, n, 1)
                assert torch.equal(found.full_tensor(), required), (
                    of_x,
                    of_lengths,
                    of_lanes,
                )
                if of_x in (Shard(0), Shard(2)):
                    assert found.placements == (of_x,), (found.placements, of_x)
                (found * distribute_tensor(w, mesh, found.placements)).sum().backward()
                assert torch.equal(a.grad.full_tensor(), model(w, lengths, 1))
                b = a.detach().clone()
                assert dt.reverse_subsequences_(b, n, 1) is b
                assert b.placements == (of_x,) and torch.equal(
                    b.full_tensor(), required
                )
    dist.barrier()
    # A process that destroys its group while the other still uses it is aborted now and then: "terminate called".
    os._exit(0)


class Sharding(unittest.TestCase):
    def test_two_processes(self):
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        with tempfile.TemporaryDirectory() as folder:
            torch.multiprocessing.spawn(process, (folder,), nprocs=2)
