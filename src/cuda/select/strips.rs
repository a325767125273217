//! Strips of lanes side by side, each lane with a length of its own.

use super::reverse_subsequences::{dim, Layout, Way};
use super::{grid, FastDiv, SLOT, THREADS};
use crate::cuda::kernels::{self, Entry};
use crate::cuda::launch::Draft;
use crate::plan::reverse_subsequences::Dimension;

pub(super) const NO_ROW: &str = "no contiguous lanes, each with a length of its own, lie side by side";

/// Widths of a strip's row. 128 bytes have no bank conflicts; narrower ones leave room for more blocks of threads,
/// and for longer lanes. Lanes f32, copying: 128 bytes 293, 64 bytes 382.
const STRIP_BYTES: [u32; 6] = [128, 64, 32, 16, 8, 4];

/// Strips narrower than a sector pay in place, and for elements narrower than a word only: swapped one by one, such elements
/// cost more. Lanes [*, 16384, 512], without clusters, in place: u8 188, else 565; f16 174, else 261; f32 234, else 134;
/// copying u8 431, else 291.
const LEAST_STRIP_BYTES: u32 = 32;
const LEAST_NARROW_STRIP_BYTES: u32 = 4;

/// Shorter rows are not cut into strips of words.
const MIN_ROW_BYTES: u64 = 32;

/// Shared memory of a block of threads up to which a multiprocessor of compute capability 8.0 or 9.0 holds more than
/// one of them.
const SHARED_OF_SEVERAL: u32 = 75 << 10;

/// The same for strips of unaligned rows in place, of elements narrower than a word, which are written one by one: twice as
/// many blocks of threads of half as many bytes. Lanes [*, 512, 1023] u8: 65, with wider strips 71; f16 51, not 55; but
/// copying u8 90, not 76.
const SHARED_OF_NARROW_IN_PLACE: u32 = 36 << 10;

/// Blocks of threads up to which strips are made narrower, in quarters of the device's multiprocessors: copying, and in place.
/// Microseconds for strips of 128, 64 and 32 bytes: [1, 512, 768] u8, of 6 to 24 blocks, 6.0 3.9 3.1, in place 7.3 5.5 4.8;
/// i64, of 48 to 192 blocks, 4.0 3.2 3.6 and 3.8 3.4 3.8; [8, 512, 768] u8, of 48 to 192, 6.4 4.2 4.3 and 7.4 5.7 6.8; f16, of
/// 96 to 384, 5.7 4.7 5.3 and 5.7 6.0 8.1; f32, of 192 to 768, 8.9 8.2 11.3 and 6.4 7.7 9.5.
const FEW_BLOCKS: u64 = 3;
const FEW_BLOCKS_IN_PLACE: u64 = 2;

impl Layout<'_> {
    /// Strips of lanes side by side, in rows of whole words.
    pub(super) fn strips(&self, in_place: bool) -> Way {
        let row = self.row().ok_or(NO_ROW)?;
        let word = self.width.max(4);
        // In place, rows of words that are no slots are read faster in windows. Lanes [*, 512, 1023] f32: 50, not 56.
        let apart = if (in_place && self.width >= 4) || self.width == 8 { SLOT } else { word };
        if !self.rows_divide(row, word, apart) {
            return Err("rows of lanes are no multiple of 4 bytes (of 16: elements of 4 in place, and of 8)");
        }
        if self.row_bytes(row) < MIN_ROW_BYTES {
            return Err("rows of lanes are shorter than 32 bytes");
        }
        let kernel = if in_place { &kernels::STRIPS_IN_PLACE } else { &kernels::STRIPS };
        let entry = kernel.entry(self.width_index());
        let launch = self.cut_into_strips(in_place, entry, SHARED_OF_SEVERAL, row, self.row_bytes(row))?;
        if launch.params.unit < SLOT {
            return Err("strips of so many rows that fit shared memory are narrower than 16 bytes");
        }
        Ok(Draft { alignment: word, access: word, ..launch })
    }

    /// Strips of lanes side by side, in rows of any size at any alignment.
    pub(super) fn any_strips(&self, in_place: bool) -> Way {
        let row = self.row().ok_or(NO_ROW)?;
        if !in_place && self.width == 8 {
            // Lanes [*, 512, 33] i64: 47, in strips 62; [*, 512, 1023] 53 and 55.
            return Err("elements of 8 bytes are copied faster one by one than in strips of unaligned rows");
        }
        let narrow = in_place && self.width < 4;
        let several = if narrow { SHARED_OF_NARROW_IN_PLACE } else { SHARED_OF_SEVERAL };
        let kernel = if in_place { &kernels::ANY_STRIPS_IN_PLACE } else { &kernels::ANY_STRIPS };
        let entry = kernel.entry(self.width_index());
        // One strip that is partly empty, not two of which one is.
        self.cut_into_strips(in_place, entry, several, row, self.row_bytes(row) * 2 - 1)
    }

    /// Whether rows of lanes are multiples of so many bytes long, and of so many apart.
    pub(super) fn rows_divide(&self, row: &Dimension, long: u32, apart: u32) -> bool {
        let divides = |value: u32, by: u32| (u64::from(value) * u64::from(self.width)) % u64::from(by) == 0;
        let strides_divide = |size: u32, a: u32, b: u32| size == 1 || (divides(a, apart) && divides(b, apart));
        divides(row.size, long)
            && strides_divide(self.axis.size, self.axis.in_stride, self.axis.out_stride)
            && self.outside().all(|d| strides_divide(d.size, d.in_stride, d.out_stride))
    }

    /// Whether a block of threads has the shared memory for a strip of whole sectors. Such strips are faster than those of a
    /// cluster: lanes [*, 4096, 512], copying, u8 61 and 140, i64 56 and 82. Longer lanes, [*, 8192, 512], with neither and
    /// in clusters: copying u8 284 and 108, i64 61 and 68; in place u8 315 and 115, i64 84 and 64.
    pub(super) fn fits_a_block(&self) -> bool {
        u64::from(self.axis.size) * u64::from(LEAST_STRIP_BYTES) <= u64::from(self.target.shared_memory)
    }

    pub(super) fn row_bytes(&self, row: &Dimension) -> u64 {
        u64::from(row.size) * u64::from(self.width)
    }

    /// Strips as wide as there is room for in so much shared memory, else in all, of at most so many bytes; narrower where
    /// there would be few blocks of threads.
    fn cut_into_strips(&self, in_place: bool, entry: Entry, several: u32, row: &Dimension, most: u64) -> Way {
        let narrow = in_place && self.width < 4;
        let least = if narrow { LEAST_NARROW_STRIP_BYTES } else { LEAST_STRIP_BYTES };
        let strip = |shared: u32| {
            let fits = |strip: u32| u64::from(self.axis.size) * u64::from(strip) <= u64::from(shared);
            STRIP_BYTES
                .into_iter()
                .find(|&strip| (u64::from(strip) <= most || strip == least) && strip >= least && fits(strip))
        };
        let mut strip = strip(several.min(self.target.shared_memory))
            .or_else(|| strip(self.target.shared_memory))
            .ok_or("no strip of so many rows fits shared memory")?;
        let outer: u64 = self.outside().map(|d| u64::from(d.size)).product();
        let strips_of = |strip: u32| self.row_bytes(row).div_ceil(u64::from(strip));
        let few = if in_place { FEW_BLOCKS_IN_PLACE } else { FEW_BLOCKS } * u64::from(self.target.multiprocessors) / 4;
        while strip > LEAST_STRIP_BYTES && outer * strips_of(strip) < few {
            strip /= 2;
        }
        let strips = strips_of(strip);
        let blocks = grid(outer * strips)?;
        let mut params = self.params(outer * strips, self.outside().map(dim));
        params.parts = FastDiv::new(strips as u32);
        params.block = FastDiv::new(row.size);
        params.unit = strip;
        params.length_stride = row.length_stride;
        Ok(Draft {
            entry,
            blocks,
            threads: THREADS,
            shared: self.axis.size * strip,
            alignment: self.width,
            access: if in_place { self.width } else { self.width.max(4) },
            params,
        })
    }
}
