//! Drivers that fail and drivers that are too old are said, and not taken for a machine without a GPU. The driver here is a
//! library of a few lines, which the machine's C compiler makes: one GPU, whose memory is the host's and whose kernels do
//! nothing.
#![cfg(all(unix, feature = "cuda", feature = "runner"))]

mod common;

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The functions: name, parameters, and what they do before they return 0.
const FUNCTIONS: [(&str, &str, &str); 31] = [
    ("cuInit", "unsigned flags", "return atoi(getenv(\"FAKE_CU_INIT\"));"),
    ("cuDriverGetVersion", "int *version", "*version = 12000;"),
    ("cuDeviceGetCount", "int *count", "*count = atoi(getenv(\"FAKE_GPUS\"));"),
    ("cuDeviceGet", "int *device, int ordinal", "*device = ordinal;"),
    ("cuDeviceGetName", "char *name, int length, int device", "snprintf(name, length, \"Fake GPU\");"),
    ("cuDeviceTotalMem_v2", "size_t *bytes, int device", "*bytes = 1 << 30;"),
    ("cuDeviceGetAttribute", "int *value, int which, int device", "*value = which == 75 ? 8 : which == 97 ? 166912 : 1;"),
    ("cuDevicePrimaryCtxRetain", "void **context, int device", "*context = &object;"),
    ("cuDevicePrimaryCtxRelease_v2", "int device", ""),
    ("cuCtxGetCurrent", "void **context", "*context = current;"),
    ("cuCtxSetCurrent", "void *context", "current = context;"),
    ("cuStreamCreate", "void **stream, unsigned flags", "*stream = &object;"),
    ("cuStreamSynchronize", "void *stream", ""),
    ("cuStreamDestroy_v2", "void *stream", ""),
    ("cuEventCreate", "void **event, unsigned flags", "*event = &object;"),
    ("cuEventRecord", "void *event, void *stream", ""),
    ("cuEventSynchronize", "void *event", ""),
    ("cuEventDestroy_v2", "void *event", ""),
    ("cuMemGetInfo_v2", "size_t *available, size_t *total", "*available = *total = 1 << 30;"),
    ("cuMemAlloc_v2", "void **address, size_t bytes", "*address = aligned_alloc(256, bytes + 255 & -256);"),
    ("cuMemFree_v2", "void *address", "free(address);"),
    ("cuMemsetD8Async", "void *to, unsigned char value, size_t bytes, void *stream", "memset(to, value, bytes);"),
    ("cuMemcpyHtoDAsync_v2", "void *to, void *from, size_t bytes, void *stream", "memcpy(to, from, bytes);"),
    ("cuMemcpyDtoHAsync_v2", "void *to, void *from, size_t bytes, void *stream", "memcpy(to, from, bytes);"),
    ("cuModuleLoadData", "void **module, void *image", "*module = &object;"),
    ("cuModuleGetFunction", "void **function, void *module, char *name", "*function = &object;"),
    ("cuModuleUnload", "void *module", ""),
    ("cuFuncSetAttribute", "void *function, int which, int value", ""),
    ("cuLaunchKernel", "void", ""),
    (
        "cuGetProcAddress_v2",
        "char *name, void **function, int version, unsigned long flags, int *found",
        "*function = elapsed; *found = 0;",
    ),
    (
        "cuGetErrorString",
        "int error, char **text",
        "*text = error == 803 ? \"system has unsupported display driver / cuda driver combination\" : \"unknown error\";",
    ),
];

/// Builds libcuda.so.1 in a folder, without one of its functions; false where there is no C compiler.
fn build(folder: &Path, without: &str) -> bool {
    let mut driver = String::from(
        "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
         static int object;\nstatic _Thread_local void *current;\n\
         static int elapsed(float *milliseconds, void *start, void *end) { *milliseconds = 1; return 0; }\n",
    );
    for (name, parameters, body) in FUNCTIONS {
        if name != without {
            writeln!(driver, "int {name}({parameters}) {{ {body} return 0; }}").expect("a string takes all");
        }
    }
    let source = folder.join("driver.c");
    std::fs::write(&source, driver).expect("written");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let library = folder.join("libcuda.so.1");
    let built = Command::new(compiler).args(["-w", "-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    let built = built.is_ok_and(|status| status.success());
    // The loader tries several names.
    built && std::fs::copy(&library, folder.join("libcuda.so")).is_ok()
}

/// A folder with the driver; none where there is no C compiler.
fn driver(without: &str) -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().expect("a folder");
    if build(folder.path(), without) {
        return Some(folder);
    }
    eprintln!("SKIPPED: there is no C compiler to build a driver with");
    None
}

/// Runs a model with so many GPUs and `cuInit` answering `code`.
fn run(folder: &Path, gpus: u32, code: u32, arguments: &[&str]) -> Output {
    common::runner()
        .args(arguments)
        .arg(common::repository("models/reverse_subsequences.json"))
        .env("LD_LIBRARY_PATH", folder)
        .env("FAKE_GPUS", gpus.to_string())
        .env("FAKE_CU_INIT", code.to_string())
        .stdin(Stdio::null())
        .output()
        .expect("the runner starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_driver_that_fails_is_said_and_a_missing_gpu_is_not() {
    let Some(folder) = driver("") else { return };
    for code in [803, 999] {
        // By default the CPU runs it, and the reason is on stderr.
        let output = run(folder.path(), 0, code, &[]);
        let warning = text(&output.stderr);
        assert!(output.status.success(), "{warning}");
        assert!(text(&output.stdout).starts_with("Running on 'CPU'"), "{}", text(&output.stdout));
        assert!(warning.starts_with("WARNING: cuda: initializing the driver failed: "), "{warning}");
        assert!(
            warning.contains(&format!("(CUDA error {code})")) && warning.contains("; running on the CPU"),
            "{warning}"
        );
        // Asked for a GPU, it is an error.
        for adapter in ["0", "H100"] {
            let output = run(folder.path(), 0, code, &["-a", adapter]);
            assert_eq!(output.status.code(), Some(1), "{adapter}");
            assert!(text(&output.stderr).contains(&format!("(CUDA error {code})")), "{}", text(&output.stderr));
        }
        assert!(run(folder.path(), 0, code, &["-a", "cpu"]).stderr.is_empty());
    }
    // No GPU (CUDA_ERROR_NO_DEVICE, or none counted) is no fault.
    for code in [100, 0] {
        let output = run(folder.path(), 0, code, &[]);
        assert!(output.status.success() && output.stderr.is_empty(), "{code}: {}", text(&output.stderr));
    }
}

#[test]
fn a_driver_that_lacks_a_function_is_too_old() {
    // With all of them the runner runs and times a model on the GPU: these are all that it calls.
    let Some(complete) = driver("") else { return };
    let output = run(complete.path(), 1, 0, &["-a", "Fake", "-i", "3", "-r", "2", "-v", "2"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with("Running on 'Fake GPU'"), "{}", text(&output.stdout));
    for (name, ..) in FUNCTIONS {
        let Some(folder) = driver(name) else { return };
        let said = format!(
            "cuda: loading the driver library failed: it has no {name}; install an NVIDIA driver for CUDA 12.0"
        );
        let output = run(folder.path(), 1, 0, &["-a", "0"]);
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert!(text(&output.stderr).contains(&said), "{name}: {}", text(&output.stderr));
        let output = run(folder.path(), 1, 0, &[]);
        assert!(output.status.success() && text(&output.stderr).contains(&said), "{name}: {}", text(&output.stderr));
    }
}
