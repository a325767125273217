//! Checks which modules of src/ may use which, and that there are no cycles. It reads the sources. Unit tests are left
//! out: they may use anything.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use dml_cuda_testing::{repository, rust_files};

/// The layers of src/, lowest first, each with the other layers that it may use. A file belongs to the layer with the
/// longest matching name. Files of one layer may use each other.
const LAYERS: &[(&str, &str)] = &[
    ("address", ""),
    ("text", ""),
    ("trace", ""),
    ("placement", ""),
    ("options", "address text"),
    ("desc", "text"),
    ("validate", "desc text"),
    ("plan", "desc"),
    ("cpu", "plan desc"),
    ("lowering::range", ""),
    ("cuda::target", "text"),
    ("error", "options desc validate lowering::range cuda::target"),
    ("cuda::parameters", "desc"),
    ("cuda::kernels", "placement cuda::parameters"),
    ("cuda::launch", "cuda::kernels"),
    ("cuda::tuning", ""),
    ("cuda::estimate", "placement cuda::launch cuda::target cuda::tuning"),
    ("cuda::costs", "cuda::estimate"),
    ("cuda::specialize", "cuda::kernels"),
    (
        "cuda::select",
        "placement plan cuda::costs cuda::estimate cuda::kernels cuda::launch cuda::parameters cuda::target cuda::tuning",
    ),
    ("cuda::driver", "address options error cuda::kernels cuda::launch cuda::specialize cuda::target"),
    ("cuda::launcher", "placement options error cuda::driver cuda::launch"),
    ("cuda", "placement cuda::driver cuda::kernels cuda::launch cuda::launcher cuda::select cuda::target"),
    ("operator_plan", "placement desc plan cpu error cuda::launch cuda::select cuda::target"),
    (
        "device",
        "placement options address trace desc validate error operator_plan cuda cuda::driver cuda::launch \
         cuda::launcher cuda::select",
    ),
    ("dispatch", "placement address trace desc cpu error device cuda cuda::driver cuda::launch"),
    ("lowering", "address options desc error device dispatch lowering::range"),
    ("ops", "desc error device dispatch"),
    ("explain", "placement options error device plan operator_plan cuda::launch cuda::select cuda::target"),
];

/// The folder of the library's files.
const LIBRARY: &str = "src";

/// The files below a folder without comments, texts and unit tests, by their module path: `cuda::select::strips`.
fn modules(folder: &str) -> BTreeMap<String, String> {
    let root = repository(folder);
    let module = |path: PathBuf| {
        let name = path
            .strip_prefix(&root)
            .expect("below the folder")
            .with_extension("");
        let name = name.to_string_lossy().replace(['/', '\\'], "::");
        let text = std::fs::read_to_string(path).expect("text");
        // Unit tests begin with `#[cfg(test)]`, or with `#[cfg(all(test, in_repository))]`.
        let text = text.replace("pub(super) mod tests", "mod tests");
        let code = text.split(")]\nmod tests").next().unwrap_or_default();
        let code: String = code
            .lines()
            .flat_map(|line| [line.split("//").next().unwrap_or_default(), "\n"])
            .collect();
        (
            name,
            code.replace("\\\"", "").split('"').step_by(2).collect(),
        )
    };
    rust_files(folder)
        .into_iter()
        .map(module)
        .filter(|(name, _)| name != "lib" && !name.contains("tests"))
        .collect()
}

/// The paths in code, each with whether a `use` item has it: `a::{b, c::{d, e}}` is `a::b`, `a::c::d` and `a::c::e`.
fn paths(code: &str) -> Vec<(String, bool)> {
    let (mut found, mut word, mut in_use) = (Vec::new(), String::new(), false);
    // What the path before each open brace adds to the paths inside; nothing, if the brace opens a block.
    let mut groups = vec![String::new()];
    for c in code.chars() {
        if c.is_alphanumeric() || "_:".contains(c) {
            word.push(c);
            continue;
        }
        in_use |= word == "use";
        let group = groups.last().map_or("", String::as_str);
        let path = format!("{group}{}", std::mem::take(&mut word));
        let is_path = path.len() > group.len() && path.contains("::");
        match c {
            '{' => groups.push(if is_path { path } else { String::new() }),
            _ if is_path => found.push((path, in_use)),
            _ => {}
        }
        if c == '}' {
            groups.pop();
        }
        in_use &= c != ';';
    }
    found
}

/// The path from the root on, if it is one of this library.
fn absolute(library: &BTreeMap<String, String>, module: &str, path: &str) -> Option<String> {
    let segments: Vec<&str> = path
        .split("::")
        .filter(|segment| !["", "self"].contains(segment))
        .collect();
    let count = |word| {
        segments
            .iter()
            .take_while(|segment| **segment == word)
            .count()
    };
    let (roots, parents) = (count("crate"), count("super"));
    let here: Vec<&str> = module.split("::").collect();
    let base = match roots + parents {
        0 if !library.contains_key(&format!("{module}::{}", segments.first()?)) => return None,
        _ if roots > 0 => &[],
        _ => &here[..here.len() - parents],
    };
    Some([base, &segments[roots + parents..]].concat().join("::"))
}

/// Which other files each file below a folder uses, apart from the crate's root. Follows what a file imports to the file that defines it.
fn arrows(folder: &str) -> BTreeMap<String, BTreeSet<String>> {
    let library = modules(folder);
    let mut used = Vec::new();
    let mut imports = BTreeMap::new();
    for (module, code) in &library {
        for (path, in_use) in paths(code) {
            let Some(target) = absolute(&library, module, &path) else {
                continue;
            };
            if in_use {
                let name = path.rsplit("::").next().unwrap_or_default();
                imports.insert(format!("{module}::{name}"), target.clone());
            }
            used.push((module, target));
        }
    }
    let mut arrows: BTreeMap<_, BTreeSet<_>> = library
        .keys()
        .map(|module| (module.clone(), BTreeSet::new()))
        .collect();
    'paths: for (module, path) in used {
        let mut file = path.as_str();
        let mut steps = 0..100;
        while !library.contains_key(file) {
            assert!(
                steps.next().is_some(),
                "{module} uses {path}: its imports are a circle"
            );
            let parent = || file.rsplit_once("::").map(|(parent, _)| parent);
            let next = imports.get(file).map(String::as_str).or_else(parent);
            let Some(next) = next else {
                // Only the library's root has no items of its own.
                assert!(
                    folder != LIBRARY,
                    "{module} uses {path}, which no file of {folder} has"
                );
                continue 'paths;
            };
            file = next;
        }
        if file != module {
            arrows
                .get_mut(module)
                .expect("a file")
                .insert(file.to_owned());
        }
    }
    arrows
}

fn layer_of(module: &str) -> &'static str {
    let names = LAYERS.iter().map(|(name, _)| *name);
    let of = names.filter(|name| module == *name || module.starts_with(&format!("{name}::")));
    of.max_by_key(|name| name.len())
        .unwrap_or_else(|| panic!("{module} belongs to no layer of tests/it/architecture.rs"))
}

#[test]
fn files_use_only_what_their_layer_may_use() {
    for (module, used) in arrows(LIBRARY) {
        let layer = layer_of(&module);
        let (_, may_use) = LAYERS
            .iter()
            .find(|(name, _)| *name == layer)
            .expect("`layer_of` found it");
        for file in &used {
            let other = layer_of(file);
            assert!(
                other == layer || may_use.split(' ').any(|name| name == other),
                "{module} uses {file}: {layer} may not use {other}"
            );
        }
    }
}

#[test]
fn there_are_no_cycles() {
    for (folder, at_least) in [(LIBRARY, 40), ("crates/dml-cuda-model/src", 12)] {
        let mut arrows = arrows(folder);
        let count = arrows.len();
        assert!(count > at_least, "{count} files were found in {folder}");
        // Removes files that use no remaining file, or that no remaining file uses.
        for _ in 0..count {
            let files: BTreeSet<String> = arrows.keys().cloned().collect();
            let used: BTreeSet<String> = arrows.values().flatten().cloned().collect();
            arrows.retain(|file, uses| used.contains(file) && !uses.is_disjoint(&files));
        }
        assert!(arrows.is_empty(), "files in cycles: {arrows:#?}");
    }
}

#[test]
fn the_test_finds_paths_and_follows_re_exports() {
    let found = paths(
        "use crate::cuda::{kernels, select::{self}};\nfn f() { super::g(); crate::plan::$x::h() }",
    );
    let required = [
        ("crate::cuda::kernels", true),
        ("crate::cuda::select::self", true),
        ("super::g", false),
    ];
    assert_eq!(
        found[..3],
        required.map(|(path, in_use)| (path.to_owned(), in_use))
    );
    assert_eq!(found[3], ("crate::plan::".to_owned(), false));
    let arrows = arrows(LIBRARY);
    assert!(
        arrows["cuda::select::strips"].contains("cuda::kernels"),
        "{:?}",
        arrows["cuda::select::strips"]
    );
    // Through a re-export of cuda.rs.
    assert!(
        arrows["operator_plan"].contains("cuda::target"),
        "{:?}",
        arrows["operator_plan"]
    );
}

#[test]
fn only_the_driver_and_cudarc_slices_import_cudarc() {
    for (module, code) in modules(LIBRARY) {
        let may = module.starts_with("cuda::driver") || module == "dispatch::cudarc_slices";
        assert!(may || !code.contains("cudarc::"), "{module} imports cudarc");
    }
}

/// Who launches on addresses has promised that the kernel may use them.
#[test]
fn no_safe_function_of_the_driver_takes_addresses() {
    let library = modules(LIBRARY);
    let driver = library
        .iter()
        .filter(|(module, _)| module.starts_with("cuda::driver"));
    let mut found = Vec::new();
    for (module, code) in driver {
        let signatures = code.split("fn ").zip(code.split("fn ").skip(1));
        for (before, function) in signatures {
            let signature = function.split('{').next().unwrap_or_default();
            if signature.contains(": Addresses<") || signature.contains(": &Addresses<") {
                found.push((module, before.ends_with("unsafe "), signature));
            }
        }
    }
    assert!(
        !found.is_empty() && found.iter().all(|(_, is_unsafe, _)| *is_unsafe),
        "{found:?}"
    );
}
