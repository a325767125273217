"""Times the ONNX models of this folder's manifest.json with ONNX Runtime, checks every element of their outputs, and writes a run for
`dml-cuda compare`.

    python run_onnx.py --provider dml -o windows.json
    python run_onnx.py --provider cuda --library libdml_cuda.so -o linux.json

Needs onnx, NumPy, and onnxruntime 1.18 or later of any kind. The same command continues an interrupted run.
"""

import argparse
import ctypes
import datetime
import hashlib
import json
import os
import platform
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

try:
    import numpy as np
    import onnx
    import onnxruntime as ort

    MISSING = None
except ImportError as error:
    MISSING = f"ERROR: {error}; this script needs onnx, numpy, and onnxruntime, onnxruntime-gpu or onnxruntime-directml"

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider", "dml": "DmlExecutionProvider"}
# Where tensors are. Other providers copy from and to the host in each run.
MEMORY = {"CUDAExecutionProvider": "cuda", "DmlExecutionProvider": "dml"}
TYPES = {"u8": "uint8", "i16": "int16", "i32": "int32", "i64": "int64", "f16": "float16", "f32": "float32", "f64": "float64"}
CHUNK = 1 << 22
NEWER = "the model has opset "


# The models.


def make_model(case):
    """The model of a case: one node, whose inputs are the graph's, so that nothing can be computed in advance."""
    helper, types = onnx.helper, onnx.TensorProto
    of, shape = helper.np_dtype_to_tensor_dtype(np.dtype(TYPES[case["type"]])), output_shape(case)
    if case["op"] == "Range":
        inputs = [helper.make_tensor_value_info(name, of, []) for name in ("start", "limit", "delta")]
        attributes = {}
    else:
        batch = shape[case["batch_axis"]]
        inputs = [helper.make_tensor_value_info("x", of, shape), helper.make_tensor_value_info("lengths", types.INT64, [batch])]
        attributes = {name: case[name] for name in ("batch_axis", "time_axis")}
    node = helper.make_node(case["op"], [value.name for value in inputs], ["y"], name=case["op"], **attributes)
    graph = helper.make_graph([node], case["name"], inputs, [helper.make_tensor_value_info("y", of, shape)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", case["opset"])], ir_version=8)


def output_shape(case):
    return case["shape"] if case["op"] == "ReverseSequence" else [case["count"]]


def make_inputs(case):
    """Random bytes and random lengths, the same in each run. A check counts up instead: its bytes are the same on every machine."""
    data_type = np.dtype(TYPES[case["type"]])
    if case["op"] == "Range":
        return {name: np.array(case[name], data_type) for name in ("start", "limit", "delta")}
    shape = case["shape"]
    count, batch, longest = int(np.prod(shape)), shape[case["batch_axis"]], shape[case["time_axis"]]
    if case["check"]:
        return {"x": np.arange(count).astype(data_type).reshape(shape), "lengths": (np.arange(batch) * 5 + 3) % longest + 1}
    random = np.random.default_rng(zlib.crc32(case["name"].encode()))
    x = memory(shape, data_type, np.frombuffer(random.bytes(count * data_type.itemsize), np.uint8))
    # No length is 0: the CPU kernel of ONNX Runtime 1.18 does not write such rows.
    return {"x": x, "lengths": random.integers(1, longest + 1, batch, dtype=np.int64)}


def memory(shape, data_type, content):
    """An array at the beginning of a page. On the CPU, times depend on where tensors are: where one begins 16 bytes behind another, in their
    pages, reversals were seen to take ten times as long."""
    size, page = int(np.prod(shape)) * np.dtype(data_type).itemsize, 4096
    room = np.empty(size + page, np.uint8)
    begin = -room.ctypes.data % page
    room[begin : begin + size] = content
    return room[begin : begin + size].view(data_type).reshape(shape)


# What they must compute.


def wrong(case, inputs, found):
    """Why an output is wrong, or None, and a note, or None. Looks at every element."""
    if case["op"] == "Range":
        return wrong_range(inputs, found)
    required = inputs["x"].copy()
    rows, source = (np.moveaxis(array, (case["batch_axis"], case["time_axis"]), (0, 1)) for array in (required, inputs["x"]))
    for row, length in enumerate(inputs["lengths"]):
        rows[row, :length] = source[row, :length][::-1]
    bits = np.dtype(f"u{required.dtype.itemsize}")
    return difference(found.view(bits) != required.view(bits), found, required), None


def wrong_range(inputs, found):
    """Integers are exact. Element i of floats is start + i * delta, to one unit in the last place of the larger of the two; or all are the
    running sum, which is how ONNX's own function of Range computes them."""
    data_type, (start, delta) = found.dtype, (inputs["start"], inputs["delta"])
    exact = data_type.kind == "i"
    computing = np.dtype("int64" if exact else "float64")
    start_there, delta_there = start.astype(computing), delta.astype(computing)
    first, is_sum, last = None, not exact, start
    for begin in range(0, found.size, CHUNK):
        part = found[begin : begin + CHUNK]
        steps = np.arange(begin, begin + part.size, dtype=computing) * delta_there
        required = start_there + steps
        if exact:
            differs = part != required.astype(data_type)
        else:
            unit = np.spacing(np.maximum(np.abs(steps), np.abs(start_there)).astype(data_type)).astype(computing)
            differs = ~(np.abs(part.astype(computing) - required) <= unit)
        if first is None:
            # All elements behind this part that differ are counted, too.
            first = difference(differs, part, required.astype(data_type), begin)
        if is_sum:
            sums = np.full(part.size + (begin > 0), delta, data_type)
            sums[0] = last
            sums = np.add.accumulate(sums, dtype=data_type)[int(begin > 0) :]
            is_sum, last = np.array_equal(sums, part), sums[-1]
    if first and is_sum:
        return None, f"the kernel adds delta repeatedly, as ONNX's own function of Range does, so that its values drift"
    return first, None


def difference(differs, found, required, begin=0):
    count = int(np.count_nonzero(differs))
    if count == 0:
        return None
    at = np.unravel_index(int(np.argmax(differs)), differs.shape)
    place = [int(index) + (begin if differs.ndim == 1 else 0) for index in at]
    return f"the output is wrong: element {place} is {found[at]}, must be {required[at]}; {count} of these {differs.size} elements differ"


# One case, in a process of its own, so that a lost device or a crash ends only this case.


def library_runs(library):
    """How many nodes the library ran in this process."""
    counters = (ctypes.c_uint64 * 3)()  # Nodes, runs, runs in place.
    if library and ctypes.CDLL(library).dml_cuda_onnxruntime_counters(ctypes.byref(counters), None) != 0:
        raise RuntimeError(f"{library} does not count its runs")
    return counters[1]


def make_session(model, settings, profile=None):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    provider = settings["provider"]
    if provider == "DmlExecutionProvider":
        options.enable_mem_pattern = False
    if provider != "CPUExecutionProvider":
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    if settings["library"]:
        options.add_session_config_entry("dml_cuda.replace_onnx", "ReverseSequence,Range")
        options.register_custom_ops_library(settings["library"])
    if profile:
        options.enable_profiling, options.profile_file_prefix = True, profile
    device = {"device_id": str(settings["device_id"])} if provider in MEMORY else {}
    session = ort.InferenceSession(model, options, providers=[(provider, device)])
    if session.get_providers()[0] != provider:
        raise RuntimeError(f"ONNX Runtime fell back from {provider} to {', '.join(session.get_providers())}")
    return session


def values_of(inputs, output, settings):
    """Everything in the provider's memory. Range's kernels read their scalars on the host."""
    memory = MEMORY.get(settings["provider"], "cpu")
    place = lambda array: (memory, settings["device_id"]) if array.ndim and memory != "cpu" else ("cpu", 0)
    return {name: ort.OrtValue.ortvalue_from_numpy(array, *place(array)) for name, array in {**inputs, "y": output}.items()}


def bind(session, values):
    binding = session.io_binding()
    for name, value in values.items():
        (binding.bind_ortvalue_output if name == "y" else binding.bind_ortvalue_input)(name, value)
    return binding


def ran(session):
    """The operators and providers of the nodes that ran in a session with a profile."""
    path = Path(session.end_profiling())
    events = json.loads(path.read_text(encoding="utf-8"))
    path.unlink()
    arguments = [event["args"] for event in events if event.get("cat") == "Node"]
    return {(found.get("op_name"), found["provider"]) for found in arguments if found.get("provider")}


def run_case(case, settings):
    """The answer of a case: its output's bytes or its samples, or why there are none."""
    inputs, model = make_inputs(case), make_model(case).SerializeToString()
    before = library_runs(settings["library"])
    # Every byte of the output must be written.
    output = memory(output_shape(case), TYPES[case["type"]], 0xA5)
    try:
        session, values = make_session(model, settings), values_of(inputs, output, settings)
    except Exception as error:
        why = reason(error)
        if case.get("optional") or why.startswith(NEWER):
            return {"refused": why}
        raise
    with tempfile.TemporaryDirectory() as folder:
        seen = make_session(model, settings, os.path.join(folder, "profile"))
        binding = bind(seen, values)
        seen.run_with_iobinding(binding)
        binding.synchronize_outputs()
        nodes = ran(seen)
    elsewhere = sorted(f"{op} on {provider}" for op, provider in nodes if provider != settings["provider"])
    if elsewhere or not nodes:
        raise RuntimeError(f"not all of it ran on {settings['provider']}: {', '.join(elsewhere) or 'no node was seen'}")
    if settings["library"] and library_runs(settings["library"]) == before:
        raise RuntimeError(f"{settings['library']} was loaded, but ONNX Runtime's own kernel ran")
    found = values["y"].numpy()
    failed, note = wrong(case, inputs, found)
    if failed:
        return {"failed": failed}
    if case["check"]:
        return {"output": found.tobytes().hex()}
    binding = bind(session, values)
    dispatches, samples = sample(lambda: session.run_with_iobinding(binding), binding.synchronize_outputs, case["dispatches"], settings["samples"])
    others = ", ".join(sorted(op for op, _ in nodes if op != case["op"]))
    return {"dispatches": dispatches, "samples": samples, "notes": [text for text in (note, others and f"{others} ran, too") if text]}


def sample(run, wait, dispatches, count):
    """Microseconds of a run. A sample takes at most about 100 ms, and all at most about 10 s if there are five."""

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
    while len(samples) < count and (len(samples) < 5 or time.perf_counter() - begin < 10):
        samples.append(seconds(dispatches) / dispatches * 1e6)
    return dispatches, samples


def serve():
    """Reads the settings, then a case a line, and answers each in a line. What libraries print goes to the standard error stream."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    ort.set_default_logger_severity(3)
    # The process that asks is interrupted, and closes the input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    settings = json.loads(sys.stdin.readline())
    if settings["provider"] == "CUDAExecutionProvider" and hasattr(ort, "preload_dlls"):
        ort.preload_dlls()
    for line in sys.stdin:
        try:
            answer = run_case(json.loads(line), settings)
        # Whatever it is, the case has no time.
        except Exception as error:
            answer = {"failed": reason(error)}
        print(json.dumps(answer), file=answers, flush=True)


def reason(error):
    """An error in one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    newest = re.search(r"Opset (\d+) is under development.* till opset (\d+)", text)
    return f"{NEWER}{newest[1]}, ONNX Runtime {ort.__version__} loads at most {newest[2]}" if newest else text


class Worker:
    """Answers case after case. After a failure the next case begins in a new process."""

    def __init__(self, settings):
        self.settings, self.process = settings, None

    def answer(self, case):
        if self.process is None:
            command = [sys.executable, os.path.abspath(__file__), "--serve"]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
            self.send(self.settings)
        self.send(case)
        line = self.process.stdout.readline()
        answer = json.loads(line) if line.endswith("\n") else None
        if answer is None or "failed" in answer:
            code = self.end()
        return answer or {"failed": f"the process that ran it ended with exit code {code}"}

    def send(self, value):
        try:
            self.process.stdin.write(json.dumps(value) + "\n")
            self.process.stdin.flush()
        except OSError:
            pass  # It ended, so that it answers nothing.

    def end(self):
        """Its exit code."""
        process, self.process = self.process, None
        if process is None:
            return 0
        process.communicate()
        return process.returncode

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind and self.process:
            self.process.kill()
        self.end()


# The run.


def machine(settings):
    name, version = settings["provider"].replace("ExecutionProvider", "").replace("Dml", "DirectML"), ort.__version__
    device, driver, clocks = "CPU", "", ""
    if name == "CUDA":
        query = ["nvidia-smi", "-i", str(settings["device_id"]), "--query-gpu=name,driver_version,clocks.sm,clocks.mem,clocks.max.sm", "--format=csv,noheader"]
        device = f"CUDA device {settings['device_id']}"
        found = printed(query).split(", ")
        if len(found) == 5:
            device, driver = found[:2]
            clocks = f"SM {found[2]} of at most {found[4]}, memory {found[3]}"
    elif name != "CPU":
        query = "Get-CimInstance Win32_VideoController | ForEach-Object { $_.Name + ', driver ' + $_.DriverVersion }"
        found = printed(["powershell", "-NoProfile", "-Command", query]) if os.name == "nt" else ""
        device = f"{name} device {settings['device_id']}" + (f" of: {'; '.join(found.splitlines())}" if found else "")
    library = settings["library"] and f" with dml-cuda {library_version(settings['library'])}"
    tool = f"ONNX Runtime {version} {name}{library or ''}"
    return {
        "tool": tool,
        "commit": "",
        "program": hashlib.sha256(Path(settings["library"]).read_bytes()).hexdigest() if library else "",
        "device": device,
        "driver": driver,
        "clocks": clocks,
        "host": f"{fact('/proc/cpuinfo', 'model name', platform.processor() or platform.machine())}, {os.cpu_count()} cores",
        "operating_system": fact("/etc/os-release", "PRETTY_NAME=", platform.platform()),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "command": subprocess.list2cmdline([sys.executable, *sys.argv]) if os.name == "nt" else " ".join(map(shlex.quote, [sys.executable, *sys.argv])),
    }


def printed(command):
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True, timeout=60).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def fact(path, begin, otherwise):
    """What follows in the first line that begins so."""
    lines = Path(path).read_text(encoding="utf-8").splitlines() if os.path.exists(path) else []
    return next((line[len(begin) :].strip('\t:= "') for line in lines if line.startswith(begin)), otherwise)


def library_version(path):
    try:
        function = ctypes.CDLL(path).dml_cuda_version
    except (OSError, AttributeError) as error:
        sys.exit(f"ERROR: {path} is not the library of dml-cuda: {error}")
    function.restype = ctypes.c_char_p
    return function().decode()


def complain(text, end="\n"):
    """Prints to standard error. That nobody reads it ends no run."""
    line = "\r\033[K" if sys.stderr.isatty() else ""
    try:
        print(line + text, end=end, file=sys.stderr, flush=True)
    except OSError:
        silence(2)


def silence(stream):
    """Python would fail at its end to write what is left."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream)


class RunFile:
    """The file of a run. It holds the run whole or not at all, and nothing else is replaced."""

    def __init__(self, path, run):
        self.path, self.bytes, self.run = Path(path).resolve(), None, run
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            sys.exit(f"ERROR: {path} cannot be written: {error}")
        if not self.path.exists():
            return
        if not self.path.is_file():
            sys.exit(f"ERROR: {path} is not a regular file, must be one to hold a run")
        try:
            self.bytes = self.path.read_bytes()
            old = json.loads(self.bytes.decode("utf-8-sig"))
            if old["schema"] != 1 or not old["machine"]["tool"].startswith("ONNX Runtime"):
                raise ValueError("it is not a run of this script")
            before, now = ({**{name: it.get(name) for name in ("suite", "samples", "timing")}, **it["machine"]} for it in (old, run))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            sys.exit(f"ERROR: {path} cannot be continued ({error}), and is not replaced; choose another name")
        names = [name for name in now if name not in ("date", "command", "clocks") and before.get(name, "") != now[name]]
        if names:
            differences = "; ".join(f"{name} was '{before.get(name, '')}', is '{now[name]}'" for name in names)
            sys.exit(f"ERROR: {path} is another run, and is not replaced; choose another name: {differences}")
        lists = {name: old.get(name, run[name]) for name in ("notes", "failed", "outputs", "failed_outputs")}
        self.run = {**old, **lists, "notes": list(dict.fromkeys([*run["notes"], *lists["notes"]]))}
        self.run["machine"]["command"] = run["machine"]["command"]

    def write(self):
        if (self.path.read_bytes() if self.path.exists() else None) != self.bytes:
            sys.exit(f"ERROR: another process changed {self.path}; it stays as it is")
        content = json.dumps(self.run, indent=2).encode()
        partial = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            partial.write_bytes(content)
            os.replace(partial, self.path)
        except OSError as error:
            sys.exit(f"ERROR: {self.path} cannot be written: {error}")
        finally:
            if partial.exists():
                partial.unlink()
        self.bytes = content

    def add(self, case, answer):
        """Puts what a case left into the run. A case that providers may refuse, and this one does, leaves a note."""
        run, work = self.run, {name: case[name] for name in ("case", "type", "mode", "bytes", "dispatches")}
        key = lambda entry: (entry["case"], entry["type"], entry["mode"])
        prefix, error = f"{case['name']}: ", answer.get("failed")
        run["notes"] = [note for note in run["notes"] if not note.startswith(prefix)]
        run["failed"] = [entry for entry in run["failed"] if key(entry) != key(work)]
        run["failed_outputs"].pop(case["name"], None)
        if "refused" in answer:
            run["notes"].append(prefix + answer["refused"])
        elif error and case["check"]:
            run["failed_outputs"][case["name"]] = error
        elif error:
            run["failed"].append({**work, "error": error})
        elif case["check"]:
            run["outputs"][case["name"]] = answer["output"]
        else:
            run["cases"].append({**work, "dispatches": answer["dispatches"], "samples": {"each": answer["samples"]}})
            run["notes"] += [prefix + note for note in answer["notes"]]


def read_cases(only):
    path = Path(__file__).resolve().parent / "manifest.json"
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        if manifest["schema"] > 1:
            sys.exit(f"ERROR: {path}: its schema is {manifest['schema']}, must be at most 1: a newer release of dml-cuda wrote it")
        cases = [{**case, "check": check} for part, check in (("cases", False), ("checks", True)) for case in manifest["onnx"][part]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"ERROR: {path} has no ONNX models ({error}); `dml-cuda suite --onnx` writes them")
    wanted = [case for case in cases if not only or any(text in case["name"] or text in case["case"] for text in only)]
    if not wanted:
        sys.exit(f"ERROR: --only {' '.join(only)} is in the name of no model of {path}")
    return manifest["id"], wanted


def save_models(folder, cases):
    """Writes the models that are not there yet."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for case in cases:
            with open(Path(folder) / f"{case['name']}.onnx", "xb") as file:
                file.write(make_model(case).SerializeToString())
    except OSError as error:
        sys.exit(f"ERROR: a model cannot be written: {error}")
    print(f"{len(cases)} models written to '{folder}'")


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--provider", help="cpu, cuda, dml, or a name that onnxruntime knows")
    parser.add_argument("--library", help="libdml_cuda.so: its kernels run, instead of ONNX Runtime's own")
    parser.add_argument("--device-id", type=int, default=0, help="the provider's device (default: 0)")
    parser.add_argument("--samples", type=int, default=30, help="samples of a case (default: 30)")
    parser.add_argument("--only", action="append", default=[], help="only models whose names hold this; may be repeated")
    parser.add_argument("--note", action="append", default=[], help="a note for readers of the run; may be repeated")
    parser.add_argument("-o", "--output", metavar="RUN.json", help="the run that is written")
    parser.add_argument("--save-models", metavar="FOLDER", help="write the .onnx files, which must be new, and time nothing")
    options = parser.parse_args(arguments)
    if options.device_id < 0 or options.samples < 1:
        parser.error("--device-id must be at least 0, --samples at least 1")
    if not options.save_models and not (options.provider and options.output):
        parser.error("needs --provider and -o, or --save-models")
    return options


def main(arguments=None):
    if (sys.argv[1:] if arguments is None else arguments) == ["--serve"]:
        return serve()
    options = parse(arguments)
    if MISSING:
        sys.exit(MISSING)
    suite, cases = read_cases(options.only)
    if options.save_models:
        return save_models(options.save_models, cases)
    known = ort.get_available_providers()
    asked = PROVIDERS.get(options.provider.lower(), options.provider)
    provider = next((name for name in known if name.lower() == asked.lower()), asked)
    if provider not in known:
        sys.exit(f"ERROR: this onnxruntime {ort.__version__} has no {provider}, only {', '.join(known)}; onnxruntime-gpu has cuda, onnxruntime-directml has dml")
    if options.library and not os.path.isfile(options.library):
        sys.exit(f"ERROR: --library {options.library} is not a file")
    library = options.library and os.path.abspath(options.library)
    settings = {"provider": provider, "library": library, "device_id": options.device_id, "samples": options.samples}
    about = machine(settings)
    memory = "the GPU's" if provider in MEMORY else "the host's"
    run = {
        "schema": 1,
        "label": about["tool"],
        "machine": about,
        "timing": f"the host's clock around N runs of a session and a wait for the device, divided by N; tensors are in {memory} memory",
        "samples": options.samples,
        "notes": [f"Python {platform.python_version()}, onnx {onnx.__version__}, NumPy {np.__version__}", *options.note],
        "suite": suite,
        "cases": [],
        "failed": [],
        "outputs": {},
        "failed_outputs": {},
    }
    file = RunFile(options.output, run)
    done = {(case["case"], case["type"], case["mode"]) for case in file.run["cases"]}
    cases = [case for case in cases if (case["name"] not in file.run["outputs"] if case["check"] else (case["case"], case["type"], case["mode"]) not in done)]
    failed, said, terminal = 0, set(), sys.stderr.isatty()
    with Worker(settings) as worker:
        for place, case in enumerate(cases, 1):
            if terminal:
                complain(f"[{place}/{len(cases)}] {case['name']}", end="")
            answer = worker.answer(case)
            error = answer.get("failed")
            file.add(case, answer)
            failed += error is not None
            # The same error of several models is printed once.
            if error and error not in said:
                said.add(error)
                complain(f"WARNING: {case['name']}: {error}")
            if file.run["cases"] or file.run["outputs"]:
                file.write()
    if terminal:
        complain("", end="")
    counts = f"{len(file.run['cases'])} cases, {len(file.run['outputs'])} outputs"
    if not file.run["cases"] and not file.run["outputs"]:
        sys.exit("ERROR: nothing was timed: every model failed")
    if not cases:
        print(f"Run '{run['label']}' in '{options.output}': nothing left to time, {counts} are there")
    else:
        print(f"Run '{run['label']}' written to '{options.output}': {counts}, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        try:
            code = main()
        finally:
            sys.stdout.flush()
    except OSError as error:
        # A reader that has seen enough is no error.
        silence(1)
        code = 0 if isinstance(error, BrokenPipeError) else f"ERROR: {error}"
    except KeyboardInterrupt:
        complain("interrupted; the same command continues")
        code = 130
    sys.exit(code)
