//! Float fills as the contract has them, without a fused multiply-add: FLOAT64 holds every product of two FLOAT32
//! exactly, and rounding the sum to odd keeps what a second rounding must know (Boldo and Melquiond, 2008).

use half::f16;

/// a·b + c, rounded once.
fn fma(a: f32, b: f32, c: f32) -> f32 {
    let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + c;
    // What the sum lost, exactly: Knuth's TwoSum.
    let added = sum - product;
    let lost = (product - (sum - added)) + (c - added);
    if !sum.is_finite() || lost == 0.0 || sum.to_bits() & 1 == 1 {
        return sum as f32;
    }
    let away_from_zero = (lost > 0.0) == (sum > 0.0);
    f64::from_bits(if away_from_zero {
        sum.to_bits() + 1
    } else {
        sum.to_bits() - 1
    }) as f32
}

/// Rounds to the nearest half, ties to even.
fn to_half(value: f32) -> u16 {
    const LEAST_EXPONENT: i32 = -14;
    let magnitude = f64::from(value.abs());
    let sign = u16::from(value.is_sign_negative()) << 15;
    if magnitude.is_nan() {
        return 0x7E00;
    }
    let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).clamp(LEAST_EXPONENT, 16);
    // The significand, of 11 bits. Its hidden bit counts one up in the exponent's field.
    let significand = (magnitude * 2f64.powi(10 - exponent)).round_ties_even() as u16;
    let field = (exponent - LEAST_EXPONENT) as u16;
    sign | ((field << 10).saturating_add(significand)).min(0x7C00)
}

/// Element `i` of a FLOAT32 fill: the index rounded to the nearest float, then one fused multiply-add.
pub fn fill_f32(i: u32, start: u32, delta: u32) -> u32 {
    fma(i as f32, f32::from_bits(delta), f32::from_bits(start)).to_bits()
}

/// Element `i` of a FLOAT16 fill: the FLOAT32 element of the widened scalars, rounded to FLOAT16.
pub fn fill_f16(i: u32, start: u16, delta: u16) -> u16 {
    to_half(fma(
        i as f32,
        f16::from_bits(delta).to_f32(),
        f16::from_bits(start).to_f32(),
    ))
}
