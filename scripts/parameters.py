#!/usr/bin/env python3
"""Prints the Rust side of kernels/parameters.cuh: its structures and constants, with a module for each namespace.
Needs libclang."""

import re

from clang.cindex import CursorKind, Index, TypeKind

SOURCE = "kernels/parameters.cuh"
NUMBERS = {TypeKind.UINT: "u32", TypeKind.ULONGLONG: "u64", TypeKind.POINTER: "u64"}
DERIVES = "Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable"


def rust_type(of):
    of = of.get_canonical()
    if of.kind == TypeKind.CONSTANTARRAY:
        return f"[{rust_type(of.element_type)}; {of.element_count}]"
    return (
        of.spelling.rsplit("::")[-1] if of.kind == TypeKind.RECORD else NUMBERS[of.kind]
    )


def print_rust(scope):
    for item in scope.get_children():
        name = item.spelling
        if item.kind == CursorKind.NAMESPACE:
            print(f"\npub mod {name} {{\nuse super::*;")
            print_rust(item)
            print("}")
        elif item.kind == CursorKind.STRUCT_DECL:
            print(f"\n#[repr(C)]\n#[derive({DERIVES})]\npub struct {name} {{")
            for field in item.get_children():
                print(f"    pub {field.spelling}: {rust_type(field.type)},")
            print(
                f"}}\nconst _: () = assert!(size_of::<{name}>() == {item.type.get_size()});"
            )
        elif item.kind == CursorKind.VAR_DECL:
            value = "".join(token.spelling for token in item.get_tokens()).rpartition(
                "="
            )[2]
            value = re.sub(r"\b(\d+)u\b", r"\1", value)
            print(f"pub const {name}: {rust_type(item.type)} = {value};")


parsed = Index.create().parse(
    SOURCE, ["-x", "c++", "-std=c++17", "-Wno-pragma-once-outside-header"]
)
if parsed.diagnostics:
    raise SystemExit("\n".join(map(str, parsed.diagnostics)))
print(f"// Written by scripts/parameters.py from {SOURCE}, which has the comments.")
print_rust(parsed.cursor)
