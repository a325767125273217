//! Rows: blocks whose rows are runs of any alignment.

use super::reverse_subsequences::{dim, Dim, Layout, Way, NO_BLOCK};
use super::{blocks, slots_of_run, FastDiv, SLOT, THREADS};
use crate::cuda::kernels;
use crate::cuda::launch::Draft;

/// Items that a thread takes (template arguments in the kernel file).
const ITEMS: u32 = 2;

/// Shorter rows of a block are mostly their two ends. Blocks of 33 f32, copying: rows 48, turned in shared memory 43.
const MIN_ROW_BYTES: u64 = 256;

/// The same where rows begin at different alignments, one behind the other. Blocks [*, 2048, 257] copying, f16: rows 42, in
/// tiles of them 38; f32 38.6 and 36.5.
const MIN_UNLIKE_ROW_BYTES: u64 = 2048;

impl Layout<'_> {
    /// Rows of a block at any alignment, a slot at a time; in place, where all rows begin at one alignment.
    pub(super) fn rows(&self, in_place: bool) -> Way {
        let block = self.block().ok_or(NO_BLOCK)?;
        let bytes = u64::from(block.size) * u64::from(self.width);
        if bytes < MIN_ROW_BYTES {
            return Err("a row is shorter than 256 bytes: mostly its two ends");
        }
        if bytes > u64::from(u32::MAX) {
            return Err("a row has 4 GiB or more");
        }
        let whole = |stride: u32| (u64::from(stride) * u64::from(self.width)) % u64::from(SLOT) == 0;
        let in_whole = whole(self.axis.in_stride) && self.outside().all(|d| whole(d.in_stride));
        let alike = in_whole && whole(self.axis.out_stride) && self.outside().all(|d| whole(d.out_stride));
        if !alike && in_place {
            return Err("rows that change places begin at different alignments");
        }
        if !alike && bytes < MIN_UNLIKE_ROW_BYTES && self.rows_are_a_run() {
            return Err("rows of less than 2048 bytes at different alignments are copied in tiles");
        }
        let slots = slots_of_run(block.size, self.width, false);
        let mut dims: Vec<Dim> = self.outside().map(dim).collect();
        let steps = if in_place { self.axis.size / 2 } else { self.axis.size };
        self.insert_axis(&mut dims, steps, self.axis.out_stride);
        let items = dims.iter().map(|dim| u64::from(dim.size.divisor)).product::<u64>() * u64::from(slots);
        let mut params = self.params(items, dims.into_iter());
        params.parts = FastDiv::new(slots);
        params.block = FastDiv::new(bytes as u32);
        params.unit = self.width;
        let entry = if in_place { kernels::ROWS_IN_PLACE.entry(0) } else { kernels::ROWS.entry(0) };
        let blocks = blocks(items, ITEMS);
        Ok(Draft { entry, blocks, threads: THREADS, shared: 0, alignment: self.width, access: SLOT, params })
    }
}
