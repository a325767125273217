//! What the kernels' PTX must look like: 16-byte loads and stores, no division, no local memory.

mod common;

use std::collections::BTreeMap;

/// The body of every entry point of kernels/prebuilt.
fn entries() -> BTreeMap<String, String> {
    let mut entries = BTreeMap::new();
    for file in std::fs::read_dir(common::repository("kernels/prebuilt")).expect("a folder") {
        let text = std::fs::read_to_string(file.expect("an entry").path()).expect("text");
        for entry in text.split(".visible .entry ").skip(1) {
            let name = entry.split('(').next().expect("a name").to_owned();
            entries.insert(name, entry.to_owned());
        }
    }
    entries
}

#[test]
fn no_kernel_divides_or_uses_local_memory() {
    let entries = entries();
    assert!(entries.len() > 100, "{} entry points were found", entries.len());
    for (name, body) in entries {
        for word in ["div.", "rem.", ".local", "call"] {
            let found = body.lines().find(|line| line.split_whitespace().any(|part| part.starts_with(word)));
            assert!(found.is_none(), "{name}: {}", found.unwrap_or_default());
        }
    }
}

/// Kernels that move vectors wherever they can, with what each needs of a body; a name stands for all that begin with it.
const VECTORIZED: &[(&str, &[&str])] = &[
    ("fill_packed_", STORE),
    ("fill_rows_", STORE),
    ("fill_dense_", STORE),
    ("reverse_elementwise_16", BOTH),
    ("reverse_elementwise_in_place_16", BOTH),
    ("reverse_small_16", BOTH),
    ("reverse_small_in_place_16", BOTH),
    ("reverse_lanes_", BOTH),
    ("reverse_long_lanes_", BOTH),
    ("reverse_rows", BOTH),
    ("reverse_packed_rows_", BOTH),
    ("reverse_row_tiles_", BOTH),
    ("reverse_packed_lanes_in_registers_", BOTH),
    ("reverse_packed_lanes_", LOAD), // in place, an element per thread is written
    ("reverse_strips_", LOAD),       // copying and in place, words or elements are written
    ("reverse_unaligned_strips_", LOAD),
    ("reverse_clusters_", LOAD),
    ("reverse_columns_", LOAD),
];
const LOAD: &[&str] = &["ld.global.v4"];
const STORE: &[&str] = &["st.global.v4"];
const BOTH: &[&str] = &["ld.global.v4", "st.global.v4"];

/// Elements by elements, or transposed: the rest.
const BY_ELEMENT: &[&str] = &["fill_elements", "reverse_elementwise_", "reverse_small_", "reverse_transposed_"];

/// In place, strips of narrow elements are loaded 4 elements at a time, interleaved.
const INTERLEAVED: [&str; 2] = ["reverse_strips_in_place_1", "reverse_strips_in_place_2"];

#[test]
fn kernels_load_and_store_16_bytes_at_a_time() {
    let mut vectorized = 0;
    for (name, body) in entries() {
        let body = body.replace("ld.global.nc.v4", "ld.global.v4");
        let of = VECTORIZED.iter().find(|(start, _)| name.starts_with(start));
        let Some((_, needed)) = of.filter(|_| !INTERLEAVED.contains(&name.as_str())) else {
            let by_element = BY_ELEMENT.iter().any(|start| name.starts_with(start));
            assert!(by_element || INTERLEAVED.contains(&name.as_str()), "{name} is in no list");
            continue;
        };
        for access in *needed {
            assert!(body.contains(access), "{name} has no {access}");
        }
        vectorized += 1;
    }
    assert!(vectorized > 80, "{vectorized}");
}
