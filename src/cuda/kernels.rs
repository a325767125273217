//! The only table of entry points. build.rs compiles every file of `kernels/`, and a test checks that its PTX has
//! exactly the entry points of this table.

use crate::mode::Mode;

/// PTX by the name of its kernel file, from build.rs.
static PTX: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/ptx.rs"));

/// The kernels of `PlainWork`, which belong to no operator. plain.ptx is written by hand.
pub(crate) static PLAIN: Family = Family { file: "plain", entries: [&["store", "swap", "empty"], &[]] };
static PLAIN_PTX: (&str, &str) = (PLAIN.file, include_str!("../plain.ptx"));

/// Entry points of one kernel file that differ only in a template argument, such as the width of an element, and in the
/// mode.
#[derive(Debug)]
pub(crate) struct Family {
    file: &'static str,
    /// In the order of `Mode::ALL`.
    pub entries: [&'static [&'static str]; 2],
}

impl Family {
    /// The entry point of a mode whose name ends so.
    pub fn entry(&self, mode: Mode, suffix: &str) -> Entry {
        let name = mode.of(&self.entries).iter().find(|name| name.ends_with(suffix));
        Entry { file: self.file, name: name.expect("a suffix of the table below") }
    }
}

/// An entry point of a kernel file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Entry {
    file: &'static str,
    pub name: &'static str,
}

impl Entry {
    /// The PTX of its kernel file.
    pub fn ptx(self) -> &'static str {
        let found = PTX.iter().chain([&PLAIN_PTX]).find(|(file, _)| *file == self.file);
        found.map_or("", |(_, ptx)| ptx) // a test checks that every file is in the table
    }
}

macro_rules! kernels {
    ($($file:literal { $($family:ident: $prefix:literal $($suffix:literal)* $(, in place $($in_place:literal)*)?;)* })*) => {
        $($(pub(crate) static $family: Family = Family {
            file: $file,
            entries: [&[$(concat!($prefix, $suffix)),*], &[$($(concat!($prefix, "_in_place", $in_place)),*)?]],
        };)*)*

        /// Every family.
        #[cfg(test)]
        pub(crate) static FAMILIES: &[&Family] = &[$($(&$family),*),*];
    };
}

kernels! {
    "fill_value_sequence" {
        FILL_PACKED: "fill_packed" "_i8" "_i16" "_i32" "_i64" "_f32" "_f16" "_f64";
        FILL_ROWS: "fill_rows" "_i8" "_i16" "_i32" "_i64" "_f32" "_f16";
        FILL_DENSE: "fill_dense" "_i8" "_i16" "_i32" "_i64" "_f32" "_f16";
        FILL_ELEMENTS: "fill_elements" "";
    }
    "reverse_elementwise" {
        ELEMENTWISE: "reverse_elementwise" "_1" "_2" "_4" "_8" "_16", in place "_1" "_2" "_4" "_8" "_16";
        SMALL: "reverse_small" "_1" "_2" "_4" "_8" "_16", in place "_1" "_2" "_4" "_8" "_16";
    }
    "reverse_packed_lanes" {
        PACKED_LANES_IN_REGISTERS: "reverse_packed_lanes_in_registers" "_1" "_2" "_4";
        PACKED_LANES: "reverse_packed_lanes" "_1" "_2" "_4" "_8", in place "_1" "_2" "_4" "_8";
    }
    "reverse_rows" {
        ROWS: "reverse_rows" "", in place "";
        PACKED_ROWS: "reverse_packed_rows" "_1" "_2" "_4", in place "_1" "_2" "_4";
        ROW_TILES: "reverse_row_tiles" "_1" "_2" "_4", in place "_1" "_2" "_4";
    }
    "reverse_lanes" {
        LANES: "reverse_lanes" "_1" "_2" "_4" "_8", in place "_1" "_2" "_4" "_8";
        LONG_LANES: "reverse_long_lanes" "_1" "_2" "_4" "_8", in place "_1" "_2" "_4" "_8";
    }
    "reverse_strips" {
        STRIPS: "reverse_strips" "_1" "_2" "_4" "_8", in place "_1" "_2" "_4" "_8";
        UNALIGNED_STRIPS: "reverse_unaligned_strips" "_4", in place "_1" "_2" "_4" "_8";
    }
    "reverse_clusters" {
        CLUSTERS: "reverse_clusters" "_1" "_2" "_4" "_8", in place "_1" "_2" "_4" "_8";
    }
    "reverse_columns" {
        COLUMNS: "reverse_columns" "_1" "_2" "_4", in place "_1" "_2" "_4" "_8";
    }
    "reverse_transposed" {
        TRANSPOSED: "reverse_transposed" "_1" "_2" "_4" "_8";
        TRANSPOSED_SCATTER: "reverse_transposed_scatter" "_1" "_2" "_4" "_8";
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_table_lists_the_entry_points_of_the_ptx() {
        let in_ptx: BTreeSet<(&str, &str)> = PTX
            .iter()
            .flat_map(|(file, ptx)| ptx.split(".visible .entry ").skip(1).map(move |entry| (*file, entry)))
            .map(|(file, entry)| (file, entry.split('(').next().expect("a name")))
            .collect();
        let names = |family: &'static Family| family.entries.concat().into_iter().map(|name| (family.file, name));
        let in_table: BTreeSet<(&str, &str)> = FAMILIES.iter().copied().flat_map(names).collect();
        assert_eq!(in_table, in_ptx);
    }
}
