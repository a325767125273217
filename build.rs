//! Compiles `kernels/*.cu` to PTX, or takes `kernels/prebuilt/*.ptx` where there is no nvcc.
//!
//! nvcc is looked for in `NVCC`, then `CUDA_HOME` and `CUDA_PATH`, then `PATH`, then `/usr/local/cuda`.
//! `DML_CUDA_PREBUILT=1` takes the prebuilt PTX without looking. The local GPU is never asked: PTX for
//! the lowest target is compiled by the driver for whatever GPU it finds.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const KERNELS: [&str; 14] = [
    "fill_value_sequence",
    "reverse_subsequences_any_strips",
    "reverse_subsequences_clusters",
    "reverse_subsequences_columns",
    "reverse_subsequences_units",
    "reverse_subsequences_lanes",
    "reverse_subsequences_long_rows",
    "reverse_subsequences_rows",
    "reverse_subsequences_small",
    "reverse_subsequences_staged",
    "reverse_subsequences_strips",
    "reverse_subsequences_tiny",
    "reverse_subsequences_transposed",
    "reverse_subsequences_turned",
];

/// The flags of every PTX this crate ships, but for its target; `scripts/prebuilt.sh` reads these lines.
const NVCC_FLAGS: [&str; 3] = ["-ptx", "-std=c++17", "-O3"];
const TARGET: &str = "compute_75";

/// Kernels that are for newer GPUs only, and the lowest target of each.
const NEWER: [(&str, &str); 1] = [("reverse_subsequences_clusters", "compute_90")];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for header in ["common", "reverse_subsequences", "staged_groups", "strips", "turn"] {
        println!("cargo:rerun-if-changed=kernels/{header}.cuh");
    }
    for kernel in KERNELS {
        println!("cargo:rerun-if-changed=kernels/{kernel}.cu");
        println!("cargo:rerun-if-changed=kernels/prebuilt/{kernel}.ptx");
    }
    for variable in ["NVCC", "CUDA_HOME", "CUDA_PATH", "PATH", "DML_CUDA_PREBUILT"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    if env::var_os("CARGO_FEATURE_CUDA").is_none() {
        return;
    }

    let out_dir = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for build scripts"));
    match find_nvcc() {
        Some(nvcc) => KERNELS.iter().for_each(|kernel| compile(&nvcc, kernel, &out_dir)),
        None => {
            if !prebuilt_wanted() {
                println!("cargo:warning=nvcc not found (NVCC, CUDA_HOME, CUDA_PATH, PATH, /usr/local/cuda): using the PTX in kernels/prebuilt");
            }
            KERNELS.iter().for_each(|kernel| copy_prebuilt(kernel, &out_dir));
        }
    }
}

fn prebuilt_wanted() -> bool {
    env::var_os("DML_CUDA_PREBUILT").is_some_and(|value| value == "1")
}

fn find_nvcc() -> Option<PathBuf> {
    if prebuilt_wanted() {
        return None;
    }
    if let Some(nvcc) = env::var_os("NVCC").filter(|value| !value.is_empty()) {
        let nvcc = PathBuf::from(nvcc);
        assert!(
            nvcc.is_file() || nvcc.components().count() == 1,
            "NVCC is {}, which is not a file; unset it to use the PTX in kernels/prebuilt",
            nvcc.display()
        );
        return Some(nvcc);
    }
    let name = if cfg!(windows) { "nvcc.exe" } else { "nvcc" };
    let homes =
        ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(env::var_os).map(|home| PathBuf::from(home).join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::split_paths(&path).collect::<Vec<_>>();
    homes
        .chain(path)
        .chain([PathBuf::from("/usr/local/cuda/bin")])
        .map(|directory| directory.join(name))
        .find(|candidate| candidate.is_file())
}

fn compile(nvcc: &Path, kernel: &str, out_dir: &Path) {
    let mut command = Command::new(nvcc);
    let target = NEWER.into_iter().find(|(name, _)| *name == kernel).map_or(TARGET, |(_, target)| target);
    command
        .args(NVCC_FLAGS)
        .arg(format!("-arch={target}"))
        .arg("-o")
        .arg(out_dir.join(format!("{kernel}.ptx")))
        .arg(format!("kernels/{kernel}.cu"));
    match command.output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => panic!(
            "{command:?} failed with {}\n{}{}\nset DML_CUDA_PREBUILT=1 to use the PTX in kernels/prebuilt",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ),
        Err(error) => panic!(
            "{command:?} could not be started: {error}\nset DML_CUDA_PREBUILT=1 to use the PTX in kernels/prebuilt"
        ),
    }
}

fn copy_prebuilt(kernel: &str, out_dir: &Path) {
    let from = format!("kernels/prebuilt/{kernel}.ptx");
    if let Err(error) = fs::copy(&from, out_dir.join(format!("{kernel}.ptx"))) {
        panic!("copying {from} failed: {error}; it is made by scripts/prebuilt.sh");
    }
}
