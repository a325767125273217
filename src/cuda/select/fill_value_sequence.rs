//! FILL_VALUE_SEQUENCE: its four kernels differ in the memory layout of the output that they need. The first that can
//! run a layout is the fastest, so fills need no estimates.
//!
//! ```text
//! packed:    | e0 e1 e2 e3 e4 ...              |   the whole tensor is one run
//! rows:      | run | gap | run | gap | ...         a run is the innermost dimension (stride 1)
//! dense:     | run           | run         | ...   a run is two or three innermost dimensions that leave no gaps
//! elements:  | e | . | e | . | e | ...             any layout, but not of FLOAT64, which must be packed
//! ```
//!
//! A thread stores up to 16 bytes of consecutive elements of a run as one vector. In dense runs it stores several.

use bytemuck::Zeroable;

use super::{blocks, chosen, reject_if, vectors_of_run, Candidate, RejectReason};
use crate::cuda::kernels::{self, Entry};
use crate::cuda::launch::{words, Grid, Launch};
use crate::cuda::parameters::fill::*;
use crate::cuda::parameters::{FastDiv, MAX_DIMS, THREADS};
use crate::cuda::tuning::fill::*;
use crate::cuda::tuning::{SECTOR, VEC16};
use crate::placement::Placement;
use crate::plan::fill_plan::{Arithmetic, Dimension, Plan};

const PACKED_ONLY: &str = "FLOAT64 sequences are packed";

type FillLaunch = fn(&Plan) -> Result<Launch, RejectReason>;

/// Fastest first. `rows::<true>` needs rows that all begin at multiples of a sector if the tensor does.
const KERNELS: &[(&str, FillLaunch)] = &[
    ("fill_packed", packed),
    ("fill_rows", rows::<true>),
    ("fill_rows", rows::<false>),
    ("fill_dense", dense),
    ("fill_elements", elements),
];

/// Every candidate, fastest first.
pub(crate) fn candidates(plan: &Plan) -> impl Iterator<Item = Candidate> + '_ {
    KERNELS
        .iter()
        .filter_map(|(_, launch)| launch(plan).ok())
        .map(Candidate::new)
}

/// The launches for pointers at multiples of `pointer_alignment`: the first that can run the plan, and further ones
/// down to one that accepts all of these pointers.
pub(crate) fn select(plan: &Plan, pointer_alignment: u32) -> Vec<Launch> {
    chosen(candidates(plan), pointer_alignment.max(plan.width))
        .map(|chosen| chosen.launch)
        .collect()
}

/// The kernels before the first that can run the plan, with their reasons.
pub(crate) fn rejected(plan: &Plan) -> Vec<(String, RejectReason)> {
    let mut rejected: Vec<(String, RejectReason)> = Vec::new();
    for (name, launch) in KERNELS {
        let result = launch(plan);
        rejected.retain(|(other, _)| other != name);
        match result {
            Ok(_) => break,
            Err(reason) => rejected.push(((*name).to_owned(), reason)),
        }
    }
    rejected
}

/// The whole tensor as one run: a 16-byte store per thread.
fn packed(plan: &Plan) -> Result<Launch, RejectReason> {
    let &Plan {
        arithmetic,
        width,
        start,
        delta,
        ..
    } = plan;
    let count = match plan.dimensions[..] {
        [] => 1,
        [Dimension {
            size, stride: 1, ..
        }] => size,
        _ => return Err("the output is not one contiguous run in the order of its index".into()),
    };
    let entry = kernels::FILL_PACKED.of_unit(Placement::OutOfPlace, width);
    let blocks = blocks(vectors_of_run(count, width, false).into(), 1);
    let (arithmetic, pattern) = (number(arithmetic), pattern(plan, 1));
    let params = FillPacked {
        out: 0,
        start,
        delta,
        count,
        arithmetic,
        pattern,
    };
    let grid = Grid {
        blocks,
        threads: THREADS,
        shared: 0,
    };
    Ok(Launch {
        params: words(params),
        ..Launch::new(entry, grid, width, VEC16)
    })
}

/// Runs of at least [`MIN_ROW_BYTES`]: a 16-byte store per thread.
fn rows<const ALIGNED: bool>(plan: &Plan) -> Result<Launch, RejectReason> {
    let run = run::<ALIGNED>(plan)?;
    reject_if(
        run == 0,
        (
            "the innermost dimension in memory is shorter than {} bytes",
            MIN_ROW_BYTES,
        ),
    )?;
    reject_if(
        run > 1,
        (
            "the innermost dimension in memory is shorter than {} bytes, and the next continues it",
            LONG_ROW_BYTES,
        ),
    )?;
    Ok(strided::<ALIGNED>(
        plan,
        kernels::FILL_ROWS.of_unit(Placement::OutOfPlace, plan.width),
        1,
    ))
}

/// Runs of two or three dimensions, as of a permuted tensor: up to [`DENSE_VECTORS`] 16-byte stores per thread.
fn dense(plan: &Plan) -> Result<Launch, RejectReason> {
    let run = run::<false>(plan)?;
    let text = "the innermost dimensions in memory leave gaps, or are shorter than {} bytes";
    reject_if(run < 2, (text, MIN_ROW_BYTES))?;
    Ok(strided::<false>(
        plan,
        kernels::FILL_DENSE.of_unit(Placement::OutOfPlace, plan.width),
        run,
    ))
}

/// Anything: an element per thread.
fn elements(plan: &Plan) -> Result<Launch, RejectReason> {
    reject_if(plan.arithmetic == Arithmetic::Float64, PACKED_ONLY)?;
    Ok(strided::<false>(
        plan,
        kernels::FILL_ELEMENTS.of_unit(Placement::OutOfPlace, plan.width),
        0,
    ))
}

/// A launch that writes the innermost `run` dimensions as one run. With 0, a thread writes an element.
fn strided<const ALIGNED: bool>(plan: &Plan, entry: Entry, run: usize) -> Launch {
    let width = plan.width;
    let (outer, run) = plan.dimensions.split_at(plan.dimensions.len() - run);
    let row_size: u32 = run.iter().map(|d| d.size).product();
    let rows: u64 = outer.iter().map(|d| u64::from(d.size)).product();
    let threads = RowThreads::new::<ALIGNED>(run.len(), row_size, width);
    let blocks = if run.is_empty() {
        blocks(rows, 1)
    } else {
        rows.div_ceil(u64::from(THREADS / threads.group)) as u32 * threads.parts
    };
    let [inner, middle, outermost] = [0, 1, 2].map(|n| nth_of_run(run, n));
    let (tables, shared) = if run.len() >= 2 && inner.size < VEC16 / width {
        tables(plan, inner.size, inner.step, middle.step)
    } else {
        Default::default()
    };
    let is_whole = u64::from(row_size) * u64::from(width) % u64::from(SECTOR) == 0;
    let params = FillStrided {
        out: 0,
        start: plan.start,
        delta: plan.delta,
        items: rows,
        parts: FastDiv::new(threads.parts),
        inner: FastDiv::new(inner.size),
        middle: FastDiv::new(middle.size),
        row_size,
        row_step: inner.step,
        middle_step: middle.step,
        outer_step: outermost.step,
        rank: outer.len() as u32,
        group_size_log2: threads.group.trailing_zeros(),
        whole: (ALIGNED && is_whole).into(),
        arithmetic: number(plan.arithmetic),
        pattern: pattern(plan, inner.step),
        tables: bytemuck::cast(tables),
        dims: dims_of(outer),
    };
    let alignment = if ALIGNED { VEC16 } else { width };
    let access = if run.is_empty() { width } else { VEC16 };
    let grid = Grid {
        blocks,
        threads: THREADS,
        shared,
    };
    Launch {
        params: words(params),
        ..Launch::new(entry, grid, alignment, access)
    }
}

/// The threads of a run: one for each vector or, in dense runs, one for each [`DENSE_VECTORS`] vectors, rounded up to a
/// power of two. A longer run is cut into parts, one thread block each.
struct RowThreads {
    /// Threads of a run, or of a part.
    group: u32,
    /// Parts of a run.
    parts: u32,
}

impl RowThreads {
    /// `run`: the number of dimensions of a run of `row_size` elements of `width` bytes.
    fn new<const ALIGNED: bool>(run: usize, row_size: u32, width: u32) -> Self {
        let vectors = if run == 0 {
            1
        } else {
            vectors_of_run(row_size, width, ALIGNED)
        };
        let per_thread = if run > 1 { DENSE_VECTORS } else { 1 };
        let threads = vectors.div_ceil(per_thread).next_power_of_two();
        Self {
            group: threads.min(THREADS),
            parts: vectors.div_ceil(THREADS * per_thread),
        }
    }
}

/// The n-th dimension of a run, from the innermost on. A run without it has one element there.
fn nth_of_run(run: &[Dimension], n: usize) -> Dimension {
    let none = Dimension {
        size: 1,
        stride: 0,
        step: 0,
    };
    run.iter().rev().nth(n).copied().unwrap_or(none)
}

/// Dimensions as kernels take them, innermost first.
fn dims_of(outer: &[Dimension]) -> [FillDim; MAX_DIMS as usize] {
    let mut dims = [FillDim::zeroed(); MAX_DIMS as usize];
    for (dim, d) in dims.iter_mut().zip(outer.iter().rev()) {
        *dim = FillDim {
            size: FastDiv::new(d.size),
            stride: d.stride,
            step: d.step,
        };
    }
    dims
}

/// The number of an arithmetic for the kernels.
fn number(arithmetic: Arithmetic) -> u32 {
    match arithmetic {
        Arithmetic::Int8 => INT8,
        Arithmetic::Int16 => INT16,
        Arithmetic::Int32 => INT32,
        Arithmetic::Int64 => INT64,
        Arithmetic::Float32 => FLOAT32,
        Arithmetic::Float16 => FLOAT16,
        Arithmetic::Float64 => FLOAT64,
    }
}

/// The differences of a vector's elements from its first, if they are `step` apart in the index.
fn pattern(plan: &Plan, step: u32) -> [u32; 4] {
    if matches!(
        plan.arithmetic,
        Arithmetic::Float32 | Arithmetic::Float16 | Arithmetic::Float64
    ) {
        return [0; 4]; // floats are computed from the index
    }
    distances(plan, |k| k.wrapping_mul(step))
}

/// For an innermost dimension shorter than a vector: for every coordinate c that a vector may begin with, the distances
/// of its elements from the one with coordinate 0. Also returns the bytes of shared memory that the tables take.
fn tables(plan: &Plan, size: u32, step: u32, next_step: u32) -> ([[u32; 4]; 15], u32) {
    let mut tables = [[0; 4]; 15];
    let mut rows = tables.iter_mut();
    for c in 0..size {
        let distance = |k: u32| {
            ((c + k) % size)
                .wrapping_mul(step)
                .wrapping_add(((c + k) / size).wrapping_mul(next_step))
        };
        if plan.arithmetic == Arithmetic::Float16 {
            // 8 indices, in two rows.
            for (row, k) in rows.by_ref().take(2).zip([0, 4]) {
                *row = std::array::from_fn(|n| distance(k + n as u32));
            }
        } else if let Some(row) = rows.next() {
            *row = match plan.arithmetic {
                Arithmetic::Float32 => std::array::from_fn(|n| distance(n as u32)),
                _ => distances(plan, distance),
            };
        }
    }
    let left = rows.len();
    (tables, (tables.len() - left) as u32 * VEC16)
}

/// The products of the first indices and delta, packed into 16 bytes.
fn distances(plan: &Plan, index: impl Fn(u32) -> u32) -> [u32; 4] {
    let width = plan.width as usize;
    let mut bytes = [0; VEC16 as usize];
    for (k, element) in bytes.chunks_mut(width).enumerate() {
        element.copy_from_slice(
            &u64::from(index(k as u32))
                .wrapping_mul(plan.delta)
                .to_le_bytes()[..width],
        );
    }
    bytemuck::cast(bytes)
}

/// How many of the innermost dimensions one run covers: at most three that leave no gaps in memory. Only one if it is
/// long enough, or if its rows are whole vectors at aligned addresses. 0 if no run is long enough for a kernel. With
/// `ALIGNED`, all rows must begin at multiples of a sector if the tensor does.
fn run<const ALIGNED: bool>(plan: &Plan) -> Result<usize, RejectReason> {
    reject_if(plan.arithmetic == Arithmetic::Float64, PACKED_ONLY)?;
    let bytes = |elements: u64| elements * u64::from(plan.width);
    let are_aligned = plan.dimensions.split_last().is_some_and(|(_, outer)| {
        outer
            .iter()
            .all(|d| bytes(d.stride.into()) % u64::from(SECTOR) == 0)
    });
    reject_if(
        ALIGNED && !are_aligned,
        ("rows do not all begin at multiples of {} bytes", SECTOR),
    )?;
    // The elements of the innermost dimensions that leave no gaps, and how many these are.
    let mut elements = 1;
    let mut dense = 0;
    for d in plan.dimensions.iter().rev().take(3) {
        if u64::from(d.stride) != elements {
            break;
        }
        elements *= u64::from(d.size);
        dense += 1;
    }
    let row = plan.dimensions.last().map_or(0, |d| bytes(d.size.into()));
    Ok(match dense {
        1.. if row >= LONG_ROW_BYTES => 1,
        1.. if ALIGNED && row >= MIN_ROW_BYTES => 1,
        1.. if bytes(elements) >= MIN_ROW_BYTES => dense,
        _ => 0,
    })
}
