"""Writes the licenses of what the published libraries and programs contain: licenses.py METADATA.json NOTICE... > FILE

METADATA.json is that of `cargo metadata --filter-platform`, which names what one system needs. Every text is one that a
crate ships, once, with the crates that have it. A NOTICE is a file of its own,
for what no crate is: Rust's standard library and what the linkers add. Stops if a crate ships no text and has a license
of no other crate.
"""

import json
import pathlib
import re
import sys

TEXTS = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)


def shipped(metadata):
    """The packages that the workspace's libraries and programs are linked with."""
    linked = lambda dep: any(kind["kind"] is None for kind in dep["dep_kinds"])
    nodes = {
        node["id"]: [dep["pkg"] for dep in node["deps"] if linked(dep)]
        for node in metadata["resolve"]["nodes"]
    }
    roots = ("dml-cuda-cli", "dml-cuda-capi", "dml-cuda-torch")
    found = {
        package["id"] for package in metadata["packages"] if package["name"] in roots
    }
    while more := {dep for node in found for dep in nodes[node]} - found:
        found |= more
    return [
        package
        for package in metadata["packages"]
        if package["id"] in found - set(metadata["workspace_members"])
    ]


def main(metadata, *notices):
    packages = sorted(
        shipped(json.loads(pathlib.Path(metadata).read_text(encoding="utf-8"))),
        key=lambda package: (package["name"], package["version"]),
    )
    texts, bare, known = {}, [], set()
    parts = lambda package: set(re.split(r" OR | AND |/", package["license"]))
    for package in packages:
        name = f"{package['name']} {package['version']} ({package['license']})"
        folder = pathlib.Path(package["manifest_path"]).parent
        files = sorted(
            path
            for path in folder.iterdir()
            if path.is_file()
            and TEXTS.match(path.name)
            and path.suffix not in (".rs", ".html")
        )
        for path in files:
            texts.setdefault(
                path.read_text(encoding="utf-8", errors="replace").strip(), []
            ).append(name)
        if files:
            known |= parts(package)
        else:
            bare.append((name, package))
    print(
        "The libraries and programs of dml-cuda contain code of the Rust crates below, of Rust's standard library, and of the run-time libraries of compilers."
    )
    for name, package in bare:
        if not known & parts(package):
            sys.exit(
                f"{name} ships no text of its license, and no other crate has that license"
            )
        authors = ", ".join(package["authors"]) or "its authors"
        print(
            f"\n{name} ships no text. It is by {authors}, and its license is one of those below."
        )
    for text, names in texts.items():
        print("\n" + "=" * 120, *names, "", text, sep="\n")
    for notice in notices:
        print(
            "\n" + "=" * 120,
            pathlib.Path(notice).read_text(encoding="utf-8").strip(),
            sep="\n",
        )


main(*sys.argv[1:])
