//! What a compiled operator will do, in words: [`CompiledOperator::explain`].

use std::fmt;

use crate::operator::{CompiledOperator, Operator};
use crate::plan::fill_value_sequence::{self, Kernel};
use crate::plan::reverse_launches::Ways;
use crate::plan::{reverse_subsequences, Launch, Plan};
use crate::target::GpuTarget;

/// The plan of a compiled operator: dimensions as they were merged, and the kernels that a dispatch chooses from.
/// `Display` writes it for people; `dml-cuda --explain` prints that.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The merged dimensions, outermost in the output's memory first; dimensions of size 1 are gone.
    pub dimensions: Vec<MergedDimension>,
    /// How a fill, a reversal between two buffers, and one in place would run; no in-place mode where the strides of
    /// input and output differ.
    pub modes: Vec<ExplainedMode>,
}

/// A dimension of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MergedDimension {
    /// Elements, or for the axis of a reversal, steps along it.
    pub size: u32,
    /// Whether it is the axis of a reversal.
    pub is_axis: bool,
    /// What a step along it advances, in elements: strides of the tensors by their names, and of a fill the logical
    /// index.
    pub strides: Vec<(&'static str, u32)>,
}

/// How a dispatch of one kind runs on a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExplainedMode {
    /// `fill`, `copying` or `in place`.
    pub name: &'static str,
    /// Bytes that must move, read and written: in place, where every length is the axis.
    pub bytes: u64,
    /// The launches that are chosen from, in this order, by the alignment of the pointers; none where nothing moves.
    /// Bound buffers get the first, whose alignment they always have.
    pub launches: Vec<ExplainedLaunch>,
    /// Faster kernels that cannot run this layout, fastest first, each with the reason.
    pub refused: Vec<(String, String)>,
}

/// A kernel launch of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExplainedLaunch {
    /// The entry point, named as in `kernels/`.
    pub kernel: String,
    /// Bytes of the widest store of a thread.
    pub access_bytes: u32,
    /// Blocks of threads.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of dynamic shared memory of a block.
    pub shared_memory: u32,
    /// What the addresses of the big tensors must be multiples of.
    pub alignment: u32,
}

impl CompiledOperator {
    /// What a dispatch will do: merged dimensions, kernels, grids, bytes, and why no faster kernel was chosen.
    ///
    /// On the CPU device the kernels are those of a GPU whose blocks have 48 KiB of shared memory.
    pub fn explain(&self) -> Explanation {
        explain(self.plan())
    }
}

impl Operator {
    /// What a dispatch would do on a GPU with those limits, whether there is one or not: merged dimensions, kernels, grids,
    /// bytes, and why no faster kernel was chosen.
    pub fn explain(&self, target: &GpuTarget) -> Explanation {
        explain(&self.plan(target))
    }
}

fn explain(plan: &Plan) -> Explanation {
    match plan {
        Plan::FillValueSequence(plan) => fill(plan),
        Plan::ReverseSubsequences(plan) => reverse(plan),
    }
}

fn explained<P>(launch: &Launch<P>) -> ExplainedLaunch {
    ExplainedLaunch {
        kernel: launch.entry.name().to_string_lossy().into_owned(),
        access_bytes: launch.access,
        blocks: launch.blocks,
        threads: launch.threads,
        shared_memory: launch.shared,
        alignment: launch.alignment,
    }
}

fn fill(plan: &fill_value_sequence::Plan) -> Explanation {
    let dimension = |d: &fill_value_sequence::Dimension| MergedDimension {
        size: d.size,
        is_axis: false,
        strides: vec![("OutputTensor", d.stride), ("index", d.step)],
    };
    let launches: Vec<ExplainedLaunch> = plan
        .launches
        .iter()
        .map(|way| match way {
            Kernel::Packed(launch) => explained(launch),
            Kernel::Rows(launch) | Kernel::Dense(launch) | Kernel::Elements(launch) => explained(launch),
        })
        .collect();
    let elements: u64 = plan.dimensions.iter().map(|d| u64::from(d.size)).product();
    let refused = plan.refused().iter().map(|&(kernel, because)| (kernel.to_owned(), because.to_owned())).collect();
    let bytes = elements * u64::from(plan.arithmetic.width());
    Explanation {
        dimensions: plan.dimensions.iter().map(dimension).collect(),
        modes: vec![ExplainedMode { name: "fill", bytes, launches, refused }],
    }
}

fn reverse(plan: &reverse_subsequences::Plan) -> Explanation {
    let mut dimensions: Vec<MergedDimension> = plan
        .dimensions
        .iter()
        .map(|d| MergedDimension {
            size: d.size,
            is_axis: false,
            strides: vec![
                ("InputTensor", d.in_stride),
                ("SequenceLengthsTensor", d.length_stride),
                ("OutputTensor", d.out_stride),
            ],
        })
        .collect();
    let axis = &plan.axis;
    let at = plan.dimensions.iter().position(|d| d.out_stride < axis.out_stride).unwrap_or(dimensions.len());
    let strides = vec![("InputTensor", axis.in_stride), ("OutputTensor", axis.out_stride)];
    dimensions.insert(at, MergedDimension { size: axis.size, is_axis: true, strides });

    let lanes: u64 = plan.dimensions.iter().map(|d| u64::from(d.size)).product();
    let lengths: u64 = plan.dimensions.iter().filter(|d| d.length_stride != 0).map(|d| u64::from(d.size)).product();
    let moved = 2 * lanes * u64::from(axis.size) * u64::from(plan.width);
    let bytes = moved + lengths * if plan.wide_lengths { 8 } else { 4 };
    let mode = |name, ways: &Ways| ExplainedMode {
        name,
        bytes: if ways.launches.is_empty() { 0 } else { bytes },
        launches: ways.launches.iter().map(explained).collect(),
        refused: ways.refused.iter().map(|&(kernel, because)| (kernel.to_owned(), because.to_owned())).collect(),
    };
    let copying = std::iter::once(mode("copying", &plan.copy));
    let modes = copying.chain(plan.in_place.iter().map(|ways| mode("in place", ways))).collect();
    Explanation { dimensions, modes }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.dimensions.is_empty() {
            writeln!(f, "merged shape: one element")?;
        } else {
            writeln!(f, "merged shape, outermost in the output's memory first:")?;
        }
        for dimension in &self.dimensions {
            let name = if dimension.is_axis { "axis" } else { "size" };
            let strides: Vec<String> =
                dimension.strides.iter().map(|(tensor, stride)| format!("{tensor} {stride}")).collect();
            writeln!(f, "  {name} {}, steps of {}", dimension.size, strides.join(", "))?;
        }
        for mode in &self.modes {
            let most = if mode.name == "in place" { "at most " } else { "" };
            writeln!(f, "{}: {most}{} bytes must move", mode.name, mode.bytes)?;
            if mode.launches.is_empty() {
                writeln!(f, "  no kernel: nothing moves")?;
            }
            for launch in &mode.launches {
                let ExplainedLaunch { kernel, access_bytes, blocks, threads, shared_memory, alignment } = launch;
                writeln!(
                    f,
                    "  {kernel}: {access_bytes}-byte stores, grid {blocks} x {threads} threads, {shared_memory} bytes of shared memory a block, pointers at multiples of {alignment}"
                )?;
            }
            for (kernel, because) in &mode.refused {
                writeln!(f, "  not {kernel}: {because}")?;
            }
        }
        Ok(())
    }
}
