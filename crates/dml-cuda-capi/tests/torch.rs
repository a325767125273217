//! PyTorch's operators, registered with a stub of libtorch that a C++ compiler makes: every call, every failure,
//! every way to register, and no handle that stays. Skipped, and counted, where there is no C++ compiler. The tests
//! with PyTorch are in python/tests.
#![cfg(unix)]

mod common;

use std::path::Path;

use common::{compile, library, printed, run, CPP};

/// The stand-in in a folder, and the program. Returns false without a compiler.
fn programs(folder: &Path, stand_in: &[&str], program: &[&str]) -> bool {
    let shared = ["-shared", "-fPIC", "-Wl,-soname,libtorch_cpu.so"];
    let stand_in = [&CPP[..], &shared, stand_in].concat();
    compile(
        "CXX",
        &stand_in,
        "tests/torch/libtorch_cpu.cpp",
        &[],
        &folder.join("libtorch_cpu.so"),
    ) && compile(
        "CXX",
        &[&CPP, program].concat(),
        "tests/torch/kernels.cpp",
        &["-ldml_cuda", "-ldl"],
        &folder.join("kernels"),
    )
}

fn expect(folder: &Path, arguments: &[&str], variables: &[(&str, &str)], required: &str) {
    let mut program = run(&folder.join("kernels"));
    program
        .arg(folder.join("libtorch_cpu.so"))
        .args(arguments)
        .envs(variables.iter().copied());
    assert_eq!(printed(&mut program), required);
}

const RIGHT: &str = "all calls are right\n";

/// The address sanitizer finds what leaks.
#[test]
fn every_kernel_is_called_rightly_and_wrongly() {
    let folder = tempfile::tempdir().expect("a folder");
    if programs(folder.path(), &[], &["-fsanitize=address", "-g"]) {
        expect(
            folder.path(),
            &[],
            &[("ASAN_OPTIONS", "detect_leaks=1")],
            RIGHT,
        );
    }
}

#[test]
fn a_pytorch_that_is_too_old_is_a_clear_error() {
    let folder = tempfile::tempdir().expect("a folder");
    if programs(folder.path(), &["-DTOO_OLD"], &[]) {
        expect(folder.path(), &["old"], &[], "it is too old\n");
    }
}

#[test]
fn the_library_registers_when_it_is_loaded_after_pytorch_and_when_it_is_preloaded() {
    let folder = tempfile::tempdir().expect("a folder");
    if programs(folder.path(), &[], &[]) {
        let loader = library().join("libdml_cuda_torch.so");
        let loader = &*loader.to_string_lossy();
        expect(folder.path(), &[loader], &[], RIGHT);
        let found = format!("{}:{}", folder.path().display(), library().display());
        expect(
            folder.path(),
            &["registered"],
            &[("LD_PRELOAD", loader), ("LD_LIBRARY_PATH", &found)],
            RIGHT,
        );
    }
}
