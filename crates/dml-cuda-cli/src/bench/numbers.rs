//! Numbers as people read them: in sentences, tables and the chart.
//!
//! ```text
//! times        1.06×   4.0×   276×        two digits, and two decimals near 1, where they count
//! percent      95 %
//! significant  0.0951  9.50   16,370      as many digits as are asked for, or the whole part
//! ```

use indicatif::HumanCount;

/// `1 case`, `2 cases`.
pub fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A speedup, with two significant digits or, near 1, two decimals.
pub fn times(speedup: f64) -> String {
    if (0.1..1.095).contains(&speedup) {
        format!("{speedup:.2}×")
    } else {
        significant(speedup, 2) + "×"
    }
}

/// A text of at most `most` characters. A longer one is cut, and ends with a mark.
pub fn clipped(text: &str, most: usize) -> String {
    match text.chars().nth(most) {
        Some(_) => {
            text.chars()
                .take(most - 1)
                .collect::<String>()
                .trim_end()
                .to_owned()
                + "…"
        }
        None => text.to_owned(),
    }
}

/// Percent without decimals.
pub fn percent(fraction: f64) -> String {
    format!("{:.0} %", fraction * 100.0)
}

/// A positive number with `digits` significant digits, or all of its whole part, in groups of three.
pub fn significant(value: f64, digits: usize) -> String {
    // In this form the exponent is that of the rounded number.
    let scientific = format!("{value:.*e}", digits - 1);
    let exponent: i32 = scientific
        .split_once('e')
        .and_then(|(_, exponent)| exponent.parse().ok())
        .unwrap_or(0);
    let text = format!("{value:.*}", (digits as i32 - 1 - exponent).max(0) as usize);
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    match whole.parse() {
        Ok(whole) => HumanCount(whole).to_string() + fraction,
        // A number that no u64 holds stays without groups.
        Err(_) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let four = [2.127, 9.9996, 163.701, 16370.0, 1234567.8].map(|value| significant(value, 4));
        assert_eq!(four, ["2.127", "10.00", "163.7", "16,370", "1,234,568"]);
        let three = [0.0951, 0.8312, 0.95, 45.25, 1e18].map(|value| significant(value, 3));
        assert_eq!(
            three,
            [
                "0.0951",
                "0.831",
                "0.950",
                "45.2",
                "1,000,000,000,000,000,000"
            ]
        );
        assert_eq!(percent(0.947), "95 %");
        let speedups = [0.0512, 0.714, 0.998, 1.06, 1.094, 1.1, 4.01, 11.6, 276.3].map(times);
        assert_eq!(
            speedups,
            ["0.051×", "0.71×", "1.00×", "1.06×", "1.09×", "1.1×", "4.0×", "12×", "276×"]
        );
        assert_eq!(
            [clipped("four", 4), clipped("five ty", 6)],
            ["four", "five…"]
        );
    }
}
