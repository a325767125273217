//! Sequences: `dml_cuda_fill_value_sequence() {start: i64, delta: i64} -> any type that DirectML fills`.

use std::ffi::c_int;

use dml::lowering::{Lowered, LoweredSequence};
use dml::TensorDataType;

use super::api::data_type::*;
use super::call::{wrong, Call, Place, Result};
use crate::frameworks::element_count;
use crate::status::Failure;

fn data_type(dtype: c_int) -> Option<TensorDataType> {
    Some(match dtype {
        F32 => TensorDataType::Float32,
        F16 => TensorDataType::Float16,
        S8 => TensorDataType::Int8,
        S16 => TensorDataType::Int16,
        S32 => TensorDataType::Int32,
        S64 => TensorDataType::Int64,
        U8 => TensorDataType::UInt8,
        U16 => TensorDataType::UInt16,
        U32 => TensorDataType::UInt32,
        U64 => TensorDataType::UInt64,
        _ => return None,
    })
}

/// The attributes are the bits of scalars of the result's type, from the lowest on.
pub fn run(call: &Call<'_>, place: Place) -> Result<()> {
    let [output] = call.buffers(0)?;
    let (start, delta) = (call.attribute("start")? as u64, call.attribute("delta")? as u64);
    let Some(data_type) = data_type(output.dtype) else {
        return wrong(format!(
            "the result has XLA's type {}, must have float32, float16, or integers of 8 to 64 bits",
            output.dtype
        ));
    };
    if output.sizes.contains(&0) {
        return Ok(());
    }
    let count = element_count(output.sizes).map_err(Failure::argument)?;
    let sequence = LoweredSequence::packed(data_type, count, start, delta);
    // SAFETY: this is the call's buffer, packed, with so many elements.
    unsafe { call.dispatch(place, &Lowered::Sequence(sequence), &[], output.address) }
}
