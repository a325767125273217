//! Tiles in shared memory: a thread block reads whole rows of the input, and writes whole rows of the output.
//!
//! A side of a tile runs along what is contiguous in one of the tensors: a dimension, or two that are contiguous
//! together. If the axis is along a side, the reversal happens while rows are read or written, or in the tile. The table
//! in reverse_transposed.cu says which of these a kernel has.

use bytemuck::Zeroable;

use super::super::fit::{Kernel, Needs};
use super::super::layout::{Layout, NOT_IN_PLACE};
use super::super::{grid, reject_if, RejectReason};
use super::places::{dim_of, dimension, places, Stride};
use crate::cuda::estimate::{ceil, Work};
use crate::cuda::launch::Grid;
use crate::cuda::parameters::transposed::*;
use crate::cuda::parameters::{FastDiv, ReverseDim, THREADS};
use crate::cuda::tuning::VEC16;
use crate::cuda::{costs, kernels};

/// The elements of a tensor that are contiguous.
#[derive(Clone, Copy)]
struct Side {
    /// The place of a dimension, and of the one around it if they are contiguous together.
    inner: usize,
    outer: Option<usize>,
    /// Elements in all.
    size: u32,
}

impl Side {
    /// The dimension at `inner` alone.
    fn of_one(layout: &Layout<'_>, inner: usize) -> Self {
        Self {
            inner,
            outer: None,
            size: dimension(layout, inner).size,
        }
    }

    /// The dimension at `inner`, and the one around it in the tensor with these strides, unless `other` has it.
    fn of_two(layout: &Layout<'_>, inner: usize, stride: Stride, other: &Self) -> Self {
        let mut side = Self::of_one(layout, inner);
        for place in places(layout) {
            let around = dimension(layout, place);
            if stride(around) == side.size && !other.has(place) {
                side.outer = Some(place);
                side.size *= around.size;
                break;
            }
        }
        side
    }

    fn has(&self, place: usize) -> bool {
        self.inner == place || self.outer == Some(place)
    }

    /// Whether lengths vary along it.
    fn varies(&self, layout: &Layout<'_>) -> bool {
        let varies = |place: usize| dimension(layout, place).length_stride != 0;
        varies(self.inner) || self.outer.is_some_and(varies)
    }

    /// The parameters of a kernel for this side.
    fn along(&self, layout: &Layout<'_>) -> Along {
        let one_element = ReverseDim {
            size: FastDiv::new(1),
            ..ReverseDim::zeroed()
        };
        Along {
            inner: dim_of(layout, self.inner),
            outer: self.outer.map_or(one_element, |n| dim_of(layout, n)),
            size: self.size,
        }
    }
}

/// The sides of tiles, and how their elements are reversed.
struct Sides {
    along_in: Side,
    along_out: Side,
    how: u32,
}

impl Sides {
    /// Sides of two dimensions where that can be, the output's first. Rows of elements of 1 and 2 bytes are kept to one
    /// dimension if two would have to be reversed in the tile.
    fn new(layout: &Layout<'_>) -> Result<Self, RejectReason> {
        let none = "a tensor is not contiguous along any dimension";
        let inner_in = contiguous(layout, |d| d.in_stride).ok_or(none)?;
        let inner_out = contiguous(layout, |d| d.out_stride).ok_or(none)?;
        reject_if(
            inner_in == inner_out,
            "both tensors are contiguous along one dimension",
        )?;
        let mut reversed = None;
        for has_outer in [[true; 2], [false, true], [true, false], [false; 2]] {
            let Ok(sides) = Self::attempt(layout, [inner_in, inner_out], has_outer) else {
                continue;
            };
            if layout.width >= 4 || !sides.are_reversed_in_tile() {
                return Ok(sides);
            }
            reversed = reversed.or(Some(sides));
        }
        match reversed {
            Some(sides) => Ok(sides),
            None => Self::attempt(layout, [inner_in, inner_out], [false; 2]),
        }
    }

    /// Sides along these dimensions of the input and of the output, with the ones around them where they are wanted.
    fn attempt(
        layout: &Layout<'_>,
        [inner_in, inner_out]: [usize; 2],
        [has_outer_in, has_outer_out]: [bool; 2],
    ) -> Result<Self, RejectReason> {
        let mut along_in = Side::of_one(layout, inner_in);
        let mut along_out = Side::of_one(layout, inner_out);
        if has_outer_out {
            along_out = Side::of_two(layout, inner_out, |d| d.out_stride, &along_in);
        }
        if has_outer_in {
            along_in = Side::of_two(layout, inner_in, |d| d.in_stride, &along_out);
        }
        Ok(Self {
            how: how(layout, &along_in, &along_out)?,
            along_in,
            along_out,
        })
    }

    /// Whether elements change places in a row or in a column of the tile, and not only whole rows.
    fn are_reversed_in_tile(&self) -> bool {
        matches!(self.how, REVERSE_ROWS | REVERSE_COLUMNS)
    }

    /// The places of dimensions that are not along the output.
    fn beside_output(&self, layout: &Layout<'_>) -> Vec<usize> {
        let mut others = places(layout);
        others.retain(|&place| !self.along_out.has(place));
        others
    }

    /// The places of dimensions that are along neither side.
    fn outside(&self, layout: &Layout<'_>) -> Vec<usize> {
        let mut others = self.beside_output(layout);
        others.retain(|&place| !self.along_in.has(place));
        others
    }
}

/// The outermost place along which a tensor is contiguous.
fn contiguous(layout: &Layout<'_>, stride: Stride) -> Option<usize> {
    let mut all = places(layout).into_iter();
    all.find(|&place| stride(dimension(layout, place)) == 1)
}

/// How elements are reversed, if tiles in shared memory can.
fn how(layout: &Layout<'_>, along_in: &Side, along_out: &Side) -> Result<u32, RejectReason> {
    let is_narrow = layout.width < 4;
    let axis = layout.dimensions.len();
    let (axis_in, axis_out) = (along_in.has(axis), along_out.has(axis));
    let (in_varies, out_varies) = (along_in.varies(layout), along_out.varies(layout));
    let whole = |side: &Side| {
        reject_if(
            is_narrow && side.outer.is_some(),
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

/// Tiles in shared memory. `VECTORS`: elements of 1 and 2 bytes, whose rows of the output are stored as vectors.
pub(in crate::cuda::select) struct Tiles<const VECTORS: bool> {
    sides: Sides,
    /// Elements of a tile along the input and along the output.
    tile: [u32; 2],
    /// The side of a square tile.
    square: u32,
    /// Tiles along the input and along the output.
    down: u32,
    across: u32,
}

impl<const VECTORS: bool> Tiles<VECTORS> {
    /// Bytes of shared memory.
    fn shared(&self, layout: &Layout<'_>) -> u32 {
        match (layout.width < 4, VECTORS) {
            (true, true) => TILE_OUT * TILE_IN_BYTES,
            // A column and a vector between columns, and a vector before the first.
            (true, false) => self.tile[0] * (TILE_OUT * layout.width + VEC16) + VEC16,
            // An additional column spreads the elements of a column over all banks.
            (false, _) => self.square * (self.square + 1) * layout.width,
        }
    }

    /// Sectors that the tiles read and write.
    fn sectors(&self, layout: &Layout<'_>) -> f64 {
        let Sides {
            along_in,
            along_out,
            how,
        } = &self.sides;
        let elements = layout.elements() as f64;
        let width = f64::from(layout.width);
        let sectors = |run: f64| elements / run * layout.sectors_of_run(run * width).max(1.0);
        // Neighbours of 4 bytes are read at different positions if the axis is along them and so are their lengths.
        let is_along_them = matches!(*how, WRITE | REVERSE_ROWS | REVERSE_COLUMNS);
        let reads_apart = layout.width >= 4 && is_along_them && along_in.varies(layout);
        let read = if reads_apart {
            elements
        } else {
            sectors(mean(along_in, self.down))
        };
        read + sectors(mean(along_out, self.across))
    }
}

/// The mean number of elements of a tile along a side.
fn mean(side: &Side, tiles: u32) -> f64 {
    f64::from(side.size) / f64::from(tiles)
}

impl<const VECTORS: bool> Kernel for Tiles<VECTORS> {
    type Parameters = Transposed;

    /// `small`: the side of a small tile, or 0.
    fn fit(layout: &Layout<'_>, small: u32) -> Result<Self, RejectReason> {
        reject_if(layout.in_place(), NOT_IN_PLACE)?;
        let sides = Sides::new(layout)?;
        let is_narrow = layout.width < 4;
        reject_if(
            is_narrow && small != 0,
            "small tiles have elements of 4 bytes",
        )?;
        let in_vectors = is_narrow
            && sides.how != REVERSE_COLUMNS
            && sides
                .beside_output(layout)
                .into_iter()
                .all(|place| layout.divides(dimension(layout, place).out_stride, VEC16));
        reject_if(
            VECTORS && !in_vectors,
            "rows of the output are not vectors of elements of 1 or 2 bytes",
        )?;
        let square = if small == 0 { TILE } else { small };
        let tile = if is_narrow {
            [TILE_IN_BYTES / layout.width, TILE_OUT]
        } else {
            [square; 2]
        };
        Ok(Self {
            down: sides.along_in.size.div_ceil(tile[0]),
            across: sides.along_out.size.div_ceil(tile[1]),
            sides,
            tile,
            square,
        })
    }

    fn needs(&self, layout: &Layout<'_>) -> Needs {
        let scatters = layout.width < 4 && !VECTORS;
        let alignment = if VECTORS { VEC16 } else { layout.width };
        Needs {
            family: if scatters {
                &kernels::TRANSPOSED_SCATTER
            } else {
                &kernels::TRANSPOSED
            },
            costs: if scatters {
                &costs::TRANSPOSED_SCATTER
            } else {
                &costs::TRANSPOSED
            },
            unit: layout.width,
            alignment,
            access: alignment,
        }
    }

    fn grid(&self, layout: &Layout<'_>) -> Result<Grid, RejectReason> {
        let both = u64::from(self.sides.along_in.size) * u64::from(self.sides.along_out.size);
        let outer = layout.elements() / both;
        Ok(Grid {
            blocks: grid(outer * u64::from(self.down) * u64::from(self.across))?,
            threads: THREADS,
            shared: self.shared(layout),
        })
    }

    fn work(&self, layout: &Layout<'_>, _: Grid) -> Work {
        let inside = mean(&self.sides.along_in, self.down);
        let outside = mean(&self.sides.along_out, self.across);
        let rows_at_once = f64::from(THREADS / self.square);
        Work {
            misses: self.sectors(layout),
            rounds: if layout.width < 4 {
                4.0
            } else {
                ceil(inside / rows_at_once / 4.0) + ceil(outside / rows_at_once / 4.0)
            },
            ..layout.work()
        }
    }

    fn parameters(&self, layout: &Layout<'_>, grid: Grid) -> Transposed {
        let Sides {
            along_in,
            along_out,
            how,
        } = &self.sides;
        let outside = self.sides.outside(layout).into_iter();
        let has_two = along_in.outer.is_some() || along_out.outer.is_some();
        Transposed {
            r: layout.parameters(grid.blocks.into(), outside.map(|n| dim_of(layout, n))),
            along_in: along_in.along(layout),
            along_out: along_out.along(layout),
            tiles: FastDiv::new(self.down * self.across),
            tiles_along_out: FastDiv::new(self.across),
            how: *how,
            two: has_two.into(),
            tile: self.square,
            reserved: 0,
        }
    }
}
