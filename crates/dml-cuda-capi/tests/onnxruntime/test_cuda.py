"""The library in ONNX Runtime's CUDA provider. Skipped, and counted, without a GPU or CUDA provider, unless
REQUIRE_CUDA=1.

    DML_CUDA_LIBRARY=target/release/libdml_cuda.so REQUIRE_CUDA=1 python -m unittest test_cuda -v
"""

import json
import os
import tempfile
import unittest

import numpy as np
import onnxruntime as ort
from common import (
    LIBRARY,
    counters,
    fills,
    model,
    of_lanes,
    ranges,
    reverse,
    reverse_sequence,
    same,
    scalars,
)
from common import session, values
from onnx import helper

try:
    import torch

    if hasattr(ort, "preload_dlls"):
        ort.preload_dlls()
    WHY = "" if torch.cuda.is_available() else "no GPU"
except ImportError:
    WHY = "no PyTorch, which holds the device memory of these tests"
if not WHY and "CUDAExecutionProvider" not in ort.get_available_providers():
    WHY = "an ONNX Runtime without the CUDA provider"
if WHY and os.environ.get("REQUIRE_CUDA") == "1":
    raise SystemExit(f"REQUIRE_CUDA=1, and there is {WHY}")


def cuda(device=0, **options):
    return [("CUDAExecutionProvider", {"device_id": str(device), **options})]


def on_gpu(serialized, device=0, provider={}, **options):
    return session(serialized, providers=cuda(device, **provider), **options)


def bind(made, inputs, output):
    """Binds torch tensors by their addresses."""
    binding = made.io_binding()
    kinds = {
        torch.bool: np.bool_,
        torch.float32: np.float32,
        torch.float16: np.float16,
        torch.float64: np.float64,
        torch.uint8: np.uint8,
        torch.int8: np.int8,
        torch.int16: np.int16,
        torch.int32: np.int32,
        torch.int64: np.int64,
    }
    for name, tensor in inputs.items():
        binding.bind_input(
            name,
            tensor.device.type,
            tensor.device.index or 0,
            kinds[tensor.dtype],
            list(tensor.shape),
            tensor.data_ptr(),
        )
    name = made.get_outputs()[0].name
    binding.bind_output(
        name,
        output.device.type,
        output.device.index or 0,
        kinds[output.dtype],
        list(output.shape),
        output.data_ptr(),
    )
    return binding


@unittest.skipIf(WHY, WHY)
class Cuda(unittest.TestCase):
    def check(self, dtype, shape, time, lengths=None, device=0):
        random = np.random.default_rng(len(shape) * 7 + time)
        x = values(random, dtype, shape)
        lengths = (
            random.integers(0, shape[time] + 1, shape[1 - time])
            if lengths is None
            else np.array(lengths)
        )
        made = on_gpu(reverse_sequence(dtype, list(shape), time), device)
        at = f"cuda:{device}"
        given, output = (
            torch.from_numpy(x).to(at),
            torch.empty(shape, dtype=torch.from_numpy(x).dtype, device=at),
        )
        made.run_with_iobinding(
            bind(made, {"x": given, "l": torch.from_numpy(lengths).to(at)}, output)
        )
        same(
            output.cpu().numpy(), reverse(x, of_lanes(lengths, len(shape), time), time)
        )

    def test_bytes_are_the_cpus_for_every_type_and_layout(self):
        before = counters()[1]
        cases = 0
        for dtype in (
            np.bool_,
            np.uint8,
            np.int8,
            np.int16,
            np.float16,
            np.int32,
            np.float32,
            np.int64,
            np.float64,
        ):
            for shape in [
                (5, 3),
                (3, 500),
                (64, 33, 17),
                (7, 128, 256),
                (2, 3, 4, 5, 6),
                (300, 4096),
            ]:
                for time in (0, 1):
                    self.check(dtype, shape, time)
                    cases += 1
        self.assertEqual(counters()[1] - before, cases)

    def test_nodes_run_on_the_cuda_provider_with_no_copies_around_them(self):
        nodes = [
            helper.make_node(
                "ReverseSequence",
                ["x", "l"],
                ["a"],
                time_axis=1,
                batch_axis=0,
                name="reverse",
            ),
            helper.make_node(
                "ReverseSubsequences",
                ["a", "m"],
                ["b"],
                axis=1,
                domain="dml_cuda",
                name="own",
            ),
            helper.make_node("Range", ["s", "e", "d"], ["r"], name="range"),
            helper.make_node("Reshape", ["r", "shape"], ["q"], name="reshape"),
            helper.make_node("Concat", ["b", "q"], ["y"], axis=0, name="concat"),
        ]
        inputs = [
            ("x", np.float32, [4, 8]),
            ("l", np.int64, [4]),
            ("m", np.int64, [4, 1]),
            ("shape", np.int64, [2]),
        ] + [(name, np.float32, []) for name in "sed"]
        with tempfile.TemporaryDirectory() as folder:
            made = on_gpu(
                model(nodes, inputs, [("y", np.float32, [5, 8])]),
                enable_profiling=True,
                profile_file_prefix=f"{folder}/p",
            )
            x = torch.arange(32, dtype=torch.float32, device="cuda").reshape(4, 8)
            lengths = torch.tensor([8, 1, 0, 5], device="cuda")
            output = torch.empty(5, 8, device="cuda")
            scalars = {
                name: torch.tensor(value)
                for name, value in (("s", 0.5), ("e", 4.5), ("d", 0.5))
            }
            scalars["shape"] = torch.tensor([1, 8])
            made.run_with_iobinding(
                bind(
                    made,
                    {
                        "x": x,
                        "l": lengths,
                        "m": lengths[:, None].contiguous(),
                        **scalars,
                    },
                    output,
                )
            )
            with open(made.end_profiling()) as file:
                events = [
                    event
                    for event in json.load(file)
                    if event.get("cat") == "Node"
                    and event["name"].endswith("_kernel_time")
                ]
        ran = {event["args"]["op_name"]: event["args"]["provider"] for event in events}
        self.assertEqual(
            {op: ran[op] for op in ("ReverseSequence", "ReverseSubsequences", "Range")},
            {
                op: "CUDAExecutionProvider"
                for op in ("ReverseSequence", "ReverseSubsequences", "Range")
            },
        )
        self.assertEqual([op for op in ran if "Memcpy" in op], [])
        same(
            output.cpu().numpy(),
            np.concatenate(
                [x.cpu().numpy(), np.arange(0.5, 4.5, 0.5, dtype=np.float32)[None]]
            ),
        )

    def test_a_users_stream_orders_the_work(self):
        stream = torch.cuda.Stream()
        made = on_gpu(
            reverse_sequence(np.float32, [64, 2048, 256], 1),
            provider={"user_compute_stream": str(stream.cuda_stream)},
        )
        x, output = (
            torch.zeros(64, 2048, 256, device="cuda"),
            torch.zeros(64, 2048, 256, device="cuda"),
        )
        lengths = torch.full((64,), 2048, device="cuda")
        binding = bind(made, {"x": x, "l": lengths}, output)
        options = ort.RunOptions()
        options.add_run_config_entry("disable_synchronize_execution_providers", "1")
        torch.cuda.synchronize()
        ramp = torch.arange(2048, dtype=torch.float32, device="cuda")[None, :, None]
        torch.cuda.synchronize()
        for n in range(1, 6):
            with torch.cuda.stream(stream):
                torch.cuda._sleep(
                    20_000_000
                )  # so that work on another stream would run too early
                x.copy_(ramp + n)
                made.run_with_iobinding(binding, options)
                checked = (output == 2047 - ramp + n).all()
            stream.synchronize()
            self.assertTrue(checked.item(), n)

    def test_a_cuda_graph_is_replayed_with_new_data_and_lengths(self):
        made = on_gpu(
            reverse_sequence(np.float16, [33, 100, 8], 1),
            provider={"enable_cuda_graph": "1"},
        )
        x = torch.empty(33, 100, 8, dtype=torch.float16, device="cuda")
        lengths, output = (
            torch.zeros(33, dtype=torch.int64, device="cuda"),
            torch.empty_like(x),
        )
        binding = bind(made, {"x": x, "l": lengths}, output)
        random = np.random.default_rng(5)
        before = counters()[1]
        for _ in range(10):
            data, these = (
                random.standard_normal((33, 100, 8)).astype(np.float16),
                random.integers(0, 101, 33),
            )
            (
                x.copy_(torch.from_numpy(data)),
                lengths.copy_(torch.from_numpy(these)),
                output.zero_(),
            )
            torch.cuda.synchronize()
            made.run_with_iobinding(binding)
            torch.cuda.synchronize()
            same(output.cpu().numpy(), reverse(data, these[:, None, None], 1))
        # A replay does not call the kernel.
        self.assertLess(counters()[1] - before, 10)

    def test_lengths_outside_the_axis_act_as_the_axis(self):
        for lengths in ([6, 1], [1 << 40, 0], [-1, 2]):
            required = [4 if not 0 <= length <= 4 else length for length in lengths]
            made = on_gpu(reverse_sequence(np.int32, [2, 4], 1))
            x = torch.arange(8, dtype=torch.int32, device="cuda").reshape(2, 4)
            memory = torch.full((40,), -7, dtype=torch.int32, device="cuda")
            output = memory[16:24].reshape(2, 4)
            made.run_with_iobinding(
                bind(made, {"x": x, "l": torch.tensor(lengths, device="cuda")}, output)
            )
            same(
                output.cpu().numpy(),
                reverse(x.cpu().numpy(), np.array(required)[:, None], 1),
            )
            self.assertTrue(
                (memory[:16] == -7).all().item() and (memory[24:] == -7).all().item()
            )

    def test_ranges_and_fills_have_the_cpus_bytes(self):
        for dtype, start, limit, delta in [
            (np.float32, 0, 1e5, 0.1),
            (np.float64, -3, 1e4, 0.7),
            (np.int16, -100, 30000, 7),
            (np.int32, 10, -100000, -3),
            (np.int64, 1 << 40, (1 << 40) + 77777, 5),
            (np.float32, 3, 3, 1),
        ]:
            feeds = scalars(dtype, a=start, b=limit, c=delta)
            made, here = on_gpu(ranges(dtype)), session(ranges(dtype))
            same(made.run(None, feeds)[0], here.run(None, feeds)[0])
        for dtype in (np.float32, np.float16, np.int8, np.uint16, np.uint32, np.uint64):
            feeds = {"s": np.array([33, 77]), **scalars(dtype, a=3, d=5)}
            made, here = on_gpu(fills(dtype)), session(fills(dtype))
            same(made.run(None, feeds)[0], here.run(None, feeds)[0])

    def test_a_buffer_that_nobody_reads_again_is_reversed_in_place(self):
        reverse_node = lambda x, y: helper.make_node(
            "ReverseSequence", [x, "l"], [y], time_axis=1, batch_axis=0
        )
        nodes = [reverse_node("x", "a"), reverse_node("a", "b"), reverse_node("b", "y")]
        made = on_gpu(
            model(
                nodes,
                [("x", np.float32, [3, 800]), ("l", np.int64, [3])],
                [("y", np.float32, [3, 800])],
            )
        )
        x, lengths = (
            np.arange(2400, dtype=np.float32).reshape(3, 800),
            np.array([800, 1, 555]),
        )
        before = counters()[2]
        same(made.run(None, {"x": x, "l": lengths})[0], reverse(x, lengths[:, None], 1))
        # The input belongs to the caller and the output to the session. The buffer between them is reversed in place.
        self.assertEqual(counters()[2] - before, 1)

    def test_strings_stay_on_the_cpu(self):
        node = helper.make_node("ReverseSequence", ["x", "l"], ["y"])
        made = on_gpu(
            model(
                [node],
                [("x", np.object_, [3, 1]), ("l", np.int64, [1])],
                [("y", np.object_, [3, 1])],
            )
        )
        found = made.run(
            None,
            {"x": np.array([["a"], ["b"], ["c"]], dtype=object), "l": np.array([2])},
        )[0]
        self.assertEqual(found.ravel().tolist(), ["b", "a", "c"])


if __name__ == "__main__":
    print("onnxruntime", ort.__version__, LIBRARY)
    unittest.main()
