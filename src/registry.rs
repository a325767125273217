//! Every operator, a line each: the modules below `validate`, `plan`, `cpu` and `cuda::select` that are called by its
//! name. What an operator needs of them is written out once, in the macro.

#[cfg(feature = "cuda")]
use crate::cuda::select::{self, Selection};
#[cfg(feature = "cuda")]
use crate::cuda::GpuTarget;
use crate::desc::OperatorDesc;
use crate::feature_level::{minimum_feature_level, FeatureLevel};
use crate::validate::{operator_feature_level, ValidationErrors};
use crate::{cpu, plan};

macro_rules! operators {
    ($($operator:ident => $module:ident;)*) => {
        /// The plan of one operator.
        #[derive(Clone, Debug)]
        pub(crate) enum Plan {
            $($operator(plan::$module::Plan),)*
        }

        /// Checks a descriptor against every rule of its operator at `level`.
        pub fn validate(desc: &OperatorDesc, level: FeatureLevel) -> Result<(), ValidationErrors> {
            let operator = desc.operator_type();
            ValidationErrors::check(match desc {
                _ if level < minimum_feature_level(operator) => {
                    vec![operator_feature_level(operator, level)]
                }
                $(OperatorDesc::$operator(desc) => crate::validate::$module::check(desc, level),)*
            })
        }

        impl Plan {
            /// The plan of a validated descriptor; `None` where it was not validated.
            pub fn new(desc: &OperatorDesc) -> Option<Self> {
                match desc {
                    $(OperatorDesc::$operator(desc) => plan::$module::Plan::new(desc).map(Self::$operator),)*
                }
            }

            /// What there is to say of it to people.
            pub fn summary(&self) -> plan::Summary {
                match self {
                    $(Self::$operator(plan) => plan.summary(),)*
                }
            }

            /// Whether the output may be the input.
            pub fn runs_in_place(&self) -> bool {
                match self {
                    $(Self::$operator(plan) => plan.runs_in_place(),)*
                }
            }

            /// Runs it on the calling thread.
            pub fn run_on_cpu(&self, operands: cpu::Operands<'_>) {
                match self {
                    $(Self::$operator(plan) => cpu::$module::run(plan, operands),)*
                }
            }

            /// The kernel launches that can run it on a GPU.
            #[cfg(feature = "cuda")]
            pub fn select(&self, target: &GpuTarget) -> Selection {
                match self {
                    $(Self::$operator(plan) => select::$module::select(plan, target),)*
                }
            }
        }
    };
}

operators! {
    FillValueSequence => fill_value_sequence;
    ReverseSubsequences => reverse_subsequences;
}
