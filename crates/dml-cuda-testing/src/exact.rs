//! Float fills in exact integer arithmetic: this file never multiplies, adds or rounds floats.

use std::cmp::Ordering;

/// A binary interchange format.
#[derive(Clone, Copy)]
struct Format {
    /// Bits of the significand, including the hidden one.
    precision: i32,
    /// Bits of the exponent field.
    exponent_bits: i32,
}

const F32: Format = Format { precision: 24, exponent_bits: 8 };
const F16: Format = Format { precision: 11, exponent_bits: 5 };

/// A float taken apart: (−1)^negative · significand · 2^exponent.
#[derive(Clone, Copy)]
enum Number {
    Nan,
    Infinite { negative: bool },
    Finite { negative: bool, significand: u128, exponent: i32 },
}

use Number::*;

impl Format {
    fn bias(self) -> i32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    fn take_apart(self, bits: u32) -> Number {
        let fraction_bits = self.precision - 1;
        let fraction = bits & ((1 << fraction_bits) - 1);
        let field = (bits >> fraction_bits) as i32 & ((1 << self.exponent_bits) - 1);
        let negative = bits >> (fraction_bits + self.exponent_bits) & 1 == 1;
        if field == (1 << self.exponent_bits) - 1 {
            return if fraction == 0 { Infinite { negative } } else { Nan };
        }
        let hidden = if field == 0 { 0 } else { 1 << fraction_bits };
        Finite {
            negative,
            significand: u128::from(fraction | hidden),
            exponent: field.max(1) - self.bias() - fraction_bits,
        }
    }

    /// Rounds to nearest, ties to even. `sticky`: the exact value is above the significand by less than its last bit.
    fn put_together(self, negative: bool, significand: u128, exponent: i32, sticky: bool) -> u32 {
        let fraction_bits = self.precision - 1;
        let sign = u32::from(negative) << (fraction_bits + self.exponent_bits);
        let infinity = ((1u32 << self.exponent_bits) - 1) << fraction_bits;
        if significand == 0 {
            return sign;
        }
        let leading = 127 - significand.leading_zeros() as i32 + exponent;
        let mut unit = leading.max(1 - self.bias()) - fraction_bits;
        let shift = unit - exponent;
        let mut rounded = match shift {
            ..=0 => {
                assert!(!sticky, "the significand must reach below the rounded one");
                significand << -shift
            }
            1..=127 => {
                let (kept, rest) = (significand >> shift, significand & ((1 << shift) - 1));
                let up = match rest.cmp(&(1 << (shift - 1))) {
                    Ordering::Less => false,
                    Ordering::Equal => sticky || kept & 1 == 1,
                    Ordering::Greater => true,
                };
                kept + u128::from(up)
            }
            _ => 0,
        };
        if rounded == 1 << self.precision {
            rounded >>= 1;
            unit += 1;
        }
        let field = if rounded < 1 << fraction_bits { 0 } else { unit + fraction_bits + self.bias() };
        if field >= (1 << self.exponent_bits) - 1 {
            return sign | infinity;
        }
        sign | (field as u32) << fraction_bits | (rounded as u32 & ((1 << fraction_bits) - 1))
    }
}

const NAN: u32 = 0x7FC0_0000;

/// a·b + c, rounded once.
fn fma(a: u32, b: u32, c: u32) -> u32 {
    let (a, b, c) = (F32.take_apart(a), F32.take_apart(b), F32.take_apart(c));
    let sign = |negative: bool| u32::from(negative) << 31;
    let negative_of = |number| match number {
        Infinite { negative } | Finite { negative, .. } => negative,
        Nan => false,
    };
    let zero = |number| matches!(number, Finite { significand: 0, .. });
    let infinite = |number| matches!(number, Infinite { .. });
    let product_negative = negative_of(a) != negative_of(b);
    match (a, b, c) {
        (Nan, ..) | (_, Nan, _) | (.., Nan) => NAN,
        _ if (infinite(a) && zero(b)) || (zero(a) && infinite(b)) => NAN,
        (
            Finite { significand: x, exponent: p, .. },
            Finite { significand: y, exponent: q, .. },
            Finite { negative, significand: z, exponent: r },
        ) => sum(product_negative, x * y, p + q, negative, z, r),
        (Finite { .. }, Finite { .. }, Infinite { negative }) => sign(negative) | 0x7F80_0000,
        // The product is infinite.
        _ => match c {
            Infinite { negative } if negative != product_negative => NAN,
            _ => sign(product_negative) | 0x7F80_0000,
        },
    }
}

/// Two finite numbers added, rounded to FLOAT32.
fn sum(n1: bool, s1: u128, e1: i32, n2: bool, s2: u128, e2: i32) -> u32 {
    if s1 == 0 && s2 == 0 {
        return F32.put_together(n1 && n2, 0, 0, false);
    }
    let top = |significand: u128, exponent: i32| match significand {
        0 => i32::MIN,
        _ => 127 - significand.leading_zeros() as i32 + exponent,
    };
    // Express both in a common unit, 110 bits below the higher leading bit. Anything below the unit is sticky.
    let unit = top(s1, e1).max(top(s2, e2)) - 110;
    let scale = |significand: u128, exponent: i32| match exponent - unit {
        _ if significand == 0 => (0, false),
        shift @ 0.. => (significand << shift, false),
        shift @ -127..=-1 => (significand >> -shift, significand & ((1 << -shift) - 1) != 0),
        _ => (0, true),
    };
    let ((s1, lost1), (s2, lost2)) = (scale(s1, e1), scale(s2, e2));
    assert!(!(lost1 && lost2));
    if n1 == n2 {
        return F32.put_together(n1, s1 + s2, unit, lost1 || lost2);
    }
    let (negative, large, small, lost) = if s1 >= s2 { (n1, s1, s2, lost2) } else { (n2, s2, s1, lost1) };
    // large − (small + something below one unit) is large − small − 1 plus something below one unit.
    let difference = large - small - u128::from(lost);
    F32.put_together(negative && difference != 0, difference, unit, lost)
}

/// Element `i` of a FLOAT32 fill: the index rounded to the nearest float, then one fused multiply-add.
pub fn fill_f32(i: u32, start: u32, delta: u32) -> u32 {
    fma(F32.put_together(false, u128::from(i), 0, false), delta, start)
}

/// Element `i` of a FLOAT16 fill: the FLOAT32 element of the widened scalars, rounded to FLOAT16.
pub fn fill_f16(i: u32, start: u16, delta: u16) -> u16 {
    match F32.take_apart(fill_f32(i, widen(start), widen(delta))) {
        Nan => 0x7E00,
        Infinite { negative } => u16::from(negative) << 15 | 0x7C00,
        Finite { negative, significand, exponent } => F16.put_together(negative, significand, exponent, false) as u16,
    }
}

fn widen(bits: u16) -> u32 {
    match F16.take_apart(u32::from(bits)) {
        Nan => NAN,
        Infinite { negative } => u32::from(negative) << 31 | 0x7F80_0000,
        Finite { negative, significand, exponent } => F32.put_together(negative, significand, exponent, false),
    }
}
