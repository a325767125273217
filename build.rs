//! Takes `kernels/prebuilt/*.ptx`, or compiles `kernels/*.cu` to PTX if one of them has changed.
//!
//! `kernels/prebuilt` is nvcc's output, and `kernels/prebuilt/SOURCES` holds the checksums of the sources and the flags
//! that it was made from. If they match, the build uses it, whatever is installed: this PTX is what the tests run and
//! what old drivers load. If they do not, nvcc compiles all kernels, and it is looked for in `NVCC`, `CUDA_HOME`,
//! `CUDA_PATH` and `/usr/local/cuda`. `DML_CUDA_NVCC` names an nvcc that always compiles. The build does not depend on
//! the local GPU: it makes PTX for the lowest target, which the driver compiles for the GPU it finds.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

/// The flags for every kernel, except for the target. `scripts/prebuilt.sh` reads these lines.
const NVCC_FLAGS: [&str; 3] = ["-ptx", "-std=c++17", "-O3"];
/// The target of a kernel file. A file that needs a newer GPU has a line `// Target: compute_NN`.
const TARGET: &str = "compute_75";
/// The versions of PTX that drivers from CUDA 12.0 on load. A kernel declares the lowest that its instructions need.
/// `scripts/prebuilt.sh` reads this line as well.
const VERSIONS: &str = "6.3 6.4 6.5 7.0 7.1 7.2 7.3 7.4 7.5 7.6 7.7 7.8 8.0";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=kernels");
    // Some unit tests need the repository's cases and recordings, which the published crate leaves out.
    println!("cargo:rustc-check-cfg=cfg(in_repository)");
    if Path::new("crates/dml-cuda-testing").is_dir() {
        println!("cargo:rustc-cfg=in_repository");
    }
    let kernels = kernels();
    println!("cargo:rerun-if-env-changed=DML_CUDA_NVCC");
    let out_dir =
        PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for build scripts"));
    let changed = changed();
    let named = env::var_os("DML_CUDA_NVCC").filter(|value| !value.is_empty());
    if named.is_none() && changed.is_empty() {
        kernels
            .iter()
            .for_each(|kernel| copy_prebuilt(kernel, &out_dir));
    } else {
        assert!(
            !changed.iter().any(|name| name == "parameters.cuh"),
            "kernels/parameters.cuh has changed, but kernels/prebuilt/parameters.rs is its Rust side; run scripts/prebuilt.sh"
        );
        let nvcc = named.map_or_else(|| find_nvcc(&changed), PathBuf::from);
        thread::scope(|scope| {
            for kernel in &kernels {
                scope.spawn(|| compile(&nvcc, kernel, &out_dir));
            }
        });
    }
    // The table that src/cuda/kernels.rs includes: every kernel file with its PTX.
    let line = |kernel| {
        format!("({kernel:?}, include_str!(concat!(env!(\"OUT_DIR\"), \"/{kernel}.ptx\"))),\n")
    };
    let table: String = kernels.iter().map(line).collect();
    fs::write(out_dir.join("ptx.rs"), format!("&[\n{table}]")).expect("OUT_DIR can be written");
    // The pages that the documentation contains.
    for page in ["rust.md", "compile-options.md"] {
        let path = format!("docs/{page}");
        println!("cargo:rerun-if-changed={path}");
        let text = fs::read_to_string(path).expect("the folder docs is part of the crate");
        fs::write(out_dir.join(page), without_file_links(&text)).expect("OUT_DIR can be written");
    }
}

/// The page without its links to files of the repository, which the documentation in HTML does not have. Their words
/// stay.
fn without_file_links(page: &str) -> String {
    let mut rest = page;
    let mut text = String::with_capacity(page.len());
    while let Some((before, behind)) = rest.split_once("](") {
        let (target, after) = behind.split_once(')').unwrap_or((behind, ""));
        text.push_str(before);
        let is_file = target.starts_with("../") || target.contains(".md");
        match text.rfind('[').filter(|_| is_file && !target.contains(':')) {
            Some(bracket) => drop(text.remove(bracket)),
            None => text.push_str(&format!("]({target})")),
        }
        rest = after;
    }
    text + rest
}

/// The names of `kernels/*.cu`.
fn kernels() -> Vec<String> {
    let folder = fs::read_dir("kernels").expect("the folder kernels is part of the crate");
    let paths = folder.map(|entry| entry.expect("the folder kernels can be read").path());
    let sources = paths.filter(|path| path.extension().is_some_and(|extension| extension == "cu"));
    let mut names: Vec<String> = sources
        .map(|path| {
            path.file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

/// The target for a kernel file.
fn target(source: &str) -> String {
    let text = fs::read_to_string(source)
        .unwrap_or_else(|error| panic!("reading {source} failed: {error}"));
    text.lines()
        .find_map(|line| line.strip_prefix("// Target: "))
        .unwrap_or(TARGET)
        .to_owned()
}

/// The differences from the sources of `kernels/prebuilt`: files of `kernels/`, by their FNV-1a checksums, and
/// nvcc's flags. `scripts/prebuilt.sh` writes them.
fn changed() -> Vec<String> {
    let entries = fs::read_dir("kernels")
        .expect("the folder kernels is part of the crate")
        .flatten();
    let files = entries
        .map(|entry| entry.path())
        .filter(|path| path.is_file());
    let sources = fs::read_to_string("kernels/prebuilt/SOURCES").unwrap_or_default();
    let is_as_built = |line: &str| sources.lines().any(|source| source == line);
    let mut changed: Vec<String> = files
        .filter_map(|path| {
            let name = path.file_name()?.to_string_lossy().into_owned();
            let bytes = fs::read(&path).unwrap_or_default().into_iter();
            let add = |sum: u64, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100000001b3);
            (!is_as_built(&format!(
                "{:016x} {name}",
                bytes.fold(0xcbf29ce484222325, add)
            )))
            .then_some(name)
        })
        .collect();
    if !is_as_built(&format!("flags {} {TARGET}", NVCC_FLAGS.join(" "))) {
        changed.push("NVCC_FLAGS or TARGET of build.rs".to_owned());
    }
    changed
}

/// The installed nvcc, for kernels that have changed.
fn find_nvcc(changed: &[String]) -> PathBuf {
    const HOMES: [&str; 2] = ["CUDA_HOME", "CUDA_PATH"];
    for variable in ["NVCC"].into_iter().chain(HOMES) {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    let set = |variable| {
        env::var_os(variable)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let homes = HOMES
        .into_iter()
        .filter_map(set)
        .chain([PathBuf::from("/usr/local/cuda")]);
    let name = if cfg!(windows) { "nvcc.exe" } else { "nvcc" };
    let nvcc = set("NVCC").or_else(|| {
        homes
            .map(|home| home.join("bin").join(name))
            .find(|nvcc| nvcc.is_file())
    });
    nvcc.unwrap_or_else(|| {
        panic!(
            "kernels/prebuilt is not the PTX of this source ({} changed), but there is no nvcc to compile it (NVCC, \
             CUDA_HOME, CUDA_PATH, /usr/local/cuda); undo the change, install nvcc, or name it in DML_CUDA_NVCC",
            changed.join(", ")
        )
    })
}

fn compile(nvcc: &Path, kernel: &str, out_dir: &Path) {
    let source = format!("kernels/{kernel}.cu");
    let ptx = out_dir.join(format!("{kernel}.ptx"));
    let target = target(&source);
    let mut command = Command::new(nvcc);
    command
        .args(NVCC_FLAGS)
        .arg(format!("-arch={target}"))
        .arg("-o")
        .arg(&ptx)
        .arg(&source);
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?} could not be started: {error}"));
    let [out, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(
        output.status.success(),
        "{command:?} failed with {}\n{out}{errors}",
        output.status
    );
    let text = fs::read_to_string(&ptx)
        .unwrap_or_else(|error| panic!("reading {} failed: {error}", ptx.display()));
    // nvcc declares its own version of PTX, which older drivers do not load. The instructions are older. The pragma is
    // a hint that is not.
    let lines = text
        .lines()
        .filter(|line| !line.contains(".pragma \"used_bytes_mask"));
    let body: String = lines.map(|line| format!("{line}\n")).collect();
    let own = body
        .lines()
        .find_map(|line| line.strip_prefix(".version "))
        .unwrap_or_default();
    let assembler = nvcc.with_file_name(if cfg!(windows) { "ptxas.exe" } else { "ptxas" });
    let arch = target.replace("compute_", "-arch=sm_");
    let assembles = |version: &&str| {
        let declared = body.replacen(
            &format!(".version {own}"),
            &format!(".version {version}"),
            1,
        );
        fs::write(&ptx, declared).expect("OUT_DIR can be written");
        *version == own || {
            let mut command = Command::new(&assembler);
            command
                .arg(&arch)
                .arg("-o")
                .arg(ptx.with_extension("cubin"))
                .arg(&ptx);
            command.output().is_ok_and(|output| output.status.success())
        }
    };
    VERSIONS.split(' ').chain([own]).find(assembles);
}

fn copy_prebuilt(kernel: &str, out_dir: &Path) {
    let from = format!("kernels/prebuilt/{kernel}.ptx");
    if let Err(error) = fs::copy(&from, out_dir.join(format!("{kernel}.ptx"))) {
        panic!("copying {from} failed: {error}; it is made by scripts/prebuilt.sh");
    }
}
