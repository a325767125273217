//! The work of the handlers:
//! `dml_cuda_reverse_subsequences(x, lengths) {axis: i64} -> x's type`, and
//! `dml_cuda_fill_value_sequence() {start: i64, delta: i64} -> any type that DirectML fills`.

use std::ffi::c_int;

use dml_cuda::lowering::{Lowered, LoweredSequence, LoweringError, Names, ReversalArrays};
use dml_cuda::TensorRole::{Input, Output, SequenceLengths};
use dml_cuda::{Error, TensorDataType};

use super::call::{Buffer, Call};
use super::ffi::DATA_TYPES;
use crate::frameworks::element_count;
use crate::status::{wrong, Failure};

const NAMES: Names<'_> = Names::new(
    "axis",
    &[
        (Input, "x"),
        (SequenceLengths, "lengths"),
        (Output, "the result"),
    ],
)
.with_attributes();

/// The bytes of an element, and its type if DirectML fills it.
fn element(dtype: c_int) -> Option<(usize, Option<TensorDataType>)> {
    DATA_TYPES
        .iter()
        .find(|(known, ..)| *known == dtype)
        .map(|&(_, width, data_type)| (width, data_type))
}

pub fn reverse_subsequences(call: &Call<'_>) -> Result<(), Failure> {
    let [x, lengths, output] = call.buffers()?;
    let axis = call.attribute("axis")?;
    let Some((width, _)) = element(x.dtype) else {
        return wrong(format!(
            "x has XLA's type {}, but must have elements of 1, 2, 4, 8 or 16 bytes",
            x.dtype
        ));
    };
    if output.dtype != x.dtype {
        return wrong(format!(
            "the result has XLA's type {}, but must have x's, {}",
            output.dtype, x.dtype
        ));
    }
    let failure = |error: Error| Failure::of(error, &NAMES);
    let Some((_, Some(length_type))) = element(lengths.dtype) else {
        let found = format!("XLA's type {}", lengths.dtype);
        return Err(failure(LoweringError::ForeignLengthType { found }.into()));
    };
    let (input, lengths, output, element_size) = (x.tensor, lengths.tensor, output.tensor, width);
    let arrays = ReversalArrays {
        input,
        lengths,
        output,
        axis,
        element_size,
        length_type,
    };
    let (device, stream) = call.device()?;
    // SAFETY: these are the call's buffers.
    unsafe { device.reverse_arrays(&arrays, stream) }.map_err(failure)
}

/// The attributes are the bits of scalars of the result's type, from the lowest on.
pub fn fill_value_sequence(call: &Call<'_>) -> Result<(), Failure> {
    let [Buffer { dtype, tensor }] = call.buffers()?;
    let (start, delta) = (
        call.attribute("start")? as u64,
        call.attribute("delta")? as u64,
    );
    let Some((_, Some(data_type))) = element(dtype) else {
        let required = "but must have float32, float16, or integers of 8 to 64 bits";
        return wrong(format!("the result has XLA's type {dtype}, {required}"));
    };
    if tensor.sizes.contains(&0) {
        return Ok(());
    }
    let count = element_count(tensor.sizes).map_err(Failure::argument)?;
    let sequence = LoweredSequence::packed(data_type, count, start, delta);
    let (device, stream) = call.device()?;
    // SAFETY: this is the call's buffer, packed, with `count` elements.
    Ok(unsafe { device.run_lowered(&Lowered::Sequence(sequence), &[], tensor.address, stream) }?)
}
