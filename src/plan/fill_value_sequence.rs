//! The plan of FILL_VALUE_SEQUENCE: the output's dimensions in memory order, and the kernel that writes them.

use std::ffi::CStr;

use bytemuck::{Pod, Zeroable};

use super::{blocks, slots_of_run, Entry, FastDiv, Launch, Module, MAX_DIMENSIONS, SLOT, THREADS};
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
    /// Ways to write it, fastest first; the last takes any pointer.
    pub launches: Vec<Kernel>,
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

impl Kernel {
    /// The entry point.
    pub fn entry(&self) -> Entry {
        match self {
            Self::Packed(launch) => launch.entry,
            Self::Rows(launch) | Self::Dense(launch) | Self::Elements(launch) => launch.entry,
        }
    }

    /// What the output's address must be a multiple of.
    pub fn alignment(&self) -> u32 {
        match self {
            Self::Packed(launch) => launch.alignment,
            Self::Rows(launch) | Self::Dense(launch) | Self::Elements(launch) => launch.alignment,
        }
    }
}

/// Shorter rows are mostly their two ends, which are stored in part.
const MIN_ROW_BYTES: u64 = 32;

/// Slots of a dense run that a thread takes (`DENSE_SLOTS` of the kernel file). NHWC with 3 channels u8 on an H200,
/// 2026-11-21: 62.7 µs, with 6 slots 63.7, with 16 64.4; one slot a thread, with divisions of its own, 102.
const SLOTS_OF_DENSE: u32 = 8;

/// Bytes that memory is written in.
const SECTOR: u32 = 32;

/// Shorter rows are written as part of a dense run where they are one, unless they are whole sectors: carrying from row
/// to row costs less than storing every row's ends in part. 256 MiB of NHWC with 64 channels f32 on an H200,
/// 2026-11-21: whole rows 60 µs; 2026-11-20: dense 67, rows with ends 71.
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
    pub pattern: [u32; 4],
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
    pub parts: FastDiv,
    pub inner: FastDiv,
    pub middle: FastDiv,
    pub row_size: u32,
    pub row_step: u32,
    pub middle_step: u32,
    pub outer_step: u32,
    pub rank: u32,
    pub group_log: u32,
    pub whole: u32,
    pub reserved: u32,
    pub pattern: [u32; 4],
    pub tables: [[u32; 4]; 15],
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

    fn is_float(self) -> bool {
        matches!(self, Self::Float32 | Self::Float16)
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
        let launches = launches(arithmetic, start, delta, &dimensions);
        Some(Self { arithmetic, start, delta, dimensions, launches })
    }

    /// The kernels that are faster than the first launch, with why they cannot write this layout.
    pub fn refused(&self) -> &'static [(&'static str, &'static str)] {
        const REFUSED: &[(&str, &str)] = &[
            ("fill_packed", "the output is no single run in memory in the order of its index"),
            ("fill_rows", "the innermost dimension in memory is no run of 1024 bytes, nor of whole 32-byte sectors at multiples of 32"),
            ("fill_dense", "the innermost dimensions in memory leave gaps, or fill fewer than 32 bytes without"),
        ];
        let count = match self.launches.first() {
            None | Some(Kernel::Packed(_)) => 0,
            Some(Kernel::Rows(_)) => 1,
            Some(Kernel::Dense(_)) => 2,
            Some(Kernel::Elements(_)) => 3,
        };
        &REFUSED[..count]
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

/// The launches of a sequence: where all rows begin at a multiple of 32 bytes if the tensor does, the one for that, and
/// the one for any pointer.
fn launches(arithmetic: Arithmetic, start: u64, delta: u64, dimensions: &[Dimension]) -> Vec<Kernel> {
    let width = arithmetic.width();
    if let [] | [Dimension { stride: 1, .. }] = dimensions {
        let count = dimensions.first().map_or(1, |d| d.size);
        let params = Packed { out: 0, start, delta, count, reserved: 0, pattern: pattern(arithmetic, delta, 1) };
        let blocks = blocks(slots_of_run(count, width, false).into(), 1);
        let entry = entry(arithmetic, 0);
        return vec![Kernel::Packed(Launch {
            entry,
            blocks,
            threads: THREADS,
            shared: 0,
            alignment: width,
            access: SLOT,
            params,
        })];
    }
    let whole = |elements: u32| (u64::from(elements) * u64::from(width)) % u64::from(SECTOR) == 0;
    let aligned = dimensions.split_last().is_some_and(|(_, outer)| outer.iter().all(|d| whole(d.stride)));
    let strided = |aligned| strided(arithmetic, start, delta, dimensions, aligned);
    if aligned {
        vec![strided(true), strided(false)]
    } else {
        vec![strided(false)]
    }
}

fn entry(arithmetic: Arithmetic, kind: usize) -> Entry {
    Entry { module: Module::FillValueSequence, index: kind * ARITHMETICS + arithmetic as usize }
}

fn strided(arithmetic: Arithmetic, start: u64, delta: u64, dimensions: &[Dimension], aligned: bool) -> Kernel {
    let width = arithmetic.width();
    // Runs of the innermost `run` dimensions, 0 where there is no run worth a kernel: elements one by one.
    let run = run(dimensions, width, aligned);
    let (outer, run) = dimensions.split_at(dimensions.len() - run);
    let row_size: u32 = run.iter().map(|d| d.size).product();
    let rows = outer.iter().map(|d| u64::from(d.size)).product::<u64>();
    let slots = if run.is_empty() { 1 } else { slots_of_run(row_size, width, aligned) };
    // As many threads for each run as it has slots, rounded up to a power of two, or a block for each part of it.
    let slots_of_thread = if run.len() > 1 { SLOTS_OF_DENSE } else { 1 };
    let threads = slots.div_ceil(slots_of_thread).next_power_of_two().min(THREADS);
    let parts = slots.div_ceil(THREADS * slots_of_thread);
    let blocks_of_runs = rows.div_ceil(u64::from(THREADS / threads)) as u32 * parts;
    let (kind, blocks) = match run.len() {
        0 => (3, blocks(rows, 1)),
        1 => (1, blocks_of_runs),
        _ => (2, blocks_of_runs),
    };
    let nth = |n: usize| run.len().checked_sub(n + 1).map(|at| run[at]);
    let step = |n: usize| nth(n).map_or(0, |d| d.step);
    let size = |n: usize| nth(n).map_or(1, |d| d.size);
    let mut dims = [Dim::zeroed(); MAX_DIMENSIONS];
    for (dim, d) in dims.iter_mut().zip(outer.iter().rev()) {
        *dim = Dim { size: FastDiv::new(d.size), stride: d.stride, step: d.step };
    }
    let (tables, shared) = match run.len() {
        2.. if size(0) < SLOT / width => tables(arithmetic, delta, size(0), step(0), step(1)),
        _ => Default::default(),
    };
    let params = Strided {
        out: 0,
        start,
        delta,
        items: rows,
        parts: FastDiv::new(parts),
        inner: FastDiv::new(size(0)),
        middle: FastDiv::new(size(1)),
        row_size,
        row_step: step(0),
        middle_step: step(1),
        outer_step: step(2),
        rank: outer.len() as u32,
        group_log: threads.trailing_zeros(),
        whole: (aligned && row_size * width % SECTOR == 0).into(),
        reserved: 0,
        pattern: pattern(arithmetic, delta, step(0)),
        tables,
        dims,
    };
    let alignment = if aligned { SLOT } else { width };
    let access = if run.is_empty() { width } else { SLOT };
    let launch = Launch { entry: entry(arithmetic, kind), blocks, threads: THREADS, shared, alignment, access, params };
    match run.len() {
        0 => Kernel::Elements(launch),
        1 => Kernel::Rows(launch),
        _ => Kernel::Dense(launch),
    }
}

/// What the elements of a slot, `step` apart in the index, add to its first.
fn pattern(arithmetic: Arithmetic, delta: u64, step: u32) -> [u32; 4] {
    if arithmetic.is_float() {
        return [0; 4]; // computed from the index
    }
    distances(arithmetic, delta, |k| k.wrapping_mul(step))
}

/// For an innermost dimension shorter than a slot: of every coordinate c that a slot may begin with, how far its
/// elements are from the one with coordinate 0, and the bytes of shared memory that hold it.
fn tables(arithmetic: Arithmetic, delta: u64, size: u32, step: u32, next_step: u32) -> ([[u32; 4]; 15], u32) {
    let mut tables = [[0; 4]; 15];
    let mut rows = tables.iter_mut();
    for c in 0..size {
        let distance =
            |k: u32| ((c + k) % size).wrapping_mul(step).wrapping_add(((c + k) / size).wrapping_mul(next_step));
        if arithmetic == Arithmetic::Float16 {
            // 8 indices, in two rows.
            for (row, k) in rows.by_ref().take(2).zip([0, 4]) {
                *row = std::array::from_fn(|n| distance(k + n as u32));
            }
        } else if let Some(row) = rows.next() {
            *row = match arithmetic {
                Arithmetic::Float32 => std::array::from_fn(|n| distance(n as u32)),
                _ => distances(arithmetic, delta, distance),
            };
        }
    }
    let left = rows.len();
    (tables, (tables.len() - left) as u32 * SLOT)
}

/// The products of the first indices and delta, side by side in 16 bytes.
fn distances(arithmetic: Arithmetic, delta: u64, index: impl Fn(u32) -> u32) -> [u32; 4] {
    let width = arithmetic.width() as usize;
    let mut bytes = [0; SLOT as usize];
    for (k, element) in bytes.chunks_mut(width).enumerate() {
        element.copy_from_slice(&u64::from(index(k as u32)).wrapping_mul(delta).to_le_bytes()[..width]);
    }
    bytemuck::cast(bytes)
}

/// How many of the innermost dimensions are written as one run: those that leave no gaps in memory, at most three,
/// but a single one where it is long enough, or where rows of whole slots begin at slots.
fn run(dimensions: &[Dimension], width: u32, aligned: bool) -> usize {
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
        1.. if aligned && bytes(1) >= MIN_ROW_BYTES && bytes(1) % u64::from(SLOT) == 0 => 1,
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
