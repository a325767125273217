//! reverse_transposed.cu: tensors that are contiguous along different dimensions.

use bytemuck::{Pod, Zeroable};

use super::fast_div::FastDiv;
use super::layout::parameters::{dim, Reverse, ReverseDim};
use super::layout::work::WARP;
use super::layout::{Layout, Sketch, NOT_IN_PLACE};
use super::{grid, reject_if, RejectReason};
use crate::cuda::costs;
use crate::cuda::estimate::{ceil, Grid, Work};
use crate::cuda::kernels;
use crate::cuda::launch::words;
use crate::cuda::tuning::transposed::*;
use crate::cuda::tuning::{SECTOR, THREADS, VEC16};
use crate::plan::reverse_plan::Dimension;

/// `Transposed` of the kernel file.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Transposed {
    r: Reverse,
    along_in: ReverseDim,
    along_out: ReverseDim,
    tiles: FastDiv,
    tiles_along_out: FastDiv,
    steps: FastDiv,
}
const _: () = assert!(size_of::<Transposed>() == 432 && std::mem::offset_of!(Transposed, r) == 0);

/// Elements of a tile along the two dimensions.
fn tile(layout: &Layout<'_>) -> [u32; 2] {
    match layout.width {
        1 | 2 => [TILE_IN_BYTES / layout.width, TILE_OUT],
        _ => [TILE; 2],
    }
}

/// The places of the dimensions along which the input and the output are contiguous; the axis is the last.
fn sides(layout: &Layout<'_>) -> Option<[usize; 2]> {
    let all = || layout.dimensions.iter().chain([&layout.axis]);
    Some([all().position(|d| d.in_stride == 1 && d.size > 1)?, all().position(|d| d.out_stride == 1 && d.size > 1)?])
}

fn dimension<'a>(layout: &'a Layout<'_>, n: usize) -> &'a Dimension {
    layout.dimensions.get(n).unwrap_or(&layout.axis)
}

/// Tiles along the two dimensions, and positions in the others.
fn tiles(layout: &Layout<'_>, sides: [usize; 2]) -> ([u32; 2], u64) {
    let sizes = sides.map(|n| dimension(layout, n).size);
    let tile = tile(layout);
    let both = u64::from(sizes[0]) * u64::from(sizes[1]);
    ([sizes[0].div_ceil(tile[0]), sizes[1].div_ceil(tile[1])], layout.elements() / both)
}

/// Tiles of the two dimensions along which the input and the output are contiguous; not in place. `VECTORS`: elements
/// of 1 and 2 bytes, whose rows of the output are stored as vectors.
pub(super) fn transposed<const VECTORS: bool>(layout: &Layout<'_>, _: u32) -> Result<Sketch, RejectReason> {
    reject_if(layout.in_place(), NOT_IN_PLACE)?;
    let sides = sides(layout).ok_or("a tensor is not contiguous along any dimension")?;
    reject_if(sides[0] == sides[1], "both tensors are contiguous along one dimension")?;
    let [along_in, along_out] = sides.map(|n| dimension(layout, n));
    let axis = layout.dimensions.len();
    let lengths_vary = along_in.length_stride != 0;
    // Where elements are reversed: the table in the kernel file.
    let reverses_columns = sides[1] == axis && lengths_vary;
    let moves_columns = !sides.contains(&axis) && lengths_vary && along_out.length_stride == 0;
    let is_narrow = layout.width < 4;
    let scattered = reverses_columns || !is_narrow && moves_columns;
    let mut rows =
        layout.dimensions.iter().chain([&layout.axis]).enumerate().filter(|&(n, d)| n != sides[1] && d.size > 1);
    let in_vectors = is_narrow && !scattered && rows.all(|(_, d)| layout.divides(d.out_stride, VEC16));
    reject_if(VECTORS && !in_vectors, "rows of the output are not vectors of elements of 1 or 2 bytes")?;
    let ([down, across], outer) = tiles(layout, sides);
    let blocks = grid(outer * u64::from(down) * u64::from(across))?;
    let tile = tile(layout);
    let (family, costs, shared) = match (is_narrow, VECTORS || !is_narrow && !scattered) {
        (true, true) => (&kernels::TRANSPOSED, &costs::TRANSPOSED, TILE_OUT * TILE_IN_BYTES),
        // A column and a vector between columns, and a vector before the first.
        (true, false) => {
            let shared = tile[0] * (TILE_OUT * layout.width + VEC16) + VEC16;
            (&kernels::TRANSPOSED_SCATTER, &costs::TRANSPOSED_SCATTER, shared)
        }
        (false, true) => (&kernels::TRANSPOSED, &costs::TRANSPOSED, TILE * (TILE + 1) * layout.width),
        (false, false) => (&kernels::TRANSPOSED_SCATTER, &costs::TRANSPOSED_SCATTER, TILE * (TILE + 1) * layout.width),
    };
    let grid = Grid { blocks, threads: THREADS, shared };
    let elements = layout.elements() as f64;
    // The mean elements of a tile along both dimensions.
    let [inside, outside] = [(along_in, down), (along_out, across)].map(|(d, n)| f64::from(d.size) / f64::from(n));
    let width = f64::from(layout.width);
    let sectors = |run: f64| elements / run * layout.sectors_of_run(run * width).max(1.0);
    let (mut read, written) = (sectors(inside), sectors(outside));
    // Each element of a row of the input has a length of its own, so that it is in another row. The other elements of
    // its sector are then read by other thread blocks.
    let varies = lengths_vary && !reverses_columns && !moves_columns;
    if varies {
        read *= f64::from(layout.axis.size.min(SECTOR / layout.width));
    }
    let details = match is_narrow {
        // Vectors that contain a length are put together from two.
        true if sides[0] == axis && along_out.length_stride != 0 => layout.lane_count() as f64 * 16.0 / width / WARP,
        true if varies => elements / WARP,
        false if scattered => elements / WARP,
        _ => 0.0,
    };
    let warps = f64::from(blocks) * f64::from(THREADS) / WARP;
    let rows_at_once = f64::from(THREADS / TILE);
    let work = Work {
        accesses: read + written,
        misses: read + written,
        steps: warps * if is_narrow { 8.0 } else { ceil(inside / rows_at_once) + ceil(outside / rows_at_once) },
        details,
        rounds: if is_narrow { 4.0 } else { ceil(inside / rows_at_once / 4.0) + ceil(outside / rows_at_once / 4.0) },
        ..layout.work()
    };
    let parameters = |layout: &Layout<'_>, _: &Sketch, _| {
        let sides = self::sides(layout).unwrap_or_default();
        let ([down, across], outer) = tiles(layout, sides);
        let dim = |n: usize| match layout.dimensions.get(n) {
            Some(d) => dim(d),
            None => layout.axis_dim(layout.axis.size),
        };
        let (tiles, axis) = (down * across, layout.dimensions.len());
        let others = (0..axis).filter(|n| !sides.contains(n)).map(dim);
        words(Transposed {
            r: layout.parameters(outer * u64::from(tiles), others),
            along_in: dim(sides[0]),
            along_out: dim(sides[1]),
            tiles: FastDiv::new(tiles),
            tiles_along_out: FastDiv::new(across),
            steps: FastDiv::new(if sides.contains(&axis) { 1 } else { layout.axis.size }),
        })
    };
    let alignment = if VECTORS { VEC16 } else { layout.width };
    Ok(Sketch { family, costs, unit: layout.width, grid, alignment, access: alignment, work, parameters })
}
