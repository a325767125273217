//! The only table of entry points. build.rs compiles every file of `kernels/`, and a test checks that its PTX has
//! exactly the entry points of this table.

use crate::mode::Mode;

/// PTX by the name of its kernel file, from build.rs.
static PTX: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/ptx.rs"));

/// Ranges of bytes of a structure.
pub(crate) type Variable = &'static [(usize, usize)];

/// Entry points of one kernel file that differ only in a template argument, such as the width of an element, and in the
/// mode.
#[derive(Debug)]
pub(crate) struct Family {
    file: &'static str,
    /// The bytes of its parameters from which a specialized kernel loads. `None` if it is always generic.
    variable: Option<Variable>,
    /// In the order of `Mode::ALL`.
    pub entries: [&'static [&'static str]; 2],
}

impl Family {
    /// The entry point of a mode for units of that many bytes. A family may have only one, for all units.
    pub fn of_unit(&self, mode: Mode, unit: u32) -> Entry {
        let is_alone = mode.of(&self.entries).len() == 1 && !mode.of(&self.entries)[0].ends_with(char::is_numeric);
        self.entry(mode, if is_alone { "" } else { ["_1", "_2", "_4", "_8", "_16"][unit.trailing_zeros() as usize] })
    }

    /// The entry point of a mode whose name ends so.
    pub fn entry(&self, mode: Mode, suffix: &str) -> Entry {
        let name = mode.of(&self.entries).iter().find(|name| name.ends_with(suffix));
        let name = *name.expect("a suffix of the table below");
        Entry { file: self.file, variable: self.variable.filter(|_| !GENERIC.contains(&name)), name }
    }
}

/// An entry point of a kernel file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    pub file: &'static str,
    /// As of its family; `None` if it is always generic.
    pub variable: Option<Variable>,
    pub name: &'static str,
}

/// Entry points of which a part of the layouts is up to 13 % slower specialized (benches/TUNING.md).
const GENERIC: [&str; 3] = ["reverse_strips_in_place_2", "reverse_strips_in_place_4", "reverse_strips_in_place_8"];

impl Entry {
    /// The PTX of its kernel file without the other entry points, which the driver would compile, too.
    pub fn ptx(self) -> String {
        let found = PTX.iter().find(|(file, _)| *file == self.file);
        only(found.map_or("", |(_, ptx)| ptx), self.name) // a test checks that every file is in the table
    }
}

/// The PTX with only one of its entry points: what precedes the first one, and this one. Entry points do not call each
/// other.
pub(crate) fn only(ptx: &str, entry: &str) -> String {
    const BEGIN: &str = ".visible .entry ";
    let mut parts = ptx.split(BEGIN);
    let head = parts.next().unwrap_or_default();
    let body = parts.find(|part| part.split('(').next() == Some(entry)).unwrap_or_default();
    [head, BEGIN, body].concat()
}

/// The bytes from which specialized kernels load: the addresses; of strips also `strip_bytes` where it is loaded alone,
/// without which the compiler keeps fewer loads in flight. Specialized, fills are as fast.
const POINTERS: Option<Variable> = Some(&[(0, 24)]);
const POINTERS_AND_WIDTH: Option<Variable> = Some(&[(0, 24), (340, 344)]);
const EVERYTHING: Option<Variable> = None;

macro_rules! kernels {
    ($($file:literal loads $variable:ident { $($family:ident: $prefix:literal $($suffix:literal)* $(, in place $($in_place:literal)*)?;)* })*) => {
        $($(pub(crate) static $family: Family = Family {
            file: $file,
            variable: $variable,
            entries: [&[$(concat!($prefix, $suffix)),*], &[$($(concat!($prefix, "_in_place", $in_place)),*)?]],
        };)*)*

        /// Every family.
        #[cfg(test)]
        pub(crate) static FAMILIES: &[&Family] = &[$($(&$family),*),*];
    };
}

kernels! {
    "fill_value_sequence" loads EVERYTHING {
        FILL_PACKED: "fill_packed" "_i8" "_i16" "_i32" "_i64" "_f32" "_f16" "_f64";
        FILL_ROWS: "fill_rows" "_i8" "_i16" "_i32" "_i64" "_f32" "_f16";
        FILL_DENSE: "fill_dense" "_i8" "_i16" "_i32" "_i64" "_f32" "_f16";
        FILL_ELEMENTS: "fill_elements" "";
    }
    "reverse_elementwise" loads POINTERS {
        ELEMENTWISE: "reverse_elementwise" "_1" "_2" "_4" "_8" "_16", in place "_1" "_2" "_4" "_8" "_16";
        SMALL: "reverse_small" "_1" "_2" "_4" "_8" "_16", in place "_1" "_2" "_4" "_8" "_16";
    }
    "reverse_packed_lanes" loads POINTERS {
        PACKED_LANES_IN_REGISTERS: "reverse_packed_lanes_in_registers" "_1" "_2" "_4";
        PACKED_LANES: "reverse_packed_lanes" "_1" "_2" "_4" "_8", in place "_1" "_2" "_4" "_8";
    }
    "reverse_rows" loads POINTERS {
        ROWS: "reverse_rows" "";
        PACKED_ROWS: "reverse_packed_rows" "_1" "_2" "_4", in place "_1" "_2" "_4";
        ROW_TILES: "reverse_row_tiles" "_1" "_2" "_4", in place "_1" "_2" "_4";
    }
    "reverse_lanes" loads POINTERS {
        LANES: "reverse_lanes" "_1" "_2" "_4" "_8", in place "_1" "_2" "_4" "_8";
        LONG_LANES: "reverse_long_lanes" "_1" "_2" "_4" "_8", in place "_1" "_2" "_4" "_8";
    }
    "reverse_strips" loads POINTERS_AND_WIDTH {
        STRIPS: "reverse_strips" "_1" "_2" "_4" "_8", in place "_1" "_2" "_4" "_8";
        UNALIGNED_STRIPS: "reverse_unaligned_strips" "_4", in place "_1" "_2" "_4" "_8";
    }
    "reverse_clusters" loads POINTERS {
        CLUSTERS: "reverse_clusters" "_1" "_2" "_4" "_8", in place "_1" "_2" "_4" "_8";
    }
    "reverse_columns" loads POINTERS {
        COLUMNS: "reverse_columns" "_1" "_2" "_4", in place "_1" "_2" "_4" "_8";
    }
    "reverse_transposed" loads POINTERS {
        TRANSPOSED: "reverse_transposed" "_1" "_2" "_4" "_8";
        TRANSPOSED_SCATTER: "reverse_transposed_scatter" "_1" "_2" "_4" "_8";
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn one_entry_point_is_taken_with_what_all_share() {
        let ptx = ".version 6.3\n.extern .shared s;\n.visible .entry a(\n) { ret; }\n// .globl ab\n.visible .entry ab(\n) { exit; }\n";
        assert_eq!(only(ptx, "ab"), ".version 6.3\n.extern .shared s;\n.visible .entry ab(\n) { exit; }\n");
        assert!(only(ptx, "a").ends_with(".visible .entry a(\n) { ret; }\n// .globl ab\n"));
    }

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
