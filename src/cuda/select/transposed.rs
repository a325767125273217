//! reverse_transposed.cu: tensors that are contiguous along different dimensions.

use bytemuck::Zeroable;

use super::layout::parameters::{axis_dim, dim};
use super::layout::{Candidates, Layout, NOT_IN_PLACE};
use super::{grid, reject_if, RejectReason};
use crate::cuda::estimate::{ceil, Work, WARP};
use crate::cuda::launch::{Grid, Launch};
use crate::cuda::parameters::transposed::*;
use crate::cuda::parameters::{FastDiv, ReverseDim, THREADS};
use crate::cuda::tuning::{SECTOR, VEC16};
use crate::cuda::{costs, kernels};
use crate::plan::reverse_plan::Dimension;

/// The elements of a tensor that are contiguous.
#[derive(Clone, Copy)]
struct Side {
    /// The place of a dimension, and of the one around it if they are contiguous together; the axis is the last.
    places: [Option<usize>; 2],
    size: u32,
}

impl Side {
    /// The dimension at `inner`, and the one around it in the tensor with these strides, unless it is `taken`.
    fn new(
        layout: &Layout<'_>,
        inner: usize,
        strides: Option<Stride>,
        taken: [Option<usize>; 2],
    ) -> Self {
        let size = dimension(layout, inner).size;
        let is_around = |n: &usize, stride: Stride| {
            stride(dimension(layout, *n)) == size && !taken.contains(&Some(*n))
        };
        let outer = strides.and_then(|stride| places(layout, &[]).find(|n| is_around(n, stride)));
        Self {
            places: [Some(inner), outer],
            size: size * outer.map_or(1, |n| dimension(layout, n).size),
        }
    }

    /// Whether lengths vary along it.
    fn varies(self, layout: &Layout<'_>) -> bool {
        self.places
            .into_iter()
            .flatten()
            .any(|n| dimension(layout, n).length_stride != 0)
    }

    fn along(self, layout: &Layout<'_>) -> Along {
        let one_element = ReverseDim {
            size: FastDiv::new(1),
            ..ReverseDim::zeroed()
        };
        let [inner, outer] = self
            .places
            .map(|n| n.map_or(one_element, |n| dim_of(layout, n)));
        Along {
            inner,
            outer,
            size: self.size,
        }
    }
}

/// The stride of a dimension in one of the tensors.
type Stride = fn(&Dimension) -> u32;

/// The sides of tiles in shared memory, and how their elements are reversed.
struct Sides {
    along_in: Side,
    along_out: Side,
    how: u32,
}

impl Sides {
    /// Sides of two dimensions where that can be, the output's first. Rows of 1 and 2 bytes stay shorter rather than
    /// that they are reversed.
    fn new(layout: &Layout<'_>) -> Result<Self, RejectReason> {
        let strides: [Stride; 2] = [|d| d.in_stride, |d| d.out_stride];
        let [inner_in, inner_out] =
            strides.map(|stride| places(layout, &[]).find(|&n| stride(dimension(layout, n)) == 1));
        let none = "a tensor is not contiguous along any dimension";
        let (inner_in, inner_out) = (inner_in.ok_or(none)?, inner_out.ok_or(none)?);
        reject_if(
            inner_in == inner_out,
            "both tensors are contiguous along one dimension",
        )?;
        let attempt = |has_outer: [bool; 2]| -> Result<Self, RejectReason> {
            let [strides_in, strides_out] = [0, 1].map(|n| has_outer[n].then_some(strides[n]));
            let along_out = Side::new(layout, inner_out, strides_out, [Some(inner_in), None]);
            let along_in = Side::new(layout, inner_in, strides_in, along_out.places);
            Ok(Self {
                how: how(layout, along_in, along_out)?,
                along_in,
                along_out,
            })
        };
        let attempts = [[true; 2], [false, true], [true, false], [false; 2]].map(attempt);
        let is_reversed = |sides: &Self| layout.width < 4 && sides.how > WRITE;
        let found = attempts
            .into_iter()
            .filter_map(Result::ok)
            .min_by_key(is_reversed);
        found.map_or_else(|| attempt([false; 2]), Ok)
    }

    /// Tiles along both sides, and positions in the other dimensions.
    fn tiles(&self, layout: &Layout<'_>, tile: [u32; 2]) -> ([u32; 2], u64) {
        let both = u64::from(self.along_in.size) * u64::from(self.along_out.size);
        (
            [
                self.along_in.size.div_ceil(tile[0]),
                self.along_out.size.div_ceil(tile[1]),
            ],
            layout.elements() / both,
        )
    }

    /// The dimensions that are not along the output, nor along the input if `outside`.
    fn others<'a>(
        &'a self,
        layout: &'a Layout<'_>,
        outside: bool,
    ) -> impl DoubleEndedIterator<Item = usize> + 'a {
        places(layout, &[]).filter(move |n| {
            let n = Some(*n);
            !(self.along_out.places.contains(&n) || outside && self.along_in.places.contains(&n))
        })
    }
}

/// How elements are reversed, if tiles in shared memory can.
fn how(layout: &Layout<'_>, along_in: Side, along_out: Side) -> Result<u32, RejectReason> {
    let is_narrow = layout.width < 4;
    let axis = Some(layout.dimensions.len());
    let [axis_in, axis_out] = [along_in, along_out].map(|side| side.places.contains(&axis));
    let [in_varies, out_varies] = [along_in, along_out].map(|side| side.varies(layout));
    let whole = |side: Side| {
        reject_if(
            is_narrow && side.places[1].is_some(),
            "only a part of a side is reversed",
        )
    };
    match (axis_in, axis_out) {
        (_, true) if in_varies && is_narrow => whole(along_out).map(|()| REVERSE_COLUMNS),
        (true, _) if out_varies => whole(along_in).map(|()| REVERSE_ROWS),
        (true, _) => Ok(WRITE),
        (_, false) if in_varies && out_varies => Err("lengths vary along both of a tile's dimensions".into()),
        _ if !in_varies => Ok(READ),
        _ if is_narrow => Ok(WRITE),
        _ => Err("lengths vary along the rows of the input, where it moves only elements of 1 and 2 bytes".into()),
    }
}

fn dimension<'a>(layout: &'a Layout<'_>, n: usize) -> &'a Dimension {
    layout.dimensions.get(n).unwrap_or(&layout.axis)
}

fn dim_of(layout: &Layout<'_>, n: usize) -> ReverseDim {
    layout
        .dimensions
        .get(n)
        .map_or_else(|| axis_dim(layout.axis.size), dim)
}

/// Tiles in shared memory, of what is contiguous in the input and in the output; not in place. `VECTORS`: elements of 1
/// and 2 bytes, whose rows of the output are stored as vectors. `small`: the side of a small tile, or 0.
pub(super) fn transposed<const VECTORS: bool>(
    layout: &Layout<'_>,
    small: u32,
    list: &mut Candidates,
) -> Result<(), RejectReason> {
    reject_if(layout.in_place(), NOT_IN_PLACE)?;
    let sides = Sides::new(layout)?;
    let is_narrow = layout.width < 4;
    reject_if(
        is_narrow && small != 0,
        "small tiles have elements of 4 bytes",
    )?;
    let side = if small == 0 { TILE } else { small };
    let scattered = sides.how == REVERSE_COLUMNS;
    let in_vectors = is_narrow
        && !scattered
        && sides
            .others(layout, false)
            .all(|n| layout.divides(dimension(layout, n).out_stride, VEC16));
    reject_if(
        VECTORS && !in_vectors,
        "rows of the output are not vectors of elements of 1 or 2 bytes",
    )?;
    let tile = if is_narrow {
        [TILE_IN_BYTES / layout.width, TILE_OUT]
    } else {
        [side; 2]
    };
    let ([down, across], outer) = sides.tiles(layout, tile);
    let blocks = grid(outer * u64::from(down) * u64::from(across))?;
    let (family, costs, shared) = match (is_narrow, VECTORS) {
        (true, true) => (
            &kernels::TRANSPOSED,
            &costs::TRANSPOSED,
            TILE_OUT * TILE_IN_BYTES,
        ),
        // A column and a vector between columns, and a vector before the first.
        (true, false) => {
            let shared = tile[0] * (TILE_OUT * layout.width + VEC16) + VEC16;
            (
                &kernels::TRANSPOSED_SCATTER,
                &costs::TRANSPOSED_SCATTER,
                shared,
            )
        }
        (false, _) => (
            &kernels::TRANSPOSED,
            &costs::TRANSPOSED,
            side * (side + 1) * layout.width,
        ),
    };
    let grid = Grid {
        blocks,
        threads: THREADS,
        shared,
    };
    let elements = layout.elements() as f64;
    // The mean elements of a tile along both sides.
    let mean = |side: Side, tiles: u32| f64::from(side.size) / f64::from(tiles);
    let (inside, outside) = (mean(sides.along_in, down), mean(sides.along_out, across));
    let width = f64::from(layout.width);
    let sectors = |run: f64| elements / run * layout.sectors_of_run(run * width).max(1.0);
    // Neighbours of 4 bytes are read at different positions if the axis is along them and so are their lengths.
    let reads_apart = !is_narrow && sides.how > READ && sides.along_in.varies(layout);
    let (read, written) = (
        if reads_apart {
            elements
        } else {
            sectors(inside)
        },
        sectors(outside),
    );
    let rows_at_once = f64::from(THREADS / side);
    let work = Work {
        misses: read + written,
        rounds: if is_narrow {
            4.0
        } else {
            ceil(inside / rows_at_once / 4.0) + ceil(outside / rows_at_once / 4.0)
        },
        ..layout.work()
    };
    let alignment = if VECTORS { VEC16 } else { layout.width };
    let launch = Launch::new(
        layout.entry(family, layout.width)?,
        grid,
        alignment,
        alignment,
    );
    list.add(layout, launch, work, costs, layout.width, || Transposed {
        r: layout.parameters(
            blocks.into(),
            sides.others(layout, true).map(|n| dim_of(layout, n)),
        ),
        along_in: sides.along_in.along(layout),
        along_out: sides.along_out.along(layout),
        tiles: FastDiv::new(down * across),
        tiles_along_out: FastDiv::new(across),
        how: sides.how,
        two: [sides.along_in, sides.along_out]
            .iter()
            .any(|side| side.places[1].is_some())
            .into(),
        tile: side,
        reserved: 0,
    })
}

/// A dimension of a tile: its place among the dimensions (the axis is the last), and the elements of a tile along it.
#[derive(Clone, Copy)]
struct Cut {
    place: usize,
    size: u32,
    elements: u32,
}

/// A tile with a thread for each element, and how many of them a thread block has.
struct Cuts {
    dimensions: Vec<Cut>,
    /// How many of them are innermost in the output, and the axis if it stands in front. All others are the input's.
    of_output: usize,
    /// Whether lengths vary along the output and along the input: elements that are neighbours in the input are then
    /// read at different positions of the axis.
    reads_apart: bool,
    /// Tiles of a thread block, and along which dimension they follow each other.
    tiles: u32,
    repeated: usize,
}

impl Cuts {
    /// A tile of `along_output` elements along the output's innermost dimensions, and what is left of `THREADS` along
    /// the input's.
    fn new(layout: &Layout<'_>, along_output: u32) -> Self {
        let axis = layout.dimensions.len();
        let mut dimensions: Vec<Cut> = Vec::with_capacity(TILE_DIMS as usize);
        let mut take = |mut left: u32, stride: fn(&Dimension) -> u32| {
            for _ in 0..TILE_DIMS / 2 {
                let Some(place) = innermost(layout, &dimensions, stride) else {
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
            (
                dimensions.len(),
                dimensions.iter().map(|cut| cut.elements).product::<u32>(),
            )
        };
        let (mut of_output, taken) = take(along_output, |d| d.out_stride);
        take(THREADS / taken, |d| d.in_stride);
        let [along_output, along_input] =
            [&dimensions[..of_output], &dimensions[of_output..]].map(|of| varies(layout, of));
        let reads_apart = along_output && along_input;
        let mut repeated = of_output.saturating_sub(1);
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
        let cuts = Self {
            dimensions,
            of_output,
            reads_apart,
            tiles: 1,
            repeated,
        };
        // Thread blocks that all run at once gain nothing from fewer of them.
        let at_once = layout.target.threads / THREADS * layout.target.multiprocessors;
        let is_little = cuts.blocks(layout) <= at_once.into();
        Self {
            tiles: if is_little { 1 } else { TILES_PER_BLOCK },
            ..cuts
        }
    }

    /// Positions of the axis that a thread block has.
    fn positions(&self, layout: &Layout<'_>) -> u32 {
        let axis = self
            .dimensions
            .iter()
            .position(|cut| cut.place == layout.dimensions.len());
        axis.map_or(1, |n| self.step(n))
    }

    /// Elements from one thread block to the next.
    fn step(&self, n: usize) -> u32 {
        self.dimensions[n].elements * if n == self.repeated { self.tiles } else { 1 }
    }

    fn blocks(&self, layout: &Layout<'_>) -> u64 {
        let along = |n: usize| u64::from(self.dimensions[n].size.div_ceil(self.step(n)));
        let whole: u64 = self
            .dimensions
            .iter()
            .map(|cut| u64::from(cut.size))
            .product();
        layout.elements() / whole * (0..self.dimensions.len()).map(along).product::<u64>()
    }

    fn parameters(&self, layout: &Layout<'_>, blocks: u32) -> Direct {
        let inside =
            self.dimensions
                .iter()
                .enumerate()
                .rev()
                .map(|(n, &Cut { place, size, .. })| ReverseDim {
                    size: FastDiv::new(size.div_ceil(self.step(n))),
                    ..dim_of(layout, place)
                });
        let others = self.others(layout).into_iter().map(|n| dim_of(layout, n));
        let Cut {
            place,
            size,
            elements,
        } = self.dimensions[self.repeated];
        let next = dim_of(layout, place);
        // There is no next tile if one has the whole dimension.
        let step = if elements < size { elements } else { 0 };
        let mut direct = Direct {
            r: layout.parameters(blocks.into(), others.chain(inside)),
            next: ReverseDim {
                size: FastDiv::new(elements),
                in_stride: next.in_stride * step,
                out_stride: next.out_stride * step,
                length_stride: next.length_stride * step,
                axis: next.axis * step,
            },
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

    /// The dimensions outside the tile, outermost in the output first.
    fn others(&self, layout: &Layout<'_>) -> Vec<usize> {
        let mut others: Vec<usize> = places(layout, &self.dimensions).collect();
        others.sort_by_key(|&n| std::cmp::Reverse(dimension(layout, n).out_stride));
        others
    }
}

/// Whether lengths vary within a tile along some of its dimensions.
fn varies(layout: &Layout<'_>, dimensions: &[Cut]) -> bool {
    dimensions
        .iter()
        .any(|cut| cut.elements > 1 && dimension(layout, cut.place).length_stride != 0)
}

/// The places of all dimensions that are not among `taken`.
fn places<'a>(
    layout: &'a Layout<'_>,
    taken: &'a [Cut],
) -> impl DoubleEndedIterator<Item = usize> + 'a {
    let is_free =
        |n: &usize| dimension(layout, *n).size > 1 && taken.iter().all(|cut| cut.place != *n);
    (0..=layout.dimensions.len()).filter(is_free)
}

/// The innermost of those dimensions in a tensor. Where it is broadcast, its stride is 0, and it is the outermost.
fn innermost(layout: &Layout<'_>, taken: &[Cut], stride: fn(&Dimension) -> u32) -> Option<usize> {
    places(layout, taken).min_by_key(|&n| stride(dimension(layout, n)).wrapping_sub(1))
}

/// Tiles of which each thread moves an element, without shared memory; not in place. `along_output`: elements of a tile
/// along the output.
pub(super) fn directly(
    layout: &Layout<'_>,
    along_output: u32,
    list: &mut Candidates,
) -> Result<(), RejectReason> {
    reject_if(layout.in_place(), NOT_IN_PLACE)?;
    let is_one =
        innermost(layout, &[], |d| d.in_stride) == innermost(layout, &[], |d| d.out_stride);
    reject_if(is_one, "one dimension is the innermost of both tensors")?;
    let cuts = Cuts::new(layout, along_output);
    reject_if(
        cuts.of_output == cuts.dimensions.len(),
        "there are too few elements for a tile of two dimensions",
    )?;
    let blocks = grid(cuts.blocks(layout))?;
    let (of_output, of_input) = cuts.dimensions.split_at(cuts.of_output);
    let of = |cuts: &[Cut]| f64::from(cuts.iter().map(|cut| cut.elements).product::<u32>());
    let (outside, inside) = (of(of_output), of(of_input));
    let threads = ((outside * inside) as u32).next_multiple_of(32);
    let grid = Grid {
        blocks,
        threads,
        shared: 0,
    };
    let width = f64::from(layout.width);
    let (rows, columns) = (outside.min(WARP), ceil(WARP / outside).max(1.0));
    let sectors = |run: f64| layout.sectors_of_run(run * width).max(1.0);
    let per_block = f64::from(cuts.tiles);
    let tiles = f64::from(blocks) * per_block;
    let steps = tiles * f64::from(threads) / WARP;
    let mut read = tiles * outside * sectors(inside);
    if cuts.reads_apart {
        // Neighbours of a sector are each at as many positions of the axis as a thread block has. Where these are the
        // same, the L1 cache has the sector.
        let positions = f64::from(layout.axis.size);
        let of_block = f64::from(cuts.positions(layout)).min(positions);
        let neighbours = (f64::from(SECTOR) / width).min(inside);
        let different = positions * (1.0 - (1.0 - of_block / positions).powf(neighbours));
        read = (read / of_block * different).min(steps * WARP);
    }
    let written = steps * columns * sectors(rows);
    let work = Work {
        misses: read + written,
        rounds: per_block.sqrt(),
        ..layout.work()
    };
    let entry = layout.entry(&kernels::TRANSPOSED_DIRECTLY, layout.width)?;
    let launch = Launch::new(entry, grid, layout.width, layout.width);
    list.add(
        layout,
        launch,
        work,
        &costs::TRANSPOSED_DIRECTLY,
        layout.width,
        || cuts.parameters(layout, blocks),
    )
}
