//! What is compared at all: names of files, models, outputs and cases that are known to differ.

use super::*;

#[test]
fn runs_are_named_by_what_differs() {
    let named = |files: &[(&str, &str)]| {
        let labelled = |(label, file): &(&str, &str)| {
            let [label, file] = [label, file].map(|text| text.to_string());
            Results {
                label,
                file,
                ..Results::default()
            }
        };
        names::names(&files.iter().map(labelled).collect::<Vec<_>>())
    };
    for (files, found) in [
        (
            &[
                ("dml-cuda 0.3.0 on H200, Linux", "x"),
                ("DirectML 1.13.1 on H200, Linux", "y"),
            ][..],
            &["dml-cuda 0.3.0", "DirectML 1.13.1"][..],
        ),
        (
            &[
                ("dml-cuda 0.3.0 on CPU", "x"),
                ("dml-cuda 0.3.0 on H200", "y"),
            ],
            &["CPU", "H200"],
        ),
        (
            &[("dml-cuda on CPU, x", "x"), ("dml-cuda on CPU, y", "y")],
            &["x", "y"],
        ),
        (&[("a on b", "x"), ("c on d", "y")], &["a on b", "c on d"]),
        (&[("a", "x"), ("a on b", "y")], &["a", "a on b"]),
        (
            &[("a, x", "x"), ("a, x", "x"), ("a, x", "x")],
            &["a, x (A)", "a, x (B)", "a, x (C)"],
        ),
        (
            &[("dml-cuda 0.3.0 on CPU", "x")],
            &["dml-cuda 0.3.0 on CPU"],
        ),
    ] {
        assert_eq!(named(files), found);
    }
    let long = named(&[(&"long ".repeat(20), ""), (&"longer ".repeat(20), "")]);
    assert!(
        long.iter()
            .all(|name| name.chars().count() <= names::LONGEST && name.ends_with('…')),
        "{long:?}"
    );
}

/// Models of one name may be others in another release. Then nothing is compared, and nothing fails.
#[test]
fn other_models_are_named_and_not_compared() {
    let of = |label: &str, models: [&str; 2], factor: f64| {
        let mut file = results(
            label,
            vec![timing(
                "x",
                Mode::Copy,
                1 << 30,
                &around(100.0 * factor, 0.01),
            )],
        );
        models[0].clone_into(&mut file.cases[0].model);
        file.outputs.insert(
            "o".to_owned(),
            Output {
                model: models[1].to_owned(),
                ..output(label, false)
            },
        );
        file
    };
    let compared = |a: [&str; 2], b: [&str; 2]| {
        let comparison = Comparison::new(&[of("0a", a, 1.0), of("0b", b, 2.0)], 5.0);
        let ending = comparison.verdicts[0]
            .sentence
            .split_once("; ")
            .map(|(_, ending)| ending.to_owned());
        (
            regressions(&comparison, &Allowed::default()),
            ending,
            comparison.notes().join("; "),
        )
    };
    let fails = vec![
        "1 case SLOWER".to_owned(),
        "1 output different (--allow-different-outputs)".to_owned(),
    ];
    let ending = |text: &str| Some(text.to_owned());
    let (found, end, _) = compared(["1", "2"], ["1", "2"]);
    assert_eq!((found, end), (fails.clone(), ending("1 output not equal")));
    let (found, end, notes) = compared(["1", "2"], ["3", "4"]);
    assert_eq!((found, end), (Vec::new(), None));
    assert!(
        notes.contains("not compared: another model in '0b' than in '0a': x, f32, copy; o"),
        "{notes}"
    );
    let (found, end, notes) = compared(["1", "2"], ["", ""]);
    let unknown = "perhaps because the models are not, which older files do not say";
    assert_eq!(
        (found, end),
        (fails, ending(&format!("1 output not equal, {unknown}")))
    );
    assert!(notes.contains(unknown), "{notes}");
}

#[test]
fn what_cannot_be_compared_is_said() {
    let mut files = [
        results(
            "a",
            vec![
                timing("x", Mode::Copy, 8, &[1.0]),
                timing("x", Mode::InPlace, 8, &[1.0]),
            ],
        ),
        results(
            "b",
            vec![
                timing("x", Mode::Copy, 9, &[1.0]),
                timing("y", Mode::Copy, 8, &[1.0]),
            ],
        ),
    ];
    let comparison = Comparison::new(&files, 5.0);
    assert!(
        comparison.rows.iter().all(|row| row.changes[0].is_none())
            && comparison.verdicts[0].all.is_none()
    );
    assert_eq!(
        comparison.not_compared.len(),
        3,
        "{:?}",
        comparison.not_compared
    );
    assert!(comparison
        .not_compared
        .iter()
        .any(|why| why.contains("which is other work")));
    files[1].cases[0] = timing("x", Mode::InPlace, 8, &[1.0]);
    assert!(Comparison::new(&files, 5.0)
        .rows
        .iter()
        .any(|row| row.changes[0].is_some()));
    "DxDispatch".clone_into(&mut files[0].machine.tool);
    let in_place = Comparison::new(&files, 5.0);
    assert!(
        in_place.rows.iter().all(|row| row.changes[0].is_none()),
        "DirectML's data is wrong"
    );
    let known = "DirectML accepts them and returns wrong data";
    let [a, b] = ["a", "b"].map(|label| format!("1 case (copy) that '{label}' does not have"));
    assert_eq!(
        in_place.not_compared,
        BTreeSet::from([a, b, format!("cases (in place): {known}")])
    );
    files[0].cases.pop();
    let absent = format!("1 case (in place) that 'a' does not have: {known}");
    assert!(Comparison::new(&files, 5.0).not_compared.contains(&absent));
}

/// Outputs with lengths above the axis size differ from DirectML's. Others, and those of other libraries, but must not.
#[test]
fn outputs_differ_as_expected_only_from_directmls() {
    let of = |tool: &str, bytes: &str, expected: bool| {
        let mut file = Results::default();
        tool.clone_into(&mut file.machine.tool);
        file.outputs.insert("o".to_owned(), output(bytes, expected));
        file
    };
    let found = |tool: &str, expected: bool| {
        let comparison = Comparison::new(
            &[
                of(tool, "00", expected),
                of("dml-cuda 0.2.0", "01", expected),
            ],
            5.0,
        );
        let is_said = comparison.verdicts[0]
            .sentence
            .contains("; 1 output not equal");
        assert_eq!(is_said, !comparison.outputs[0].different.is_empty());
        (
            comparison.outputs[0].expected.len(),
            regressions(&comparison, &Allowed::default()).join("; "),
        )
    };
    let differs = "1 output different (--allow-different-outputs)".to_owned();
    assert_eq!(
        found("DxDispatch with DirectML 1.15.4", true),
        (1, String::new())
    );
    assert_eq!(
        found("DxDispatch with DirectML 1.15.4", false),
        (0, differs.clone())
    );
    assert_eq!(found("dml-cuda 0.1.0", true), (0, differs));
    // What ONNX Runtime's DirectML provider is known to get wrong is neither a failure nor missing.
    let mut wrong = of("ONNX Runtime 1.24.4 DirectML", "00", false);
    let known = Outcome::NotCompared("wrong".to_owned());
    wrong.outputs.insert(
        "o".to_owned(),
        Output {
            model: String::new(),
            written: known.clone(),
            expected_to_differ: false,
        },
    );
    wrong.cases.push(Timed {
        outcome: known,
        ..timing("x", Mode::Copy, 8, &[1.0])
    });
    let mut right = of("ONNX Runtime 1.31.1 CUDA", "01", false);
    right.cases.push(timing("x", Mode::Copy, 8, &[1.0]));
    for files in [[wrong.clone(), right.clone()], [right, wrong]] {
        assert_eq!(
            regressions(&Comparison::new(&files, 5.0), &Allowed::default()),
            Vec::<String>::new()
        );
    }
}
