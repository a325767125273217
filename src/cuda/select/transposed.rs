//! Tensors that are contiguous along different dimensions.

use super::reverse_subsequences::{dim, Layout, Way};
use super::{grid, FastDiv, THREADS};
use crate::cuda::kernels;
use crate::cuda::launch::Draft;
use crate::plan::reverse_subsequences::Dimension;

/// Elements of a tile along each of its two dimensions (a constant of the kernel file).
const TILE: u32 = 64;

/// Shorter dimensions leave most of a tile empty.
const LEAST: u32 = 16;

impl Layout<'_> {
    /// Tiles of the two dimensions along which the input and the output are contiguous; copying only.
    pub(super) fn transposed(&self) -> Way {
        let axis = Dimension {
            size: self.axis.size,
            in_stride: self.axis.in_stride,
            out_stride: self.axis.out_stride,
            length_stride: 0,
        };
        let all = || self.dimensions.iter().chain([&axis]);
        let [Some(along_in), Some(along_out)] = [
            all().position(|d| d.in_stride == 1 && d.size >= LEAST),
            all().position(|d| d.out_stride == 1 && d.size >= LEAST),
        ] else {
            return Err("a tensor is contiguous along no dimension of 16 elements or more");
        };
        if along_in == along_out {
            return Err("both tensors are contiguous along one dimension");
        }
        let dim = |n: usize| match self.dimensions.get(n) {
            Some(d) => dim(d),
            None => self.axis_dim(axis.size),
        };
        let others = (0..=self.dimensions.len()).filter(|&n| n != along_in && n != along_out).map(dim);
        let outer: u64 = others.clone().map(|dim| u64::from(dim.size.divisor)).product();
        let [along_in, along_out] = [dim(along_in), dim(along_out)];
        let [down, across] = [along_in, along_out].map(|dim| dim.size.divisor.div_ceil(TILE));
        let parts = u64::from(down) * u64::from(across);
        let blocks = grid(outer * parts)?;
        let mut params = self.params(outer * parts, others);
        let rank = params.rank as usize;
        params.dims[rank] = along_in;
        params.dims[rank + 1] = along_out;
        params.parts = FastDiv::new(parts as u32);
        params.group = FastDiv::new(across);
        let pitch = TILE * self.width + self.width.max(4);
        // [*, 512, 1024], the output's memory [*, 1024, 512], a length a lane: u8 118, f16 68, f32 45, i64 41, not 164, 115,
        // 76, 113; but a length a block 122, 69, 45, 40, not 108, 61, 40, 40.
        let send = along_out.axis == 1 && along_in.length_stride != 0;
        let kernel = if send { &kernels::TRANSPOSED_SEND } else { &kernels::TRANSPOSED };
        let entry = kernel.entry(self.width_index());
        let (alignment, access) = (self.width, self.width);
        Ok(Draft { entry, blocks, threads: THREADS, shared: TILE * pitch, alignment, access, params })
    }
}
