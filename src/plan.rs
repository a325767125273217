//! Plans: what an operator has to do, as plain data: merged dimensions, lanes, and whether it may run in place. A plan
//! is made of a descriptor, and then knows no descriptor, no device and no kernel. The CPU walks it, and `cuda::select`
//! chooses kernels for it.

pub(crate) mod fill_plan;
pub(crate) mod reverse_plan;

use crate::desc::layout::join;
pub(crate) use crate::desc::layout::StridedDimension;

/// The parts of a plan that explanations show.
pub(crate) struct Summary {
    pub dimensions: Vec<MergedDimension>,
    /// The name of a run whose output is apart from the inputs, and the bytes that it must read and write.
    pub copying: (&'static str, u64),
    /// The most bytes that a run in place must read and write. `None` if it cannot run in place.
    pub in_place: Option<u64>,
}

/// A dimension of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct MergedDimension {
    /// The number of elements or, for the axis of a reversal, of steps along it.
    pub size: u32,
    /// Whether it is the axis of a reversal.
    pub is_axis: bool,
    /// How far one step along it advances, in elements: the stride of each tensor by its name and, for a fill, the step
    /// of the logical index.
    #[cfg_attr(feature = "serde", serde(serialize_with = "by_name"))]
    pub strides: Vec<(&'static str, u32)>,
}

#[cfg(feature = "serde")]
fn by_name<S: serde::Serializer>(
    strides: &[(&'static str, u32)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(strides.iter().copied())
}

/// Drops dimensions of size 1, sorts the rest by their first stride, and joins neighbours that are contiguous by all
/// strides. Outermost first.
pub(crate) fn merge<const N: usize>(
    mut dimensions: Vec<StridedDimension<N>>,
) -> Vec<StridedDimension<N>> {
    dimensions.retain(|dimension| dimension.size > 1);
    dimensions.sort_by_key(|dimension| std::cmp::Reverse(dimension.strides[0]));
    let mut merged: Vec<StridedDimension<N>> = Vec::with_capacity(dimensions.len());
    for dimension in dimensions {
        match merged.last_mut() {
            Some(outer) => match join(*outer, dimension) {
                Some(joined) => *outer = joined,
                None => merged.push(dimension),
            },
            None => merged.push(dimension),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::{merge, StridedDimension};

    #[test]
    fn neighbours_that_are_contiguous_by_all_strides_are_joined() {
        for (dimensions, required) in [
            // Packed: one run.
            (
                vec![(2, [60, 60]), (1, [7, 60]), (3, [20, 20]), (20, [1, 1])],
                vec![(120, [1, 1])],
            ),
            // NHWC memory of an NCHW tensor [2, 3, 4, 5]: H and W are one, N and C stay.
            (
                vec![(2, [60, 60]), (3, [1, 20]), (4, [15, 5]), (5, [3, 1])],
                vec![(2, [60, 60]), (20, [3, 1]), (3, [1, 20])],
            ),
            // Padded rows stay rows.
            (
                vec![(4, [70, 50]), (5, [14, 10]), (10, [1, 1])],
                vec![(20, [14, 10]), (10, [1, 1])],
            ),
        ] {
            let of_tuples = |tuples: Vec<(u32, [u32; 2])>| -> Vec<StridedDimension<2>> {
                let dimensions = tuples.into_iter();
                dimensions
                    .map(|(size, strides)| StridedDimension::new(size, strides))
                    .collect()
            };
            assert_eq!(merge(of_tuples(dimensions)), of_tuples(required));
        }
    }
}
