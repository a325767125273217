//! Measures the kernels that an operator may be compiled to.

use std::sync::Arc;

use crate::cuda::select::Candidate;
use crate::cuda::{load, times, Context, Launch, Lengths, Loaded, LoadedKernel, Mode, Tensors};
use crate::desc::OperatorDesc;
use crate::device::compile_options::CompileOptions;
use crate::device::operator::{bytes_of_element, Measured, Operator};
use crate::operator_plan::OperatorPlan;
use crate::specialize::Specialize;

/// Kernels of each mode that are timed, and how often.
const MEASURED: usize = 4;
const ROUNDS: u32 = 2;

/// An operator whose kernels are measured on a GPU.
pub(crate) struct Measuring<'a> {
    pub operator: &'a Operator,
    pub plan: &'a OperatorPlan,
    pub context: &'a Arc<Context>,
    pub options: CompileOptions,
}

impl Measuring<'_> {
    /// The fastest launch for pointers at multiples of 16 bytes, then, if pointers may be others, the fastest that
    /// accepts all; and all times. `None` if they cannot be timed, or if nothing moves.
    pub fn fastest(&self, mode: Mode) -> Option<(Loaded, Vec<Measured>)> {
        let candidates = self.plan.candidates(&self.context.target, mode);
        candidates.first()?;
        let alignment = self.options.pointer_alignment.max(bytes_of_element(self.operator.desc.output_tensor()));
        let accepts_all = |found: &&Candidate| alignment.is_multiple_of(found.launch.alignment);
        let mut measured = Vec::new();
        let first = self.fastest_of(candidates.iter(), mode, 0, &mut measured)?;
        let mut loaded = vec![first];
        if !alignment.is_multiple_of(loaded[0].0.alignment) {
            let others = candidates.iter().filter(accepts_all);
            loaded.push(self.fastest_of(others, mode, alignment % 16, &mut measured)?);
        }
        Some((loaded, measured))
    }

    /// The fastest of the first candidates that are given, timed with pointers `past` bytes behind a multiple of 16.
    fn fastest_of<'a>(
        &self,
        candidates: impl Iterator<Item = &'a Candidate> + Clone,
        mode: Mode,
        past: u32,
        measured: &mut Vec<Measured>,
    ) -> Option<(Launch, Arc<LoadedKernel>)> {
        let launches = candidates.clone().take(MEASURED).map(|found| found.launch.clone());
        // Specializing takes longer than measuring, so only the fastest is specialized.
        let loaded = load(self.context, launches.collect(), Specialize::Never).ok()?;
        let times = times(self.context, &tensors(self.operator, mode), past, loaded.iter(), ROUNDS).ok()?;
        measured.extend(candidates.zip(&times).map(|(found, &time)| {
            let (kernel, variant) = (found.launch.entry.name, found.variant.clone());
            Measured { mode, kernel, variant, estimate: found.estimate, time }
        }));
        let ((launch, _), _) = loaded.into_iter().zip(times).min_by_key(|(_, time)| *time)?;
        load(self.context, vec![launch], self.options.specialize).ok()?.pop()
    }
}

/// The memory of an operator's tensors in a mode.
pub(crate) fn tensors(operator: &Operator, mode: Mode) -> Tensors {
    let output = operator.desc.output_tensor().total_tensor_size_in_bytes;
    match &*operator.desc {
        OperatorDesc::FillValueSequence(_) => Tensors { input: None, output, lengths: None },
        OperatorDesc::ReverseSubsequences(desc) => {
            let lengths = &desc.sequence_lengths_tensor;
            let lengths = Lengths {
                bytes: lengths.total_tensor_size_in_bytes,
                wide: bytes_of_element(lengths) == 8,
                most: desc.input_tensor.sizes[desc.axis as usize].into(),
            };
            let input = (mode == Mode::Copying).then_some(desc.input_tensor.total_tensor_size_in_bytes);
            Tensors { input, output, lengths: Some(lengths) }
        }
    }
}
