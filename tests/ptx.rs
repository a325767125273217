//! What the kernels' PTX must look like: 16-byte stores where slots are written whole, no division, no local memory.

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
    assert_eq!(entries.len(), 24 + 24 + 20 + 6 + 2 + 10 + 8 + 8 + 7 + 8 + 8 + 10 + 14 + 4);
    for (name, body) in entries {
        for word in ["div.", "rem.", ".local", "call"] {
            let found = body.lines().find(|line| line.split_whitespace().any(|part| part.starts_with(word)));
            assert!(found.is_none(), "{name}: {}", found.unwrap_or_default());
        }
    }
}

#[test]
fn whole_slots_are_one_store() {
    let slots = [
        "fill_packed_",
        "fill_rows_",
        "fill_dense_",
        "reverse_lanes_",
        "reverse_long_lanes_",
        "reverse_long_rows_",
        "reverse_wide_lanes_",
        "reverse_rows",
        "reverse_staged_",
        "reverse_tiny_",
        "reverse_turned_",
        "reverse_small_send_16",
        "reverse_small_swap_16",
        "reverse_small_plain_send_16",
        "reverse_small_plain_swap_16",
        "reverse_copy_16",
        "reverse_swap_16",
    ];
    let mut looked_at = 0;
    for (name, body) in entries() {
        let by_element = name.starts_with("reverse_turned_lanes_swap_");
        if slots.iter().any(|slot| name.starts_with(slot)) && !by_element {
            assert!(body.contains("st.global.v4"), "{name} has no 16-byte store");
            looked_at += 1;
        }
    }
    assert_eq!(looked_at, 18 + 20 + 6 + 2 + 4 + 10 + 10 + 4 + 2);
}

#[test]
fn sources_are_read_16_bytes_at_a_time() {
    for (name, body) in entries() {
        let vector = [
            "reverse_lanes_",
            "reverse_long_lanes_",
            "reverse_long_rows_",
            "reverse_wide_lanes_",
            "reverse_rows",
            "reverse_copy_16",
            "reverse_clusters_",
            "reverse_columns_",
            "reverse_strips_",
            "reverse_any_strips_",
            "reverse_staged_",
            "reverse_tiny_",
            "reverse_turned_",
            "reverse_small_send_16",
            "reverse_small_swap_16",
            "reverse_small_plain_send_16",
            "reverse_small_plain_swap_16",
        ];
        // Strips of narrow elements are read in place so as to lie spread: 4 elements at a time.
        let spread = ["reverse_strips_swap_1", "reverse_strips_swap_2"].contains(&name.as_str());
        if vector.iter().any(|start| name.starts_with(start)) && !spread {
            assert!(body.contains("ld.global.v4") || body.contains("ld.global.nc.v4"), "{name} has no 16-byte load");
        }
    }
}
