//! Compile options: their strings, and what they change.

use dml_cuda::{CompileOptions, Device, TensorDataType};
use dml_cuda_testing::{lanes, repository};

/// The table of the page lists every option, its values and its default, and every text reads as what it says.
#[test]
fn the_page_has_every_option() {
    let page = std::fs::read_to_string(repository("docs/compile-options.md")).expect("a page");
    let cells = |row: &str| -> Vec<Vec<String>> {
        let in_code = |cell: &str| {
            cell.split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect()
        };
        row.split('|').skip(1).map(in_code).collect()
    };
    let mut defaults = Vec::new();
    for row in page
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(cells)
    {
        let (key, values, default) = (&row[0][0], &row[1], &row[2][0]);
        for text in values.iter().map(|value| format!("{key}={value}")) {
            let options: CompileOptions = text.parse().expect("an option of the page");
            assert!(
                options
                    .to_string()
                    .split(' ')
                    .any(|written| written == text),
                "{text}: {options}"
            );
            assert_eq!(options.to_string().parse(), Ok(options));
            assert_eq!(
                options.with_text(&format!("{key}={default}")),
                Ok(CompileOptions::default())
            );
        }
        let error = format!("{key}=other")
            .parse::<CompileOptions>()
            .expect_err("not on the page")
            .to_string();
        assert!(
            error.contains(&format!("{key}={}", row[1].join("|"))),
            "{error}"
        );
        defaults.push(format!("{key}={default}"));
    }
    assert_eq!(defaults.join(" "), CompileOptions::default().to_string());
    for word in ["select", "alignment=16"] {
        let error = format!("select=measure {word}")
            .parse::<CompileOptions>()
            .expect_err(word)
            .to_string();
        assert!(
            error.starts_with(&format!(
                "the compile option is `{word}`, but must be one of "
            )),
            "{error}"
        );
    }
}

/// The CPU has no kernels to measure.
#[test]
fn measuring_changes_nothing_on_the_cpu() {
    let device = Device::cpu();
    let operator = device
        .create_operator(lanes(TensorDataType::UInt8, 4, 16))
        .expect("right");
    let options = CompileOptions::default().with_measure(true);
    let [measured, estimated] = [options, CompileOptions::default()]
        .map(|options| device.compile_operator_with(&operator, options));
    let [measured, estimated] = [measured.expect("compiled"), estimated.expect("compiled")];
    assert_eq!(measured.explain(), estimated.explain());
    assert_eq!(
        device
            .measure_kernels(&operator, false)
            .err()
            .map(|error| error.to_string()),
        Some(
            "kernels can be measured only on a GPU, but the device is CPU (measure.device)"
                .to_owned()
        )
    );
}
