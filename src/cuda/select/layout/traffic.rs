//! Counts the memory traffic of kernels on a layout: sectors, accesses and misses. The coefficients are fitted to the
//! counts. "Constants of the cost model" in benches/TUNING.md says what the choice loses with other constants.

use super::{Layout, Walked};
use crate::cuda::estimate::{ceil, Work, WARP};
use crate::cuda::tuning::SECTOR;

/// Bytes of a line of the L1 cache, and how many lines of other thread blocks compete with each.
pub(in crate::cuda::select) const LINE: u32 = 128;
const COMPETING: f64 = 4.0;
/// The logarithm, to the base 2, of the bytes that stay in the L1 cache.
const LOG2_L1_BYTES: f64 = 13.0;

/// Average number of sectors at the end of the moving part of a lane, in place.
const ENDS: f64 = 1.25;

/// The input, the output or the lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cuda::select) enum Side {
    Input,
    Output,
    Lengths,
}

/// The contiguous runs of a tensor in the order of its memory.
struct Runs {
    count: f64,
    /// Bytes of a run.
    bytes: f64,
    /// Bytes from the beginning of one run to that of the next: infinite if there is one only.
    pitch: f64,
}

impl Walked {
    /// Elements from one of its coordinates to the next, in a tensor.
    fn stride(&self, side: Side) -> u32 {
        self.strides[side as usize]
    }
}

impl Layout<'_> {
    /// Counts what all kernels have in common.
    pub fn count(&mut self) {
        let mut walk = Vec::with_capacity(self.dimensions.len() + 1);
        walk.extend(self.dimensions.iter().rev().map(|d| Walked::new(d, false)));
        if self.axis.size > 1 {
            let at = walk
                .iter()
                .position(|d| d.stride(Side::Output) > self.axis.out_stride)
                .unwrap_or(walk.len());
            walk.insert(at, Walked::new(&self.axis, true));
        }
        self.traffic.walk = walk;
        let sides = [Side::Input, Side::Output];
        let runs = sides.map(|side| self.runs(side));
        // Runs that are closer than a sector share sectors.
        let sectors = |runs: &Runs| {
            runs.count
                * self
                    .sectors_of_run(runs.bytes)
                    .min(runs.pitch / f64::from(SECTOR))
        };
        self.traffic.sectors = [sectors(&runs[0]), sectors(&runs[1])];
        self.traffic.least = self.least_work(&runs);
        self.traffic.apart = sides.map(|side| {
            [false, true].map(|at_random| self.accesses(side, self.width, 1, at_random))
        });
        self.traffic.missed_parts =
            sides.map(|side| [false, true].map(|at_random| self.missed_part(side, at_random)));
    }

    /// The work of any kernel: every sector that moves is accessed once, with what memory moves along with it, and the
    /// lengths. `rounds` is 1.
    pub fn work(&self) -> Work {
        self.traffic.least
    }

    /// Different sectors of a tensor.
    pub fn sectors(&self, side: Side) -> f64 {
        self.traffic.sectors[side as usize]
    }

    /// The sectors of both tensors that move, each once.
    pub fn moved_once(&self) -> f64 {
        (self.sectors(Side::Input) + self.sectors(Side::Output)) * self.moving_sectors()
    }

    fn least_work(&self, runs: &[Runs; 2]) -> Work {
        let [input, output] = self.traffic.sectors;
        let lengths = self.lengths_bytes();
        let sector = f64::from(SECTOR);
        // Memory reads two sectors at once, and the rest of those that are written in part.
        let pairs = runs[0].count
            * self
                .pieces_of_run(runs[0].bytes, 2.0 * sector)
                .min(runs[0].pitch / sector / 2.0);
        let is_aligned = self.sectors_of_run(runs[1].bytes) * sector == runs[1].bytes
            || runs[1].pitch.is_infinite();
        let whole =
            runs[1].count * (runs[1].bytes / sector - if is_aligned { 0.0 } else { 1.0 }).max(0.0);
        let besides = (2.0 * pairs - input).max(0.0)
            + if self.in_place() {
                0.0
            } else {
                (output - whole).max(0.0)
            };
        let moved = self.moved_once() + besides * self.moving_sectors();
        Work {
            bytes: moved * sector + lengths,
            misses: moved + lengths / sector,
            rounds: 1.0,
        }
    }

    /// The part of elements that moves: in place about half of them, the mean of all lengths. The middle element of an
    /// odd length does not move.
    pub fn moving(&self) -> f64 {
        if !self.in_place() {
            return 1.0;
        }
        let size = f64::from(self.axis.size);
        match self.axis.size % 2 {
            0 => size / (2.0 * (size + 1.0)),
            _ => (size - 1.0) / (2.0 * size),
        }
    }

    /// The part of sectors that moves. In place, a sector moves if one of its lanes is long enough. So does one that
    /// the length is inside, and memory reads two sectors at once.
    pub fn moving_sectors(&self) -> f64 {
        if !self.in_place() {
            return 1.0;
        }
        let lanes = f64::from(
            self.interleaved()
                .map_or(1, |row| row.size.min(SECTOR / self.width)),
        );
        let lane = f64::from(self.axis.size) * self.bytes(self.axis.out_stride) as f64;
        (lanes / (lanes + 1.0) + ENDS * f64::from(SECTOR) / lane).min(1.0)
    }

    /// Average number of sectors of a run of `bytes` bytes. A run of whole sectors counts as aligned, and any other as
    /// beginning at any element.
    pub fn sectors_of_run(&self, bytes: f64) -> f64 {
        self.pieces_of_run(bytes, f64::from(SECTOR))
    }

    fn pieces_of_run(&self, bytes: f64, piece: f64) -> f64 {
        if ceil(bytes / piece) * piece == bytes {
            bytes / piece
        } else {
            (bytes + piece - f64::from(self.width)) / piece
        }
    }

    /// Average number of stores for the bytes that a vector has of a run whose end is inside it: words, and elements
    /// narrower than words.
    pub fn stores_of_end(&self) -> f64 {
        1.0 + 2.0 / f64::from(self.width)
    }

    fn runs(&self, side: Side) -> Runs {
        // Elements that are broadcast are in the same places.
        let steps = self
            .traffic
            .walk
            .iter()
            .map(|d| (d.stride(side), d.size))
            .filter(|(stride, _)| *stride > 0);
        let mut dims: Vec<(u32, u32)> = steps.collect();
        dims.sort_unstable();
        let elements: f64 = dims.iter().map(|(_, size)| f64::from(*size)).product();
        let mut run = 1.0;
        let mut pitch = f64::INFINITY;
        for (stride, size) in dims {
            if f64::from(stride) != run {
                pitch = f64::from(stride) * f64::from(self.width);
                break;
            }
            run *= f64::from(size);
        }
        Runs {
            count: elements / run,
            bytes: run * f64::from(self.width),
            pitch,
        }
    }

    /// Sectors that warps access in a tensor if their threads take units of `unit` bytes, `step` units apart, in the
    /// order of the output. With `at_random`, lanes with lengths of their own are at positions that differ.
    ///
    /// A warp that reads 32 adjacent elements of 4 bytes accesses 31 · 4 / 32 + 1 = 4.9 sectors, at any alignment. If
    /// they are 128 bytes apart, it accesses 32.
    pub fn accesses(&self, side: Side, unit: u32, step: u32, at_random: bool) -> f64 {
        let sectors = self.sectors_of_warp(side, unit, step, at_random);
        // 32 threads that take adjacent units of `unit` bytes fill at least `unit` sectors of 32 bytes.
        self.warps(unit)
            * if step == 1 {
                f64::max(sectors, unit.into())
            } else {
                sectors
            }
    }

    /// Accesses to lengths that the L1 cache does not serve, besides the first to each sector, if lengths of neighbours
    /// in the output are apart.
    pub fn lengths_missed(&self, unit: u32, step: u32) -> f64 {
        let apart =
            self.warps(unit) * (self.sectors_of_warp(Side::Lengths, unit, step, false) - 1.0);
        (apart - self.lengths_bytes() / f64::from(SECTOR)).max(0.0)
            * self.missed_part(Side::Lengths, false)
    }

    /// Warps whose threads have a unit each.
    fn warps(&self, unit: u32) -> f64 {
        self.elements() as f64 / f64::from(unit / self.width) / WARP
    }

    fn lengths_bytes(&self) -> f64 {
        let lengths = self
            .dimensions
            .iter()
            .filter(|d| d.length_stride != 0)
            .map(|d| f64::from(d.size));
        lengths.product::<f64>() * self.width_of(Side::Lengths)
    }

    /// Bytes of an element.
    fn width_of(&self, side: Side) -> f64 {
        match (side, self.wide_lengths) {
            (Side::Lengths, false) => 4.0,
            (Side::Lengths, true) => 8.0,
            _ => self.width.into(),
        }
    }

    fn sectors_of_warp(&self, side: Side, unit: u32, step: u32, at_random: bool) -> f64 {
        // Threads that the dimensions so far do not tell apart, and units from one thread to the next.
        let (mut left, mut distance) = (WARP, f64::from(step));
        let mut sectors = 1.0;
        for (n, d) in self.traffic.walk.iter().enumerate() {
            let elements = if n == 0 { unit / self.width } else { 1 };
            let size = f64::from((d.size / elements).max(1));
            let stride = f64::from(d.stride(side) * elements) * self.width_of(side);
            let threads = ceil(size / distance).min(left);
            let steps = if distance < size { distance } else { 1.0 };
            let at_one_position = (threads - 1.0) * steps * stride / f64::from(SECTOR) + 1.0;
            let positions = if d.varies && at_random {
                f64::from(self.axis.size)
            } else {
                1.0
            };
            sectors *= threads.min(at_one_position * positions);
            left /= threads;
            distance = ceil(distance / size);
            if left <= 1.0 {
                break;
            }
        }
        sectors
    }

    /// Accesses that the L1 cache does not serve, besides the first to each sector: a sector that is accessed again
    /// after many others has left the cache. What one thread accesses again, with its next elements, has not.
    pub fn missed_again(&self, side: Side, accesses: f64, at_random: bool) -> f64 {
        let missed_part = self.traffic.missed_parts[side as usize][usize::from(at_random)];
        self.again(side, self.apart(side, accesses, at_random)) * missed_part
    }

    /// At most as many accesses as of threads with one element each.
    fn apart(&self, side: Side, accesses: f64, at_random: bool) -> f64 {
        accesses.min(self.traffic.apart[side as usize][usize::from(at_random)])
    }

    /// Bytes that memory moves again for accesses at random positions. If interleaved lanes are at positions that
    /// differ, an element and its neighbours in a sector are accessed at different times. In between, the L2 cache
    /// loses the sector: never if what is accessed fits half of it, always if it does not fit. A sector that is
    /// written in parts is also read, so that it counts three times.
    pub fn moved_again(&self, side: Side, accesses: f64, is_written: bool) -> f64 {
        let walk = &self.traffic.walk;
        let shares_sectors = |d: &Walked| d.varies && self.bytes(d.stride(side)) < SECTOR.into();
        let Some(at) = walk
            .iter()
            .position(|d| d.is_axis)
            .filter(|_| walk.iter().any(shares_sectors))
        else {
            return 0.0;
        };
        let between: f64 = walk[..=at].iter().map(|d| f64::from(d.size)).product();
        let caches = between * f64::from(self.width) / f64::from(self.target.l2_cache);
        let times = if is_written { 3.0 } else { 1.0 };
        self.again(side, self.apart(side, accesses, true))
            * times
            * f64::from(SECTOR)
            * (1.0 + caches.max(0.1).log2()).clamp(0.0, 1.0)
    }

    /// Accesses without the first to each sector.
    pub fn again(&self, side: Side, accesses: f64) -> f64 {
        (accesses - self.sectors(side)).max(0.0)
    }

    /// The part of a tensor's lines that leave the L1 cache before they are accessed again: the more, the more elements
    /// are accessed between neighbours in memory. Half of them if nothing is contiguous.
    fn missed_part(&self, side: Side, at_random: bool) -> f64 {
        let walk = &self.traffic.walk;
        let Some(at) = walk.iter().position(|d| d.stride(side) == 1) else {
            return 0.5;
        };
        let between: f64 = walk[..at].iter().map(|d| f64::from(d.size)).product();
        let mut bytes = if between > 1.0 {
            between * f64::from(LINE) * COMPETING
        } else {
            1.0
        };
        if at_random {
            // Lanes that share a sector are at positions that differ. All of these come before the next lanes where the
            // axis is inside.
            let inside = walk.iter().position(|d| d.is_axis).unwrap_or(walk.len());
            let rows = walk[..inside]
                .iter()
                .filter(|d| d.varies && self.bytes(d.stride(side)) < SECTOR.into());
            let row_bytes = rows
                .map(|d| self.bytes(d.stride(side)) * u64::from(d.size))
                .max();
            bytes = bytes.max(f64::from(self.axis.size) * row_bytes.unwrap_or(0) as f64);
        }
        lost_part(bytes, LOG2_L1_BYTES)
    }
}

/// The part of a number of bytes that a cache loses: nothing up to 2 to the power of `least`, all from 64 times that
/// number on.
pub(in crate::cuda::select) fn lost_part(bytes: f64, least: f64) -> f64 {
    ((bytes.max(1.0).log2() - least) / 6.0).clamp(0.0, 1.0)
}
