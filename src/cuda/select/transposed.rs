//! reverse_transposed.cu: tensors that are contiguous along different dimensions.

use bytemuck::{Pod, Zeroable};

use super::fast_div::FastDiv;
use super::layout::{dim, Layout, Reverse, ReverseDim};
use super::{grid, reject_if, RejectReason};
use crate::cuda::tuning::transposed::*;
use crate::cuda::tuning::VEC16;
use crate::cuda::{kernels, Launch};

/// `Transposed` of the kernel file.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Transposed {
    r: Reverse,
    along_in: ReverseDim,
    along_out: ReverseDim,
    tiles: FastDiv,
    tiles_along_out: FastDiv,
}
const _: () = assert!(size_of::<Transposed>() == 416 && std::mem::offset_of!(Transposed, r) == 0);

/// Elements of a tile along the two dimensions.
fn tile(layout: &Layout<'_>) -> [u32; 2] {
    match layout.width {
        1 | 2 => [TILE_IN_BYTES / layout.width, TILE_OUT],
        _ => [TILE; 2],
    }
}

/// Tiles of the two dimensions along which the input and the output are contiguous; not in place. `VECTORS`: elements of 1 and 2
/// bytes, whose rows of the output are stored as vectors.
pub(super) fn transposed<const VECTORS: bool>(layout: &Layout<'_>) -> Result<Launch, RejectReason> {
    let all = || layout.dimensions.iter().chain([&layout.axis]);
    let [place_in, place_out] = layout.transposed_sides()?;
    let dim = |n: usize| match layout.dimensions.get(n) {
        Some(d) => dim(d),
        None => layout.axis_dim(layout.axis.size),
    };
    let others = (0..=layout.dimensions.len()).filter(|&n| n != place_in && n != place_out).map(dim);
    let outer: u64 = others.clone().map(|dim| u64::from(dim.size.divisor)).product();
    let [along_in, along_out] = [dim(place_in), dim(place_out)];
    let scattered = along_out.axis == 1 && along_in.length_stride != 0;
    let is_narrow = layout.width < 4;
    let mut rows = all().enumerate().filter(|&(n, d)| n != place_out && d.size > 1);
    let in_vectors = is_narrow && !scattered && rows.all(|(_, d)| layout.divides(d.out_stride, VEC16));
    reject_if(VECTORS && !in_vectors, "rows of the output are not vectors of elements of 1 or 2 bytes")?;
    let tile = tile(layout);
    let [down, across] = [along_in.size.divisor.div_ceil(tile[0]), along_out.size.divisor.div_ceil(tile[1])];
    let tiles = u64::from(down) * u64::from(across);
    let blocks = grid(outer * tiles)?;
    // The elements for which all tiles have room. Gathering is the faster, the emptier the tiles are.
    let room = outer * tiles * u64::from(tile[0] * tile[1]);
    let in_tiles = in_vectors && !layout.lengths_vary_along_the_output();
    let empty = if in_tiles { EMPTY * 4 / u64::from(layout.width) } else { EMPTY };
    if layout.elements() * empty < room {
        layout.exceeds(u64::MAX)?;
    }
    if !in_tiles {
        layout.exceeds(MOST_GATHERED + MOST_GATHERED_IF_EMPTY * (room - layout.elements()) / room)?;
    }
    let (family, shared) = match (is_narrow, VECTORS) {
        (true, true) => (&kernels::TRANSPOSED, TILE_OUT * TILE_IN_BYTES),
        // A column and a vector between columns, and a vector before the first.
        (true, false) => (&kernels::TRANSPOSED_SCATTER, tile[0] * (TILE_OUT * layout.width + VEC16) + VEC16),
        (false, _) if scattered => (&kernels::TRANSPOSED_SCATTER, TILE * (TILE + 1) * layout.width),
        (false, _) => (&kernels::TRANSPOSED, TILE * (TILE + 1) * layout.width),
    };
    let unit = if VECTORS { VEC16 } else { layout.width };
    let params = Transposed {
        r: layout.parameters(outer * tiles, others),
        along_in,
        along_out,
        tiles: FastDiv::new(tiles as u32),
        tiles_along_out: FastDiv::new(across),
    };
    let launch = Launch::new(layout.entry(family, layout.width), blocks, unit, params);
    Ok(Launch { shared, ..launch })
}
