//! The launches of REVERSE_SUBSEQUENCES: which kernels can run a layout, fastest first, the one for any strides
//! last.
//!
//! Tuning numbers stand here, each with what it was measured against: microseconds of the throughput bench on one
//! NVIDIA H200, 2026-11-20.

use std::ffi::CStr;

use bytemuck::Zeroable;

use super::reverse_subsequences::{Axis, Dim, Dimension, Params};
use super::{blocks, slots_of_run, Entry, FastDiv, Launch, Module, Target, MAX_DIMENSIONS, SLOT, THREADS};

/// kernels/reverse_subsequences_units.cu: copying and in place, narrowest unit first.
pub(crate) const UNITS: &[&CStr] = &[
    c"reverse_copy_1",
    c"reverse_copy_2",
    c"reverse_copy_4",
    c"reverse_copy_8",
    c"reverse_copy_16",
    c"reverse_swap_1",
    c"reverse_swap_2",
    c"reverse_swap_4",
    c"reverse_swap_8",
    c"reverse_swap_16",
];
/// kernels/reverse_subsequences_lanes.cu.
pub(crate) const LANES: &[&CStr] = &[
    c"reverse_lanes_1",
    c"reverse_lanes_2",
    c"reverse_lanes_4",
    c"reverse_lanes_8",
    c"reverse_lanes_swap_1",
    c"reverse_lanes_swap_2",
    c"reverse_lanes_swap_4",
    c"reverse_lanes_swap_8",
    c"reverse_rows",
    c"reverse_long_lanes_1",
    c"reverse_long_lanes_2",
    c"reverse_long_lanes_4",
    c"reverse_long_lanes_8",
    c"reverse_long_lanes_swap_1",
    c"reverse_long_lanes_swap_2",
    c"reverse_long_lanes_swap_4",
    c"reverse_long_lanes_swap_8",
];
const SWAP: usize = 4;
const ROWS: usize = 8;
const LONG: usize = 9;
const LONG_SWAP: usize = 13;
/// kernels/reverse_subsequences_staged.cu.
pub(crate) const STAGED: &[&CStr] =
    &[c"reverse_staged_1", c"reverse_staged_2", c"reverse_staged_4", c"reverse_staged_8"];
/// kernels/reverse_subsequences_strips.cu.
pub(crate) const STRIPS: &[&CStr] = &[
    c"reverse_strips_1",
    c"reverse_strips_2",
    c"reverse_strips_4",
    c"reverse_strips_8",
    c"reverse_strips_swap_1",
    c"reverse_strips_swap_2",
    c"reverse_strips_swap_4",
    c"reverse_strips_swap_8",
];

/// Items that a thread of each kernel takes (template arguments in the kernel files). Swapping one pair a thread in
/// place of two: block f32 173, not 145. Long lanes, 8 blocks of 2 slots a thread on a multiprocessor: inner u8 72; a
/// slot a thread without tiles, 81; at the 60 % occupancy that 38 registers leave, 77.
const ITEMS_OF_COPY: u32 = 4;
const ITEMS_OF_SWAP: u32 = 2;
const ITEMS_OF_LONG_LANES: u32 = 2;
const ITEMS_OF_ROWS: u32 = 2;

/// Threads that take a short lane in place. A tile of a long one takes a whole block.
const WARP: u32 = 32;

/// Lanes that would fill fewer of the threads of their tiles, in percent, are copied a slot at a time. Lanes of 4097
/// f16, which fill two tiles by half: 41, in tiles 48.
const FULL_TILES: u64 = 80;

/// Lanes of fewer bytes are staged where they lie one behind the other: they are mostly their two ends. Lanes of 7
/// f32: 62, unit by unit 67; of 100 f32, staged 61, a slot at a time 43. Staged in place was slower than swapping
/// units at every size (lanes of 7 f32: 87, not 48) and is not there.
const STAGED_LANE_BYTES: u64 = 64;

/// In place, lanes of fewer bytes are taken by a warp each. Lanes of 1000 f32: 41, by a block 54.
const LONG_LANE_BYTES_IN_PLACE: u64 = 4096;

/// In place, elements of lanes of fewer are swapped one by one. Lanes of 1000 u8 by a warp 71, one by one 112; of 100
/// i64 by a warp 81, one by one 30.
const SHORT_LANE_ELEMENTS_IN_PLACE: u32 = 512;

/// Shorter lanes are mostly their two ends.
const MIN_LANE_BYTES: u64 = 32;

/// Shorter rows of a block are mostly their two ends.
const MIN_ROW_BYTES: u64 = 128;

/// Bytes of groups that a block of threads stages at most, and how many groups.
const STAGED_BYTES: u64 = 16 << 10;
const STAGED_GROUPS: u64 = 2048;

/// Widths of a strip's row. 128 bytes have no bank conflicts; narrower ones leave room for more blocks of threads,
/// and for longer lanes. Lanes f32, copying: 128 bytes 293, 64 bytes 382.
const STRIP_BYTES: [u32; 3] = [128, 64, 32];

/// Shared memory of a block of threads up to which a multiprocessor of compute capability 8.0 or 9.0 holds more than
/// one of them.
const SHARED_OF_SEVERAL: u32 = 75 << 10;

/// In place, the same for six of them: words that lengths cut are read element by element, which waits longer. Lanes
/// u8 in place: 64 bytes 205, 128 bytes 299. Not for elements of 8 bytes, which are words: 602, not 679.
const SHARED_OF_SIX: u32 = 36 << 10;

/// What launches are made from.
pub(super) struct Launches<'a> {
    pub width: u32,
    pub wide_lengths: bool,
    pub axis: Axis,
    pub dimensions: &'a [Dimension],
    pub in_bytes: u64,
    pub target: &'a Target,
}

impl Launches<'_> {
    /// Ways to copy, fastest first; the last takes any pointers.
    pub fn copy(&self) -> Vec<Launch<Params>> {
        let mut ways = Vec::new();
        if self.block().is_some() {
            ways.extend(self.units(false, SLOT));
            if self.width < 8 {
                ways.extend(self.rows());
                ways.extend(self.staged(STAGED_BYTES));
            }
        } else if self.axis.in_stride == 1 && self.axis.out_stride == 1 {
            ways.extend(self.staged(STAGED_LANE_BYTES - 1));
            ways.extend(self.lanes());
        }
        ways.extend(self.strips(false));
        ways.extend([8, 4, 2, 1].into_iter().filter_map(|unit| self.units(false, unit)));
        ways
    }

    /// Ways to reverse in place, fastest first, where both tensors have the same strides; none where nothing moves.
    pub fn in_place(&self) -> Vec<Launch<Params>> {
        if self.axis.size < 2 {
            return Vec::new();
        }
        let mut ways = Vec::new();
        if self.block().is_some() {
            ways.extend(self.units(true, SLOT));
        } else if self.axis.out_stride == 1 {
            ways.extend(self.swap_lanes());
        }
        ways.extend(self.strips(true));
        ways.extend([8, 4, 2, 1].into_iter().filter_map(|unit| self.units(true, unit)));
        ways
    }

    /// The dimension, if any, of a contiguous block that moves as one: one length for all of it.
    fn block(&self) -> Option<&Dimension> {
        self.dimensions.iter().find(|d| d.in_stride == 1 && d.out_stride == 1 && d.length_stride == 0)
    }

    /// The dimension, if any, of contiguous lanes side by side.
    fn row(&self) -> Option<&Dimension> {
        self.dimensions.iter().find(|d| d.in_stride == 1 && d.out_stride == 1 && d.length_stride != 0)
    }

    fn is_block(d: &Dimension) -> bool {
        d.in_stride == 1 && d.out_stride == 1
    }

    /// The dimensions without the one of a block or a row.
    fn outside(&self) -> impl Iterator<Item = &Dimension> {
        self.dimensions.iter().filter(|d| !Self::is_block(d))
    }

    /// Units of that many bytes, where the layout is made of them: any layout is of its elements.
    fn units(&self, in_place: bool, unit: u32) -> Option<Launch<Params>> {
        let elements = unit / self.width;
        let divides = |value: u32| value % elements == 0;
        let strides_divide = |size: u32, a: u32, b: u32| size == 1 || (divides(a) && divides(b));
        let fits = elements == 1
            || (elements > 1
                && self.block().is_some_and(|block| divides(block.size))
                && strides_divide(self.axis.size, self.axis.in_stride, self.axis.out_stride)
                && self.outside().all(|d| strides_divide(d.size, d.in_stride, d.out_stride)));
        if !fits {
            return None;
        }
        let mut dims: Vec<Dim> = Vec::with_capacity(MAX_DIMENSIONS);
        for d in self.dimensions {
            let inside = elements > 1 && Self::is_block(d);
            let (size, divisor) = if inside { (d.size / elements, 1) } else { (d.size, elements) };
            dims.push(Dim {
                size: FastDiv::new(size),
                in_stride: d.in_stride / divisor,
                out_stride: d.out_stride / divisor,
                length_stride: d.length_stride,
                axis: 0,
            });
        }
        let steps = if in_place { self.axis.size / 2 } else { self.axis.size };
        self.insert_axis(&mut dims, steps, self.axis.out_stride / elements);
        let items = dims.iter().map(|dim| u64::from(dim.size.divisor)).product();
        let index = unit.trailing_zeros() as usize + if in_place { 5 } else { 0 };
        let mut params = self.params(items, dims.into_iter());
        params.axis_in_stride /= elements;
        params.axis_out_stride /= elements;
        let items_of_thread = if in_place { ITEMS_OF_SWAP } else { ITEMS_OF_COPY };
        let entry = Entry { module: Module::ReverseUnits, index };
        Some(Launch { entry, blocks: blocks(items, items_of_thread), shared: 0, alignment: unit, params })
    }

    /// Puts the axis among dimensions ordered by output stride, so that neighbouring threads write neighbouring
    /// memory.
    fn insert_axis(&self, dims: &mut Vec<Dim>, steps: u32, out_stride: u32) {
        let axis = Dim { size: FastDiv::new(steps), in_stride: 0, out_stride: 0, length_stride: 0, axis: 1 };
        let at = dims.iter().position(|dim| dim.out_stride < out_stride).unwrap_or(dims.len());
        dims.insert(at, axis);
    }

    /// Rows of a block at any alignment, a slot at a time.
    fn rows(&self) -> Option<Launch<Params>> {
        let block = self.block()?;
        let bytes = u64::from(block.size) * u64::from(self.width);
        if bytes < MIN_ROW_BYTES || bytes > u64::from(u32::MAX) {
            return None;
        }
        let slots = slots_of_run(block.size, self.width, false);
        let mut dims: Vec<Dim> = self.outside().map(dim).collect();
        self.insert_axis(&mut dims, self.axis.size, self.axis.out_stride);
        let items = dims.iter().map(|dim| u64::from(dim.size.divisor)).product::<u64>() * u64::from(slots);
        let mut params = self.params(items, dims.into_iter());
        params.parts = FastDiv::new(slots);
        params.block = FastDiv::new(bytes as u32);
        params.unit = self.width;
        let entry = Entry { module: Module::ReverseLanes, index: ROWS };
        Some(Launch { entry, blocks: blocks(items, ITEMS_OF_ROWS), shared: 0, alignment: self.width, params })
    }

    /// Contiguous lanes: a block of threads for each tile of a long one, a slot at a time of short ones. Lanes that
    /// all begin at a multiple of 16 bytes have fewer slots.
    fn lanes(&self) -> Vec<Launch<Params>> {
        let bytes = u64::from(self.axis.size) * u64::from(self.width);
        if bytes < MIN_LANE_BYTES {
            return Vec::new();
        }
        let in_bytes = |stride: u32| u64::from(stride) * u64::from(self.width);
        let aligned = self.dimensions.iter().all(|d| in_bytes(d.out_stride) % u64::from(SLOT) == 0);
        let lanes: u64 = self.dimensions.iter().map(|d| u64::from(d.size)).product();
        let launch = |aligned: bool| {
            let slots = slots_of_run(self.axis.size, self.width, aligned);
            let tile = THREADS * ITEMS_OF_LONG_LANES;
            let tiles = slots.div_ceil(tile);
            let long = u64::from(slots) * 100 >= u64::from(tiles) * u64::from(tile) * FULL_TILES;
            let parts = if long { tiles } else { slots };
            let items = lanes * u64::from(parts);
            let mut params = self.params(items, self.dimensions.iter().map(dim));
            params.parts = FastDiv::new(parts);
            let index = self.width_index() + if long { LONG } else { 0 };
            let entry = Entry { module: Module::ReverseLanes, index };
            // Tiles of 8 KiB, mostly full, of less than 2³⁵ bytes: fewer than 2³¹ blocks.
            let blocks = if long { items as u32 } else { blocks(items, 1) };
            let alignment = if aligned { SLOT } else { self.width };
            Launch { entry, blocks, shared: 0, alignment, params }
        };
        let ways: &[bool] = if aligned { &[true, false] } else { &[false] };
        ways.iter().map(|&aligned| launch(aligned)).collect()
    }

    /// Contiguous lanes in place: a warp for each short one, a block of threads for each tile of a long one.
    fn swap_lanes(&self) -> Option<Launch<Params>> {
        let bytes = u64::from(self.axis.size) * u64::from(self.width);
        if self.axis.size < SHORT_LANE_ELEMENTS_IN_PLACE {
            return None;
        }
        let long = bytes >= LONG_LANE_BYTES_IN_PLACE;
        let (team, index) = if long { (THREADS, LONG_SWAP) } else { (WARP, SWAP) };
        // Two slots a thread, half of them in front, one of those left for what the back begins in the middle of.
        let front = u64::from(team - 1) * u64::from(SLOT);
        let half = u64::from(self.axis.size / 2) * u64::from(self.width);
        let parts = if long { (half + u64::from(SLOT)).div_ceil(front) } else { 1 };
        let lanes: u64 = self.dimensions.iter().map(|d| u64::from(d.size)).product();
        let teams = lanes * parts;
        let blocks =
            u32::try_from(teams.div_ceil(u64::from(THREADS / team))).ok().filter(|&blocks| blocks < 1 << 31)?;
        u32::try_from(teams).ok()?;
        let mut params = self.params(teams, self.dimensions.iter().map(dim));
        params.parts = FastDiv::new(parts as u32);
        let entry = Entry { module: Module::ReverseLanes, index: index + self.width_index() };
        Some(Launch { entry, blocks, shared: 0, alignment: self.width, params })
    }

    /// Groups of at most so many bytes, one behind the other in both tensors: a lane, or the lanes of a block.
    fn staged(&self, most: u64) -> Option<Launch<Params>> {
        let block = self.block().map_or(1, |block| block.size);
        if self.axis.in_stride != block || self.axis.out_stride != block {
            return None;
        }
        let group = u64::from(self.axis.size) * u64::from(block);
        let mut next = group;
        let outside: Vec<Dim> = self.dimensions.iter().filter(|d| block == 1 || !Self::is_block(d)).map(dim).collect();
        for d in outside.iter().rev() {
            if u64::from(d.in_stride) != next || u64::from(d.out_stride) != next {
                return None;
            }
            next *= u64::from(d.size.divisor);
        }
        let bytes = group * u64::from(self.width);
        let groups: u64 = outside.iter().map(|d| u64::from(d.size.divisor)).product();
        if bytes > most {
            return None;
        }
        let group_lanes = (STAGED_BYTES / bytes).clamp(1, STAGED_GROUPS).min(groups);
        let blocks = groups.div_ceil(group_lanes) as u32;
        let mut params = self.params(groups, outside.into_iter());
        params.block = FastDiv::new(block);
        params.group = FastDiv::new(group as u32);
        params.group_lanes = group_lanes as u32;
        params.groups = groups as u32;
        // The lengths and one more, the groups at their alignment, and a word that a window may reach past them.
        let shared = (group_lanes * 4 + 4).next_multiple_of(16) + (group_lanes * bytes).next_multiple_of(16) + 2 * 16;
        let entry = Entry { module: Module::ReverseStaged, index: self.width_index() };
        Some(Launch { entry, blocks, shared: shared as u32, alignment: self.width, params })
    }

    /// Strips of lanes side by side, as wide as the shared memory has room for.
    fn strips(&self, in_place: bool) -> Option<Launch<Params>> {
        let row = self.row()?;
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
        let wanted = if in_place && self.width < 8 { SHARED_OF_SIX } else { SHARED_OF_SEVERAL };
        let strip = strip(wanted.min(self.target.shared_memory)).or_else(|| strip(self.target.shared_memory))?;
        if !fits {
            return None;
        }
        let strips = row_bytes.div_ceil(u64::from(strip));
        let outer: u64 = self.outside().map(|d| u64::from(d.size)).product();
        let blocks = u32::try_from(outer * strips).ok().filter(|&blocks| blocks < 1 << 31)?;
        let mut params = self.params(outer * strips, self.outside().map(dim));
        params.parts = FastDiv::new(strips as u32);
        params.block = FastDiv::new(row.size);
        params.unit = strip;
        params.length_stride = row.length_stride;
        let entry = Entry { module: Module::ReverseStrips, index: self.width_index() + if in_place { 4 } else { 0 } };
        Some(Launch { entry, blocks, shared: self.axis.size * strip, alignment: word, params })
    }

    /// 0 to 3 for elements of 1 to 8 bytes.
    fn width_index(&self) -> usize {
        self.width.trailing_zeros() as usize
    }

    fn params(&self, items: u64, list: impl Iterator<Item = Dim>) -> Params {
        let mut dims = [Dim::zeroed(); MAX_DIMENSIONS];
        let mut rank = 0;
        for (place, dim) in dims.iter_mut().zip(list) {
            *place = dim;
            rank += 1;
        }
        Params {
            input: 0,
            lengths: 0,
            out: 0,
            items,
            in_bytes: self.in_bytes,
            axis_size: self.axis.size,
            axis_in_stride: self.axis.in_stride,
            axis_out_stride: self.axis.out_stride,
            wide_lengths: self.wide_lengths.into(),
            parts: FastDiv::new(1),
            block: FastDiv::new(1),
            group: FastDiv::new(1),
            group_lanes: 0,
            groups: 0,
            unit: self.width,
            length_stride: 0,
            rank,
            reserved: 0,
            dims,
        }
    }
}

fn dim(d: &Dimension) -> Dim {
    Dim {
        size: FastDiv::new(d.size),
        in_stride: d.in_stride,
        out_stride: d.out_stride,
        length_stride: d.length_stride,
        axis: 0,
    }
}
