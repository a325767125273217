//! Reversals: `dml_cuda_reverse_subsequences(x, lengths) {axis: i64} -> x's type`.

use std::ffi::c_int;

use dml::lowering::{Lowered, LoweredReversal, Names};
use dml::TensorDataType;

use super::api::data_type::*;
use super::call::{wrong, Buffer, Call, Place, Result};
use crate::frameworks::first_outside;
use crate::status::Failure;

const NAMES: Names = Names { input: "x", lengths: "lengths", output: "the result", axis: "axis" };

/// The bytes of an element. Elements move as bytes.
fn width(dtype: c_int) -> Option<usize> {
    Some(match dtype {
        PRED | S8 | U8 | F8E5M2 | F8E4M3FN | F8E4M3B11FNUZ | F8E5M2FNUZ | F8E4M3FNUZ | F8E4M3 | F8E3M4 | F8E8M0FNU => 1,
        S16 | U16 | F16 | BF16 => 2,
        S32 | U32 | F32 => 4,
        S64 | U64 | F64 | C64 => 8,
        C128 => 16,
        _ => return None,
    })
}

pub fn run(call: &Call<'_>, place: Place) -> Result<()> {
    let [x, lengths, output] = call.buffers(2)?;
    let axis = call.attribute("axis")?;
    let Some(width) = width(x.dtype) else {
        return wrong(format!("x has XLA's type {}, must have elements of 1, 2, 4, 8 or 16 bytes", x.dtype));
    };
    if (output.dtype, output.sizes) != (x.dtype, x.sizes) {
        return wrong(format!(
            "the result has XLA's type {} and shape {:?}, must have x's, {} and {:?}",
            output.dtype, output.sizes, x.dtype, x.sizes
        ));
    }
    let length_type = match lengths.dtype {
        S32 | U32 => TensorDataType::UInt32,
        S64 | U64 => TensorDataType::UInt64,
        found => return wrong(format!("lengths has XLA's type {found}, must have integers of 32 or 64 bits")),
    };
    let addresses = x.address | output.address;
    let reversal = LoweredReversal::new(x.packed(), lengths.packed(), None, axis, width, length_type, addresses)
        .map_err(|error| Failure::argument(error.message(&NAMES)))?;
    if place == Place::Host {
        check(&lengths)?;
    }
    if x.sizes.contains(&0) {
        return Ok(());
    }
    // SAFETY: these are the call's buffers, packed, with the sizes that were lowered.
    unsafe { call.dispatch(place, &Lowered::Reversal(reversal), &[x.address, lengths.address], output.address) }
}

/// Refuses negative lengths on the host.
fn check(lengths: &Buffer<'_>) -> Result<()> {
    let width = match lengths.dtype {
        S32 => 4,
        S64 => 8,
        _ => return Ok(()),
    };
    // SAFETY: XLA's buffer on the host has integers of this type, and nobody writes it now.
    match unsafe { first_outside(0..=i64::MAX, lengths.address, lengths.packed(), width) } {
        None => Ok(()),
        Some((found, place)) => wrong(format!("lengths{place} is {found}, must be at least 0")),
    }
}
