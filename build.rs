//! Compiles `kernels/*.cu` to PTX, or takes `kernels/prebuilt/*.ptx` if there is no nvcc.
//!
//! Looks for nvcc in `NVCC`, then `CUDA_HOME` and `CUDA_PATH`, then `PATH`, then `/usr/local/cuda`. An nvcc that cannot
//! compile (for example on Windows without Visual C++) is skipped, unless `NVCC` names it: then it is an error. The
//! build warns if the prebuilt PTX is of other kernels. `DML_CUDA_PREBUILT=1` takes the prebuilt PTX without looking
//! for nvcc. The build does not depend on the local GPU: it makes PTX for the lowest target, which the driver compiles
//! for the GPU it finds.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The flags for every kernel, except for the target. `scripts/prebuilt.sh` reads these lines.
const NVCC_FLAGS: [&str; 3] = ["-ptx", "-std=c++17", "-O3"];
/// The target of a kernel file. A file that needs a newer GPU has a line `// Target: compute_NN`.
const TARGET: &str = "compute_75";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=kernels");
    // Some unit tests need the repository's cases and recordings, which the published crate leaves out.
    println!("cargo:rustc-check-cfg=cfg(in_repository)");
    if Path::new("crates/dml-cuda-testing").is_dir() {
        println!("cargo:rustc-cfg=in_repository");
    }
    let kernels = kernels();
    for variable in ["NVCC", "CUDA_HOME", "CUDA_PATH", "PATH", "DML_CUDA_PREBUILT"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    let out_dir = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for build scripts"));
    let nvcc = find_nvcc(&out_dir);
    assert!(
        nvcc.is_none() || !changed().contains(&"parameters.cuh".to_owned()),
        "kernels/prebuilt/parameters.rs is of another kernels/parameters.cuh; run scripts/prebuilt.sh"
    );
    match nvcc {
        Some(nvcc) => kernels.iter().for_each(|kernel| compile(&nvcc, kernel, &out_dir)),
        None => kernels.iter().for_each(|kernel| copy_prebuilt(kernel, &out_dir)),
    }
    // The table that src/cuda/kernels.rs includes: every kernel file with its PTX.
    let line = |kernel| format!("({kernel:?}, include_str!(concat!(env!(\"OUT_DIR\"), \"/{kernel}.ptx\"))),\n");
    let table: String = kernels.iter().map(line).collect();
    fs::write(out_dir.join("ptx.rs"), format!("&[\n{table}]")).expect("OUT_DIR can be written");
}

/// The names of `kernels/*.cu`.
fn kernels() -> Vec<String> {
    let folder = fs::read_dir("kernels").expect("the folder kernels is part of the crate");
    let paths = folder.map(|entry| entry.expect("the folder kernels can be read").path());
    let sources = paths.filter(|path| path.extension().is_some_and(|extension| extension == "cu"));
    let mut names: Vec<String> =
        sources.map(|path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The target for a kernel file.
fn target(source: &str) -> String {
    let text = fs::read_to_string(source).unwrap_or_else(|error| panic!("reading {source} failed: {error}"));
    text.lines().find_map(|line| line.strip_prefix("// Target: ")).unwrap_or(TARGET).to_owned()
}

/// The files of `kernels/` that differ from those that `kernels/prebuilt` was made from: `scripts/prebuilt.sh` writes
/// their FNV-1a checksums.
fn changed() -> Vec<String> {
    let entries = fs::read_dir("kernels").expect("the folder kernels is part of the crate").flatten();
    let files = entries.map(|entry| entry.path()).filter(|path| path.is_file());
    let sources = fs::read_to_string("kernels/prebuilt/SOURCES").unwrap_or_default();
    let changed = files.filter_map(|path| {
        let name = path.file_name()?.to_string_lossy().into_owned();
        let bytes = fs::read(&path).unwrap_or_default().into_iter();
        let add = |sum: u64, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100000001b3);
        let line = format!("{:016x} {name}", bytes.fold(0xcbf29ce484222325, add));
        sources.lines().all(|source| source != line).then_some(name)
    });
    changed.collect()
}

fn find_nvcc(out_dir: &Path) -> Option<PathBuf> {
    let prebuilt = env::var_os("DML_CUDA_PREBUILT").unwrap_or_else(|| "0".into());
    assert!(prebuilt == "0" || prebuilt == "1", "DML_CUDA_PREBUILT is {}, must be 0 or 1", prebuilt.display());
    if prebuilt == "1" {
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
    let warn = |why: &str| {
        if !changed().is_empty() {
            println!("cargo:warning={why}: using the PTX in kernels/prebuilt, which is of other kernels");
        }
    };
    let name = if cfg!(windows) { "nvcc.exe" } else { "nvcc" };
    let homes =
        ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(env::var_os).map(|home| PathBuf::from(home).join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = homes.chain(env::split_paths(&path)).chain([PathBuf::from("/usr/local/cuda/bin")]);
    let Some(nvcc) = folders.map(|folder| folder.join(name)).find(|candidate| candidate.is_file()) else {
        warn("nvcc not found (NVCC, CUDA_HOME, CUDA_PATH, PATH, /usr/local/cuda)");
        return None;
    };
    // An empty kernel tells whether nvcc can compile at all.
    let nothing = out_dir.join("nothing.cu");
    fs::write(&nothing, "extern \"C\" __global__ void nothing() {}\n").expect("OUT_DIR can be written");
    let mut command = nvcc_command(&nvcc, &nothing, &out_dir.join("nothing.ptx"));
    if let Err(why) = first_message(command.output()) {
        warn(&format!("{} compiles nothing ({why})", nvcc.display()));
        return None;
    }
    Some(nvcc)
}

fn nvcc_command(nvcc: &Path, source: &Path, ptx: &Path) -> Command {
    let mut command = Command::new(nvcc);
    command.args(NVCC_FLAGS).arg("-o").arg(ptx).arg(source);
    command
}

/// If a command failed, its first message.
fn first_message(output: io::Result<Output>) -> Result<(), String> {
    let output = output.map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stderr, output.stdout].concat();
    let text = String::from_utf8_lossy(&text);
    let message = text.lines().map(str::trim).find(|line| !line.is_empty());
    Err(message.map_or_else(|| output.status.to_string(), str::to_owned))
}

fn compile(nvcc: &Path, kernel: &str, out_dir: &Path) {
    let source = format!("kernels/{kernel}.cu");
    let mut command = nvcc_command(nvcc, Path::new(&source), &out_dir.join(format!("{kernel}.ptx")));
    command.arg(format!("-arch={}", target(&source)));
    let hint = "set DML_CUDA_PREBUILT=1 to use the PTX in kernels/prebuilt";
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} could not be started: {error}\n{hint}"));
    let [out, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{command:?} failed with {}\n{out}{errors}\n{hint}", output.status);
}

fn copy_prebuilt(kernel: &str, out_dir: &Path) {
    let from = format!("kernels/prebuilt/{kernel}.ptx");
    if let Err(error) = fs::copy(&from, out_dir.join(format!("{kernel}.ptx"))) {
        panic!("copying {from} failed: {error}; it is made by scripts/prebuilt.sh");
    }
}
