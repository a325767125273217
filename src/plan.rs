//! Plans: what there is to do, as plain data. Dimensions are merged, lanes are found, and it is known what may run in
//! place. A plan knows no descriptor, no device and no kernel: the CPU walks it, and `cuda::select` chooses kernels
//! for it.

pub(crate) mod fill_value_sequence;
pub(crate) mod reverse_subsequences;

/// What there is to say of a plan to people.
pub(crate) struct Summary {
    pub dimensions: Vec<MergedDimension>,
    /// What a run with an output of its own is called.
    pub mode: &'static str,
    /// Bytes that such a run must read and write.
    pub bytes: u64,
    /// The same where the output is the input; `None` where it may not be.
    pub bytes_in_place: Option<u64>,
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

/// Whether a dimension with stride `outer` continues where one of `size` elements with stride `inner` ends.
fn follows(outer: u32, inner: u32, size: u32) -> bool {
    u64::from(outer) == u64::from(inner) * u64::from(size)
}
