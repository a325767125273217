//! Checks which modules of src/ may use which, and that there are no cycles. It reads the sources. Unit tests are left
//! out: they may use anything.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The layers of src/, lowest first, each with the other layers that it may use. A file belongs to the layer with the
/// longest matching name. Files of one layer may use each other.
const LAYERS: &[(&str, &[&str])] = &[
    ("address", &[]),
    ("trace", &[]),
    ("desc", &["desc::layout"]),
    ("desc::layout", &["desc"]),
    ("validate", &["desc", "desc::layout"]),
    ("plan", &["desc", "desc::layout"]),
    ("cpu", &["plan"]),
    ("lowering::lowering_error", &["desc", "desc::layout"]),
    ("error", &["desc", "validate", "lowering::lowering_error"]),
    ("cuda::target", &[]),
    ("cuda::kernels", &[]),
    ("cuda::launch", &["cuda::kernels"]),
    ("cuda::tuning", &[]),
    ("cuda::select", &["desc::layout", "plan", "cuda::kernels", "cuda::launch", "cuda::target", "cuda::tuning"]),
    ("cuda::driver", &["address", "error", "cuda::kernels", "cuda::launch", "cuda::target"]),
    ("cuda::launcher", &["error", "cuda::driver", "cuda::launch", "cuda::select"]),
    ("cuda", &["cuda::driver", "cuda::kernels", "cuda::launch", "cuda::launcher", "cuda::select", "cuda::target"]),
    ("registry", &["desc", "plan", "cpu", "cuda::select", "cuda::target"]),
    (
        "device",
        &["address", "trace", "desc", "validate", "error", "registry", "cuda", "cuda::driver", "cuda::launcher"],
    ),
    ("dispatch", &["address", "trace", "desc", "cpu", "error", "device", "cuda", "cuda::driver", "cuda::launch"]),
    ("lowering", &["desc", "desc::layout", "device", "error", "lowering::lowering_error"]),
    ("plain", &["device", "error", "cuda", "cuda::driver", "cuda::kernels", "cuda::launch", "cuda::launcher"]),
    ("ops", &["desc", "device", "error"]),
    ("explain", &["device", "plan", "registry", "cuda::launch", "cuda::select", "cuda::target"]),
];

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

/// The library's files without comments and unit tests, by their module path: `cuda::select::strips`.
fn library() -> BTreeMap<String, String> {
    let root = crate::common::repository("src");
    let mut modules = BTreeMap::new();
    for path in sources(&root) {
        let name = path.strip_prefix(&root).expect("below src").with_extension("");
        let name = name.to_string_lossy().replace(['/', '\\'], "::");
        if name == "lib" || name.contains("tests") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("text");
        // Unit tests begin with `#[cfg(test)]`, or with `#[cfg(all(test, in_repository))]`.
        let code = text.split(")]\nmod tests").next().unwrap_or_default();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        modules.insert(name, lines.collect::<Vec<_>>().join("\n"));
    }
    modules
}

/// `a::{b, c::{d, e}}` as `a::b`, `a::c::d`, `a::c::e`.
fn expand(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((head, tail)) = tree.split_once('{') else {
        return vec![tree.split(" as ").next().unwrap_or_default().to_owned()];
    };
    let (mut paths, mut depth, mut begin) = (Vec::new(), 0, 0);
    let tail = tail.strip_suffix('}').expect("balanced braces");
    for (at, c) in tail.char_indices().chain([(tail.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !tail[begin..at].trim().is_empty() {
                    paths.extend(expand(&tail[begin..at]).into_iter().map(|path| format!("{head}{path}")));
                }
                begin = at + 1;
            }
            _ => {}
        }
    }
    paths
}

/// Every path in the code: first those of `use` items, each with whether it is a re-export, then those elsewhere.
fn paths(code: &str) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    let mut rest = String::new();
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        let Some((visibility, tree)) = line
            .trim_start()
            .split_once("use ")
            .filter(|(before, _)| ["", "pub ", "pub(crate) ", "pub(super) "].contains(before))
        else {
            rest.push_str(line);
            rest.push('\n');
            continue;
        };
        let mut tree = tree.to_owned();
        while !tree.trim_end().ends_with(';') {
            tree.push_str(lines.next().expect("a use item ends in a semicolon").trim());
        }
        let paths = expand(tree.trim_end().trim_end_matches(';'));
        found.extend(paths.into_iter().map(|path| (path, !visibility.is_empty())));
    }
    for root in ["crate::", "super::"] {
        for (at, _) in rest.match_indices(root) {
            let path: String = rest[at..].chars().take_while(|c| c.is_alphanumeric() || "_:$".contains(*c)).collect();
            found.push((path.split("::$").next().unwrap_or_default().to_owned(), false));
        }
    }
    found
}

/// Which other files each file uses. Follows re-exports to the file that defines the item.
fn arrows() -> BTreeMap<String, BTreeSet<String>> {
    let library = library();
    // The absolute path, without `crate`. `None` for paths of other crates.
    let absolute = |module: &str, path: &str| -> Option<String> {
        let mut base: Vec<&str> = module.split("::").collect();
        let mut segments = path.split("::").filter(|segment| !segment.is_empty()).peekable();
        match *segments.peek()? {
            "crate" => {
                base.clear();
                segments.next();
            }
            "self" => {
                segments.next();
            }
            "super" => {
                while segments.next_if_eq(&"super").is_some() {
                    base.pop();
                }
            }
            child if library.contains_key(&format!("{module}::{child}")) => {}
            _ => return None,
        }
        Some(base.into_iter().chain(segments).collect::<Vec<_>>().join("::"))
    };
    let used: BTreeMap<&String, Vec<(String, bool)>> = library
        .iter()
        .map(|(module, code)| {
            let resolve = |(path, exported): (String, bool)| Some((absolute(module, &path)?, exported));
            (module, paths(code).into_iter().filter_map(resolve).collect())
        })
        .collect();
    let mut exports: BTreeMap<String, String> = BTreeMap::new();
    for (module, paths) in &used {
        for (path, _) in paths.iter().filter(|(_, exported)| *exported) {
            let name = path.rsplit("::").next().unwrap_or_default();
            exports.insert(format!("{module}::{name}"), path.clone());
        }
    }
    let file_of = |path: &str| -> Option<String> {
        let mut path = path.to_owned();
        while let Some((_, further)) =
            exports.iter().find(|(name, _)| path == **name || path.starts_with(&format!("{name}::")))
        {
            path = further.clone();
        }
        loop {
            if library.contains_key(&path) {
                return Some(path);
            }
            path = path.rsplit_once("::")?.0.to_owned();
        }
    };
    let target = |module: &String, path: &str| {
        let file = file_of(path).unwrap_or_else(|| panic!("{module} uses {path}, which no file of src/ has"));
        (file != *module).then_some(file)
    };
    used.iter()
        .map(|(module, paths)| ((*module).clone(), paths.iter().filter_map(|(path, _)| target(module, path)).collect()))
        .collect()
}

fn layer_of(module: &str) -> &'static str {
    let names = LAYERS.iter().map(|(name, _)| *name);
    let of = names.filter(|name| module == *name || module.starts_with(&format!("{name}::")));
    of.max_by_key(|name| name.len())
        .unwrap_or_else(|| panic!("{module} belongs to no layer of tests/it/architecture.rs"))
}

#[test]
fn files_use_only_what_their_layer_may_use() {
    let mut looked_at = 0;
    for (module, used) in arrows() {
        let layer = layer_of(&module);
        let (_, may_use) = LAYERS.iter().find(|(name, _)| *name == layer).expect("`layer_of` found it");
        for file in &used {
            let other = layer_of(file);
            assert!(other == layer || may_use.contains(&other), "{module} uses {file}: {layer} may not use {other}");
            looked_at += 1;
        }
    }
    assert!(looked_at > 100, "{looked_at} arrows were found");
}

#[test]
fn there_are_no_cycles() {
    let mut arrows = arrows();
    let count = arrows.len();
    assert!(count > 40, "{count} files were found");
    // Remove files that use no remaining file, until there are no more such files.
    loop {
        let free: Vec<String> =
            arrows.iter().filter(|(_, used)| used.is_empty()).map(|(module, _)| module.clone()).collect();
        if free.is_empty() {
            break;
        }
        free.iter().for_each(|module| drop(arrows.remove(module)));
        arrows.values_mut().for_each(|used| used.retain(|file| !free.contains(file)));
    }
    // Remove files that no remaining file uses.
    loop {
        let used: BTreeSet<String> = arrows.values().flatten().cloned().collect();
        let before = arrows.len();
        arrows.retain(|module, _| used.contains(module));
        if arrows.len() == before {
            break;
        }
    }
    assert!(arrows.is_empty(), "files in cycles: {arrows:#?}");
}

#[test]
fn the_test_finds_paths_and_follows_re_exports() {
    let found = paths("use crate::cuda::{kernels, select::{self, Selection}};\npub(crate) use launch::Launch;\nfn f() { super::g(); crate::plan::$x::h() }");
    let names: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
    let expected =
        ["crate::cuda::kernels", "crate::cuda::select::self", "crate::cuda::select::Selection", "launch::Launch"];
    assert_eq!(names, [&expected[..], &["crate::plan", "super::g"]].concat());
    assert_eq!(found.iter().filter(|(_, exported)| *exported).count(), 1);
    let arrows = arrows();
    assert!(arrows["cuda::select::strips"].contains("cuda::kernels"), "{:?}", arrows["cuda::select::strips"]);
    // Through a re-export of cuda.rs.
    assert!(arrows["registry"].contains("cuda::target"), "{:?}", arrows["registry"]);
}

#[test]
fn only_the_driver_and_cudarc_slices_import_cudarc() {
    for (module, code) in library() {
        let may = module.starts_with("cuda::driver") || module == "dispatch::cudarc_slices";
        assert!(may || !code.contains("cudarc::"), "{module} imports cudarc");
    }
}
