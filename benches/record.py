#!/usr/bin/env python3
"""Measures every figure of README and results.md, on one machine, at one commit. Each part writes one file to OUT, whose
head names the commit, the GPU, the driver, the versions, the date and the hashes of benches/program.py.

Usage: PYTHONPATH=python/src python3 benches/record.py OUT [PART...] [--small]

A part whose file is there is not measured again, so that the command may run in two stretches. Its program and machine
must be the same. --small measures next to nothing, on any machine, to see that every part runs. Programs are looked for
in gpu-bundle/, as scripts/gpu-bundle.sh makes it, and in target/release.

Parts, with the minutes that they take on an H200:
"""

import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys
import time

import program

ROOT = pathlib.Path(__file__).resolve().parent.parent
BENCHES = ROOT / "benches"
PYTHON = sys.executable


def tool():
    """The command line tool."""
    for path in ("gpu-bundle/dml-cuda", "target/release/dml-cuda"):
        if (ROOT / path).exists():
            return str(ROOT / path)
    sys.exit("there is no gpu-bundle/dml-cuda: scripts/gpu-bundle.sh makes it")


def library():
    for path in ("gpu-bundle/libdml_cuda.so", "target/release/libdml_cuda.so"):
        if (ROOT / path).exists():
            return str(ROOT / path)
    sys.exit("there is no gpu-bundle/libdml_cuda.so: scripts/gpu-bundle.sh makes it")


def suite(out, small):
    tier = ["--tier", "quick", "--only", "small"] if small else ["--tier", "full"]
    return [tool(), "bench", *tier, "--samples", "8", "-o", out]


def cold(out, small):
    only = ["--only", "small"] if small else []
    return [tool(), "bench", "--cold-l2", *only, "-o", out]


def layouts(out, small):
    size = ["--small", "--count", "4"] if small else ["--count", "220"]
    return [PYTHON, "random_layouts.py", out, str(seed()), *size]


def large(out, small):
    size = ["--small", "--count", "4"] if small else ["--large", "--count", "70"]
    more = ["--without-gather", "--workers", "2"]
    return [PYTHON, "random_layouts.py", out, str(seed() + 1), *size, *more]


def onnxruntime(out, small, *more):
    provider = "cpu" if small else "cuda"
    bench = [tool(), "bench", "--runner", "onnxruntime", "--python", PYTHON]
    only = ["--tier", "quick", "--only", "check.onnx"] if small else []
    return [*bench, "--provider", provider, *only, *more, "-o", out]


def onnxruntime_library(out, small):
    return onnxruntime(out, small, "--library", library())


def onnx_models(_, small):
    tests = ROOT / "crates/dml-cuda-capi/tests/onnxruntime/test_models.py"
    where = "--cpu" if small else "--cuda"
    return ["env", f"DML_CUDA_LIBRARY={library()}", PYTHON, str(tests), where]


def python(script, *given, small=("small",)):
    """A bench that prints Markdown."""
    return lambda _, is_small: [
        PYTHON,
        f"{script}.py",
        *(small if is_small else given),
    ]


def rust(name):
    """A bench of Criterion, built by scripts/gpu-bundle.sh or by cargo."""

    def command(_, small):
        mode = "--test" if small else "--bench"
        built = ROOT / "gpu-bundle/benches" / name
        if built.exists():
            return [str(built), mode]
        return ["cargo", "bench", "-p", "dml-cuda-benches", "--bench", name, "--", mode]

    return command


# Name, ending, minutes, and the command. One whose file ends in .md prints its figures.
PARTS = {
    "suite": ("json", 2.3, suite),
    "cold": ("json", 6.5, cold),
    "layouts": ("csv", 1.5, layouts),
    "large-layouts": ("csv", 0.7, large),
    "pytorch": ("md", 0.6, python("torch_calls")),
    "compiled-pytorch": (
        "md",
        1.5,
        python("compiled", "torch", small=("torch", "small")),
    ),
    "compiled-jax": ("md", 0.4, python("compiled", "jax", small=("jax", "small"))),
    "rnn-sizes": ("md", 0.6, python("rnn", "sizes")),
    "rnn-jax": ("md", 0.5, python("rnn_jax")),
    "rnn-random": ("md", 0.7, python("rnn", "random=9601:200", small=("random=1:2",))),
    "rnn-memory": ("md", 0.3, python("rnn", "memory")),
    "rnn-captured": ("md", 1.4, python("rnn_forms")),
    "onnxruntime": ("json", 2, onnxruntime),
    "onnxruntime-library": ("json", 2, onnxruntime_library),
    "onnx-models": ("md", 0.2, onnx_models),
    "host": ("md", 1.5, rust("host")),
    "startup": ("md", 0.3, rust("startup")),
}


# What runs on a GPU alone.
NEEDS_GPU = ("cold", "rnn-memory")


def seed():
    """A seed that nothing was tuned with: the day."""
    return int(datetime.date.today().strftime("%y%m%d"))


def printed(command):
    """What a program prints, or nothing."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def facts(small):
    """The commit, the machine, the versions and the hashes: all that a file says of how it was measured but the date."""
    commit = os.environ.get("DML_CUDA_COMMIT") or printed(
        ["git", "describe", "--always", "--dirty"]
    )
    query = ["--query-gpu=name,driver_version", "--format=csv,noheader"]
    gpu = printed(["nvidia-smi", *query]).partition("\n")[0] or "no GPU"
    versions = []
    for name in ("torch", "jax", "onnxruntime"):
        code = f"import {name}; print({name}.__version__)"
        if version := printed([PYTHON, "-c", code]):
            versions.append(f"{name} {version}")
    known = [f"{name} {value}" for name, value in program.hashes().items()]
    size = ["measured with --small"] if small else []
    return [f"commit {commit or 'unknown'}", gpu, *versions, *known, *size]


def is_measured(path, told, small):
    """Whether a part's file is there. If another program or machine measured it, or --small, the command ends."""
    if not path.exists():
        return False
    text = path.read_text(encoding="utf-8")
    missing = [fact for fact in told if fact not in text]
    if missing or (not small and "measured with --small" in text):
        sys.exit(
            f"{path} was measured otherwise ({', '.join(missing) or '--small'}): use another folder, or delete it"
        )
    return True


def one_line_a_case(results):
    """A results file with a case in each line and without the digits that say nothing, for a small repository."""
    cases = []
    for case in results["cases"]:
        if "each" in case:
            case["each"] = [float(f"{time:.4g}") for time in case["each"]]
        cases.append("  " + json.dumps(case))
    text = json.dumps({**results, "cases": []}, indent=1)
    return (
        text.replace('"cases": []', '"cases": [\n' + ",\n".join(cases) + "\n ]") + "\n"
    )


def measure(name, out, told, small):
    """Runs a part, and writes its file only if it succeeds."""
    ending, _, command = PARTS[name]
    path = out / f"{name}.{ending}"
    part = path.with_name(f"{name}.part.{ending}")
    part.unlink(missing_ok=True)
    command = command(str(part.resolve()), small)
    packages = [str(ROOT / "python/src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(packages)}
    prints = subprocess.PIPE if ending == "md" else None
    done = subprocess.run(
        command, cwd=BENCHES, env=environment, stdout=prints, text=True
    )
    if done.returncode:
        return f"{name} failed with exit code {done.returncode}: {' '.join(command)}"
    if ending == "md":
        shown = " ".join(pathlib.Path(word).name for word in command)
        part.write_text(f"{told}\n\n`{shown}`\n\n{done.stdout}", encoding="utf-8")
    elif ending == "json":
        results = json.loads(part.read_text(encoding="utf-8"))
        results["notes"] = [*results.get("notes", []), told]
        part.write_text(one_line_a_case(results), encoding="utf-8")
    else:
        part.write_text(f"# {told}\n{part.read_text(encoding='utf-8')}")
    part.rename(path)
    return None


def main():
    minutes = "\n".join(f"  {name:20} {of[1]:g}" for name, of in PARTS.items())
    parser = argparse.ArgumentParser(
        description=__doc__ + minutes,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("out", type=pathlib.Path, metavar="OUT")
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--small", action="store_true")
    options = parser.parse_intermixed_args()
    small = options.small
    for name in options.parts:
        if name not in PARTS:
            parser.error(f"there is no part {name}; --help lists them")
    if options.out.exists() and not options.out.is_dir():
        parser.error(f"{options.out} is a file, but must be a folder")
    options.out.mkdir(parents=True, exist_ok=True)
    told = facts(small)
    wanted = []
    for name in options.parts or PARTS:
        if is_measured(options.out / f"{name}.{PARTS[name][0]}", told, small):
            print(f"{name}: is there")
        elif small and name in NEEDS_GPU and "no GPU" in told:
            print(f"{name}: needs a GPU")
        else:
            wanted.append(name)
    if not small:
        total = sum(PARTS[name][1] for name in wanted)
        print(f"{len(wanted)} parts, which take about {total:g} minutes", flush=True)
    head = f"{', '.join(told)}, {datetime.date.today()}"
    print(head, flush=True)
    failed = []
    for name in wanted:
        begin = time.monotonic()
        error = measure(name, options.out, head, small)
        print(error or f"{name}: {time.monotonic() - begin:.0f} s", flush=True)
        failed += [error] if error else []
    sys.exit("\n".join(failed) or None)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("interrupted: the same command measures what is missing")
