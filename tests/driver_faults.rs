//! A driver that fails is not taken for a machine without a GPU: what it says is passed on. The driver here is a library of a
//! few lines, which the machine's C compiler makes.
#![cfg(all(unix, feature = "cuda", feature = "runner"))]

mod common;

use std::path::Path;
use std::process::{Command, Output, Stdio};

const DRIVER: &str = r#"
#include <stdlib.h>
int cuInit(unsigned flags) { return atoi(getenv("FAKE_CU_INIT")); }
int cuDeviceGetCount(int *count) { *count = 0; return 0; }
int cuGetErrorString(int error, const char **text) {
    *text = error == 803 ? "system has unsupported display driver / cuda driver combination" : "unknown error";
    return 0;
}
int cuGetErrorName(int error, const char **text) { *text = "CUDA_ERROR"; return 0; }
"#;

/// Builds libcuda.so.1 in a folder; false where there is no C compiler.
fn build(folder: &Path) -> bool {
    let source = folder.join("driver.c");
    std::fs::write(&source, DRIVER).expect("written");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let library = folder.join("libcuda.so.1");
    let built = Command::new(compiler).args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    let built = built.is_ok_and(|status| status.success());
    // The loader tries several names.
    built && std::fs::copy(&library, folder.join("libcuda.so")).is_ok()
}

/// Runs a model with `cuInit` answering `code`.
fn run(folder: &Path, code: u32, arguments: &[&str]) -> Output {
    common::runner()
        .args(arguments)
        .arg(common::repository("models/reverse_subsequences.json"))
        .env("LD_LIBRARY_PATH", folder)
        .env("FAKE_CU_INIT", code.to_string())
        .stdin(Stdio::null())
        .output()
        .expect("the runner starts")
}

#[test]
fn a_driver_that_fails_is_said_and_a_missing_gpu_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    if !build(folder.path()) {
        eprintln!("SKIPPED: there is no C compiler to build a driver with");
        return;
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    for code in [803, 999] {
        // By default the CPU runs it, and the reason is on stderr.
        let output = run(folder.path(), code, &[]);
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
            let output = run(folder.path(), code, &["-a", adapter]);
            assert_eq!(output.status.code(), Some(1), "{adapter}");
            assert!(text(&output.stderr).contains(&format!("(CUDA error {code})")), "{}", text(&output.stderr));
        }
        assert!(run(folder.path(), code, &["-a", "cpu"]).stderr.is_empty());
    }
    // No GPU (CUDA_ERROR_NO_DEVICE, or none counted) is no fault.
    for code in [100, 0] {
        let output = run(folder.path(), code, &[]);
        assert!(output.status.success() && output.stderr.is_empty(), "{code}: {}", text(&output.stderr));
    }
}
