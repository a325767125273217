//! Connects each operator with its modules in `plan`, `cpu` and `cuda::select`.

use crate::cpu::{self, cpu_fill, cpu_reverse};
#[cfg(feature = "cuda")]
use crate::cuda::select::{self, Launches};
#[cfg(feature = "cuda")]
use crate::cuda::{GpuTarget, Mode};
use crate::desc::OperatorDesc;
use crate::plan::{self, fill_plan, reverse_plan};

/// The plan of one operator.
#[derive(Clone, Debug)]
pub(crate) enum OperatorPlan {
    FillValueSequence(fill_plan::Plan),
    ReverseSubsequences(reverse_plan::Plan),
}

impl OperatorPlan {
    /// The plan of a validated descriptor; `None` if the descriptor was not validated.
    pub fn new(desc: &OperatorDesc) -> Option<Self> {
        match desc {
            OperatorDesc::FillValueSequence(desc) => fill_plan::Plan::new(desc).map(Self::FillValueSequence),
            OperatorDesc::ReverseSubsequences(desc) => reverse_plan::Plan::new(desc).map(Self::ReverseSubsequences),
        }
    }

    /// The plan for `explain`: merged dimensions and bytes.
    pub fn summary(&self) -> plan::Summary {
        match self {
            Self::FillValueSequence(plan) => plan.summary(),
            Self::ReverseSubsequences(plan) => plan.summary(),
        }
    }

    /// Whether the output may be the first input.
    pub fn runs_in_place(&self) -> bool {
        match self {
            Self::FillValueSequence(_) => false,
            Self::ReverseSubsequences(plan) => plan.in_place,
        }
    }

    /// Runs it on the calling thread.
    pub fn run_on_cpu(&self, operands: cpu::Operands<'_>) {
        match self {
            Self::FillValueSequence(plan) => cpu_fill::run(plan, operands),
            Self::ReverseSubsequences(plan) => cpu_reverse::run(plan, operands),
        }
    }

    /// The kernel launches that can run it on a GPU in a mode.
    #[cfg(feature = "cuda")]
    pub fn select(&self, target: &GpuTarget, mode: Mode) -> Launches {
        match self {
            Self::FillValueSequence(plan) => select::fill_value_sequence::select(plan, mode),
            Self::ReverseSubsequences(plan) => select::reverse_subsequences::select(plan, target, mode),
        }
    }
}
