//! The two ways to run an operator.

/// How an operator runs: the output is apart from the inputs, as that of a fill is, or it is the first input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Placement {
    OutOfPlace,
    InPlace,
}

impl Placement {
    pub const ALL: [Self; 2] = [Self::OutOfPlace, Self::InPlace];

    pub fn new(in_place: bool) -> Self {
        Self::ALL[usize::from(in_place)]
    }

    /// Returns the part of a pair, in the order of `ALL`, for this placement.
    pub fn of<T>(self, [out_of_place, in_place]: &[T; 2]) -> &T {
        match self {
            Self::OutOfPlace => out_of_place,
            Self::InPlace => in_place,
        }
    }
}
