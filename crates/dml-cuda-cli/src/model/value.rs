//! Values of a data type: from JSON to bytes, and from bytes to the text a C++ stream would print.

use dml_cuda::{ScalarUnion, TensorDataType};
use half::f16;

use super::json::{Node, Result};
use crate::out::shown;

/// The bytes of one element, little endian.
pub fn element_bytes(node: &Node, data_type: TensorDataType) -> Result<Vec<u8>> {
    use TensorDataType as T;
    if let Some(digits) = node.digits() {
        refuse_number(node, digits, data_type);
    }
    Ok(match data_type {
        T::Float16 => {
            let value = truncated(node.float()? as f32);
            within(node, data_type, f64::from(value))?;
            value.to_le_bytes().to_vec()
        }
        T::Float32 => {
            let value = node.float()? as f32;
            within(node, data_type, f64::from(value))?;
            value.to_le_bytes().to_vec()
        }
        T::Float64 => node.float()?.to_le_bytes().to_vec(),
        T::UInt4 | T::Int4 => {
            return Err(node.error(format!("of type {data_type}"), "of a type of whole bytes"));
        }
        _ => {
            let width = data_type.size_in_bits() / 8;
            integer(node, data_type)?.to_le_bytes()[..width as usize].to_vec()
        }
    })
}

/// Records numbers of a type that DxDispatch refuses.
fn refuse_number(node: &Node, digits: &str, data_type: TensorDataType) {
    use TensorDataType as T;
    let is_unsigned = matches!(data_type, T::UInt8 | T::UInt16 | T::UInt32 | T::UInt64);
    if is_unsigned && digits.starts_with('-') {
        return node.refuse(shown(digits), format!("0 or more, because its type is {data_type}"));
    }
    if !data_type.is_float() {
        return;
    }
    let value: f64 = digits.parse().unwrap_or(f64::NAN);
    // DxDispatch takes an integer of 64 bits for a float only if a double holds it. Longer ones are doubles to it.
    let of_64_bits = |integer: &i128| (i64::MIN.into()..=u64::MAX.into()).contains(integer);
    let integer = digits.parse::<i128>().ok().filter(of_64_bits);
    if !value.is_finite() {
        node.refuse(shown(digits), "a number that a double can hold");
    } else if integer.is_some_and(|integer| value as i128 != integer) {
        node.refuse(digits, "an integer that a double holds exactly, or a number with a fraction");
    }
}

/// A FLOAT16 without the bits that do not fit, as DxDispatch makes it: 0.1 is 0.0999756. Infinity from 65536 on.
pub fn truncated(value: f32) -> f16 {
    let nearest = f16::from_f32(value);
    let further = nearest.to_f32().abs() > value.abs() && value.abs() < 65536.0;
    f16::from_bits(nearest.to_bits() - u16::from(further))
}

/// Fails if a finite number became infinite in the type.
fn within(node: &Node, data_type: TensorDataType, value: f64) -> Result<()> {
    if value.is_infinite() && node.float()?.is_finite() {
        return Err(node.error(node.kind(), format!("a number that {data_type} can hold, \"inf\" or \"-inf\"")));
    }
    Ok(())
}

/// An integer of the type. A negative value of an unsigned type counts modulo 2^width: Microsoft's UINT8 example needs this, but
/// DxDispatch rejects it.
fn integer(node: &Node, data_type: TensorDataType) -> Result<i128> {
    use TensorDataType as T;
    let value = node.integer()?;
    let bits = data_type.size_in_bits();
    let signed = matches!(data_type, T::Int4 | T::Int8 | T::Int16 | T::Int32 | T::Int64);
    let (least, most) = if signed {
        (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
    } else {
        (-(1i128 << bits), (1i128 << bits) - 1)
    };
    if (least..=most).contains(&value) {
        Ok(value)
    } else {
        let range = if signed {
            format!("from {least} to {most}")
        } else {
            format!("from 0 to {most}, or negative and counted from the top")
        };
        Err(node.error(value, format!("{range}, because its type is {data_type}")))
    }
}

/// A `DML_SCALAR_UNION`: a number of the type, "nan", "inf", "-inf", or an object with one of the union's
/// members, such as `{"UInt16": 15360}`.
pub fn scalar(node: &Node, data_type: TensorDataType) -> Result<ScalarUnion> {
    use TensorDataType as T;
    if !node.is_object() {
        if node.is_text() {
            node.refuse(node.kind(), "a number");
        }
        let bytes = match data_type {
            T::UInt4 | T::Int4 => vec![integer(node, data_type)? as u8 & 15],
            _ => element_bytes(node, data_type)?,
        };
        return Ok(ScalarUnion::Bytes(padded(&bytes)));
    }
    let members = node.members()?;
    let own = if data_type == T::Float16 { "UInt16" } else { data_type.name() };
    if !members.iter().any(|(name, _)| name.eq_ignore_ascii_case(own)) {
        node.refuse("an object without the type's member", format!("one of {data_type}"));
    }
    let [(name, value)] = members.as_slice() else {
        return Err(
            node.error(format!("an object of {} members", members.len()), "an object of one member of the union")
        );
    };
    let member = match *name {
        "Bytes" => {
            let bytes = value.each(|byte| byte.unsigned(u8::MAX))?;
            if bytes.len() > 8 {
                return Err(value.error(format!("{} bytes", bytes.len()), "at most 8"));
            }
            return Ok(ScalarUnion::Bytes(padded(&bytes)));
        }
        "Int8" => T::Int8,
        "UInt8" => T::UInt8,
        "Int16" => T::Int16,
        "UInt16" => T::UInt16,
        "Int32" => T::Int32,
        "UInt32" => T::UInt32,
        "Int64" => T::Int64,
        "UInt64" => T::UInt64,
        "Float32" => T::Float32,
        "Float64" => T::Float64,
        _ => {
            return Err(node.error(
                format!("an object with the member {name}"),
                "one with Bytes, Int8, UInt8, Int16, UInt16, Int32, UInt32, Int64, UInt64, Float32 or Float64",
            ))
        }
    };
    Ok(ScalarUnion::Bytes(padded(&element_bytes(value, member)?)))
}

fn padded(bytes: &[u8]) -> [u8; 8] {
    let mut union = [0; 8];
    union[..bytes.len()].copy_from_slice(bytes);
    union
}

/// One element as `std::ostream` prints it, except that 8-bit integers print as numbers.
pub fn print_element(bytes: &[u8], data_type: TensorDataType) -> String {
    use TensorDataType as T;
    let bits = u64::from_le_bytes(padded(bytes));
    match data_type {
        T::Float16 => print_float(f64::from(f16::from_bits(bits as u16))),
        T::Float32 => print_float(f64::from(f32::from_bits(bits as u32))),
        T::Float64 => print_float(f64::from_bits(bits)),
        T::Int8 => (bits as i8).to_string(),
        T::Int16 => (bits as i16).to_string(),
        T::Int32 => (bits as i32).to_string(),
        T::Int64 => (bits as i64).to_string(),
        _ => bits.to_string(),
    }
}

/// `%g`: six significant digits, no trailing zeros, and an exponent below 1e-4 and from 1e6 on.
fn print_float(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{value:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..6).contains(&exponent) {
        trim(&format!("{value:.*}", (5 - exponent) as usize))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trim(digits), exponent.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::print_float;

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
            assert_eq!(print_float(value), text);
        }
    }
}
