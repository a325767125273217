"""dml_cuda.torch on a GPU: streams, the allocator, CUDA graphs, several GPUs, and CuPy's arrays. Skipped, and counted,
without PyTorch or without a GPU."""

import itertools
import unittest

from with_torch import (
    CUDA,
    dt,
    model,
    same,
    torch,
)  # first: without PyTorch it skips this module

import dml_cuda
import numpy as np


@unittest.skipIf(not CUDA, "no PyTorch with a GPU")
class Gpu(unittest.TestCase):
    def test_pytorchs_current_stream_is_used(self):
        stream = torch.cuda.Stream()
        x, lengths = (
            torch.zeros(64, 1 << 16, device="cuda"),
            torch.full((64, 1), 1 << 16, device="cuda"),
        )
        ramp = torch.arange(1 << 16, dtype=torch.float32, device="cuda")
        torch.cuda.synchronize()
        for n in range(1, 4):
            with torch.cuda.stream(stream):
                torch.cuda._sleep(20_000_000)
                x.copy_(ramp + n)
                found = dt.reverse_subsequences(x, lengths, 1)
                right = (found == (1 << 16) - 1 - ramp + n).all()
            stream.synchronize()
            self.assertTrue(right.item())

    def test_memory_that_the_allocator_reuses_on_a_side_stream(self):
        side, lengths = (
            torch.cuda.Stream(),
            torch.randint(0, 1 << 12, (1 << 12, 1), device="cuda"),
        )
        base = torch.arange(1 << 24, device="cuda", dtype=torch.float32).reshape(
            1 << 12, 1 << 12
        )
        wrong = []
        torch.cuda.synchronize()
        before, total = (
            torch.cuda.memory_reserved(),
            torch.cuda.get_device_properties(0).total_memory,
        )
        # Space for about ten tensors of 64 MiB, so that the allocator must give freed memory out again.
        torch.cuda.set_per_process_memory_fraction((before + (640 << 20)) / total)
        try:
            for n in range(200):
                with torch.cuda.stream(side):
                    x = base + n
                    reversed_twice = dt.reverse_subsequences(
                        dt.reverse_subsequences(x, lengths, 1), lengths, 1
                    )
                    wrong.append((reversed_twice != x).any())
                    dt.reverse_subsequences_(x, lengths, 1)
                    wrong.append(
                        (dt.reverse_subsequences(x, lengths, 1) != base + n).any()
                    )
                    del x, reversed_twice
                torch.full((1 << 12, 1 << 12), float("nan"), device="cuda")
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)
        torch.cuda.synchronize()
        self.assertFalse(torch.stack(wrong).any().item())

    def test_a_call_that_fails_keeps_no_memory(self):
        x, lengths = (
            torch.zeros(64, 1 << 16, device="cuda"),
            torch.ones(64, 1, dtype=torch.int64, device="cuda"),
        )
        torch.cuda.synchronize()
        before, total = (
            torch.cuda.memory_allocated(),
            torch.cuda.get_device_properties(0).total_memory,
        )
        for error, call in [
            (ValueError, lambda: dt.reverse_subsequences(x, lengths, 2)),
            (TypeError, lambda: dt.reverse_subsequences(x, lengths.float(), 1)),
            (ValueError, lambda: dt.reverse_subsequences(x, lengths.cpu(), 1)),
            (
                ValueError,
                lambda: dt.reverse_subsequences_(x[0].expand(64, 1 << 16), lengths, 1),
            ),
            # In Rust a RuntimeError, in Python a ValueError.
            (
                (RuntimeError, ValueError),
                lambda: torch.ops.dml_cuda.reverse_subsequences(x, lengths, 2),
            ),
        ]:
            with self.assertRaises(error):
                call()
        self.assertEqual(torch.cuda.memory_allocated(), before)
        torch.cuda.empty_cache()
        torch.cuda.set_per_process_memory_fraction(torch.cuda.memory_reserved() / total)
        try:
            with self.assertRaises(torch.cuda.OutOfMemoryError):
                dt.reverse_subsequences(x, lengths, 1)
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)
        self.assertEqual(torch.cuda.memory_allocated(), before)

    def test_nothing_waits_and_nothing_is_allocated_but_the_result(self):
        x, lengths = (
            torch.randn(8, 64, device="cuda"),
            torch.full((8, 1), 5, device="cuda"),
        )
        dt.reverse_subsequences(x, lengths, 1)
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error")
        try:
            before = torch.cuda.memory_stats()["allocation.all.allocated"]
            kept = [dt.reverse_subsequences(x, lengths, 1) for _ in range(10)]
            self.assertEqual(
                torch.cuda.memory_stats()["allocation.all.allocated"] - before, 10
            )
            dt.reverse_subsequences_(x, lengths, 1)
            self.assertEqual(
                torch.cuda.memory_stats()["allocation.all.allocated"] - before, 10
            )
        finally:
            torch.cuda.set_sync_debug_mode("default")
        self.assertEqual(len(kept), 10)

    def test_cuda_graphs(self):
        x, lengths = (
            torch.randn(8, 64, device="cuda"),
            torch.full((8, 1), 5, device="cuda"),
        )
        dt.reverse_subsequences(x, lengths, 1)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = dt.reverse_subsequences(x, lengths, 1)
        for _ in range(5):
            x.copy_(torch.randn(8, 64)), lengths.copy_(torch.randint(0, 65, (8, 1)))
            graph.replay()
            same(found, model(x, lengths, 1))
        compiled = torch.compile(
            lambda x, l: dt.reverse_subsequences(x + 1, l, 1) * 2,
            fullgraph=True,
            mode="reduce-overhead",
        )
        for _ in range(5):
            x, lengths = (
                torch.randn(8, 64, device="cuda"),
                torch.randint(0, 65, (8, 1), device="cuda"),
            )
            same(compiled(x, lengths).clone(), model(x + 1, lengths, 1) * 2)

    def test_the_current_device_stays_what_it_was(self):
        count = torch.cuda.device_count()
        if count < 2:
            self.skipTest("one GPU")
        for current in range(count):
            torch.cuda.set_device(current)
            for ordinal in range(count):
                x, lengths = (
                    torch.randn(30, 40, device=f"cuda:{ordinal}"),
                    torch.full((30, 1), 7, device=f"cuda:{ordinal}"),
                )
                found = dt.reverse_subsequences(x, lengths, 1)
                self.assertEqual(torch.cuda.current_device(), current)
                same(found, model(x, lengths, 1))
        torch.cuda.set_device(0)

    def test_our_stream_waits_for_the_one_that_an_array_names(self):
        """A slow kernel, on a stream that does not synchronize with ours, still writes x, lengths or out."""
        try:
            import cupy
        except ImportError:
            self.skipTest("no CuPy")
        source = """extern "C" __global__ void slow(int* to, int n, int from) {
            for (long long begin = clock64(); clock64() - begin < 100000000; );
            for (int i = threadIdx.x; i < n; i += blockDim.x) to[i] = from + i;
        }"""
        slow, n = cupy.RawKernel(source, "slow"), 4096
        theirs, ours = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))

        class Interface:
            def __init__(self, array):
                self.__cuda_array_interface__ = {
                    **array.__cuda_array_interface__,
                    "stream": theirs.ptr,
                }

        class Dlpack:
            def __init__(self, array):
                self.array, self.__dlpack_device__ = array, array.__dlpack_device__

            def __dlpack__(self, **keywords):
                with theirs:
                    return self.array.__dlpack__(**keywords)

        of_torch = torch.from_dlpack  # its interface names no stream
        dml_cuda.reverse_subsequences(
            cupy.arange(n, dtype="int32"), cupy.full(1, n, "int32"), 0
        )  # loads the kernels
        for kind, stream, late in itertools.product(
            (Interface, Dlpack, of_torch), (None, ours), ("x", "lengths", "out")
        ):
            if (kind, late) == (of_torch, "x"):
                continue  # dml_cuda.torch
            arrays = {
                "x": cupy.arange(n, dtype="int32"),
                "lengths": cupy.full(1, n, "int32"),
                "out": cupy.zeros(n, "int32"),
            }
            array, start, count = (
                arrays[late],
                {"x": 1, "lengths": 7, "out": 9}[late],
                7 if late == "lengths" else n,
            )
            given = {**arrays, late: kind(array)}
            cupy.cuda.Device().synchronize()
            slow(
                (1,),
                (256,),
                (array, np.int32(array.size), np.int32(start)),
                stream=theirs,
            )
            with torch.cuda.stream(torch.cuda.ExternalStream(theirs.ptr)):
                dml_cuda.reverse_subsequences(
                    given["x"], given["lengths"], 0, out=given["out"], stream=stream
                )
            cupy.cuda.Device().synchronize()
            required = np.r_[count - 1 : -1 : -1, count:n] + (late == "x")
            self.assertEqual(
                arrays["out"].get().tolist(), required.tolist(), (kind, stream, late)
            )
        # A captured call waits for no stream that is not captured.
        with ours:
            ours.begin_capture()
            dml_cuda.reverse_subsequences(
                Interface(arrays["x"]),
                arrays["lengths"],
                0,
                out=arrays["out"],
                stream=ours,
            )
            graph = ours.end_capture()
            arrays["x"] += 5
            graph.launch(ours)
            self.assertEqual(arrays["out"].get().tolist(), list(range(n + 4, 4, -1)))

    def test_cupy_arrays(self):
        try:
            import cupy
        except ImportError:
            self.skipTest("no CuPy")
        for dtype in ("uint8", "float16", "float32", "complex128"):
            x = cupy.arange(3 * 4 * 50).reshape(3, 4, 50).astype(dtype)
            lengths = cupy.asarray([[[7]], [[50]], [[0]]], dtype="int64")
            found = dml_cuda.reverse_subsequences(x, lengths, 2)
            self.assertIsInstance(found, cupy.ndarray)
            self.assertEqual(
                found.get().tobytes(),
                dml_cuda.reverse_subsequences(x.get(), lengths.get(), 2).tobytes(),
            )
            view = x[:, ::2, 5:40].transpose(2, 0, 1)
            found = dml_cuda.reverse_subsequences(
                view, cupy.asarray(9, dtype="uint32"), 0
            )
            self.assertEqual(
                found.get().tobytes(),
                dml_cuda.reverse_subsequences(view.get(), 9, 0).tobytes(),
            )
        x = cupy.arange(100.0)
        with cupy.cuda.Stream(non_blocking=True):
            self.assertIs(
                dml_cuda.reverse_subsequences(x, cupy.asarray([100]), 0, out=x), x
            )
            self.assertEqual(x.get().tolist(), list(range(99, -1, -1)))
        self.assertEqual(
            dml_cuda.fill_value_sequence((2, 3), 1, 2, "int32", device="cuda")
            .get()
            .tolist(),
            [[1, 3, 5], [7, 9, 11]],
        )
        with self.assertRaisesRegex(
            ValueError, "lengths is on the host, but must be on GPU 0, as x is"
        ):
            dml_cuda.reverse_subsequences(x, np.array([1]), 0)
