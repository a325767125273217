//! Tiles of which each thread moves an element, without shared memory.
//!
//! A tile is cut along the innermost dimensions of the output, then along those of the input with the threads that are
//! left. So neighbouring threads write neighbours in memory, and the caches still have the sectors that were read for
//! other elements. A thread block has several tiles, one after another along one dimension.

use bytemuck::Zeroable;

use super::super::fit::{Kernel, Needs};
use super::super::layout::{Layout, NOT_IN_PLACE};
use super::super::{grid, reject_if, RejectReason};
use super::places::{dim_of, dimension, places, Stride};
use crate::cuda::estimate::{ceil, Work, WARP};
use crate::cuda::launch::Grid;
use crate::cuda::parameters::transposed::*;
use crate::cuda::parameters::{FastDiv, ReverseDim, THREADS};
use crate::cuda::tuning::SECTOR;
use crate::cuda::{costs, kernels};

/// A dimension of a tile: its place, its size, and the elements of a tile along it.
#[derive(Clone, Copy)]
struct Cut {
    place: usize,
    size: u32,
    elements: u32,
}

/// A tile with a thread for each element, and how many of them a thread block has.
pub(in crate::cuda::select) struct DirectTiles {
    dimensions: Vec<Cut>,
    /// How many of them are innermost in the output, and the axis if it stands in front. All others are the input's.
    of_output: usize,
    /// Whether lengths vary along the output and along the input: elements that are neighbours in the input are then
    /// read at different positions of the axis.
    reads_apart: bool,
    /// Tiles of a thread block.
    tiles: u32,
    /// The dimension along which they follow each other.
    repeated: usize,
}

impl DirectTiles {
    /// A tile of `along_output` elements along the output's innermost dimensions, and what is left of `THREADS` along
    /// the input's.
    fn new(layout: &Layout<'_>, along_output: u32) -> Self {
        let mut dimensions: Vec<Cut> = Vec::with_capacity(TILE_DIMS as usize);
        take(layout, &mut dimensions, along_output, |d| d.out_stride);
        let mut of_output = dimensions.len();
        let taken = elements_of(&dimensions);
        take(layout, &mut dimensions, THREADS / taken, |d| d.in_stride);
        let reads_apart =
            varies(layout, &dimensions[..of_output]) && varies(layout, &dimensions[of_output..]);
        let mut repeated = of_output.saturating_sub(1);
        let axis = layout.dimensions.len();
        if reads_apart && dimensions.iter().all(|cut| cut.place != axis) {
            // A tile reads a part of a sector, and its neighbours along the axis read the rest. The caches still have
            // it, because the same thread block or the next one moves these neighbours.
            let size = layout.axis.size;
            dimensions.insert(
                0,
                Cut {
                    place: axis,
                    size,
                    elements: 1,
                },
            );
            of_output += 1;
            let is_full = size.next_multiple_of(TILES_PER_BLOCK) - size <= size / 3;
            repeated = if is_full { 0 } else { repeated + 1 };
        }
        let mut cuts = Self {
            dimensions,
            of_output,
            reads_apart,
            tiles: 1,
            repeated,
        };
        // Thread blocks that all run at once gain nothing from fewer of them.
        let at_once = layout.target.threads / THREADS * layout.target.multiprocessors;
        if cuts.blocks(layout) > at_once.into() {
            cuts.tiles = TILES_PER_BLOCK;
        }
        cuts
    }

    /// Positions of the axis that a thread block has.
    fn positions(&self, layout: &Layout<'_>) -> u32 {
        let axis = layout.dimensions.len();
        let at = self.dimensions.iter().position(|cut| cut.place == axis);
        at.map_or(1, |n| self.step(n))
    }

    /// Elements from one thread block to the next.
    fn step(&self, n: usize) -> u32 {
        self.dimensions[n].elements * if n == self.repeated { self.tiles } else { 1 }
    }

    /// Thread blocks.
    fn blocks(&self, layout: &Layout<'_>) -> u64 {
        let mut whole = 1;
        let mut blocks = 1;
        for (n, cut) in self.dimensions.iter().enumerate() {
            whole *= u64::from(cut.size);
            blocks *= u64::from(cut.size.div_ceil(self.step(n)));
        }
        layout.elements() / whole * blocks
    }

    /// Elements of a tile along the output and along the input.
    fn sides(&self) -> (f64, f64) {
        let (of_output, of_input) = self.dimensions.split_at(self.of_output);
        let [along_output, along_input] = [of_output, of_input].map(elements_of);
        (along_output.into(), along_input.into())
    }

    /// Sectors that are read. `steps`: those of all warps.
    fn read(&self, layout: &Layout<'_>, tiles: f64, steps: f64) -> f64 {
        let (along_output, along_input) = self.sides();
        let width = f64::from(layout.width);
        let read = tiles * along_output * layout.sectors_of_run(along_input * width).max(1.0);
        if !self.reads_apart {
            return read;
        }
        // Neighbours of a sector are each at as many positions of the axis as a thread block has. Where these are the
        // same, the L1 cache has the sector.
        let positions = f64::from(layout.axis.size);
        let of_block = f64::from(self.positions(layout)).min(positions);
        let neighbours = (f64::from(SECTOR) / width).min(along_input);
        let different = positions * (1.0 - (1.0 - of_block / positions).powf(neighbours));
        (read / of_block * different).min(steps * WARP)
    }

    /// The next tile of a thread block: its distance along the dimension in which tiles follow each other. It is 0 if
    /// one tile has the whole dimension.
    fn next(&self, layout: &Layout<'_>) -> ReverseDim {
        let Cut {
            place,
            size,
            elements,
        } = self.dimensions[self.repeated];
        let next = dim_of(layout, place);
        let step = if elements < size { elements } else { 0 };
        ReverseDim {
            size: FastDiv::new(elements),
            in_stride: next.in_stride * step,
            out_stride: next.out_stride * step,
            length_stride: next.length_stride * step,
            axis: next.axis * step,
        }
    }

    /// The dimensions of a walk over thread blocks: those outside the tile, outermost in the output first, then those
    /// of the tile in steps of thread blocks.
    fn walk(&self, layout: &Layout<'_>) -> Vec<ReverseDim> {
        let mut others = free_places(layout, &self.dimensions);
        others.sort_by_key(|&n| std::cmp::Reverse(dimension(layout, n).out_stride));
        let mut walk: Vec<ReverseDim> = others.iter().map(|&n| dim_of(layout, n)).collect();
        for (n, cut) in self.dimensions.iter().enumerate().rev() {
            walk.push(ReverseDim {
                size: FastDiv::new(cut.size.div_ceil(self.step(n))),
                ..dim_of(layout, cut.place)
            });
        }
        walk
    }
}

/// Takes the innermost dimensions of a tensor for a tile of at most `left` elements along them.
fn take(layout: &Layout<'_>, dimensions: &mut Vec<Cut>, mut left: u32, stride: Stride) {
    for _ in 0..TILE_DIMS / 2 {
        let Some(place) = innermost(layout, dimensions, stride) else {
            break;
        };
        let size = dimension(layout, place).size;
        let elements = size.div_ceil(size.div_ceil(left));
        dimensions.push(Cut {
            place,
            size,
            elements,
        });
        left /= elements;
        if elements < size {
            break;
        }
    }
}

/// Elements of a tile along some of its dimensions.
fn elements_of(dimensions: &[Cut]) -> u32 {
    dimensions.iter().map(|cut| cut.elements).product()
}

/// Whether lengths vary within a tile along some of its dimensions.
fn varies(layout: &Layout<'_>, dimensions: &[Cut]) -> bool {
    dimensions
        .iter()
        .any(|cut| cut.elements > 1 && dimension(layout, cut.place).length_stride != 0)
}

/// The places of all dimensions that are not among `taken`.
fn free_places(layout: &Layout<'_>, taken: &[Cut]) -> Vec<usize> {
    let mut free = places(layout);
    free.retain(|&place| taken.iter().all(|cut| cut.place != place));
    free
}

/// The innermost of those dimensions in a tensor. Where it is broadcast, its stride is 0, and it is the outermost.
fn innermost(layout: &Layout<'_>, taken: &[Cut], stride: Stride) -> Option<usize> {
    let free = free_places(layout, taken).into_iter();
    free.min_by_key(|&place| stride(dimension(layout, place)).wrapping_sub(1))
}

impl Kernel for DirectTiles {
    type Parameters = Direct;

    /// `along_output`: elements of a tile along the output.
    fn fit(layout: &Layout<'_>, along_output: u32) -> Result<Self, RejectReason> {
        reject_if(layout.in_place(), NOT_IN_PLACE)?;
        let inner_in = innermost(layout, &[], |d| d.in_stride);
        let inner_out = innermost(layout, &[], |d| d.out_stride);
        reject_if(
            inner_in == inner_out,
            "one dimension is the innermost of both tensors",
        )?;
        let tiles = Self::new(layout, along_output);
        reject_if(
            tiles.of_output == tiles.dimensions.len(),
            "there are too few elements for a tile of two dimensions",
        )?;
        Ok(tiles)
    }

    fn needs(&self, layout: &Layout<'_>) -> Needs {
        Needs {
            family: &kernels::TRANSPOSED_DIRECTLY,
            costs: &costs::TRANSPOSED_DIRECTLY,
            unit: layout.width,
            alignment: layout.width,
            access: layout.width,
        }
    }

    fn grid(&self, layout: &Layout<'_>) -> Result<Grid, RejectReason> {
        Ok(Grid {
            blocks: grid(self.blocks(layout))?,
            threads: elements_of(&self.dimensions).next_multiple_of(32),
            shared: 0,
        })
    }

    fn work(&self, layout: &Layout<'_>, grid: Grid) -> Work {
        let (along_output, _) = self.sides();
        let per_block = f64::from(self.tiles);
        let tiles = f64::from(grid.blocks) * per_block;
        let steps = tiles * f64::from(grid.threads) / WARP;
        // A warp writes a part of a row, or several rows.
        let elements_of_row = along_output.min(WARP);
        let rows_of_warp = ceil(WARP / along_output).max(1.0);
        let sectors_of_row = layout
            .sectors_of_run(elements_of_row * f64::from(layout.width))
            .max(1.0);
        let written = steps * rows_of_warp * sectors_of_row;
        Work {
            misses: self.read(layout, tiles, steps) + written,
            rounds: per_block.sqrt(),
            ..layout.work()
        }
    }

    fn parameters(&self, layout: &Layout<'_>, grid: Grid) -> Direct {
        let mut direct = Direct {
            r: layout.parameters(grid.blocks.into(), self.walk(layout).into_iter()),
            next: self.next(layout),
            repeated: self.repeated as u32,
            tiles: self.tiles,
            tile_rank: self.dimensions.len() as u32,
            scatters: (!varies(layout, &self.dimensions[..self.of_output])).into(),
            ..Direct::zeroed()
        };
        for (n, cut) in self.dimensions.iter().enumerate() {
            direct.threads[n] = FastDiv::new(cut.elements);
            direct.steps[n] = self.step(n);
            direct.sizes[n] = cut.size;
        }
        direct
    }
}
