//! The plan of FILL_VALUE_SEQUENCE: the output's dimensions in memory order, and the kernel that writes them.

use std::ffi::CStr;

use bytemuck::{Pod, Zeroable};

use super::{blocks, slots_of_run, Entry, FastDiv, Launch, Module, MAX_DIMENSIONS, THREADS};
use crate::data_type::TensorDataType;
use crate::desc::FillValueSequenceDesc;
use crate::layout;

/// How values are computed. Signed and unsigned integers share: both wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Int8,
    Int16,
    Int32,
    Int64,
    Float32,
    Float16,
}

/// A dimension of the output: `stride` elements apart in memory, `step` apart in the logical index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dimension {
    pub size: u32,
    pub stride: u32,
    pub step: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub arithmetic: Arithmetic,
    pub start: u64,
    pub delta: u64,
    /// Of size above 1, merged, outermost in memory first; none where there is one element.
    pub dimensions: Vec<Dimension>,
    pub launch: Kernel,
}

/// The four kernels of kernels/fill_value_sequence.cu, fastest first.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kernel {
    /// The whole tensor is one run: a 16-byte store a thread.
    Packed(Launch<Packed>),
    /// Runs of at least [`MIN_ROW_BYTES`]: a 16-byte store a thread.
    Rows(Launch<Strided>),
    /// Runs of two or three dimensions, as of a permuted tensor: a 16-byte store a thread.
    Dense(Launch<Strided>),
    /// Anything: an element a thread.
    Elements(Launch<Strided>),
}

/// Shorter rows are mostly their two ends, which are stored in part.
const MIN_ROW_BYTES: u64 = 32;

/// Shorter rows are written as part of a dense run where they are one: carrying from row to row costs less than
/// storing every row's ends in part. 256 MiB of NHWC with 64 channels f32 on an H200, 2026-11-20: 67 µs, by rows 71.
const LONG_ROW_BYTES: u64 = 1024;

/// `FillPacked` of the kernel file.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct Packed {
    pub out: u64,
    pub start: u64,
    pub delta: u64,
    pub count: u32,
    pub reserved: u32,
}

/// `FillDim` of the kernel file.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct Dim {
    pub size: FastDiv,
    pub stride: u32,
    pub step: u32,
}

/// `FillStrided` of the kernel file.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct Strided {
    pub out: u64,
    pub start: u64,
    pub delta: u64,
    pub items: u64,
    pub slots: FastDiv,
    pub inner: FastDiv,
    pub middle: FastDiv,
    pub row_size: u32,
    pub row_step: u32,
    pub middle_step: u32,
    pub outer_step: u32,
    pub rank: u32,
    pub group_log: u32,
    pub dims: [Dim; MAX_DIMENSIONS],
}

/// Entry points: `KINDS` runs of one name for each [`Arithmetic`].
pub(crate) const ENTRIES: &[&CStr] = &[
    c"fill_packed_i8",
    c"fill_packed_i16",
    c"fill_packed_i32",
    c"fill_packed_i64",
    c"fill_packed_f32",
    c"fill_packed_f16",
    c"fill_rows_i8",
    c"fill_rows_i16",
    c"fill_rows_i32",
    c"fill_rows_i64",
    c"fill_rows_f32",
    c"fill_rows_f16",
    c"fill_dense_i8",
    c"fill_dense_i16",
    c"fill_dense_i32",
    c"fill_dense_i64",
    c"fill_dense_f32",
    c"fill_dense_f16",
    c"fill_elements_i8",
    c"fill_elements_i16",
    c"fill_elements_i32",
    c"fill_elements_i64",
    c"fill_elements_f32",
    c"fill_elements_f16",
];
const ARITHMETICS: usize = 6;

impl Arithmetic {
    /// `None` for types that validation rejects.
    fn of(data_type: TensorDataType) -> Option<Self> {
        use TensorDataType as T;
        Some(match data_type {
            T::Int8 | T::UInt8 => Self::Int8,
            T::Int16 | T::UInt16 => Self::Int16,
            T::Int32 | T::UInt32 => Self::Int32,
            T::Int64 | T::UInt64 => Self::Int64,
            T::Float32 => Self::Float32,
            T::Float16 => Self::Float16,
            T::Float64 | T::UInt4 | T::Int4 => return None,
        })
    }

    /// Bytes of one element.
    pub const fn width(self) -> u32 {
        match self {
            Self::Int8 => 1,
            Self::Int16 | Self::Float16 => 2,
            Self::Int32 | Self::Float32 => 4,
            Self::Int64 => 8,
        }
    }
}

impl Plan {
    /// The plan of a validated descriptor; `None` where it was not validated.
    pub fn new(desc: &FillValueSequenceDesc) -> Option<Self> {
        let output = &desc.output_tensor;
        let arithmetic = Arithmetic::of(output.data_type)?;
        let (start, delta) = (desc.value_start.to_bits(), desc.value_delta.to_bits());
        let steps = layout::packed_strides(&output.sizes);
        let strides = output.strides.as_ref().unwrap_or(&steps);
        let dimensions = (0..output.sizes.len())
            .map(|d| Dimension { size: output.sizes[d], stride: strides[d], step: steps[d] })
            .collect();
        let dimensions = merge(dimensions);
        let launch = launch(arithmetic, start, delta, &dimensions);
        Some(Self { arithmetic, start, delta, dimensions, launch })
    }
}

/// Drops dimensions of size 1, orders the rest by stride, and joins neighbours that are one in memory and in
/// the index.
fn merge(mut dimensions: Vec<Dimension>) -> Vec<Dimension> {
    dimensions.retain(|d| d.size > 1);
    dimensions.sort_by_key(|d| std::cmp::Reverse(d.stride));
    let mut merged: Vec<Dimension> = Vec::with_capacity(dimensions.len());
    for inner in dimensions {
        match merged.last_mut() {
            Some(outer)
                if follows(outer.stride, inner.stride, inner.size) && follows(outer.step, inner.step, inner.size) =>
            {
                *outer = Dimension { size: outer.size * inner.size, ..inner };
            }
            _ => merged.push(inner),
        }
    }
    merged
}

/// Whether a dimension with stride `outer` goes on where one of `size` elements with stride `inner` ends.
pub(super) fn follows(outer: u32, inner: u32, size: u32) -> bool {
    u64::from(outer) == u64::from(inner) * u64::from(size)
}

fn launch(arithmetic: Arithmetic, start: u64, delta: u64, dimensions: &[Dimension]) -> Kernel {
    let width = arithmetic.width();
    let entry =
        |kind: usize| Entry { module: Module::FillValueSequence, index: kind * ARITHMETICS + arithmetic as usize };
    if let [] | [Dimension { stride: 1, .. }] = dimensions {
        let count = dimensions.first().map_or(1, |d| d.size);
        let params = Packed { out: 0, start, delta, count, reserved: 0 };
        let blocks = blocks(slots_of_run(count, width, false).into(), 1);
        return Kernel::Packed(Launch { entry: entry(0), blocks, shared: 0, alignment: width, params });
    }

    // Runs of the innermost `run` dimensions, 0 where there is no run worth a kernel: elements one by one.
    let run = run(dimensions, width);
    let (outer, run) = dimensions.split_at(dimensions.len() - run);
    let row_size: u32 = run.iter().map(|d| d.size).product();
    let rows = outer.iter().map(|d| u64::from(d.size)).product::<u64>();
    let slots = if run.is_empty() { 1 } else { slots_of_run(row_size, width, false) };
    // Rows: as many threads for each as it has slots, rounded up to a power of two, or a block for each part of it.
    let threads = slots.next_power_of_two().min(THREADS);
    let parts = slots.div_ceil(THREADS);
    let (kind, items, slots, blocks) = match run.len() {
        0 => (3, rows, 1, blocks(rows, 1)),
        1 => (1, rows, parts, rows.div_ceil(u64::from(THREADS / threads)) as u32 * parts),
        _ => (2, rows * u64::from(slots), slots, blocks(rows * u64::from(slots), 1)),
    };
    let nth = |n: usize| run.len().checked_sub(n + 1).map(|at| run[at]);
    let step = |n: usize| nth(n).map_or(0, |d| d.step);
    let size = |n: usize| FastDiv::new(nth(n).map_or(1, |d| d.size));
    let mut dims = [Dim::zeroed(); MAX_DIMENSIONS];
    for (dim, d) in dims.iter_mut().zip(outer) {
        *dim = Dim { size: FastDiv::new(d.size), stride: d.stride, step: d.step };
    }
    let params = Strided {
        out: 0,
        start,
        delta,
        items,
        slots: FastDiv::new(slots),
        inner: size(0),
        middle: size(1),
        row_size,
        row_step: step(0),
        middle_step: step(1),
        outer_step: step(2),
        rank: outer.len() as u32,
        group_log: threads.trailing_zeros(),
        dims,
    };
    let launch = Launch { entry: entry(kind), blocks, shared: 0, alignment: width, params };
    match run.len() {
        0 => Kernel::Elements(launch),
        1 => Kernel::Rows(launch),
        _ => Kernel::Dense(launch),
    }
}

/// How many of the innermost dimensions are written as one run: those that leave no gaps in memory, at most three,
/// but a single one where it is long enough.
fn run(dimensions: &[Dimension], width: u32) -> usize {
    let bytes = |run: usize| {
        let run = &dimensions[dimensions.len() - run..];
        run.iter().map(|d| u64::from(d.size)).product::<u64>() * u64::from(width)
    };
    let mut dense = 0;
    let mut stride = 1;
    while dense < dimensions.len().min(3) {
        let d = dimensions[dimensions.len() - dense - 1];
        if u64::from(d.stride) != stride {
            break;
        }
        stride *= u64::from(d.size);
        dense += 1;
    }
    match dense {
        1.. if bytes(1) >= LONG_ROW_BYTES => 1,
        1.. if bytes(dense) >= MIN_ROW_BYTES => dense,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dimensions(sizes_and_strides: &[(u32, u32, u32)]) -> Vec<Dimension> {
        sizes_and_strides.iter().map(|&(size, stride, step)| Dimension { size, stride, step }).collect()
    }

    #[test]
    fn packed_tensors_are_one_run() {
        let merged = merge(dimensions(&[(2, 60, 60), (1, 7, 60), (3, 20, 20), (20, 1, 1)]));
        assert_eq!(merged, dimensions(&[(120, 1, 1)]));
    }

    #[test]
    fn permuted_tensors_keep_their_index_steps() {
        // NHWC memory of an NCHW tensor [2, 3, 4, 5]: H and W are one, N and C stay.
        let merged = merge(dimensions(&[(2, 60, 60), (3, 1, 20), (4, 15, 5), (5, 3, 1)]));
        assert_eq!(merged, dimensions(&[(2, 60, 60), (20, 3, 1), (3, 1, 20)]));
    }

    #[test]
    fn padded_rows_stay_rows() {
        let merged = merge(dimensions(&[(4, 70, 50), (5, 14, 10), (10, 1, 1)]));
        assert_eq!(merged, dimensions(&[(20, 14, 10), (10, 1, 1)]));
    }
}
