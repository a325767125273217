//! The plan of any operator: connects each operator with its modules in `plan`, `cpu` and `cuda::select`.
//!
//! This and `desc.rs` are where a third operator would be added: the compiler names every `match` that lacks it.

use crate::cpu::{self, cpu_fill, cpu_reverse};
use crate::cuda::select::{fill_value_sequence, reverse_subsequences, Candidate, RejectReason};
use crate::cuda::{GpuTarget, Launch, Placement};
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
            OperatorDesc::FillValueSequence(desc) => {
                fill_plan::Plan::new(desc).map(Self::FillValueSequence)
            }
            OperatorDesc::ReverseSubsequences(desc) => {
                reverse_plan::Plan::new(desc).map(Self::ReverseSubsequences)
            }
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

    /// The kernel launches that run it fastest on a GPU in a placement, for pointers at multiples of `pointer_alignment`
    /// bytes.
    pub fn select(
        &self,
        target: &GpuTarget,
        placement: Placement,
        pointer_alignment: u32,
    ) -> Vec<Launch> {
        match self {
            Self::FillValueSequence(plan) => fill_value_sequence::select(plan, pointer_alignment),
            Self::ReverseSubsequences(plan) => {
                reverse_subsequences::select(plan, target, placement, pointer_alignment)
            }
        }
    }

    /// Every kernel that can run it in a placement, fastest first.
    pub fn candidates(&self, target: &GpuTarget, placement: Placement) -> Vec<Candidate> {
        match self {
            Self::FillValueSequence(plan) => fill_value_sequence::candidates(plan).collect(),
            Self::ReverseSubsequences(plan) => {
                reverse_subsequences::candidates(plan, target, placement)
            }
        }
    }

    /// The kernels that cannot run it, with the reasons. For a fill, only those that precede the chosen kernel.
    pub fn rejected(
        &self,
        target: &GpuTarget,
        placement: Placement,
    ) -> Vec<(String, RejectReason)> {
        match self {
            Self::FillValueSequence(plan) => fill_value_sequence::rejected(plan),
            Self::ReverseSubsequences(plan) => {
                reverse_subsequences::rejected(plan, target, placement)
            }
        }
    }
}

#[cfg(all(test, in_repository))]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "binding.count")]
    fn a_reversal_without_lengths_is_a_fault() {
        let desc = crate::dml_cuda_testing::lanes(crate::TensorDataType::UInt8, 1, 4);
        let plan = crate::Device::cpu()
            .create_operator(desc)
            .expect("right")
            .plan();
        plan.run_on_cpu(cpu::Operands {
            inputs: &[],
            output: &mut [0; 4],
        });
    }
}
