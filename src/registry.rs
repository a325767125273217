//! Connects every operator of the list in `desc` with its modules in `validate`, `plan`, `cpu` and `cuda::select`.

use crate::cpu::{self, cpu_fill, cpu_reverse};
#[cfg(feature = "cuda")]
use crate::cuda::select::{self, Selection, Until};
#[cfg(feature = "cuda")]
use crate::cuda::GpuTarget;
use crate::desc::feature_level::{minimum_feature_level, FeatureLevel};
use crate::desc::OperatorDesc;
use crate::plan::{self, fill_plan, reverse_plan};
use crate::validate::{
    fill_rules, operator_feature_level, reverse_rules, Caveat, DirectMlVersion, RuleSet, ValidationErrors,
};

/// The plan of one operator.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    FillValueSequence(fill_plan::Plan),
    ReverseSubsequences(reverse_plan::Plan),
}

/// The rules that a descriptor breaks.
fn check(desc: &OperatorDesc, rules: &RuleSet) -> Result<(), ValidationErrors> {
    let operator = desc.operator_type();
    ValidationErrors::check(match desc {
        _ if rules.level < minimum_feature_level(operator) => vec![operator_feature_level(operator, rules.level)],
        OperatorDesc::FillValueSequence(desc) => fill_rules::check(desc, rules),
        OperatorDesc::ReverseSubsequences(desc) => reverse_rules::check(desc, rules),
    })
}

impl Plan {
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

    /// The kernel launches that can run it on a GPU.
    #[cfg(feature = "cuda")]
    pub fn select(&self, target: &GpuTarget) -> Selection {
        self.select_until(target, Until::AnyPointers)
    }

    #[cfg(feature = "cuda")]
    pub(crate) fn select_until(&self, target: &GpuTarget, until: Until) -> Selection {
        match self {
            Self::FillValueSequence(plan) => select::fill_value_sequence::select(plan, target, until),
            Self::ReverseSubsequences(plan) => select::reverse_subsequences::select(plan, target, until),
        }
    }
}

/// Checks a descriptor against every rule of its operator at `level`.
pub fn validate(desc: &OperatorDesc, level: FeatureLevel) -> Result<(), ValidationErrors> {
    check(desc, &RuleSet::at(level))
}

/// What a version of DirectML answers: the rules that it finds broken or, if it accepts the descriptor, what it then
/// gets wrong. This reproduces its wrap-arounds, and that it does not detect overlapping outputs.
///
/// ```
/// use dml_cuda::{validate_as, BufferTensorDesc, DirectMlVersion, FillValueSequenceDesc, ScalarUnion, TensorDataType};
/// let desc = FillValueSequenceDesc {
///     output_tensor: BufferTensorDesc::packed(TensorDataType::Float32, &[2, 3]),
///     value_data_type: TensorDataType::Float32,
///     value_start: ScalarUnion::Float32(0.0),
///     value_delta: ScalarUnion::Float32(1.0),
/// };
/// let accepting: Vec<String> = DirectMlVersion::recorded()
///     .filter(|version| validate_as(&desc.clone().into(), version).is_ok())
///     .map(|version| version.to_string())
///     .collect();
/// assert_eq!(accepting[0], "1.7.0"); // before, a fill has 4 dimensions
/// ```
pub fn validate_as(desc: &OperatorDesc, version: &DirectMlVersion) -> Result<Vec<Caveat>, ValidationErrors> {
    check(desc, &version.rules())?;
    Ok(version.caveats(desc))
}
