"""Compares the structures of crates/dml-cuda-capi/src/xla/ffi.rs with XLA's own header, which jaxlib has, and checks
the versions that dml_cuda.jax accepts. Skipped, and counted, without JAX."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from test_jax import dj, jax  # first: without JAX it skips this module

import jaxlib
from dml_cuda.jax import primitive

API = pathlib.Path(__file__).parents[2] / "crates/dml-cuda-capi/src/xla/ffi.rs"


class Interface(unittest.TestCase):
    @unittest.skipIf(shutil.which("cc") is None, "no C compiler")
    def test_structures_and_numbers_are_those_of_xlas_header(self):
        source = API.read_text()
        # Extensible structures begin with the same fields.
        base = "        0 => struct_size:\n        8 => extension_start:\n"
        structures = re.findall(
            r"^    (XLA_FFI_\w+): (\d+) \{\n((?:        .*\n)+)    \}",
            source.replace(" extensible {\n", " {\n" + base),
            re.M,
        )
        sizes = [(name, size) for name, size, _ in structures]
        offsets = [
            (name, field, at)
            for name, _, body in structures
            for at, field in re.findall(r"^        (\d+) => (?:r#)?(\w+):", body, re.M)
        ]
        without_last_fields = set(
            re.findall(r"^    /// Without its last fields?\.\n    (\w+):", source, re.M)
        )
        self.assertEqual(
            without_last_fields,
            {"XLA_FFI_Metadata", "XLA_FFI_Api", "XLA_FFI_CallFrame"},
        )
        types = re.findall(r"^    \((\d+), \d+, .*\), +// (\w+)$", source, re.M)
        self.assertEqual((len(sizes), len(offsets), len(types)), (14, 63, 23))
        numbers = [
            ("XLA_FFI_Extension_Metadata", "XLA_FFI_EXTENSION_METADATA"),
            (
                "XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE",
                "XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE",
            ),
            ("XLA_FFI_ExecutionStage_EXECUTE", "XLA_FFI_EXECUTION_STAGE_EXECUTE"),
            ("XLA_FFI_ArgType_BUFFER", "XLA_FFI_BUFFER"),
            ("XLA_FFI_RetType_BUFFER", "XLA_FFI_BUFFER"),
            ("XLA_FFI_AttrType_SCALAR", "XLA_FFI_ATTR_TYPE_SCALAR"),
            ("XLA_FFI_DataType_S64", "XLA_FFI_DATA_TYPE_S64"),
            (
                "XLA_FFI_Error_Code_INVALID_ARGUMENT",
                "XLA_FFI_ERROR_CODE_INVALID_ARGUMENT",
            ),
            ("XLA_FFI_Error_Code_INTERNAL", "XLA_FFI_ERROR_CODE_INTERNAL"),
            ("XLA_FFI_API_MAJOR", "XLA_FFI_API_MAJOR"),
        ]
        ours = dict(re.findall(r"^pub const (\w+): \w+ = (\d+);$", source, re.M))
        header = pathlib.Path(jax.ffi.include_dir(), "xla/ffi/api/c_api.h").read_text()
        # What newer and older versions call them.
        others = {
            "XLA_FFI_Extension_Base": "XLA_FFI_InternalExtension",
            "XLA_FFI_Error_GetMessage": "XLA_FFI_Error_GetDetails",
        }
        renamed = [
            f"#define {name} {other}"
            for name, other in others.items()
            if not re.search(rf"\b{name}\b", header)
        ]
        compare = lambda name: ">=" if name in without_last_fields else "=="
        lines = [
            *renamed,
            *(
                f'_Static_assert(sizeof(struct {name}) {compare(name)} {size}, "{name}");'
                for name, size in sizes
            ),
        ]
        lines += [
            f'_Static_assert(offsetof(struct {name}, {field}) == {at}, "{name}.{field}");'
            for name, field, at in offsets
        ]
        lines += [
            f'_Static_assert(XLA_FFI_DataType_{name} == {number}, "{name}");'
            for number, name in types
        ]
        lines += [
            f'_Static_assert({theirs} == {ours[name]}, "{theirs}");'
            for theirs, name in numbers
        ]
        lines += [
            f'_Static_assert(XLA_FFI_API_MINOR >= {ours["XLA_FFI_API_MINOR"]}, "minor version");'
        ]
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "layout.c")
            program.write_text(
                "\n".join(
                    [
                        '#include "xla/ffi/api/c_api.h"',
                        *lines,
                        "int main(void) { return 0; }",
                    ]
                )
            )
            compile = [
                "cc",
                "-std=c11",
                "-fsyntax-only",
                "-I",
                jax.ffi.include_dir(),
                str(program),
            ]
            done = subprocess.run(compile, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            text = program.read_text()
            for right, wrong in (
                ("stream) == 24", "stream) == 25"),
                (
                    "sizeof(struct XLA_FFI_Attrs) == 48",
                    "sizeof(struct XLA_FFI_Attrs) == 56",
                ),
            ):
                self.assertEqual(text.count(right), 1)
                program.write_text(text.replace(right, wrong))
                self.assertIn(
                    'static assertion failed: "XLA_FFI_',
                    subprocess.run(compile, capture_output=True, text=True).stderr,
                )
        version = [
            re.search(rf"XLA_FFI_API_{part} (\d+)", header)[1]
            for part in ("MAJOR", "MINOR")
        ]
        print(
            f"JAX {jax.__version__}, jaxlib {jaxlib.__version__}, version {'.'.join(version)} of XLA's interface"
        )

    def test_versions_that_do_not_fit_are_named(self):
        primitive._check_versions(jax.__version_info__, "")
        with self.assertRaisesRegex(
            ImportError, "JAX is 0.5.3, but must be 0.6.0 or newer for dml_cuda.jax"
        ):
            primitive._check_versions((0, 5, 3), "#define XLA_FFI_API_MAJOR 0")
        with self.assertRaisesRegex(
            ImportError,
            "jaxlib has version 1 of XLA's foreign function interface, but must have 0",
        ):
            primitive._check_versions((0, 99, 0), "#define XLA_FFI_API_MAJOR 1")
