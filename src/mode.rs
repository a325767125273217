//! The two ways to run an operator.

/// How an operator runs: the output is apart from the inputs, as that of a fill is, or it is the first input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Mode {
    Copying,
    InPlace,
}

impl Mode {
    pub const ALL: [Self; 2] = [Self::Copying, Self::InPlace];

    pub fn new(in_place: bool) -> Self {
        Self::ALL[usize::from(in_place)]
    }

    /// Returns the part of a pair, in the order of `ALL`, for this mode.
    pub fn of<T>(self, [copying, in_place]: &[T; 2]) -> &T {
        match self {
            Self::Copying => copying,
            Self::InPlace => in_place,
        }
    }
}
