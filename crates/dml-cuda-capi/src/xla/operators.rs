//! The work of the handlers:
//! `dml_cuda_reverse_subsequences(x, lengths) {axis: i64} -> x's type`, and
//! `dml_cuda_fill_value_sequence() {start: i64, delta: i64} -> any type that DirectML fills`.

use std::ffi::c_int;

use dml::lowering::{Lowered, LoweredReversal, LoweredSequence, Names};
use dml::TensorDataType;

use super::call::{Buffer, Call, Place};
use super::ffi::DATA_TYPES;
use crate::frameworks::{element_count, Lengths};
use crate::status::{wrong, Failure};

const NAMES: Names = Names { input: "x", lengths: "lengths", output: "the result", axis: "axis" };

/// The bytes of an element, and its type if DirectML fills it.
fn element(dtype: c_int) -> Option<(usize, Option<TensorDataType>)> {
    DATA_TYPES.iter().find(|(known, ..)| *known == dtype).map(|&(_, width, data_type)| (width, data_type))
}

pub fn reverse_subsequences(call: &Call<'_>) -> Result<(), Failure> {
    let [x, lengths, output] = call.buffers()?;
    let axis = call.attribute("axis")?;
    let Some((width, _)) = element(x.dtype) else {
        return wrong(format!("x has XLA's type {}, must have elements of 1, 2, 4, 8 or 16 bytes", x.dtype));
    };
    if (output.dtype, output.tensor.sizes) != (x.dtype, x.tensor.sizes) {
        return wrong(format!(
            "the result has XLA's type {} and shape {:?}, must have x's, {} and {:?}",
            output.dtype, output.tensor.sizes, x.dtype, x.tensor.sizes
        ));
    }
    let of_lengths = element(lengths.dtype).and_then(|(_, data_type)| data_type);
    let Some(lengths) = Lengths::new(lengths.tensor, lengths.address, of_lengths) else {
        return wrong(format!("lengths has XLA's type {}, must have integers of 32 or 64 bits", lengths.dtype));
    };
    let (length_type, addresses) = (lengths.passed_as, x.address.0 | output.address.0);
    let reversal = LoweredReversal::new(x.tensor, lengths.tensor, None, axis, width, length_type, addresses)
        .map_err(|error| Failure::argument(error.message(&NAMES)))?;
    if call.place == Place::Host {
        // SAFETY: XLA's buffer on the host has integers of this type, and nobody writes it now.
        unsafe { lengths.check("lengths", None) }.map_err(Failure::argument)?;
    }
    if x.tensor.sizes.contains(&0) {
        return Ok(());
    }
    // SAFETY: these are the call's buffers, packed, with the sizes that were lowered.
    unsafe { call.dispatch(&Lowered::Reversal(reversal), &[x.address, lengths.address], output.address) }
}

/// The attributes are the bits of scalars of the result's type, from the lowest on.
pub fn fill_value_sequence(call: &Call<'_>) -> Result<(), Failure> {
    let [Buffer { dtype, address, tensor }] = call.buffers()?;
    let (start, delta) = (call.attribute("start")? as u64, call.attribute("delta")? as u64);
    let Some((_, Some(data_type))) = element(dtype) else {
        let required = "must have float32, float16, or integers of 8 to 64 bits";
        return wrong(format!("the result has XLA's type {dtype}, {required}"));
    };
    if tensor.sizes.contains(&0) {
        return Ok(());
    }
    let count = element_count(tensor.sizes).map_err(Failure::argument)?;
    let sequence = LoweredSequence::packed(data_type, count, start, delta);
    // SAFETY: this is the call's buffer, packed, with so many elements.
    unsafe { call.dispatch(&Lowered::Sequence(sequence), &[], address) }
}
