//! The only table of entry points. build.rs provides the PTX of every file of `kernels/`, prebuilt or compiled if a file
//! has changed, and a test checks that it has exactly the entry points of this table.

use crate::placement::Placement;

/// PTX by the name of its kernel file, from build.rs.
static PTX: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/ptx.rs"));

/// Entry points of one kernel file that differ only in a template argument, such as the width of an element, and in the
/// placement.
#[derive(Debug)]
pub(crate) struct Family {
    file: &'static str,
    /// The beginning of the names of its entry points.
    pub name: &'static str,
    /// Whether its kernels that copy are also right in place: a thread, a thread group, a thread block or a cluster
    /// reads all of what it writes before it writes, and no other uses what it reads there.
    pub copies_in_place: bool,
    /// Whether its kernels may be compiled for the sizes of an operator.
    specializable: bool,
    /// The variants of each placement with their names, in the order of `Placement::ALL`.
    entries: [&'static [(&'static str, &'static str)]; 2],
}

impl Family {
    /// The entry point of a placement for units of a number of bytes, if there is one. A family may have only one, for all
    /// units.
    pub fn find(&self, placement: Placement, unit: u32) -> Option<Entry> {
        let width = ["_1", "_2", "_4", "_8", "_16", "_32"][unit.trailing_zeros() as usize];
        let found = placement
            .of(&self.entries)
            .iter()
            .find(|(variant, _)| variant.is_empty() || *variant == width);
        found.map(|&(_, name)| self.named(name))
    }

    /// The entry point of a placement for units of a number of bytes, which the table below has.
    pub fn of_unit(&self, placement: Placement, unit: u32) -> Entry {
        self.find(placement, unit)
            .expect("a unit of the table below")
    }

    /// Whether some of its kernels swap or exchange in place, besides any that copy there.
    pub fn has_kernels_in_place(&self) -> bool {
        !Placement::InPlace.of(&self.entries).is_empty()
    }

    fn named(&self, name: &'static str) -> Entry {
        Entry {
            file: self.file,
            specializable: self.specializable,
            name,
        }
    }

    /// The entry points of all placements.
    #[cfg(test)]
    pub fn all(&self) -> impl Iterator<Item = Entry> + '_ {
        self.entries
            .iter()
            .copied()
            .flatten()
            .map(|(_, name)| self.named(name))
    }
}

/// An entry point of a kernel file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    pub file: &'static str,
    /// Whether it may be compiled for the sizes of an operator.
    pub specializable: bool,
    pub name: &'static str,
}

impl Entry {
    /// The PTX of its kernel file with the other entry points removed, so that the driver does not compile them.
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
    let body = parts
        .find(|part| part.split('(').next() == Some(entry))
        .unwrap_or_default();
    [head, BEGIN, body].concat()
}

macro_rules! kernels {
    ($($file:literal, specializable: $specializable:literal {
        $($family:ident: $prefix:literal $($variant:literal)* $(, in place $($in_place:literal)*)? $(, copies_in_place: $copies:literal)?;)*
    })*) => {
        $($(pub(crate) static $family: Family = Family {
            file: $file,
            name: $prefix,
            copies_in_place: false $(|| $copies)?,
            specializable: $specializable,
            entries: [
                &[$(($variant, concat!($prefix, $variant))),*],
                &[$($(($in_place, concat!($prefix, "_in_place", $in_place))),*)?],
            ],
        };)*)*

        /// Every family.
        #[cfg(test)]
        pub(crate) static FAMILIES: &[&Family] = &[$($(&$family),*),*];
    };
}

kernels! {
    "fill_value_sequence", specializable: false {
        FILL_PACKED: "fill_packed" "_1" "_2" "_4" "_8";
        FILL_ROWS: "fill_rows" "_1" "_2" "_4" "_8";
        FILL_DENSE: "fill_dense" "_1" "_2" "_4" "_8";
        FILL_ELEMENTS: "fill_elements" "";
    }
    "reverse_elementwise", specializable: true {
        ELEMENTWISE: "reverse_elementwise" "_1" "_2" "_4" "_8", in place "_1" "_2" "_4" "_8";
        SMALL: "reverse_small" "_1" "_2" "_4" "_8" "_16", in place "_1" "_2" "_4" "_8" "_16";
    }
    "reverse_packed_lanes", specializable: true {
        PACKED_LANES: "reverse_packed_lanes" "_1" "_2" "_4", in place "_1" "_2" "_4", copies_in_place: true;
    }
    "reverse_short_lanes", specializable: true {
        SHORT_LANES: "reverse_short_lanes" "_2" "_4" "_8" "_16" "_32", copies_in_place: true;
    }
    "reverse_rows", specializable: true {
        PACKED_ROWS: "reverse_packed_rows" "_1" "_2" "_4", in place "_1" "_2" "_4", copies_in_place: true;
        SINGLE_ROWS: "reverse_single_rows" "_1" "_2" "_4";
        ROW_TILES: "reverse_row_tiles" "_1" "_2" "_4", in place "_1" "_2" "_4";
    }
    "reverse_lanes", specializable: true {
        LANES: "reverse_lanes" "_1" "_2" "_4", in place "_1" "_2" "_4", copies_in_place: true;
        LONG_LANES: "reverse_long_lanes" "_1" "_2", in place "_1" "_2" "_4" "_8";
    }
    "reverse_strips", specializable: true {
        STRIPS: "reverse_strips" "_1" "_2" "_4" "_8", in place "_1" "_2" "_4" "_8", copies_in_place: true;
        UNALIGNED_STRIPS: "reverse_unaligned_strips", in place "_1" "_2" "_4";
    }
    "reverse_clusters", specializable: true {
        CLUSTERS: "reverse_clusters" "_1" "_2" "_4" "_8", in place "_1" "_2" "_4" "_8", copies_in_place: true;
    }
    "reverse_columns", specializable: true {
        COLUMNS: "reverse_columns" "_1" "_2" "_4", copies_in_place: true;
        THREAD_COLUMNS: "reverse_thread_columns" "_1" "_2" "_4" "_8", in place "_4" "_8", copies_in_place: true;
    }
    "reverse_transposed", specializable: true {
        TRANSPOSED: "reverse_transposed" "_1" "_2" "_4";
        TRANSPOSED_SCATTER: "reverse_transposed_scatter" "_1" "_2";
        TRANSPOSED_DIRECTLY: "reverse_transposed_directly" "_1" "_2" "_4" "_8";
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn one_entry_point_is_taken_with_what_all_share() {
        let ptx = ".version 6.3\n.extern .shared s;\n.visible .entry a(\n) { ret; }\n// .globl ab\n.visible .entry ab(\n) { exit; }\n";
        assert_eq!(
            only(ptx, "ab"),
            ".version 6.3\n.extern .shared s;\n.visible .entry ab(\n) { exit; }\n"
        );
        assert!(only(ptx, "a").ends_with(".visible .entry a(\n) { ret; }\n// .globl ab\n"));
    }

    #[test]
    fn the_table_lists_the_entry_points_of_the_ptx() {
        let in_ptx: BTreeSet<(&str, &str)> = PTX
            .iter()
            .flat_map(|(file, ptx)| {
                ptx.split(".visible .entry ")
                    .skip(1)
                    .map(move |entry| (*file, entry))
            })
            .map(|(file, entry)| (file, entry.split('(').next().expect("a name")))
            .collect();
        let in_table: BTreeSet<(&str, &str)> = FAMILIES
            .iter()
            .flat_map(|family| family.all())
            .map(|entry| (entry.file, entry.name))
            .collect();
        assert_eq!(in_table, in_ptx);
    }
}
