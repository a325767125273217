//! Measures the kernels that an operator may be compiled to.

use std::sync::Arc;

use crate::cuda::select::Candidate;
use crate::cuda::{load, times, Context, Lengths, Loaded, Mode, Tensors};
use crate::desc::OperatorDesc;
use crate::device::compile_options::CompileOptions;
use crate::device::operator::{bytes_of_element, Operator};
use crate::operator_plan::OperatorPlan;
use crate::specialize::Specialize;

/// Kernels of each mode that are timed, and how often.
const MEASURED: usize = 4;
const ROUNDS: u32 = 2;

/// The fastest launch for pointers at multiples of 16 bytes, then, if pointers may be others, the fastest that accepts
/// all; and all candidates that were timed. `None` if they cannot be timed, or if nothing moves.
pub(crate) fn fastest(
    operator: &Operator,
    plan: &OperatorPlan,
    context: &Arc<Context>,
    options: CompileOptions,
    mode: Mode,
) -> Option<(Loaded, Vec<Candidate>)> {
    let candidates = plan.candidates(&context.target, mode);
    candidates.first()?;
    let tensors = tensors(operator, mode);
    let mut measured = Vec::new();
    // The fastest of the first candidates that accept pointers at multiples of `alignment`, timed with pointers `past`
    // bytes behind a multiple of 16.
    let mut fastest_of = |alignment: u32, past: u32| {
        let accepting = candidates.iter().filter(|found| alignment.is_multiple_of(found.launch.alignment));
        let mut timed: Vec<Candidate> = accepting.take(MEASURED).cloned().collect();
        // Specializing takes longer than measuring, so only the fastest is specialized.
        let loaded = load(context, timed.iter().map(|found| found.launch.clone()), Specialize::Never).ok()?;
        let times = times(context, &tensors, past, loaded.iter(), ROUNDS).ok()?;
        timed.iter_mut().zip(times).for_each(|(found, time)| found.time = Some(time));
        let fastest = timed.iter().min_by_key(|found| found.time)?.launch.clone();
        measured.extend(timed);
        load(context, [fastest], options.specialize).ok()?.pop()
    };
    let alignment = options.pointer_alignment.max(bytes_of_element(operator.desc.output_tensor()));
    let mut loaded = vec![fastest_of(16, 0)?];
    if !alignment.is_multiple_of(loaded[0].0.alignment) {
        loaded.push(fastest_of(alignment, alignment % 16)?);
    }
    Some((loaded, measured))
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

#[cfg(all(test, in_repository))]
mod tests {
    use super::*;
    use crate::{desc::TensorDataType, dml_cuda_testing, Device};

    #[test]
    fn measured_memory_is_that_of_the_tensors() {
        for (data_type, wide) in [(TensorDataType::UInt32, false), (TensorDataType::UInt64, true)] {
            let mut desc = dml_cuda_testing::lanes(TensorDataType::Float32, 2, 8);
            desc.sequence_lengths_tensor = crate::BufferTensorDesc::packed(data_type, &[2, 1]);
            let operator = Device::cpu().create_operator(desc).expect("right");
            for (mode, input) in [(Mode::Copying, Some(64)), (Mode::InPlace, None)] {
                let found = tensors(&operator, mode);
                let lengths = found.lengths.expect("lengths");
                assert_eq!((found.input, found.output), (input, 64));
                assert_eq!((lengths.bytes, lengths.wide, lengths.most), (if wide { 16 } else { 8 }, wide, 8));
            }
        }
    }
}
