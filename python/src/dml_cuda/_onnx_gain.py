"""``python -m dml_cuda onnx MODEL``: which nodes of a model this library replaces in ONNX Runtime, and what that
gains."""

import json
import os
import re
import statistics
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort

from ._library import PATH
from ._ops import onnxruntime_counters

_PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
_Values = dict[str, np.ndarray]


def _nodes(nodes: Any, place: str = "") -> Iterator[tuple[Any, str]]:
    """The nodes of a graph and of the graphs in it, each with its place."""
    for node in nodes:
        yield node, place
        for attribute in node.attribute:
            for graph in [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])]:
                yield from _nodes(graph.node, f" in {attribute.name} of {node.op_type} `{node.name}`{place}")


def _session(model: str, provider: str, replace: bool, **settings: Any) -> Any:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    for name, value in settings.items():
        setattr(options, name, value)
    if replace:
        options.add_session_config_entry("dml_cuda.replace_onnx", "1")
        options.register_custom_ops_library(str(PATH))
    if provider == "cuda" and hasattr(ort, "preload_dlls"):
        ort.preload_dlls()
    providers = [*dict.fromkeys((_PROVIDERS[provider], _PROVIDERS["cpu"]))]
    session = ort.InferenceSession(model, options, providers=providers)
    if _PROVIDERS[provider] not in session.get_providers():
        raise ValueError(f"the session has {session.get_providers()}, must have {_PROVIDERS[provider]}")
    return session


def _shapes(inputs: Any, given: list[str]) -> dict[str, list[int]]:
    """The shape of every input. A dimension without a size has that of its name, else 64."""
    if wrong := [text for text in given if not re.fullmatch(r".+=[1-9]\d*(,[1-9]\d*)*", text)]:
        raise ValueError(f"--shape is {wrong[0]}, must be NAME=SIZES, as in x=50,8,16 or batch=8")
    sizes: dict[str, list[int]] = {}
    for name, _, value in (text.rpartition("=") for text in given):
        shape = [int(size) for size in value.split(",")]
        if sizes.setdefault(name, shape) != shape:
            raise ValueError(f"--shape of {name} is {sizes[name]} and {shape}, must be one of them")
    arrays = {one.name for one in inputs}
    names = arrays | {dim for one in inputs for dim in one.shape if isinstance(dim, str)}
    if unknown := sizes.keys() - names:
        raise ValueError(f"--shape has the names {sorted(unknown)}, must have inputs or dimensions of the model: {sorted(names)}")
    if wrong := [name for name in sizes if name not in arrays and len(sizes[name]) > 1]:
        raise ValueError(f"--shape of {wrong[0]} is {sizes[wrong[0]]}, must be one size, because it is a dimension")
    shapes = {}
    for one in inputs:
        known = [dim if isinstance(dim, int) else sizes.get(dim, [64])[0] for dim in one.shape]
        shapes[one.name] = sizes.get(one.name) or known
    return shapes


def _values(inputs: Any, shapes: dict[str, list[int]], most: int) -> _Values:
    """Random values. Integers are from 1 to `most`, which one of them is."""
    random, values = np.random.default_rng(0), {}
    for one in inputs:
        kind, shape = one.type.removeprefix("tensor(").removesuffix(")"), shapes[one.name]
        name = {"float": "float32", "double": "float64"}.get(kind, kind)
        if name.startswith("float"):
            values[one.name] = random.standard_normal(shape).astype(name)
        else:
            values[one.name] = random.integers(1, most, shape, endpoint=True).astype(name)
            values[one.name].flat[:1] = most
    return values


def _accepted(model: str, given: list[str]) -> _Values:
    """Values that the model accepts. The lengths of sequences are as long as the sequences: the largest
    size for which no node reports an error."""
    # On the CPU the library checks lengths. ONNX Runtime does not print what the tries report.
    session = _session(model, "cpu", True, log_severity_level=4)
    inputs, shapes = session.get_inputs(), _shapes(session.get_inputs(), given)
    for most in sorted({1, *(size for shape in shapes.values() for size in shape)}, reverse=True):
        try:
            values = _values(inputs, shapes, most)
            session.run(None, values)
            return values
        except Exception as failed:
            error = failed
    raise ValueError(f"the model does not run with inputs of {shapes}; --shape sets other sizes. {error}")


def _same(a: Any, b: Any) -> bool:
    """Whether outputs have equal types, shapes and bits."""
    if not isinstance(a, np.ndarray):  # a sequence, or a map
        return len(a) == len(b) and all(map(_same, a, b)) if isinstance(a, list) else repr(a) == repr(b)
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return False
    return bool(a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes())


def _medians(sessions: list[Any], values: _Values, device: str) -> list[float]:
    """Medians of whole runs in microseconds, in turns. Inputs and outputs are in the provider's memory."""
    bindings = [session.io_binding() for session in sessions]
    times: list[list[float]] = [[] for _ in sessions]
    for session, binding in zip(sessions, bindings):
        for name, value in values.items():
            binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(value, device, 0))
        for output in session.get_outputs():
            binding.bind_output(output.name, device)
    begin = time.perf_counter()
    while len(times[0]) < 5 or (len(times[0]) < 200 and time.perf_counter() - begin < 3):
        for session, binding, of_session in zip(sessions, bindings, times):
            before = time.perf_counter()
            session.run_with_iobinding(binding)
            of_session.append((time.perf_counter() - before) * 1e6)
    return [statistics.median(of_session[len(of_session) // 5 :]) for of_session in times]


def _profile(model: str, provider: str, replace: bool, values: _Values) -> dict[str, float]:
    """The median of each ReverseSequence node in microseconds, as ONNX Runtime's profiler has it."""
    with tempfile.TemporaryDirectory() as folder:
        session = _session(model, provider, replace, enable_profiling=True, profile_file_prefix=f"{folder}/profile")
        for _ in range(20):
            session.run(None, values)
        with open(session.end_profiling()) as file:
            events = json.load(file)
    times: dict[str, list[float]] = {}
    for event in events:
        if event.get("args", {}).get("op_name") == "ReverseSequence" and event["name"].endswith("_kernel_time"):
            times.setdefault(event["name"].removesuffix("_kernel_time"), []).append(event["dur"])
    return {name: statistics.median(durations) for name, durations in times.items()}


def _load(model: str) -> Any:
    try:
        made = onnx.load(model, load_external_data=False)
    except OSError:
        raise
    except Exception:
        made = onnx.ModelProto()
    if not made.ir_version:
        raise ValueError("the file is not an ONNX model")
    return made


def report(model: str, provider: str, given: list[str]) -> Iterator[str]:
    """The lines of the report."""
    made = _load(model)
    places = [*_nodes(made.graph.node)]
    for function in made.functions:
        places += _nodes(function.node, f" in function `{function.name}`")
    places = [(node, place) for node, place in places if node.domain in ("", "ai.onnx")]
    found = [f"ReverseSequence `{node.name}`{place}" for node, place in places if node.op_type == "ReverseSequence"]
    yield from found or ["nothing to replace: the model has no ReverseSequence"]
    if not found:
        return
    values = _accepted(model, given)
    yield "inputs: " + ", ".join(f"{name} {value.dtype} {list(value.shape)}" for name, value in values.items())
    before = onnxruntime_counters()
    sessions = [_session(model, provider, replace) for replace in (False, True)]
    outputs = [session.run(None, values) for session in (*sessions, sessions[0])]
    loaded, runs, _ = np.subtract(onnxruntime_counters(), before)
    is_off = os.environ.get("DML_CUDA_REPLACE_ONNX") == "0"
    cause = "DML_CUDA_REPLACE_ONNX is 0" if is_off else "ONNX Runtime gave them to another provider, or removed them"
    why = "" if loaded else f": {cause}"
    yield f"this library loaded {loaded} nodes, and ran {runs}{why}"
    differ = "DIFFERENT" if _same(outputs[0], outputs[2]) else "not comparable: without the library, two runs differ"
    yield f"outputs with and without the library: {'equal bits' if _same(outputs[0], outputs[1]) else differ}"
    whole = _medians(sessions, values, provider)
    nodes = [_profile(model, provider, replace, values) for replace in (False, True)]
    rows = {"whole model": whole} | {name: [of.get(name, float("nan")) for of in nodes] for name in nodes[0] | nodes[1]}
    yield f"   without        with   medians in µs, ONNX Runtime {ort.__version__}, {_PROVIDERS[provider]}"
    yield from (f"{times[0]:10.1f}  {times[1]:10.1f}   {name}" for name, times in rows.items())
