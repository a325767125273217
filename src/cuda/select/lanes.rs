//! Contiguous lanes: whole in shared memory, or in tiles.

use super::reverse_subsequences::{dim, teams, Layout, Way};
use super::{grid, slots_of_run, FastDiv, SLOT, THREADS};
use crate::cuda::kernels;
use crate::cuda::launch::Draft;

/// Slots that a thread of a tile takes (template arguments in the kernel file). 8 blocks of 2 slots a thread on a
/// multiprocessor: inner u8 72; a slot a thread without tiles, 81; at the 60 % occupancy that 38 registers leave, 77.
const ITEMS_OF_LONG_LANES: u32 = 2;

/// Slots of a whole lane that a thread takes. In place about half of a lane moves, so a thread of a lane of so many
/// bytes takes more: lanes of 4097 u8 in place 23, with 4 slots 28; but lanes of 100 f16, before they were staged, 35, with 8
/// slots 55. Where there are few in all, one: [16, 256] in place 1.9, with 8 slots 3.8, before little work had kernels of
/// its own.
const SLOTS_OF_LANE: u32 = 4;
const SLOTS_OF_LANE_IN_PLACE: u32 = 8;
const LONG_LANE_BYTES_IN_PLACE: u64 = 4096;
const SMALL_SLOTS: u64 = 1 << 18;

/// In place, a thread of a lane of so many bytes has 8 slots on their way at once (the `wide` kernels). Inner f32 142, with
/// 4 at once 145; lanes of 1000 i64 22.2 and 23.5; but of 1000 f32, of 4000 bytes, 25.0 and 22.5.
const WIDE_LANE_BYTES: u64 = 7500;

/// Lanes of more bytes are cut into tiles when they are copied. Inner u8, of 8 KiB: whole 69, in tiles 72.
const LONG_LANE_BYTES: u64 = 16 << 10;

/// In place, lanes of more shared memory are cut into tiles. Inner i64, of 64 KiB: whole 284, in tiles 379 (2026-11-20).
const SHARED_OF_LANE_IN_PLACE: u64 = 100 << 10;

/// In place, tiles of a long lane that a block of threads takes (`TILES` of the kernel file). One lane of 2²⁸ u8 with
/// a length of 2 %: 7, with one tile a block 24.
const TILES_OF_BLOCK: u64 = 8;

/// Shorter lanes are mostly their two ends.
const MIN_LANE_BYTES: u64 = 32;
const SHORT: &str = "a lane is shorter than 32 bytes";

impl Layout<'_> {
    /// Lanes in all.
    pub(super) fn lane_count(&self) -> u64 {
        self.dimensions.iter().map(|d| u64::from(d.size)).product()
    }

    /// Whether all lanes begin at a multiple of 16 bytes if the tensors do: they have fewer slots then. Both, and that
    /// for any pointers last; or only that.
    fn alignments(&self) -> &'static [bool] {
        let whole = |stride: u32| (u64::from(stride) * u64::from(self.width)) % u64::from(SLOT) == 0;
        if self.dimensions.iter().all(|d| whole(d.in_stride) && whole(d.out_stride)) {
            &[true, false]
        } else {
            &[false]
        }
    }

    /// Contiguous lanes, each in shared memory as a whole, several to a block of threads where they are short.
    pub(super) fn lanes(&self, in_place: bool) -> Vec<Way> {
        let bytes = u64::from(self.axis.size) * u64::from(self.width);
        let launch = |aligned: bool| {
            let slots = slots_of_run(self.axis.size, self.width, aligned);
            // One before the lane and two behind it, which windows may reach.
            let pitch = slots + 3;
            let most = if in_place { SHARED_OF_LANE_IN_PLACE } else { LONG_LANE_BYTES + u64::from(4 * SLOT) };
            let most = most.min(self.target.shared_memory.into());
            if bytes < MIN_LANE_BYTES {
                return Err(SHORT);
            }
            if u64::from(pitch) * u64::from(SLOT) > most {
                return Err("a lane is too long for shared memory");
            }
            let slots_of_thread = match self.lane_count() * u64::from(slots) {
                0..=SMALL_SLOTS => 1,
                _ if in_place && bytes >= LONG_LANE_BYTES_IN_PLACE => SLOTS_OF_LANE_IN_PLACE,
                _ => SLOTS_OF_LANE,
            };
            let wide = in_place && bytes >= WIDE_LANE_BYTES;
            // A few slots more than a power of two are no reason for twice the threads: copying lanes of 4097 u8 38, not 41.
            // But in place, where threads have more slots: 23.3, so 24.9.
            let slots_of_team = if in_place && !wide { slots } else { slots * 4 / 5 };
            let team = slots_of_team.div_ceil(slots_of_thread).next_power_of_two().min(THREADS);
            let (threads, together) = teams(team);
            let mut params = self.params(self.lane_count(), self.dimensions.iter().map(dim));
            params.pitch = pitch;
            params.team_log = team.trailing_zeros();
            let kernel = match (in_place, wide) {
                (true, true) => &kernels::WIDE_LANES_IN_PLACE,
                (true, false) => &kernels::LANES_IN_PLACE,
                (false, _) => &kernels::LANES,
            };
            let entry = kernel.entry(self.width_index());
            let blocks = self.lane_count().div_ceil(together.into()) as u32;
            let alignment = if aligned { SLOT } else { self.width };
            Ok(Draft { entry, blocks, threads, shared: together * pitch * SLOT, alignment, access: SLOT, params })
        };
        self.alignments().iter().map(|&aligned| launch(aligned)).collect()
    }

    /// Long contiguous lanes: a block of threads for each tile. Lanes that all begin at a multiple of 16 bytes have
    /// fewer slots.
    pub(super) fn long_lanes(&self) -> Vec<Way> {
        if u64::from(self.axis.size) * u64::from(self.width) < MIN_LANE_BYTES {
            return vec![Err(SHORT)];
        }
        let launch = |aligned: bool| {
            let slots = slots_of_run(self.axis.size, self.width, aligned);
            let tiles = slots.div_ceil(THREADS * ITEMS_OF_LONG_LANES);
            let items = self.lane_count() * u64::from(tiles);
            // Without shared memory enough for whole lanes, short ones may come here, and they may be too many.
            let blocks = grid(items)?;
            let mut params = self.params(items, self.dimensions.iter().map(dim));
            params.parts = FastDiv::new(tiles);
            let entry = kernels::LONG_LANES.entry(self.width_index());
            let alignment = if aligned { SLOT } else { self.width };
            Ok(Draft { entry, blocks, threads: THREADS, shared: 0, alignment, access: SLOT, params })
        };
        self.alignments().iter().map(|&aligned| launch(aligned)).collect()
    }

    /// Long contiguous lanes in place: a block of threads for each tile.
    pub(super) fn swap_long_lanes(&self) -> Way {
        if u64::from(self.axis.size) * u64::from(self.width) < MIN_LANE_BYTES {
            return Err(SHORT);
        }
        // Two slots a thread, half of them in front, one of those left for what the back begins in the middle of.
        let front = u64::from(THREADS - 1) * u64::from(SLOT);
        let half = u64::from(self.axis.size / 2) * u64::from(self.width);
        let parts = (half + u64::from(SLOT)).div_ceil(front).div_ceil(TILES_OF_BLOCK);
        let items = self.lane_count() * parts;
        let blocks = grid(items)?;
        let mut params = self.params(items, self.dimensions.iter().map(dim));
        params.parts = FastDiv::new(parts as u32);
        let entry = kernels::LONG_LANES_IN_PLACE.entry(self.width_index());
        Ok(Draft { entry, blocks, threads: THREADS, shared: 0, alignment: self.width, access: SLOT, params })
    }
}
