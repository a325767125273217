//! Plans: what an operator has to do, as plain data: merged dimensions, lanes, and whether it may run in place. A plan
//! knows no descriptor, no device and no kernel. The CPU walks it, and `cuda::select` chooses kernels for it.

pub(crate) mod fill_plan;
pub(crate) mod reverse_plan;

/// What a plan tells people.
pub(crate) struct Summary {
    pub dimensions: Vec<MergedDimension>,
    /// The name of the mode with a separate output.
    pub mode: &'static str,
    /// Bytes that a run in that mode must read and write.
    pub bytes: u64,
    /// The same if the output is the input; `None` if it may not be.
    pub bytes_in_place: Option<u64>,
}

/// A dimension of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MergedDimension {
    /// The number of elements or, for the axis of a reversal, of steps along it.
    pub size: u32,
    /// Whether it is the axis of a reversal.
    pub is_axis: bool,
    /// How far one step along it advances, in elements: the stride of each tensor by its name and, for a fill, the step
    /// of the logical index.
    pub strides: Vec<(&'static str, u32)>,
}

/// Whether a dimension with stride `outer` continues a dimension of `size` elements with stride `inner`.
fn follows(outer: u32, inner: u32, size: u32) -> bool {
    u64::from(outer) == u64::from(inner) * u64::from(size)
}
