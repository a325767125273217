"""Runs one-node ONNX models with ONNX Runtime for `dml-cuda bench --runner onnxruntime`, and checks every element of
their outputs.

Usage: worker.py SETTINGS [CASE], both JSON. Prints one line of JSON: what it is, or the answer of the case. Needs onnx,
NumPy, and onnxruntime 1.18 or later of any kind.
"""

import ctypes
import json
import os
import platform
import re
import sys
import time
import zlib

try:
    import numpy as np
    import onnx
    import onnxruntime as ort

    MISSING = None
except ImportError as error:
    MISSING = f"{error}; --python must be a Python with onnx, numpy, and onnxruntime, onnxruntime-gpu or onnxruntime-directml"

# Where tensors are. Other providers copy from and to the host in each run.
MEMORY = {"CUDAExecutionProvider": "cuda", "DmlExecutionProvider": "dml"}
# How ONNX Runtime says that a provider does not take a node.
REFUSED = re.compile(
    "fallback to CPU EP has been explicitly disabled|Could not find an implementation"
)


# The models.


def make_model(case, inputs):
    """The model of a case: one node, whose inputs are the graph's, so that nothing can be computed in advance."""
    helper = onnx.helper
    element = lambda data_type: helper.np_dtype_to_tensor_dtype(np.dtype(data_type))
    info = lambda name, data_type, shape: helper.make_tensor_value_info(
        name, element(data_type), shape
    )
    attributes = {
        name: case[name] for name in ("batch_axis", "time_axis") if name in case
    }
    node = helper.make_node(
        case["op"], list(inputs), ["y"], name=case["op"], **attributes
    )
    inputs = [info(name, value.dtype, value.shape) for name, value in inputs.items()]
    graph = helper.make_graph(
        [node], case["name"], inputs, [info("y", case["type"], case["shape"])]
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", case["opset"])], ir_version=8
    )


def make_inputs(case):
    """Random bytes and random lengths, the same in each run. A check counts up instead: its bytes are the same on every
    machine."""
    data_type = np.dtype(case["type"])
    if case["op"] == "Range":
        return {
            name: np.array(value, data_type)
            for name, value in zip(("start", "limit", "delta"), case["scalars"])
        }
    shape = case["shape"]
    count, batch, longest = (
        int(np.prod(shape)),
        shape[case["batch_axis"]],
        shape[case["time_axis"]],
    )
    if case["check"]:
        lengths = (np.arange(batch, dtype=np.int64) * 5 + 3) % longest + 1
        return {
            "x": np.arange(count).astype(data_type).reshape(shape),
            "lengths": lengths,
        }
    random = np.random.default_rng(zlib.crc32(case["name"].encode()))
    x = memory(
        shape,
        data_type,
        np.frombuffer(random.bytes(count * data_type.itemsize), np.uint8),
    )
    # No length is 0: the CPU kernel of ONNX Runtime 1.18 does not write such rows.
    return {"x": x, "lengths": random.integers(1, longest + 1, batch, dtype=np.int64)}


def memory(shape, data_type, content):
    """An array at the beginning of a page. On the CPU, times depend on where tensors are: where one begins 16 bytes
    behind another, in their pages, reversals were seen to take ten times as long."""
    size, page = int(np.prod(shape)) * np.dtype(data_type).itemsize, 4096
    room = np.empty(size + page, np.uint8)
    begin = -room.ctypes.data % page
    room[begin : begin + size] = content
    return room[begin : begin + size].view(data_type).reshape(shape)


# What they must compute.


def required_output(case, inputs):
    if case["op"] == "Range":
        # Rounded once. Long ranges of FLOAT32 begin at 0, where multiplying with delta rounds no second time.
        start, delta = inputs["start"], inputs["delta"]
        computing = np.int64 if start.dtype.kind == "i" else np.float64
        steps = np.arange(*case["shape"], dtype=computing) * delta.astype(computing)
        return (start.astype(computing) + steps).astype(start.dtype)
    required = inputs["x"].copy()
    axes = case["batch_axis"], case["time_axis"]
    rows, source = (
        np.moveaxis(array, axes, (0, 1)) for array in (required, inputs["x"])
    )
    for row, length in enumerate(inputs["lengths"]):
        rows[row, :length] = source[row, :length][::-1]
    return required


def check(case, inputs, found):
    """Looks at every element. A note says that a range is the running sum, which is how ONNX's own function computes
    it."""
    required = required_output(case, inputs)
    bits = np.dtype(f"u{required.dtype.itemsize}")
    differs = found.view(bits) != required.view(bits)
    if not differs.any():
        return None
    if case["op"] == "Range":
        sums = np.full(found.size, inputs["delta"])
        sums[0] = inputs["start"]
        if np.array_equal(np.add.accumulate(sums, dtype=found.dtype), found):
            return "the kernel adds delta repeatedly, as ONNX's own function of Range does, so that its values drift"
    at = np.unravel_index(int(np.argmax(differs)), differs.shape)
    place, count = (
        [int(index) for index in at],
        f"{np.count_nonzero(differs)} of these {differs.size} elements differ",
    )
    # Bits tell NaNs and zeros apart.
    named = lambda array: f"{array[at]} ({array.view(bits)[at]:#x})"
    raise RuntimeError(
        f"the output is wrong: element {place} is {named(found)}, but must be {named(required)}; {count}"
    )


# One case, in a process of its own, so that a lost device or a crash ends only this case.


def library_runs(library):
    """The number of nodes that the library ran in this process."""
    counters = (ctypes.c_uint64 * 3)()  # Nodes, runs, runs in place.
    if (
        ctypes.CDLL(library).dml_cuda_onnxruntime_counters(ctypes.byref(counters), None)
        != 0
    ):
        raise RuntimeError(f"{library} does not count its runs")
    return counters[1]


def make_session(model, settings):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    provider = settings["provider"]
    if provider == "DmlExecutionProvider":
        options.enable_mem_pattern = False
    if provider != "CPUExecutionProvider":
        # A node that the provider does not have is an error.
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    if settings["library"]:
        options.add_session_config_entry(
            "dml_cuda.replace_onnx", "ReverseSequence,Range"
        )
        options.register_custom_ops_library(settings["library"])
    if settings["provider_library"]:
        options.add_provider_for_devices([settings["device"]], {})
        session = ort.InferenceSession(model, options)
    else:
        device = {"device_id": str(settings["device_id"])} if provider in MEMORY else {}
        session = ort.InferenceSession(model, options, providers=[(provider, device)])
    if session.get_providers()[0] != provider:
        raise RuntimeError(
            f"ONNX Runtime fell back from {provider} to {', '.join(session.get_providers())}"
        )
    return session


def values_of(inputs, output, settings):
    """Everything in the provider's memory. Range's kernels read their scalars on the host."""
    memory = MEMORY.get(settings["provider"], "cpu")
    place = lambda array: (
        (memory, settings["device_id"])
        if array.ndim and memory != "cpu"
        else ("cpu", 0)
    )
    value = lambda array: ort.OrtValue.ortvalue_from_numpy(array, *place(array))
    return {name: value(array) for name, array in {**inputs, "y": output}.items()}


def run_case(case, settings):
    """The answer of a case: its output's bytes or its samples, or why the provider does not have it."""
    inputs = make_inputs(case)
    model = make_model(case, inputs).SerializeToString()
    # Every byte of the output must be written.
    output = memory(case["shape"], case["type"], 0xA5)
    try:
        session, values = (
            make_session(model, settings),
            values_of(inputs, output, settings),
        )
    except Exception as error:
        if REFUSED.search(str(error)):
            return {"refused": f"{settings['provider']} does not take the node"}
        raise
    binding = session.io_binding()
    for name, value in values.items():
        (binding.bind_ortvalue_output if name == "y" else binding.bind_ortvalue_input)(
            name, value
        )
    run = lambda: session.run_with_iobinding(binding)
    run()
    binding.synchronize_outputs()
    if settings["library"] and library_runs(settings["library"]) == 0:
        raise RuntimeError(
            f"{settings['library']} was loaded, but ONNX Runtime's own kernel ran"
        )
    found = values["y"].numpy()
    note = check(case, inputs, found)
    if case["check"]:
        return {"output": found.tobytes().hex()}
    dispatches, samples = sample(
        run, binding.synchronize_outputs, case["dispatches"], settings["samples"]
    )
    return {"timed": {"dispatches": dispatches, "samples": samples, "note": note}}


def sample(run, wait, dispatches, count):
    """Microseconds of a run. A sample takes at most about 100 ms, and all at most about 10 s if there are seven."""

    def seconds(times):
        begin = time.perf_counter()
        for _ in range(times):
            run()
        wait()
        return time.perf_counter() - begin

    seconds(3)
    dispatches = max(1, min(dispatches, int(0.1 / seconds(1))))
    seconds(dispatches)
    begin, samples = time.perf_counter(), []
    while len(samples) < count and (
        len(samples) < 7 or time.perf_counter() - begin < 10
    ):
        samples.append(seconds(dispatches) / dispatches * 1e6)
    return dispatches, samples


def built_in(asked):
    """A provider of this ONNX Runtime, by its name or the beginning of it."""
    known = ort.get_available_providers()
    for provider in known:
        if provider.lower() in (asked.lower(), f"{asked.lower()}executionprovider"):
            return provider
    where = "onnxruntime-gpu has cuda, onnxruntime-directml has dml"
    raise RuntimeError(
        f"this onnxruntime {ort.__version__} has no {asked}, only {', '.join(known)}; {where}"
    )


def plugin_device(library, index):
    """One of the devices of a library with providers."""
    if not hasattr(ort, "get_ep_devices"):
        raise RuntimeError(
            f"--provider-library needs onnxruntime 1.23 or newer, found {ort.__version__}"
        )
    others = {device.ep_name for device in ort.get_ep_devices()}
    ort.register_execution_provider_library("bench", library)
    devices = [
        device for device in ort.get_ep_devices() if device.ep_name not in others
    ]
    if not devices:
        raise RuntimeError(
            f"--provider-library {library} has no device on this machine"
        )
    if index >= len(devices):
        named = (
            f"{short(device.ep_name)} on {device_name(device)}" for device in devices
        )
        listed = ", ".join(f"{at} ({name})" for at, name in enumerate(named))
        raise RuntimeError(f"--adapter is {index}, but must be one of {listed}")
    return devices[index]


def device_name(device):
    """Not all providers and systems name their hardware."""
    names = (
        device.ep_metadata.get("FULL_DEVICE_NAME"),
        device.device.metadata.get("Description"),
        device.device.vendor,
    )
    return f"{device.device.type.name} {next(filter(None, names), '')}".rstrip()


def short(provider):
    return provider.replace("ExecutionProvider", "").replace("Dml", "DirectML")


def hello(settings):
    """The device that runs the cases. Completes the settings."""
    if MISSING:
        raise RuntimeError(MISSING)
    ordinal = settings["device_id"]
    if settings["provider_library"]:
        settings["device"] = device = plugin_device(
            settings["provider_library"], ordinal
        )
        provider, version = (
            device.ep_name,
            f" {device.ep_metadata.get('version', '').partition('+')[0]}".rstrip(),
        )
        name, pci = device_name(device), device.device.metadata.get("pci_bus_id", "")
    else:
        provider, version, pci = built_in(settings["provider"]), "", ""
        name = (
            "CPU"
            if provider == "CPUExecutionProvider"
            else f"{short(provider)} device {ordinal}"
        )
    settings["provider"] = provider
    tool = f"ONNX Runtime {ort.__version__} {short(provider)}{version}"
    if settings["library"]:
        version = ctypes.CDLL(settings["library"]).dml_cuda_version
        version.restype = ctypes.c_char_p
        tool += f" with dml-cuda {version().decode()}"
    ort.set_default_logger_severity(3)
    if provider == "CUDAExecutionProvider" and hasattr(ort, "preload_dlls"):
        ort.preload_dlls()
    versions = f"Python {platform.python_version()}, onnx {onnx.__version__}, NumPy {np.__version__}"
    return {
        "hello": {
            "tool": tool,
            "provider": provider,
            "device": name,
            "pci": pci,
            "versions": versions,
        }
    }


def reason(error):
    """An error in one line."""
    return (
        re.sub(
            r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", " ".join(str(error).split())
        )
        or type(error).__name__
    )


def main():
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG: it ends with the bench
    # What libraries print goes to the standard error stream.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    settings, *cases = map(json.loads, sys.argv[1:])
    try:
        answer = hello(settings)
        for case in cases:
            answer = run_case(case, settings)
    # Whatever it is, the case has no time.
    except Exception as error:
        answer = {"failed": reason(error)}
    print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
