//! Texts of callers: as errors repeat them, and numbers in them.

/// A caller's text as an error shows it: without control characters, and not without end.
pub(crate) fn echoed(text: &str) -> String {
    const MOST: usize = 200;
    let end = if text.chars().nth(MOST).is_some() {
        "…"
    } else {
        ""
    };
    text.chars()
        .take(MOST)
        .flat_map(char::escape_debug)
        .chain(end.chars())
        .collect()
}

/// A number that is written as digits alone: `str::parse` also reads `+16`.
pub(crate) fn number(text: &str) -> Option<u32> {
    text.parse()
        .ok()
        .filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::number;
    use crate::{
        CompileOptions, DirectMlVersion, Error, FeatureLevel, GpuTarget, OperatorType, Rule,
        TensorDataType,
    };

    #[test]
    fn no_text_is_repeated_without_end() {
        let long = "é\n".repeat(60_000);
        let errors: [Error; 7] = [
            long.parse::<CompileOptions>()
                .expect_err("no option")
                .into(),
            long.parse::<FeatureLevel>().expect_err("no level").into(),
            long.parse::<TensorDataType>().expect_err("no type").into(),
            long.parse::<OperatorType>()
                .expect_err("no operator")
                .into(),
            long.parse::<Rule>().expect_err("no rule").into(),
            long.parse::<DirectMlVersion>()
                .expect_err("no version")
                .into(),
            long.parse::<GpuTarget>().expect_err("no target").into(),
        ];
        for error in errors {
            let words = error.to_string();
            assert!(
                words.len() < 1000 && words.contains('é') && !words.contains('\n'),
                "{words}"
            );
        }
    }

    #[test]
    fn numbers_are_digits_alone() {
        for text in ["+16", "-16", " 16", "1_6", "0x10", "", "4294967296"] {
            assert_eq!(number(text), None, "{text}");
            assert!(
                format!("shared=100,sm={text}")
                    .parse::<GpuTarget>()
                    .is_err(),
                "{text}"
            );
            assert!(
                format!("1.{text}").parse::<DirectMlVersion>().is_err(),
                "{text}"
            );
        }
        assert_eq!((number("016"), number("0")), (Some(16), Some(0)));
    }
}
