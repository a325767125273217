//! The plan of REVERSE_SUBSEQUENCES: the axis, the dimensions beside it, and the kernels that move the bits.

use bytemuck::{Pod, Zeroable};

use super::fill_value_sequence::follows;
use super::reverse_launches::{Launches, Ways};
use super::{FastDiv, Target, MAX_DIMENSIONS};
use crate::data_type::TensorDataType;
use crate::desc::{BufferTensorDesc, ReverseSubsequencesDesc};
use crate::layout;

/// A dimension beside the axis. Strides are in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dimension {
    pub size: u32,
    pub in_stride: u32,
    pub out_stride: u32,
    pub length_stride: u32,
}

/// The dimension along which lanes run. Strides are in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Axis {
    pub size: u32,
    pub in_stride: u32,
    pub out_stride: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Bytes of an element.
    pub width: u32,
    /// Lengths are UINT64, not UINT32.
    pub wide_lengths: bool,
    pub axis: Axis,
    /// Of size above 1, merged, outermost in the output's memory first.
    pub dimensions: Vec<Dimension>,
    /// Ways to copy; the last takes any pointers.
    pub copy: Ways,
    /// The same in place: `None` where the two tensors have different strides; no launches where nothing moves.
    pub in_place: Option<Ways>,
}

/// `ReverseDim` of the kernel file.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct Dim {
    pub size: FastDiv,
    pub in_stride: u32,
    pub out_stride: u32,
    pub length_stride: u32,
    pub axis: u32,
}

/// `Reverse` of the kernel file.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct Params {
    pub input: u64,
    pub lengths: u64,
    pub out: u64,
    pub items: u64,
    pub axis_size: u32,
    pub axis_in_stride: u32,
    pub axis_out_stride: u32,
    pub wide_lengths: u32,
    pub dims: [Dim; MAX_DIMENSIONS],
    pub in_bytes: u64,
    pub parts: FastDiv,
    pub block: FastDiv,
    pub group: FastDiv,
    pub together: u32,
    pub unit: u32,
    pub pitch: u32,
    pub team_log: u32,
    pub length_stride: u32,
    pub rank: u32,
}

impl Plan {
    /// The plan of a validated descriptor; `None` where it was not validated.
    pub fn new(desc: &ReverseSubsequencesDesc, target: &Target) -> Option<Self> {
        Self::with(desc, target, false)
    }

    /// The same with launches that no pointers get: behind one that takes any.
    #[cfg(test)]
    pub fn with_every_launch(desc: &ReverseSubsequencesDesc, target: &Target) -> Option<Self> {
        Self::with(desc, target, true)
    }

    fn with(desc: &ReverseSubsequencesDesc, target: &Target, every: bool) -> Option<Self> {
        let (input, lengths, output) = (&desc.input_tensor, &desc.sequence_lengths_tensor, &desc.output_tensor);
        let (in_strides, length_strides, out_strides) = (strides(input), strides(lengths), strides(output));
        let a = desc.axis as usize;
        let axis =
            Axis { size: *input.sizes.get(a)?, in_stride: *in_strides.get(a)?, out_stride: *out_strides.get(a)? };
        let beside = (0..input.sizes.len()).filter(|&d| d != a).map(|d| Dimension {
            size: input.sizes[d],
            in_stride: in_strides[d],
            out_stride: out_strides[d],
            length_stride: length_strides[d],
        });
        let dimensions = merge(beside.collect());
        let width = input.data_type.size_in_bits() / 8;
        let wide_lengths = lengths.data_type == TensorDataType::UInt64;
        let launches = Launches {
            width,
            wide_lengths,
            axis,
            dimensions: &dimensions,
            in_bytes: input.total_tensor_size_in_bytes,
            target,
            every,
        };
        let same_axis = axis.size == 1 || axis.in_stride == axis.out_stride;
        let same_layout = same_axis && dimensions.iter().all(|d| d.in_stride == d.out_stride);
        let copy = launches.copy();
        let in_place = same_layout.then(|| launches.in_place());
        Some(Self { width, wide_lengths, axis, dimensions, copy, in_place })
    }
}

fn strides(tensor: &BufferTensorDesc) -> Vec<u32> {
    tensor.strides.clone().unwrap_or_else(|| layout::packed_strides(&tensor.sizes))
}

/// Drops dimensions of size 1, orders the rest by output stride, and joins neighbours that are one in all
/// three tensors.
fn merge(mut dimensions: Vec<Dimension>) -> Vec<Dimension> {
    dimensions.retain(|d| d.size > 1);
    dimensions.sort_by_key(|d| std::cmp::Reverse(d.out_stride));
    let mut merged: Vec<Dimension> = Vec::with_capacity(dimensions.len());
    for inner in dimensions {
        match merged.last_mut() {
            Some(outer)
                if follows(outer.out_stride, inner.out_stride, inner.size)
                    && follows(outer.in_stride, inner.in_stride, inner.size)
                    && follows(outer.length_stride, inner.length_stride, inner.size) =>
            {
                *outer = Dimension { size: outer.size * inner.size, ..inner };
            }
            _ => merged.push(inner),
        }
    }
    merged
}
