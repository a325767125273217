//! Tensors that are contiguous along different dimensions.

use std::ffi::CStr;

use super::{dim, grid, Dim, Entry, Launch, Launches, Module, Way};
use crate::plan::{FastDiv, THREADS};

/// kernels/reverse_subsequences_transposed.cu.
pub(crate) const ENTRIES: &[&CStr] =
    &[c"reverse_transposed_1", c"reverse_transposed_2", c"reverse_transposed_4", c"reverse_transposed_8"];

/// Elements of a tile along each of its two dimensions (a constant of the kernel file).
const TILE: u32 = 64;

/// Shorter dimensions leave most of a tile empty.
const LEAST: u32 = 16;

impl Launches<'_> {
    /// Tiles of the two dimensions along which the input and the output are contiguous; copying only.
    pub(super) fn transposed(&self) -> Way {
        let mut dims: Vec<(Dim, [u32; 2])> =
            self.dimensions.iter().map(|d| (dim(d), [d.in_stride, d.out_stride])).collect();
        let axis = Dim { size: FastDiv::new(self.axis.size), in_stride: 0, out_stride: 0, length_stride: 0, axis: 1 };
        dims.push((axis, [self.axis.in_stride, self.axis.out_stride]));
        let contiguous =
            |of: usize| dims.iter().position(|(dim, strides)| strides[of] == 1 && dim.size.divisor >= LEAST);
        let [Some(along_in), Some(along_out)] = [contiguous(0), contiguous(1)] else {
            return Err("a tensor is contiguous along no dimension of 16 elements or more");
        };
        if along_in == along_out {
            return Err("both tensors are contiguous along one dimension");
        }
        let tiles = |n: usize| u64::from(dims[n].0.size.divisor.div_ceil(TILE));
        let parts = tiles(along_in) * tiles(along_out);
        let others: Vec<Dim> =
            (0..dims.len()).filter(|&n| n != along_in && n != along_out).map(|n| dims[n].0).collect();
        let outer: u64 = others.iter().map(|dim| u64::from(dim.size.divisor)).product();
        let blocks = grid(outer * parts)?;
        let mut params = self.params(outer * parts, others.into_iter());
        let rank = params.rank as usize;
        params.dims[rank] = dims[along_in].0;
        params.dims[rank + 1] = dims[along_out].0;
        params.parts = FastDiv::new(parts as u32);
        params.group = FastDiv::new(tiles(along_out) as u32);
        let pitch = TILE * self.width + self.width.max(4);
        let entry = Entry { module: Module::ReverseTransposed, index: self.width_index() };
        let (alignment, access) = (self.width, self.width);
        Ok(Launch { entry, blocks, threads: THREADS, shared: TILE * pitch, alignment, access, params })
    }
}
