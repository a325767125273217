//! The arrows between modules, read from the sources: what may use what.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// The library's files without their unit tests, by their path below src.
fn library() -> Vec<(String, String)> {
    let root = common::repository("src");
    let file = |path: PathBuf| {
        let name = path.strip_prefix(&root).expect("below src").to_string_lossy().replace('\\', "/");
        let text = fs::read_to_string(&path).expect("text");
        (name, text.split("#[cfg(test)]").next().unwrap_or_default().to_owned())
    };
    sources(&root).into_iter().map(file).collect()
}

fn assert_free_of(files: &str, words: &[&str]) {
    let mut looked_at = 0;
    for (name, text) in library().iter().filter(|(name, _)| name.starts_with(files)) {
        looked_at += 1;
        for word in words {
            assert!(!text.contains(word), "{name} says `{word}`");
        }
    }
    assert!(looked_at > 0, "no file is called {files}…");
}

#[test]
fn validation_knows_no_device_and_no_plan() {
    for files in ["validate", "feature_level", "desc", "layout", "data_type"] {
        assert_free_of(
            files,
            &["crate::device", "crate::plan", "crate::cuda", "crate::cpu", "crate::binding", "cudarc"],
        );
    }
}

#[test]
fn plans_know_no_backend() {
    assert_free_of(
        "plan",
        &["crate::device", "crate::cuda", "crate::cpu", "crate::binding", "crate::validate", "cudarc"],
    );
}

#[test]
fn backends_see_plans_and_never_descriptors() {
    assert_free_of("cpu", &["crate::desc", "crate::validate", "crate::device", "OperatorDesc"]);
    assert_free_of("cuda/driver", &["crate::desc", "crate::validate", "crate::device", "OperatorDesc"]);
}

#[test]
fn only_the_cuda_backend_imports_cudarc_and_says_unsafe() {
    for (name, text) in library() {
        let cuda = name.starts_with("cuda");
        assert!(cuda || name == "stream.rs" || !text.contains("cudarc::"), "{name} imports cudarc");
        let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        assert!(name.starts_with("cuda/") || !code.contains("unsafe "), "{name} says unsafe");
    }
}

#[test]
fn kernels_know_the_headers_beside_them_only() {
    for entry in fs::read_dir(common::repository("kernels")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let Ok(text) = fs::read_to_string(&path) else { continue };
        for include in text.lines().filter(|line| line.starts_with("#include")) {
            assert!(
                include.ends_with(".cuh\"") && !include.contains('/') || include == "#include <cuda_fp16.h>",
                "{}: {include}",
                path.display()
            );
        }
    }
}
