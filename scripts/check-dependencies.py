#!/usr/bin/env python3
"""Holds, of every dependency of the workspaces, that its license is one of deny.toml's, that it comes from the
registry, and that it takes the Rust version that the crate declares."""

import json
import re
import subprocess
import sys
import tomllib

REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"
# Users build these crates with the Rust version that the crates declare.
PUBLISHED = ("dml-cuda", "dml-cuda-capi", "dml-cuda-cli", "dml-cuda-model")


def number(version):
    return tuple(int(part) for part in (version + ".0.0").split(".")[:3])


def allowed(license, licenses):
    """Evaluates an SPDX expression, or the older MIT/Apache-2.0."""
    term = lambda found: (
        f" {found[0] in licenses} "
        if found[0] not in ("AND", "OR")
        else found[0].lower()
    )
    expression = re.sub(
        r"[\w.+-]+( WITH [\w.+-]+)?", term, license.replace("/", " OR ")
    )
    return bool(license) and eval(expression, {"__builtins__": {}})


def main():
    with open("deny.toml", "rb") as file:
        rules = tomllib.load(file)["licenses"]
    exceptions = {rule["crate"]: rule["allow"] for rule in rules["exceptions"]}
    wrong = []
    for manifest in (
        "Cargo.toml",
        "crates/dml-cuda-candle/Cargo.toml",
        "fuzz/Cargo.toml",
    ):
        command = [
            "cargo",
            "metadata",
            "--locked",
            "--all-features",
            "--format-version",
            "1",
            "--manifest-path",
            manifest,
        ]
        metadata = json.loads(
            subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
        )
        packages = {package["id"]: package for package in metadata["packages"]}
        nodes = {
            node["id"]: node["dependencies"] for node in metadata["resolve"]["nodes"]
        }
        foreign = [package for package in packages.values() if package["source"]]
        for package in foreign:
            name, license = (
                f"{manifest}: {package['name']} {package['version']}",
                package["license"] or "",
            )
            if not allowed(
                license, rules["allow"] + exceptions.get(package["name"], [])
            ):
                wrong.append(
                    f"{name} has the license '{license}', but must have one that deny.toml allows"
                )
            if package["source"] != REGISTRY:
                wrong.append(
                    f"{name} comes from {package['source']}, but must come from the registry"
                )
        print(f"{manifest}: {len(foreign)} dependencies")
        for root in (
            id
            for id in metadata["workspace_members"]
            if packages[id]["name"] in PUBLISHED
        ):
            seen = {root}
            while (
                more := {dependency for id in seen for dependency in nodes[id]} - seen
            ):
                seen |= more
            declared = packages[root]["rust_version"]
            for package in map(packages.get, seen):
                if number(package["rust_version"] or "1.0") > number(declared):
                    wrong.append(
                        f"{package['name']} needs Rust {package['rust_version']}, {packages[root]['name']} declares {declared}"
                    )
            print(
                f"{packages[root]['name']}: {len(seen) - 1} dependencies take Rust {declared}"
            )
    sys.exit("\n".join(wrong) or None)


if __name__ == "__main__":
    main()
