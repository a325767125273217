//! C and C++ programs against the header and the library: they compile with all warnings, call every function, and leak
//! nothing. Skipped, and counted, where there is no C compiler.
#![cfg(unix)]

mod common;

use std::path::Path;
use std::process::Command;

use common::{built, compile, has, installed, library, printed, root, run, CPP};

const C: [&str; 8] = [
    "-std=c99",
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Wconversion",
    "-Wno-strict-prototypes",
    "-Werror",
    "-O1",
];
const VERSION: &str = concat!("-DVERSION=\"", env!("CARGO_PKG_VERSION"), "\"");
const LINK: &[&str] = &["-ldml_cuda"];
const EXAMPLE_PRINTS: &str = "3 2 1 4 6 5 7 8 \n";

#[test]
fn the_header_has_directmls_layout_in_c_and_in_cpp() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("layout");
    if compile("CC", &C, "tests/c/layout.c", &[], &program) {
        compile(
            "CXX",
            &[&CPP[..], &["-x", "c++"]].concat(),
            "tests/c/layout.c",
            &[],
            &program,
        );
    }
}

/// Old programs can use the header: no standard gives a warning, also if it is included first and twice.
#[test]
fn the_header_is_of_every_standard_of_c_and_cpp() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("header.c");
    std::fs::write(
        &source,
        "#include \"dml_cuda.h\"\n#include \"dml_cuda.h\"\n",
    )
    .expect("written");
    let flags = [
        "-pedantic",
        "-Wall",
        "-Wextra",
        "-Wundef",
        "-Wconversion",
        "-Werror",
        "-fsyntax-only",
    ];
    let c = ["c89", "c99", "c11", "gnu89"]
        .map(|standard| ("CC", standard, &["-Wstrict-prototypes"][..]));
    let cpp = ["c++98", "c++11", "c++17"].map(|standard| ("CXX", standard, &["-x", "c++"][..]));
    for (compiler, standard, more) in c.into_iter().chain(cpp) {
        let standard = format!("-std={standard}");
        let arguments = [&[&*standard][..], &flags, more].concat();
        compile(
            compiler,
            &arguments,
            &source.to_string_lossy(),
            &[],
            &folder.path().join("nothing"),
        );
    }
}

/// The program of docs/c.md that captures its own stream, with declarations of the CUDA runtime of our own.
#[test]
fn the_page_has_a_whole_program_with_a_graph() {
    let page = std::fs::read_to_string(root().join("../../docs/c.md")).expect("the page");
    let blocks = page.split("```c\n").skip(1);
    let mut programs = blocks
        .filter_map(|block| block.split("```").next())
        .filter(|block| block.contains("int main(void)"));
    let program = programs.next().expect("a whole program");
    assert!(program.contains("cudaStreamBeginCapture"), "{program}");
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("graph.c");
    std::fs::write(&source, program).expect("written");
    let declarations = root().join("tests/c/cuda");
    let declarations = format!("-I{}", declarations.display());
    compile(
        "CC",
        &[&C[..], &[&declarations, "-fsyntax-only"]].concat(),
        &source.to_string_lossy(),
        &[],
        &folder.path().join("nothing"),
    );
}

#[test]
fn directml_h_may_come_before_or_after() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("both");
    for first in [&["-DDIRECTML_FIRST"][..], &[]] {
        if compile(
            "CXX",
            &[&CPP, first].concat(),
            "tests/c/with_directml.cpp",
            LINK,
            &program,
        ) {
            assert_eq!(printed(&mut run(&program)), "1 1.5 2 2.5 3 3.5 ");
        }
    }
}

/// The address sanitizer finds what leaks.
#[test]
fn every_function_is_called_rightly_and_wrongly_and_leaks_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("calls");
    let archive = built().join("libdml_cuda.a");
    let archive = [&archive.to_string_lossy(), "-lpthread", "-ldl", "-lm"];
    for (times, options, link) in [
        ("1", &[][..], LINK),
        ("1000", &["-fsanitize=address", "-g"], &archive),
    ] {
        if compile(
            "CC",
            &[&C[..], &[VERSION], options].concat(),
            "tests/c/calls.c",
            link,
            &program,
        ) {
            let found = printed(
                run(&program)
                    .arg(times)
                    .env("ASAN_OPTIONS", "detect_leaks=1"),
            );
            assert_eq!(found, "all calls are right\n");
        }
    }
}

/// On the CPU, and on each GPU if there is one.
#[test]
fn fills_and_reversals_of_every_device_are_those_of_plain_loops() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("devices");
    let link = ["-ldml_cuda", "-lpthread", "-ldl", "-lm"];
    if compile("CC", &C, "tests/c/devices.c", &link, &program) {
        let found = printed(&mut run(&program));
        assert!(
            found.contains(" checks are right on the CPU and "),
            "{found}"
        );
        if found.ends_with(" 0 GPUs\n") {
            eprintln!("SKIPPED on the GPU: {found}");
        }
    }
}

/// With the mock of the driver (`tests/driver_double`) in place of a GPU.
#[test]
fn a_dispatch_allocates_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let (program, driver) = (
        folder.path().join("dispatch_cost"),
        folder.path().join("libcuda.so.1"),
    );
    let double = ["-w", "-shared", "-fPIC", "-pthread"];
    if compile("CC", &C, "tests/c/dispatch_cost.c", LINK, &program)
        && compile(
            "CC",
            &double,
            "../../tests/driver_double/driver.c",
            &[],
            &driver,
        )
    {
        std::fs::copy(&driver, folder.path().join("libcuda.so")).expect("a folder of our own");
        assert_eq!(
            printed(&mut run(&program)),
            "fill: status 0, 0 allocations\n"
        );
        let folders = format!("{}:{}", folder.path().display(), library().display());
        let found = printed(run(&program).arg("cuda").env("LD_LIBRARY_PATH", folders));
        assert_eq!(
            found,
            "fill: status 0, 0 allocations\nreversal: status 0, 0 allocations\n"
        );
    }
}

/// Locks are for registrations, which happen once. No call takes one, so that a forked child never waits for one of its
/// parent. python/tests forks.
#[test]
fn only_registrations_lock() {
    let files = [
        "arrays",
        "device",
        "frameworks",
        "operator",
        "onnxruntime/node",
        "torch/torch_kernels",
        "xla/call",
    ];
    for file in files {
        let text = std::fs::read_to_string(root().join(format!("src/{file}.rs")))
            .expect("a file of the crate");
        assert!(
            !["Mutex", "RwLock"].iter().any(|lock| text.contains(lock)),
            "{file}.rs locks"
        );
    }
}

#[test]
fn the_file_name_says_which_programs_can_use_the_library() {
    let lib = library();
    let version = env!("CARGO_PKG_VERSION");
    let compatible = match env!("CARGO_PKG_VERSION_MAJOR") {
        "0" => concat!("0.", env!("CARGO_PKG_VERSION_MINOR")),
        major => major,
    };
    let link = |name: &str| {
        std::fs::read_link(lib.join(name))
            .expect("a link")
            .to_string_lossy()
            .into_owned()
    };
    assert_eq!(
        link("libdml_cuda.so"),
        format!("libdml_cuda.so.{compatible}")
    );
    assert_eq!(
        link(&format!("libdml_cuda.so.{compatible}")),
        format!("libdml_cuda.so.{version}")
    );
    if !has("readelf") {
        return;
    }
    let dynamic = |name: &str| printed(Command::new("readelf").arg("-dW").arg(lib.join(name)));
    assert!(dynamic("libdml_cuda.so").contains(&format!("soname: [libdml_cuda.so.{compatible}]")));
    assert!(dynamic("libdml_cuda_torch.so")
        .contains(&format!("Shared library: [libdml_cuda.so.{compatible}]")));
}

/// The exported symbols: `UPDATE_GOLDEN=1` writes them.
#[test]
fn the_library_exports_its_own_functions_only() {
    if !has("nm") {
        return;
    }
    let symbols = printed(
        Command::new("nm")
            .args(["-D", "--defined-only"])
            .arg(library().join("libdml_cuda.so")),
    );
    let mut symbols: Vec<&str> = symbols
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .collect();
    symbols.sort_unstable();
    let found = symbols.join("\n") + "\n";
    let path = root().join("tests/golden/symbols.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &found).expect("written");
    }
    let golden = std::fs::read_to_string(&path).expect("the golden file is there");
    assert_eq!(
        found, golden,
        "tests/golden/symbols.txt; CONTRIBUTING.md says which changes make which version"
    );
    let foreign = symbols
        .iter()
        .find(|name| !name.starts_with("dml_cuda_") && **name != "RegisterCustomOps");
    assert_eq!(foreign, None);
}

#[test]
fn pkg_config_names_what_the_example_of_the_readme_needs() {
    if !has("pkg-config") || !has("cc") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("reverse");
    let files = folder.path().join("lib/pkgconfig");
    std::os::unix::fs::symlink(library(), folder.path().join("lib"))
        .expect("a link, as /lib is one");
    let ask = |what: &str| {
        printed(
            Command::new("pkg-config")
                .args([what, "dml-cuda"])
                .env("PKG_CONFIG_PATH", &files),
        )
    };
    assert_eq!(ask("--modversion").trim(), env!("CARGO_PKG_VERSION"));
    let (flags, libraries) = (ask("--cflags"), ask("--libs"));
    let mut compiler = Command::new("cc");
    compiler
        .args(C)
        .args(flags.split_whitespace())
        .arg(root().join("examples/reverse.c"))
        .arg("-o")
        .arg(&program);
    printed(compiler.args(libraries.split_whitespace()));
    assert_eq!(printed(&mut run(&program)), EXAMPLE_PRINTS);
}

/// Configures a project with CMake, and returns what it prints.
fn configured(source: &Path, build: &Path, prefix: &Path) -> String {
    let mut cmake = Command::new("cmake");
    cmake
        .arg("-S")
        .arg(source)
        .arg("-B")
        .arg(build)
        .arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()));
    printed(cmake.arg(format!(
        "-DEXAMPLE={}",
        root().join("examples/reverse.c").display()
    )))
}

/// The version that `find_package(dml-cuda VERSION)` finds.
#[test]
fn cmake_finds_the_versions_that_fit() {
    if !has("cmake") {
        return;
    }
    assert_eq!(
        env!("CARGO_PKG_VERSION"),
        "0.3.0",
        "the versions below are for this one"
    );
    let fit = [
        "",
        "0.3",
        "0.3 EXACT",
        "0.3.0",
        "0.3.0 EXACT",
        "0.2...0.3.0",
        "0.3...<0.4",
    ];
    let other = [
        "0",
        "0.2",
        "0.2.9",
        "0.2.9 EXACT",
        "0.3.1",
        "0.3.1 EXACT",
        "0.30",
        "1",
    ];
    let other_ranges = ["0.2...<0.3.0", "0.0.1...0.2.9", "0.3.1...0.4"];
    for (n, asked) in fit.iter().chain(&other).chain(&other_ranges).enumerate() {
        let folder = tempfile::tempdir().expect("a folder");
        let project = format!(
            "cmake_minimum_required(VERSION 3.19)\nproject(asks NONE)\nfind_package(dml-cuda {asked} CONFIG QUIET)\n\
             if(dml-cuda_FOUND)\n  message(STATUS \"found <${{dml-cuda_VERSION}}>\")\nendif()\n"
        );
        std::fs::write(folder.path().join("CMakeLists.txt"), project).expect("written");
        let answer = configured(folder.path(), &folder.path().join("build"), installed());
        assert_eq!(
            answer.contains("found <0.3.0>"),
            n < fit.len(),
            "{asked}: {answer}"
        );
    }
}

/// CMake finds the library even through a link to its folder, such as `/lib` to `usr/lib`, and through links to its
/// files.
#[test]
fn cmake_finds_the_library_from_a_project_elsewhere() {
    if !has("cmake") {
        return;
    }
    let link = |to: &str, from: &Path| {
        std::os::unix::fs::symlink(library().join(to), from).expect("a link")
    };
    let (linked, of_files) = (
        tempfile::tempdir().expect("a folder"),
        tempfile::tempdir().expect("a folder"),
    );
    link(".", &linked.path().join("lib"));
    let files = of_files.path().join("lib/cmake/dml-cuda");
    std::fs::create_dir_all(&files).expect("made");
    for name in ["dml-cuda-config.cmake", "dml-cuda-config-version.cmake"] {
        link(&format!("cmake/dml-cuda/{name}"), &files.join(name));
    }
    for prefix in [installed(), linked.path(), of_files.path()] {
        let build = tempfile::tempdir().expect("a folder");
        configured(&root().join("tests/outside"), build.path(), prefix);
        printed(Command::new("cmake").arg("--build").arg(build.path()));
        // CMake writes the library's folder into the program.
        assert_eq!(
            printed(&mut Command::new(build.path().join("reverse"))),
            EXAMPLE_PRINTS
        );
    }
}
