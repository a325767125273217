"""``python -m dml_cuda onnx MODEL``: which nodes of a model this library replaces in ONNX Runtime, and what that
gains."""

import functools
import itertools
import json
import math
import os
import pathlib
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
from ._onnxruntime import onnxruntime_counters

_PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
_WHOLE = "whole model"
_Values = dict[str, np.ndarray]


def _nodes(nodes: Any, place: str = "") -> Iterator[tuple[Any, str]]:
    """The nodes of a graph and of the graphs in it, each with its place."""
    for node in nodes:
        yield node, place
        for attribute in node.attribute:
            for graph in [
                *attribute.graphs,
                *([attribute.g] if attribute.HasField("g") else []),
            ]:
                yield from _nodes(
                    graph.node,
                    f" in {attribute.name} of {node.op_type} `{node.name}`{place}",
                )


def _session(model: str, provider: str, replace: bool, **settings: Any) -> Any:
    options = ort.SessionOptions()
    options.log_severity_level = 4  # errors are raised, and a log has names as they are
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
        raise ValueError(
            f"the session has {session.get_providers()}, but must have {_PROVIDERS[provider]}"
        )
    return session


def _shapes(inputs: Any, given: list[str], chosen: _Values) -> dict[str, list[int]]:
    """The shape of every input. A dimension without a size has that of its name, also if another input's shape has it,
    else 64."""
    if wrong := [
        text for text in given if not re.fullmatch(r".+=[1-9]\d*(,[1-9]\d*)*", text)
    ]:
        raise ValueError(
            f"--shape is {wrong[0]}, but must be NAME=SIZES, as in x=50,8,16 or batch=8"
        )
    sizes: dict[str, list[int]] = {}
    pairs = [
        (text.rpartition("=")[0], [*map(int, text.rpartition("=")[2].split(","))])
        for text in given
    ]
    pairs += [(name, [*array.shape]) for name, array in chosen.items()]
    named = (
        (dim, [size])
        for one in inputs
        for dim, size in zip(one.shape, sizes.get(one.name, []))
    )
    for name, shape in itertools.chain(
        pairs, ((dim, size) for dim, size in named if isinstance(dim, str))
    ):
        if sizes.setdefault(name, shape) != shape:
            raise ValueError(
                f"--shape of {name} is {sizes[name]} and {shape}, but must be one of them"
            )
    arrays = {one.name for one in inputs}
    names = arrays | {
        dim for one in inputs for dim in one.shape if isinstance(dim, str)
    }
    if unknown := sizes.keys() - names:
        raise ValueError(
            f"--shape has the names {sorted(unknown)}, but must have inputs or dimensions of the model: {sorted(names)}"
        )
    if wrong := [name for name in sizes if name not in arrays and len(sizes[name]) > 1]:
        raise ValueError(
            f"--shape of {wrong[0]} is {sizes[wrong[0]]}, but must be one size, because it is a dimension"
        )
    free = lambda dim: dim if isinstance(dim, int) else sizes.get(dim, [64])[0]
    return {one.name: sizes.get(one.name, [*map(free, one.shape)]) for one in inputs}


def _mask(shape: list[int]) -> np.ndarray:
    """The mask of a padded batch, along its first two dimensions. Lengths fall, so that it is one in both orders."""
    batch, time = (shape if len(shape) > 1 else [1, *shape])[:2]
    lengths = time - (time - 1) * np.arange(1, batch + 1) // (batch + 1)
    mask = np.arange(time) < lengths[:, None]
    return np.broadcast_to(
        mask.reshape(
            (*mask.shape, *[1] * (len(shape) - 2)) if len(shape) > 1 else shape
        ),
        shape,
    )


def _values(
    inputs: Any, shapes: dict[str, list[int]], most: int, style: str
) -> _Values:
    """Random values. Integers are from 1 to `most`, which one of them is. Those that cannot be lengths are padded with
    0, are the masks of a padded batch, as bools always are, or are as the others: `style` says which."""
    random, values = np.random.default_rng(0), {}
    for one in inputs:
        kind, shape = (
            one.type.removeprefix("tensor(").removesuffix(")"),
            shapes[one.name],
        )
        name = {"float": "float32", "double": "float64", "string": "str"}.get(
            kind, kind
        )
        if not re.fullmatch(r"float(16|32|64)|u?int(8|16|32|64)|bool|str", name):
            raise ValueError(
                f"the input {one.name} is {one.type}, but must be a tensor of bools, strings, integers, float16, float or double: this command makes no "
                "other. Give the model such an input, before a Cast, SequenceConstruct or Optional"
            )
        if name.startswith("float"):
            values[one.name] = random.standard_normal(shape).astype(name)
            continue
        is_batch = "int" in name and np.prod(shape[1:]) > 1
        if is_batch and style == "masks" or shape and name == "bool":
            values[one.name] = _mask(shape).astype(name)
        else:
            values[one.name] = random.integers(1, most, shape, endpoint=True).astype(
                name
            )
            values[one.name].flat[:1] = most
            if is_batch and style == "padded":
                values[one.name] *= _mask(shape)
    return values


def _accepted(model: str, given: list[str], files: list[str]) -> _Values:
    """Values that the model accepts, and those of files. The lengths of sequences are as long as the sequences: the
    largest size for which no node reports an error."""
    session = _session(model, "cpu", True)  # where the library checks lengths
    inputs = session.get_inputs()
    if wrong := [
        text
        for text in files
        if "=" not in text or text.partition("=")[0] not in [one.name for one in inputs]
    ]:
        raise ValueError(
            f"--input is {wrong[0]}, but must be NAME=FILE.npy, with an input of the model: {sorted(one.name for one in inputs)}"
        )
    chosen = {}
    for name, _, file in (text.partition("=") for text in files):
        try:
            chosen[name] = np.load(file, allow_pickle=False)
        except (OSError, ValueError) as unreadable:
            raise ValueError(
                f"--input of {name} is {file}, but must be a .npy file of numbers: {unreadable}"
            ) from None
    shapes = _shapes(inputs, given, chosen)
    made = [one for one in inputs if one.name not in chosen]
    largest = sorted(
        {1, *(size for shape in shapes.values() for size in shape)}, reverse=True
    )
    for style, most in itertools.product(("padded", "masks", "other"), largest):
        if style == "padded" and most < 4:  # the sums of such a mask can be lengths
            continue
        values = _values(made, shapes, most, style) | chosen
        try:
            session.run(None, values)
            return values
        except Exception as failed:
            error = failed
    raise ValueError(
        f"the model does not run with inputs of {shapes}; --shape sets other sizes, --input values. {error}"
    )


def _same(a: Any, b: Any) -> bool:
    """Whether outputs have equal types, shapes and bits."""
    if not isinstance(a, np.ndarray):  # a sequence, or a map
        return (
            len(a) == len(b) and all(map(_same, a, b))
            if isinstance(a, list)
            else repr(a) == repr(b)
        )
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return False
    return bool(
        a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes()
    )


def _times(
    sessions: list[Any], values: _Values, device: str
) -> list[dict[str, list[float]]]:
    """Microseconds of each ReverseSequence node and of the whole model in the same runs, as ONNX Runtime's profiler has
    them. Sessions take turns. Inputs and outputs are in the provider's memory."""
    runs = [functools.partial(session.run, None, values) for session in sessions]
    if not any(
        value.dtype.kind in "OU" for value in values.values()
    ):  # ONNX Runtime binds no strings
        for number, session in enumerate(sessions):
            binding = session.io_binding()
            for name, value in values.items():
                binding.bind_ortvalue_input(
                    name, ort.OrtValue.ortvalue_from_numpy(value, device, 0)
                )
            for output in session.get_outputs():
                binding.bind_output(output.name, device)
            runs[number] = functools.partial(session.run_with_iobinding, binding)
    begin, count = time.perf_counter(), 0
    while count < 10 or (count < 200 and time.perf_counter() - begin < 3):
        for run in runs:
            run()
        count += 1
    times: list[dict[str, list[float]]] = [{_WHOLE: []} for _ in sessions]
    for session, of_session in zip(sessions, times):
        for event in json.loads(pathlib.Path(session.end_profiling()).read_bytes()):
            if event["name"] == "model_run":
                of_session[_WHOLE].append(event["dur"])
            elif event.get("args", {}).get("op_name") == "ReverseSequence" and event[
                "name"
            ].endswith("_kernel_time"):
                of_session.setdefault(
                    event["name"].removesuffix("_kernel_time"), []
                ).append(event["dur"])
    return [
        {name: all_of[len(all_of) // 5 :] for name, all_of in of_session.items()}
        for of_session in times
    ]


def _interval(samples: list[float]) -> tuple[float, float]:
    """Holds the median with a probability of at least 97.5 %, by order statistics, as `dml-cuda bench` has it."""
    k, outside, ordered = 0, 0.0, sorted(samples)
    while (
        k < len(ordered) // 2
        and (outside := outside + 2 * math.comb(len(ordered), k) / 2 ** len(ordered))
        <= 0.025
    ):
        k += 1
    return ordered[max(k - 1, 0)], ordered[-max(k, 1)]


def _row(name: str, without: list[float], with_it: list[float]) -> str:
    """Medians, the interval of the speedup, and `dml-cuda bench`'s verdict with its threshold of 5 %."""
    medians = [
        f"{statistics.median(times):10.1f}" if times else f"{'-':>10}"
        for times in (without, with_it)
    ]
    if not (without and with_it):
        return f"{'  '.join(medians)}   {'':33}{name}, which the other session folded, joined or named otherwise"
    (low, high), (least, most) = _interval(without), _interval(with_it)
    low, high = low / max(most, 0.1), high / max(least, 0.1)
    is_same = 1 / 1.05 <= low and high <= 1.05
    if low > 1.05:
        status = "FASTER"
    elif high < 1 / 1.05:
        status = "SLOWER"
    elif is_same:
        status = "SAME"
    else:
        status = "UNSURE"
    return f"{'  '.join(medians)}   {f'speedup {low:.2f}× to {high:.2f}×':25} {status:7}{name}"


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


def report(
    model: str, provider: str, given: list[str], files: list[str]
) -> Iterator[str]:
    """The lines of the report."""
    made = _load(model)
    places = [*_nodes(made.graph.node)]
    for function in made.functions:
        places += _nodes(function.node, f" in function `{function.name}`")
    places = [(node, place) for node, place in places if node.domain in ("", "ai.onnx")]
    found = [
        f"ReverseSequence `{node.name}`{place}"
        for node, place in places
        if node.op_type == "ReverseSequence"
    ]
    yield from found or ["nothing to replace: the model has no ReverseSequence"]
    if not found:
        return
    values = _accepted(model, given, files)
    inputs = []
    for name, value in values.items():
        inputs.append(f"{name} {value.dtype} {list(value.shape)}")
    yield f"inputs: {', '.join(inputs)}"
    before = onnxruntime_counters()
    with tempfile.TemporaryDirectory() as folder:
        sessions = []
        for replace in (False, True):
            # ONNX Runtime adds only the second to the name of a profile.
            profile = {
                "enable_profiling": True,
                "profile_file_prefix": f"{folder}/{replace}",
            }
            sessions.append(_session(model, provider, replace, **profile))
        outputs = [session.run(None, values) for session in (*sessions, sessions[0])]
        loaded, runs, _ = np.subtract(onnxruntime_counters(), before)
        yield _use(loaded, runs)
        times = _times(sessions, values, provider)
    tried = min(loaded, len(times[1]) - 1) if runs else 0
    if tried < loaded:
        yield f"not tried: {loaded - tried} of these nodes did not run with these inputs, as in a branch, or share the name of one that did; --input sets the inputs' values"
    yield f"outputs with and without the library: {_comparison(outputs, tried)}"
    yield f"   without        with   medians in µs, ONNX Runtime {ort.__version__} with its profiler, {_PROVIDERS[provider]}"
    for name in times[0] | times[1]:
        yield _row(name, *(of_session.get(name, []) for of_session in times))


def _use(loaded: int, runs: int) -> str:
    """How much the library was used, and why not."""
    line = f"this library loaded {loaded} nodes, and ran {runs}"
    if loaded:
        return line
    if os.environ.get("DML_CUDA_REPLACE_ONNX") == "0":
        return f"{line}: DML_CUDA_REPLACE_ONNX is 0"
    return f"{line}: ONNX Runtime gave them to another provider, or removed them"


def _comparison(outputs: list[Any], tried: int) -> str:
    """Compares the outputs of a run without the library, one with it, and another without."""
    without, with_it, again = outputs
    if not tried:
        return "not tried, no node ran"
    if _same(without, with_it):
        return "equal bits"
    if not _same(without, again):
        return "not comparable: without the library, two runs differ"
    return "DIFFERENT"
