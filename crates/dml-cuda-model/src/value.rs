//! Values of a data type: from JSON to bits, and from bits to the text a C++ stream would print.
//!
//! All values are the bits of their type in the low end of a `u64`, so that one reader and one printer serve 11 types:
//!
//! ```text
//! -1 as INT8       0x00000000000000ff
//! 1.5 as FLOAT16   0x0000000000003e00
//! ```
//!
//! Where DxDispatch rounds or prints in its own way, so does this module, because outputs are compared as text.

use std::fmt;

use dml_cuda::{ScalarUnion, TensorDataType};
use half::f16;
use serde::Serialize;

use crate::json::{Kind, Result};
use crate::names::or_nearest;
use crate::node::Node;
use crate::text::shown;

/// The bits of one element.
pub fn bits(node: &Node, data_type: TensorDataType) -> Result<u64> {
    // DxDispatch reads numbers by the type, and refuses some that this reader takes.
    refuse_number(node, data_type);
    if !data_type.is_float() {
        return integer(node, data_type);
    }
    let value = node.float()?;
    let bits = match data_type {
        TensorDataType::Float16 => truncated(value as f32).to_bits().into(),
        TensorDataType::Float32 => (value as f32).to_bits().into(),
        _ => value.to_bits(),
    };
    if node.digits().is_some()
        && matches!(Number::new(bits, data_type), Number::Float(held) if held.is_infinite())
    {
        return Err(node.error(
            node.kind(),
            format!("a number that {data_type} can hold, \"inf\" or \"-inf\""),
        ));
    }
    Ok(bits)
}

/// Records numbers of a type that DxDispatch refuses.
fn refuse_number(node: &Node, data_type: TensorDataType) {
    let Some(digits) = node.digits() else { return };
    if !data_type.is_float() {
        if !is_signed(data_type) && digits.starts_with('-') {
            node.refuse(
                shown(digits),
                format!("0 or more, because its type is {data_type}"),
            );
        }
        return;
    }
    // DxDispatch takes an integer of 64 bits for a float only if a double holds it. Longer ones are doubles to it.
    let of_64_bits = |integer: &i128| (i64::MIN.into()..=u64::MAX.into()).contains(integer);
    let integer = digits.parse::<i128>().ok().filter(of_64_bits);
    if integer.is_some_and(|integer| integer as f64 as i128 != integer) {
        node.refuse(
            digits,
            "an integer that a double holds exactly, or a number with a fraction",
        );
    }
}

/// A FLOAT16 without the bits that do not fit, as DxDispatch makes it: 0.1 is 0.0999756. Infinity from 65536 on.
pub fn truncated(value: f32) -> f16 {
    let nearest = f16::from_f32(value);
    // If the nearest value is farther from zero, the one before it is meant.
    let further = nearest.to_f32().abs() > value.abs() && value.abs() < 65536.0;
    f16::from_bits(nearest.to_bits() - u16::from(further))
}

/// Whether the integers of a type have a sign.
fn is_signed(data_type: TensorDataType) -> bool {
    data_type.name().starts_with("INT")
}

/// An integer of the type. A negative value of an unsigned type counts modulo 2^width: Microsoft's UINT8 example needs
/// this, but DxDispatch rejects it.
fn integer(node: &Node, data_type: TensorDataType) -> Result<u64> {
    let value = node.integer()?;
    let (signed, width) = (is_signed(data_type), data_type.size_in_bits());
    // One bit is the sign.
    let most = (1i128 << (width - u32::from(signed))) - 1;
    let least = -most - i128::from(signed);
    if (least..=most).contains(&value) {
        return Ok(value as u64 & (u64::MAX >> (64 - width)));
    }
    let range = match signed {
        true => format!("from {least} to {most}"),
        false => format!("from 0 to {most}, or negative and counted from the top"),
    };
    Err(node.error(value, format!("{range}, because its type is {data_type}")))
}

/// A `DML_SCALAR_UNION`: a number of the type, "nan", "inf", "-inf", or an object with one of the union's
/// members, such as `{"UInt16": 15360}`.
pub fn scalar(node: &Node, data_type: TensorDataType) -> Result<ScalarUnion> {
    use TensorDataType as T;
    let union = |bits: u64| ScalarUnion::Bytes(bits.to_le_bytes());
    if !matches!(node.kind(), Kind::Object(_)) {
        if matches!(node.kind(), Kind::Text(_)) {
            node.refuse(node.kind(), "a number");
        }
        return bits(node, data_type).map(union);
    }
    let members = node.members()?;
    // A union has no member for half floats: their bits are a UInt16.
    let own = if data_type == T::Float16 {
        "UInt16"
    } else {
        data_type.name()
    };
    if !members
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case(own))
    {
        node.refuse(
            "an object without the type's member",
            format!("one of {data_type}"),
        );
    }
    // A union has the bits of one member, whichever it is.
    let [(name, value)] = members.as_slice() else {
        let found = format!("an object of {} members", members.len());
        return Err(node.error(found, "an object of one member of the union"));
    };
    if *name == "Bytes" {
        let bytes: Vec<u8> = value.each(|byte| byte.unsigned())?;
        return match bytes.len() {
            ..=8 => Ok(union(from_bytes(&bytes))),
            more => Err(value.error(format!("{more} bytes"), "at most 8")),
        };
    }
    // The other members have the names of types.
    match T::ALL
        .iter()
        .copied()
        .find(|member| format!("{member:?}") == *name)
    {
        None | Some(T::Float16 | T::UInt4 | T::Int4) => {
            let required = format!("one with {}", UNION.join(", "));
            Err(node.error(
                format!("an object with the member {}", shown(name)),
                required,
            ) + &or_nearest(name, &UNION))
        }
        Some(member) => bits(value, member).map(union),
    }
}

/// The members of a `DML_SCALAR_UNION`.
const UNION: [&str; 11] = [
    "Bytes", "Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64", "Float32",
    "Float64",
];

/// At most eight bytes, little endian.
pub fn from_bytes(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |bits, &byte| bits << 8 | u64::from(byte))
}

/// The value of an element. Prints as `std::ostream` prints it, except that 8-bit integers print as numbers.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Number {
    /// A value of FLOAT16, FLOAT32 or FLOAT64. A double holds all of them exactly.
    Float(f64),
    /// A value of any other type, signed or not.
    Integer(i128),
}

impl Number {
    /// The value of an element by its bits.
    pub fn new(bits: u64, data_type: TensorDataType) -> Self {
        let unused = 64 - data_type.size_in_bits();
        match data_type {
            TensorDataType::Float16 => Self::Float(f16::from_bits(bits as u16).into()),
            TensorDataType::Float32 => Self::Float(f32::from_bits(bits as u32).into()),
            TensorDataType::Float64 => Self::Float(f64::from_bits(bits)),
            // Shifting to the top and back extends the sign.
            _ if is_signed(data_type) => Self::Integer(((bits << unused) as i64 >> unused).into()),
            _ => Self::Integer((bits << unused >> unused).into()),
        }
    }

    /// The shortest JSON that reads as the same value of the type. NaN and infinities are strings, because JSON has no
    /// numbers for them.
    pub fn shortest(&self, data_type: TensorDataType) -> String {
        let text = match self {
            Self::Integer(value) => value.to_string(),
            Self::Float(value) if !value.is_finite() => format!("\"{self}\""),
            Self::Float(value) if data_type == TensorDataType::Float64 => format!("{value:?}"),
            Self::Float(value) => format!("{:?}", *value as f32),
        };
        text.strip_suffix(".0").unwrap_or(&text).to_lowercase()
    }
}

impl fmt::Display for Number {
    /// Floats as `%g`: six significant digits, no trailing zeros, and an exponent below 1e-4 and from 1e6 on.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let value = match self {
            Self::Integer(value) => return value.fmt(f),
            Self::Float(value) if !value.is_finite() => {
                return f.write_str(&value.to_string().to_lowercase())
            }
            Self::Float(value) => value,
        };
        let scientific = format!("{value:.5e}");
        // `%g` counts significant digits: five after the first one.
        let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        if (-4..6).contains(&exponent) {
            // The shortest text of a number with six digits.
            return scientific.parse().unwrap_or(*value).fmt(f);
        }
        write!(
            f,
            "{}e{exponent:+03}",
            digits.trim_end_matches('0').trim_end_matches('.')
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Number;

    #[test]
    fn floats_print_as_cpp_streams_print_them() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (3.2f32 as f64, "3.2"),
            (0.1f32 as f64, "0.1"),
            (123456.0, "123456"),
            (999999.5, "1e+06"),
            (1e6, "1e+06"),
            (1234567.0, "1.23457e+06"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (0.00012345678, "0.000123457"),
            (-2.5, "-2.5"),
            (65504.0, "65504"),
            (1e300, "1e+300"),
            (f64::NAN, "nan"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(Number::Float(value).to_string(), text);
        }
    }
}
