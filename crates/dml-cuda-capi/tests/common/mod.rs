//! Compiles and runs programs of C and C++ with the library.

use std::path::{Path, PathBuf};
use std::process::Command;
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
            .args([
                "build",
                "--locked",
                "--release",
                "--quiet",
                "-p",
                "dml-cuda-capi",
                "-p",
                "dml-cuda-torch",
            ])
            .arg("--target-dir")
            .arg(&target)
            .current_dir(root())
            .status();
        assert!(
            built.is_ok_and(|status| status.success()),
            "the library must build"
        );
        target.join("release").canonicalize().expect("it was built")
    })
}

/// The folder in which the users' script has installed the library. It was moved there afterwards.
pub fn installed() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(concat!("installed-", env!("CARGO_CRATE_NAME")));
        let before = folder.with_extension("before");
        printed(
            Command::new("bash")
                .arg(root().join("../../scripts/install.sh"))
                .arg(&before)
                .arg(built()),
        );
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::rename(before, &folder).expect("it can be moved");
        folder
    })
}

/// The folder of the installed libdml_cuda.so and libdml_cuda_torch.so.
pub fn library() -> PathBuf {
    installed().join("lib")
}

pub const CPP: [&str; 7] = [
    "-std=c++17",
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Wconversion",
    "-Werror",
    "-O1",
];

/// Whether a tool is installed. Prints that a test is skipped if not.
pub fn has(tool: &str) -> bool {
    let found = Command::new(tool)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("SKIPPED: there is no {tool}");
    }
    found
}

/// Compiles a source file of the crate to a program. Returns false if there is no compiler.
pub fn compile(compiler: &str, arguments: &[&str], source: &str, more: &[&str], to: &Path) -> bool {
    let fallback = if compiler == "CC" { "cc" } else { "c++" };
    let program = std::env::var(compiler).unwrap_or_else(|_| fallback.to_owned());
    if !has(&program) {
        return false;
    }
    let mut command = Command::new(&program);
    command
        .args(arguments)
        .arg("-I")
        .arg(root().join("include"))
        .arg(root().join(source))
        .arg("-o")
        .arg(to);
    printed(command.arg("-L").arg(library()).args(more));
    true
}

pub fn run(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", library());
    command
}

/// The output of a program, which must succeed.
pub fn printed(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{command:?}: {text}");
    text
}
