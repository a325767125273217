//! Little work: as few instructions as can be.

use super::reverse_subsequences::{Layout, Params};
use super::{blocks, SLOT, THREADS};
use crate::cuda::kernels;
use crate::cuda::launch::Draft;

/// Dimensions that the kernels take, the axis among them.
const DIMENSIONS: u32 = 3;
const PLAIN_DIMENSIONS: u32 = 2;

/// Units of a tensor up to which there is little work: of 16 bytes, and narrower ones. Inner [64, 4096], copying u8 1.65, else
/// 1.88, i64 1.94 and 2.78; block [8, 512, 768] u8, 196,608 units of 16 bytes, 2.3 and 3.1. Before items were sent, inner
/// [256, 4096] u8 4.9, else 3.1; block [64, 256, 256] f32 11.2, else 11.8; i64 in place 9.2, else 8.8.
const WIDE_UNITS: u64 = 1 << 20;
const UNITS: u64 = 1 << 18;

/// The same of lanes side by side. [1, 256, 768], copying u8 2.3, else 2.5, i64 2.4 and 2.8; in place u8 3.4 and 3.8, i64 2.8
/// and 2.5. [8, 128, 256], copying u8 2.7 and 2.4, i64 2.8 and 2.7; in place u8 4.6 and 3.4, i64 3.4 and 2.6.
const UNITS_SIDE_BY_SIDE: u64 = 3 << 16;

impl Layout<'_> {
    /// Units of that many bytes, one a thread, where there are few, in few dimensions.
    pub(super) fn small(&self, in_place: bool, unit: u32) -> Option<Draft<Params>> {
        let params = self.params_of_units(in_place, unit).ok()?;
        let units = params.items * if in_place { 2 } else { 1 };
        let side_by_side = self.row().is_some();
        let most = match unit {
            SLOT => WIDE_UNITS,
            _ if side_by_side => UNITS_SIDE_BY_SIDE,
            _ => UNITS,
        };
        if params.rank > DIMENSIONS || units > most {
            return None;
        }
        // Sent, [16, 256] f32 takes 1.22, plain 1.17, else 1.39; but lanes [1, 256, 768] u8 3.8, not 2.3. In place, plain 1.31,
        // else 1.33.
        let plain = params.rank <= PLAIN_DIMENSIONS && !self.wide_lengths;
        let kernel = match (in_place, side_by_side, plain) {
            (false, true, _) => &kernels::SMALL,
            (false, false, false) => &kernels::SMALL_SEND,
            (false, false, true) => &kernels::SMALL_PLAIN_SEND,
            (true, _, false) => &kernels::SMALL_IN_PLACE,
            (true, _, true) => &kernels::SMALL_PLAIN_IN_PLACE,
        };
        let entry = kernel.entry(unit.trailing_zeros() as usize);
        let blocks = blocks(params.items, 1);
        Some(Draft { entry, blocks, threads: THREADS, shared: 0, alignment: unit, access: unit, params })
    }
}
