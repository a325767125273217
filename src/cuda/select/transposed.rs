//! reverse_transposed.cu: tensors that are contiguous along different dimensions.

use bytemuck::{Pod, Zeroable};

use super::fast_div::FastDiv;
use super::layout::{dim, reverse_parameters, Layout, Reverse, ReverseDim};
use super::{grid, reject, reject_at, RejectReason};
use crate::cuda::kernels;
use crate::cuda::launch::Launch;
use crate::cuda::tuning::transposed::*;
use crate::cuda::tuning::THREADS;
use crate::plan::reverse_subsequences::Dimension;

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
reverse_parameters!(Transposed, 416);

/// Tiles of the two dimensions along which the input and the output are contiguous; not in place.
pub(super) fn transposed(layout: &Layout<'_>) -> Result<Launch, RejectReason> {
    let axis = Dimension {
        size: layout.axis.size,
        in_stride: layout.axis.in_stride,
        out_stride: layout.axis.out_stride,
        length_stride: 0,
    };
    let all = || layout.dimensions.iter().chain([&axis]);
    let [Some(along_in), Some(along_out)] = [
        all().position(|d| d.in_stride == 1 && d.size >= MIN_DIMENSION),
        all().position(|d| d.out_stride == 1 && d.size >= MIN_DIMENSION),
    ] else {
        return reject_at("a tensor is not contiguous along any dimension of {} elements or more", MIN_DIMENSION);
    };
    if along_in == along_out {
        return reject("both tensors are contiguous along one dimension");
    }
    let dim = |n: usize| match layout.dimensions.get(n) {
        Some(d) => dim(d),
        None => layout.axis_dim(axis.size),
    };
    let others = (0..=layout.dimensions.len()).filter(|&n| n != along_in && n != along_out).map(dim);
    let outer: u64 = others.clone().map(|dim| u64::from(dim.size.divisor)).product();
    let [along_in, along_out] = [dim(along_in), dim(along_out)];
    let [down, across] = [along_in, along_out].map(|dim| dim.size.divisor.div_ceil(TILE));
    let tiles = u64::from(down) * u64::from(across);
    let blocks = grid(outer * tiles)?;
    let pitch = TILE * layout.width + layout.width.max(4);
    let scatter = along_out.axis == 1 && along_in.length_stride != 0;
    let kernel = if scatter { &kernels::TRANSPOSED_SCATTER } else { &kernels::TRANSPOSED };
    let launch = Launch {
        entry: kernel.entry(layout.width_index()),
        blocks,
        threads: THREADS,
        shared: TILE * pitch,
        alignment: layout.width,
        access: layout.width,
        params: Transposed {
            r: layout.parameters(outer * tiles, others),
            along_in,
            along_out,
            tiles: FastDiv::new(tiles as u32),
            tiles_along_out: FastDiv::new(across),
        },
    };
    Ok(launch.erase())
}
