//! C and C++ programs against the header and the library: they compile with all warnings, call every function, and leak nothing.
//! Skipped, and counted, where there is no C compiler.

mod common;

use std::path::Path;
use std::process::Command;

use common::{built, compile, install, library, root, run, text, CPP};

const C: [&str; 8] =
    ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wno-strict-prototypes", "-Werror", "-O1"];
const VERSION: &str = concat!("-DVERSION=\"", env!("CARGO_PKG_VERSION"), "\"");
const LINK: &[&str] = &["-ldml_cuda"];

#[test]
fn the_header_has_directmls_layout_in_c_and_in_cpp() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("layout");
    if compile("CC", &C, "tests/c/layout.c", &[], &program) {
        compile("CXX", &[&CPP[..], &["-x", "c++"]].concat(), "tests/c/layout.c", &[], &program);
    }
}

/// Old programs can use the header: no standard gives a warning, also if it is included first and twice.
#[test]
fn the_header_is_of_every_standard_of_c_and_cpp() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("header.c");
    std::fs::write(&source, "#include \"dml_cuda.h\"\n#include \"dml_cuda.h\"\n").expect("written");
    let flags = ["-pedantic", "-Wall", "-Wextra", "-Wundef", "-Wconversion", "-Werror", "-fsyntax-only"];
    let c = ["c89", "c99", "c11", "gnu89"].map(|standard| ("CC", standard, &["-Wstrict-prototypes"][..]));
    let cpp = ["c++98", "c++11", "c++17"].map(|standard| ("CXX", standard, &["-x", "c++"][..]));
    for (compiler, standard, more) in c.into_iter().chain(cpp) {
        let standard = format!("-std={standard}");
        let arguments = [&[&*standard][..], &flags, more].concat();
        compile(compiler, &arguments, &source.to_string_lossy(), &[], &folder.path().join("nothing"));
    }
}

#[test]
fn directml_h_may_come_before_or_after() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("both");
    for first in [&["-DDIRECTML_FIRST"][..], &[]] {
        if compile("CXX", &[&CPP, first].concat(), "tests/c/with_directml.cpp", LINK, &program) {
            let output = run(&program).output().expect("it starts");
            assert!(output.status.success(), "{}", text(&output));
            assert_eq!(text(&output), "1 1.5 2 2.5 3 3.5 ");
        }
    }
}

#[test]
fn every_function_is_called_rightly_and_wrongly() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("calls");
    if compile("CC", &[&C[..], &[VERSION]].concat(), "tests/c/calls.c", LINK, &program) {
        let output = run(&program).output().expect("it starts");
        assert!(output.status.success(), "{}", text(&output));
        assert_eq!(text(&output), "all calls are right\n");
    }
}

/// Creates and destroys a million devices, operators, compiled operators and errors under the address sanitizer, which finds leaks.
#[test]
fn a_million_times_the_whole_chain_leaks_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("calls");
    let archive = built().join("libdml_cuda.a");
    let archive = archive.to_string_lossy();
    let sanitized = [&C[..], &[VERSION, "-fsanitize=address", "-g"]].concat();
    if compile("CC", &sanitized, "tests/c/calls.c", &[&archive, "-lpthread", "-ldl", "-lm"], &program) {
        let before = std::time::Instant::now();
        let output = run(&program).arg("1000000").env("ASAN_OPTIONS", "detect_leaks=1").output().expect("it starts");
        assert!(output.status.success(), "{}", text(&output));
        assert_eq!(text(&output), "all calls are right\n");
        eprintln!("1000000 times in {:?}", before.elapsed());
    }
}

#[test]
fn the_example_of_the_readme_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("reverse");
    if compile("CC", &C, "examples/reverse.c", LINK, &program) {
        let output = run(&program).output().expect("it starts");
        assert!(output.status.success(), "{}", text(&output));
        assert_eq!(text(&output), "3 2 1 4 6 5 7 8 \n");
    }
}

/// Whether a tool is installed. Prints that a test is skipped if not.
fn has(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("SKIPPED: there is no {tool}");
    }
    found
}

/// A folder with the library, moved after it was installed.
fn moved() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    install(&folder.path().join("before"));
    std::fs::rename(folder.path().join("before"), folder.path().join("after")).expect("it can be moved");
    folder
}

#[test]
fn the_file_name_says_which_programs_can_use_the_library() {
    let folder = moved();
    let lib = folder.path().join("after/lib");
    let version = env!("CARGO_PKG_VERSION");
    let compatible = match env!("CARGO_PKG_VERSION_MAJOR") {
        "0" => concat!("0.", env!("CARGO_PKG_VERSION_MINOR")),
        major => major,
    };
    let link = |name: &str| std::fs::read_link(lib.join(name)).expect("a link").to_string_lossy().into_owned();
    assert_eq!(link("libdml_cuda.so"), format!("libdml_cuda.so.{compatible}"));
    assert_eq!(link(&format!("libdml_cuda.so.{compatible}")), format!("libdml_cuda.so.{version}"));
    if !has("readelf") {
        return;
    }
    let dynamic = |name: &str| {
        let output = Command::new("readelf").arg("-dW").arg(lib.join(name)).output().expect("there");
        assert!(output.status.success(), "{}", text(&output));
        text(&output)
    };
    assert!(dynamic("libdml_cuda.so").contains(&format!("soname: [libdml_cuda.so.{compatible}]")));
    assert!(dynamic("libdml_cuda_torch.so").contains(&format!("Shared library: [libdml_cuda.so.{compatible}]")));
}

/// The exported symbols: `UPDATE_GOLDEN=1` writes them.
#[test]
fn the_library_exports_its_own_functions_only() {
    if !has("nm") {
        return;
    }
    let output = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(library().join("libdml_cuda.so"))
        .output()
        .expect("there");
    assert!(output.status.success(), "{}", text(&output));
    let symbols = String::from_utf8(output.stdout).expect("text");
    let mut symbols: Vec<&str> = symbols.lines().filter_map(|line| line.split_whitespace().last()).collect();
    symbols.sort_unstable();
    let found = symbols.join("\n") + "\n";
    let path = root().join("tests/golden/symbols.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &found).expect("written");
    }
    let golden = std::fs::read_to_string(&path).expect("the golden file is there");
    assert_eq!(found, golden, "tests/golden/symbols.txt; CONTRIBUTING.md says which changes make which version");
    let foreign = symbols.iter().find(|name| !name.starts_with("dml_cuda_") && **name != "RegisterCustomOps");
    assert_eq!(foreign, None);
}

#[test]
fn pkg_config_names_what_a_program_needs() {
    if !has("pkg-config") || !has("cc") {
        return;
    }
    let folder = moved();
    let program = folder.path().join("reverse");
    let files = folder.path().join("after/lib/pkgconfig");
    let ask = |what: &str| {
        let output =
            Command::new("pkg-config").args([what, "dml-cuda"]).env("PKG_CONFIG_PATH", &files).output().expect("there");
        assert!(output.status.success(), "{}", text(&output));
        String::from_utf8(output.stdout).expect("text")
    };
    assert_eq!(ask("--modversion").trim(), env!("CARGO_PKG_VERSION"));
    let (cflags, libs) = (ask("--cflags"), ask("--libs"));
    let output = Command::new("cc")
        .args(cflags.split_whitespace())
        .arg(root().join("examples/reverse.c"))
        .arg("-o")
        .arg(&program)
        .args(libs.split_whitespace())
        .output()
        .expect("there");
    assert!(output.status.success(), "{}", text(&output));
    let output = Command::new(&program).env("LD_LIBRARY_PATH", folder.path().join("after/lib")).output();
    assert_eq!(text(&output.expect("it starts")), "3 2 1 4 6 5 7 8 \n");
}

/// The version that `find_package(dml-cuda VERSION)` finds.
#[test]
fn cmake_finds_the_versions_that_fit() {
    if !has("cmake") {
        return;
    }
    let folder = moved();
    let source = folder.path().join("asks");
    std::fs::create_dir(&source).expect("a folder");
    assert_eq!(env!("CARGO_PKG_VERSION"), "0.2.0", "the table below is for this version");
    for (asked, found) in [
        ("", true),
        ("0.2.0", true),
        ("0.2.0 EXACT", true),
        ("0.2 EXACT", true),
        ("0.2", true),
        ("0.1", false),
        ("0.1.9", false),
        ("0", false),
        ("0.1.9 EXACT", false),
        ("0.2.1", false),
        ("0.2.1 EXACT", false),
        ("0.20", false),
        ("1", false),
        ("0.1...0.2.0", true),
        ("0.1...<0.2.0", false),
        ("0.2...<0.3", true),
        ("0.0.1...0.1.9", false),
        ("0.2.1...0.3", false),
    ] {
        let project = format!(
            "cmake_minimum_required(VERSION 3.19)\nproject(asks NONE)\nfind_package(dml-cuda {asked} CONFIG QUIET)\n\
             if(dml-cuda_FOUND)\n  message(STATUS \"found <${{dml-cuda_VERSION}}>\")\nendif()\n"
        );
        std::fs::write(source.join("CMakeLists.txt"), project).expect("written");
        let output = Command::new("cmake")
            .arg("-S")
            .arg(&source)
            .arg("-B")
            .arg(folder.path().join(asked.replace(['.', ' ', '<'], "_")))
            .arg(format!("-DCMAKE_PREFIX_PATH={}", folder.path().join("after").display()))
            .output()
            .expect("there");
        assert!(output.status.success(), "{}", text(&output));
        assert_eq!(text(&output).contains("found <0.2.0>"), found, "{asked}: {}", text(&output));
    }
}

#[test]
fn cmake_finds_the_library_from_a_project_elsewhere() {
    if !has("cmake") {
        return;
    }
    let folder = moved();
    let (source, build) = (folder.path().join("source"), folder.path().join("build"));
    std::fs::create_dir(&source).expect("a folder");
    std::fs::copy(root().join("tests/outside/CMakeLists.txt"), source.join("CMakeLists.txt")).expect("copied");
    let cmake = |arguments: &[std::ffi::OsString]| {
        let output = Command::new("cmake").args(arguments).output().expect("there");
        assert!(output.status.success(), "{}", text(&output));
    };
    let define = |name: &str, value: &Path| std::ffi::OsString::from(format!("-D{name}={}", value.display()));
    cmake(&[
        "-S".into(),
        source.into(),
        "-B".into(),
        build.clone().into(),
        define("CMAKE_PREFIX_PATH", &folder.path().join("after")),
        define("EXAMPLE", &root().join("examples/reverse.c")),
    ]);
    cmake(&["--build".into(), build.clone().into()]);
    // CMake writes the library's folder into the program.
    let output = Command::new(build.join("reverse")).output().expect("it starts");
    assert_eq!(text(&output), "3 2 1 4 6 5 7 8 \n");
}
