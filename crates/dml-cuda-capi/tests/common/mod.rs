//! Compiles and runs programs of C and C++ with the library.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder of what cargo builds, libdml_cuda.a among it. The first test that needs it builds it.
pub fn built() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let target = root().join("../../target");
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or(target, PathBuf::from);
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let built = Command::new(cargo)
            .args(["build", "--locked", "--release", "--quiet", "-p", "dml-cuda-capi", "-p", "dml-cuda-torch"])
            .arg("--target-dir")
            .arg(&target)
            .current_dir(root())
            .status();
        assert!(built.is_ok_and(|status| status.success()), "the library must build");
        target.join("release").canonicalize().expect("it was built")
    })
}

/// Installs what was built to a folder, as users do.
pub fn install(prefix: &Path) {
    let script = root().join("../../scripts/install.sh");
    let installed = Command::new("bash").arg(script).arg(prefix).arg(built()).status();
    assert!(installed.is_ok_and(|status| status.success()), "scripts/install.sh {} must work", prefix.display());
}

/// The folder of the installed libdml_cuda.so and libdml_cuda_torch.so.
pub fn library() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join(concat!("installed-", env!("CARGO_CRATE_NAME")));
        install(&prefix);
        prefix.join("lib")
    })
}

pub const CPP: [&str; 7] = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-O1"];

/// Compiles a source file of the crate to a program. Returns false if there is no compiler.
pub fn compile(compiler: &str, arguments: &[&str], source: &str, more: &[&str], to: &Path) -> bool {
    let fallback = if compiler == "CC" { "cc" } else { "c++" };
    let program = std::env::var(compiler).unwrap_or_else(|_| fallback.to_owned());
    if Command::new(&program).arg("--version").output().is_err() {
        eprintln!("SKIPPED: there is no {program} to compile {source} with");
        return false;
    }
    let output = Command::new(&program)
        .args(arguments)
        .arg("-I")
        .arg(root().join("include"))
        .arg(root().join(source))
        .args(["-o"])
        .arg(to)
        .arg("-L")
        .arg(library())
        .args(more)
        .output()
        .expect("the compiler starts");
    assert!(output.status.success(), "{source}: {}", String::from_utf8_lossy(&output.stderr));
    true
}

pub fn run(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", library());
    command
}

pub fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
