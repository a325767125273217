//! Tiles of blocks that are too large to be staged whole.

use super::reverse_subsequences::{dim, Layout, Way, NO_BLOCK};
use super::{grid, FastDiv, SLOT, THREADS};
use crate::cuda::kernels;
use crate::cuda::launch::Draft;

/// Bytes of a tile; in place there are two.
const TILE_BYTES: u32 = 16 << 10;
const TILE_BYTES_IN_PLACE: u32 = 8 << 10;

/// Rows of fewer elements are not taken one by one, by a block of threads each. Rows of 1001 in place, 1003 apart: u8 47, else
/// 114; f16 34, else 62; f32 23, else 33; but of 257, 259 apart: 169, else 118; 88, else 62; 40, else 31.
const MIN_LONE_ROW: u32 = 1000;

impl Layout<'_> {
    /// Tiles of whole rows, where rows lie one behind the other, or of parts of a row, turned in units of 4 bytes down to
    /// those of an element; the last takes any pointers.
    pub(super) fn long_rows(&self, in_place: bool) -> Vec<Way> {
        let launch = match self.tiles_of_rows(in_place) {
            Ok(launch) => launch,
            Err(because) => return vec![Err(because)],
        };
        let divides = |unit: u32, value: u32| (u64::from(value) * u64::from(self.width)) % u64::from(unit) == 0;
        let fits = |&unit: &u32| {
            unit >= self.width
                && launch.params.block.divisor % unit == 0
                && divides(unit, self.axis.in_stride)
                && divides(unit, self.axis.out_stride)
                && self.outside().all(|d| divides(unit, d.in_stride) && divides(unit, d.out_stride))
        };
        let kernel = if in_place { &kernels::LONG_ROWS_IN_PLACE } else { &kernels::LONG_ROWS };
        let way =
            |unit: u32| Ok(Draft { entry: kernel.entry(unit.trailing_zeros() as usize), alignment: unit, ..launch });
        [4, 2, 1].into_iter().filter(fits).map(way).collect()
    }

    fn tiles_of_rows(&self, in_place: bool) -> Way {
        let block = self.block().ok_or(NO_BLOCK)?;
        let row =
            u32::try_from(u64::from(block.size) * u64::from(self.width)).map_err(|_| "a row has 4 GiB or more")?;
        let tile = if in_place { TILE_BYTES_IN_PLACE } else { TILE_BYTES };
        let (together, parts_of_row) = match tile / row {
            rows @ 2.. if self.rows_are_a_run() => (rows, 1),
            _ => (1, row.div_ceil(tile)),
        };
        if together == 1 && block.size < MIN_LONE_ROW {
            return Err("rows that do not lie one behind the other have fewer than 1000 elements");
        }
        let pitch = if parts_of_row == 1 { row } else { row.div_ceil(parts_of_row).next_multiple_of(SLOT) };
        let steps = if in_place { self.axis.size / 2 } else { self.axis.size };
        let parts = u64::from(steps.div_ceil(together)) * u64::from(parts_of_row);
        let lanes = self.outside().map(|d| u64::from(d.size)).product::<u64>();
        let blocks = grid(lanes * parts)?;
        let mut params = self.params(lanes * parts, self.outside().map(dim));
        params.parts = FastDiv::new(parts as u32);
        params.block = FastDiv::new(row);
        params.group = FastDiv::new(parts_of_row);
        params.together = together;
        params.pitch = pitch;
        // Of a run: its slots, one more where it begins inside one, and one before and behind it for windows. Copying, a tile
        // has two runs, but not more rows. With shared memory for two whole tiles: blocks [*, 16384, 33] u8 44.2, not 39.3; f32
        // 41.3, not 37.7.
        let slots_of_run = together * pitch / SLOT + 3;
        let shared = if in_place { 2 * slots_of_run + 2 } else { slots_of_run + 4 } * SLOT;
        let entry = kernels::LONG_ROWS.entry(0); // `long_rows` chooses by the unit
        Ok(Draft { entry, blocks, threads: THREADS, shared, alignment: self.width, access: SLOT, params })
    }
}
