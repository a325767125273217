//! Strips of lanes side by side, each lane with a length of its own.

use std::ffi::CStr;

use super::{dim, grid, Entry, Launch, Launches, Module, Way, SWAP};
use crate::plan::{FastDiv, THREADS};

/// kernels/reverse_subsequences_strips.cu.
pub(crate) const ENTRIES: &[&CStr] = &[
    c"reverse_strips_1",
    c"reverse_strips_2",
    c"reverse_strips_4",
    c"reverse_strips_8",
    c"reverse_strips_swap_1",
    c"reverse_strips_swap_2",
    c"reverse_strips_swap_4",
    c"reverse_strips_swap_8",
];

/// Widths of a strip's row. 128 bytes have no bank conflicts; narrower ones leave room for more blocks of threads,
/// and for longer lanes. Lanes f32, copying: 128 bytes 293, 64 bytes 382.
const STRIP_BYTES: [u32; 3] = [128, 64, 32];

/// Shared memory of a block of threads up to which a multiprocessor of compute capability 8.0 or 9.0 holds more than
/// one of them.
const SHARED_OF_SEVERAL: u32 = 75 << 10;

impl Launches<'_> {
    /// Strips of lanes side by side, as wide as the shared memory has room for.
    pub(super) fn strips(&self, in_place: bool) -> Way {
        let row = self.row().ok_or("no contiguous lanes, each with a length of its own, lie side by side")?;
        let word = self.width.max(4);
        let divides = |value: u32| (u64::from(value) * u64::from(self.width)) % u64::from(word) == 0;
        let strides_divide = |size: u32, a: u32, b: u32| size == 1 || (divides(a) && divides(b));
        let fits = divides(row.size)
            && strides_divide(self.axis.size, self.axis.in_stride, self.axis.out_stride)
            && self.outside().all(|d| strides_divide(d.size, d.in_stride, d.out_stride));
        let row_bytes = u64::from(row.size) * u64::from(self.width);
        let strip = |shared: u32| {
            let fits = |strip: u32| u64::from(self.axis.size) * u64::from(strip) <= u64::from(shared);
            STRIP_BYTES.into_iter().find(|&strip| u64::from(strip) <= row_bytes && fits(strip))
        };
        if !fits {
            return Err("rows of lanes are no multiple of 4 bytes");
        }
        if row_bytes < STRIP_BYTES[2].into() {
            return Err("rows of lanes are shorter than 32 bytes");
        }
        let several = strip(SHARED_OF_SEVERAL.min(self.target.shared_memory));
        let strip = several
            .or_else(|| strip(self.target.shared_memory))
            .ok_or("no strip of so many rows fits shared memory")?;
        let strips = row_bytes.div_ceil(u64::from(strip));
        let outer: u64 = self.outside().map(|d| u64::from(d.size)).product();
        let blocks = grid(outer * strips)?;
        let mut params = self.params(outer * strips, self.outside().map(dim));
        params.parts = FastDiv::new(strips as u32);
        params.block = FastDiv::new(row.size);
        params.unit = strip;
        params.length_stride = row.length_stride;
        let entry =
            Entry { module: Module::ReverseStrips, index: self.width_index() + if in_place { SWAP } else { 0 } };
        Ok(Launch {
            entry,
            blocks,
            threads: THREADS,
            shared: self.axis.size * strip,
            alignment: word,
            access: word,
            params,
        })
    }
}
