use super::cell::Change;
use super::*;
use crate::bench::results::{Outcome, Output, Timed};
use crate::bench::work::{Mode, Work};

fn timing(case: &str, mode: Mode, bytes: u64, samples: &[f64]) -> Timed {
    let (case, data_type) = (case.to_owned(), "f32".to_owned());
    let work = Work {
        case,
        data_type,
        mode,
        bytes,
        side_by_side: false,
    };
    Timed {
        work,
        model: String::new(),
        dispatches: 1,
        outcome: Outcome::Each(samples.to_vec()),
        kernel: String::new(),
        baseline: None,
    }
}

fn output(bytes: &str, expected_to_differ: bool) -> Output {
    Output {
        model: String::new(),
        written: Outcome::Bytes(bytes.to_owned()),
        expected_to_differ,
    }
}

fn run(label: &str, cases: Vec<Timed>) -> Results {
    Results {
        label: label.to_owned(),
        cases,
        ..Results::default()
    }
}

fn statuses(a: &[f64], b: &[f64]) -> Change {
    let runs = [
        run("a", vec![timing("x", Mode::Copy, 1 << 30, a)]),
        run("b", vec![timing("x", Mode::Copy, 1 << 30, b)]),
    ];
    Comparison::new(&runs, 5.0).rows[0].changes[0].expect("both have it")
}

/// Thirty samples around a middle.
fn around(middle: f64, spread: f64) -> Vec<f64> {
    (0..30)
        .map(|n| middle * (1.0 + spread * (f64::from(n * 7 % 30) / 29.0 - 0.5)))
        .collect()
}

#[test]
fn a_difference_is_one_only_beyond_the_threshold_and_the_interval() {
    let steady = around(100.0, 0.01);
    let status = |b: &[f64]| statuses(&steady, b).status;
    assert_eq!(statuses(&[100.0; 30], &[50.0; 30]).speed_up, 2.0);
    assert_eq!(status(&around(50.0, 0.01)), Status::Faster);
    assert_eq!(status(&around(200.0, 0.01)), Status::Slower);
    assert_eq!(status(&around(103.0, 0.01)), Status::Same);
    assert_eq!(status(&around(107.0, 0.01)), Status::Slower);
    // The interval reaches over the threshold.
    assert_eq!(status(&around(105.0, 0.01)), Status::Unsure);
    assert_eq!(status(&around(107.0, 0.4)), Status::Unsure);
    assert_eq!(status(&around(200.0, 0.4)), Status::Slower);
    // Ten samples with a noise of 246 % say nothing of a factor of 2.
    let noisy = [
        10.0, 12.0, 15.0, 20.0, 45.0, 55.0, 130.0, 150.0, 160.0, 170.0,
    ];
    assert_eq!(
        statuses(&noisy, &noisy.map(|sample| sample / 2.0)).status,
        Status::Unsure
    );
    // Below seven values the interval is their range and 10 %. A verdict never contradicts it.
    for (a, b, threshold, status) in [
        (&[100.0][..], &[101.0][..], 5.0, Status::Unsure),
        (&[100.0], &[112.0], 5.0, Status::Unsure),
        (&[100.0], &[112.0], 1.0, Status::Slower),
        (&[100.0], &[112.0], 30.0, Status::Same),
        (&[100.0], &[117.0], 5.0, Status::Slower),
        (
            &[95.0, 100.0, 105.0],
            &[108.0, 112.0, 116.0],
            5.0,
            Status::Unsure,
        ),
    ] {
        assert_eq!(
            cell::change(a, b, threshold).status,
            status,
            "{a:?} {b:?} {threshold}"
        );
    }
}

/// Other work next to one of two runs of one program: every case is UNSURE, and the baselines say why.
#[test]
fn baselines_that_differ_say_that_the_machine_was_another() {
    let on = |device: &str, factor: f64| {
        let samples = |middle: f64| around(middle * factor, 0.01);
        let cases = vec![
            timing("x", Mode::Copy, 1 << 30, &samples(100.0)),
            timing("512 MiB", Mode::BaselineOfCopies, 1 << 30, &samples(90.0)),
        ];
        let mut run = run(device, cases);
        device.clone_into(&mut run.machine.device);
        run.machine.tool = format!("of one name {factor}");
        run
    };
    let compared = |a: Results, b: Results| {
        let comparison = Comparison::new(&[a, b], 5.0);
        (
            comparison.rows[0].changes[0].expect("both have it").status,
            comparison.other_machine[0].clone(),
        )
    };
    let (status, why) = compared(on("GPU", 2.0), on("GPU", 1.0));
    assert_eq!(status, Status::Unsure);
    assert!(
        why.is_some_and(|why| why.contains("1 baseline of") && why.contains("by a factor of 2.00"))
    );
    assert_eq!(
        compared(on("GPU", 2.0), on("another GPU", 1.0)),
        (Status::Faster, None)
    );
    assert_eq!(
        compared(on("GPU", 1.02), on("GPU", 1.0)),
        (Status::Same, None)
    );
    // One of three is enough.
    let with_more = |spread: f64| {
        let mut run = on("GPU", 1.0);
        let more = |name| timing(name, Mode::BaselineOfCopies, 1 << 30, &around(90.0, spread));
        run.cases.extend(["1", "2"].map(more));
        run
    };
    assert_eq!(
        compared(with_more(0.01), with_more(2.0)),
        (Status::Same, None)
    );
    let mut without = on("GPU", 1.0);
    without.cases.truncate(1);
    let (status, why) = compared(on("GPU", 1.0), without);
    assert!(
        status == Status::Unsure
            && why.is_some_and(|why| why.contains("the same: 0 of 0 baselines"))
    );
    // A baseline too noisy to differ tells nothing either.
    let mut noisy = on("GPU", 9.0);
    noisy.cases[1].outcome = Outcome::Each(around(135.0, 2.0));
    let (status, why) = compared(on("GPU", 1.0), noisy);
    assert!(
        status == Status::Unsure
            && why.is_some_and(|why| why.contains("the same: 0 of 1 baselines"))
    );
}

#[test]
fn a_baseline_is_of_the_nearest_size_in_the_same_run() {
    let run = run(
        "a",
        vec![
            timing("x", Mode::Copy, 200, &[4.0]),
            timing("fill", Mode::Fill, 200, &[4.0]),
            timing("small", Mode::Copy, 2, &[4.0]),
            timing("1", Mode::BaselineOfCopies, 160, &[2.0]),
            timing("2", Mode::BaselineOfCopies, 1000, &[2.0]),
        ],
    );
    let comparison = Comparison::new(&[run], 5.0);
    let of_baseline = comparison
        .rows
        .iter()
        .map(|row| row.cells[0].as_ref()?.of_baseline);
    assert_eq!(
        of_baseline.collect::<Vec<_>>(),
        [Some(2.0 * 200.0 / 160.0 / 4.0), None, None]
    );
    let mut noises = comparison
        .rows
        .iter()
        .filter_map(|row| row.cells[0].as_ref()?.noise);
    assert_eq!(noises.next(), None, "one sample has no noise");
}

/// Ten times the cases take about ten times as long. Squared, these would take minutes.
#[test]
fn a_long_run_is_compared_in_a_time_that_grows_with_it() {
    let names: Vec<String> = (0..100_000).map(|n| format!("x{n}")).collect();
    let mut cases: Vec<Timed> = names
        .iter()
        .map(|name| timing(name, Mode::Copy, 1 << 30, &[4.0; 7]))
        .collect();
    cases.push(timing(
        "512 MiB",
        Mode::BaselineOfCopies,
        1 << 30,
        &[2.0; 7],
    ));
    let begun = std::time::Instant::now();
    let comparison = Comparison::new(&[run("a", cases)], 5.0);
    assert_eq!(
        comparison.rows[99_999].cells[0]
            .as_ref()
            .and_then(|cell| cell.of_baseline),
        Some(0.5)
    );
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}

/// A group counts what both runs have. The winner is named first, and by its own numbers.
#[test]
fn a_verdict_is_of_the_cases_that_both_runs_have() {
    let of = |tool: &str, cases: &[(&str, f64)]| {
        let steady = |factor: f64| around(100.0 * factor, 0.01);
        let mut cases: Vec<Timed> = cases
            .iter()
            .map(|(name, factor)| timing(name, Mode::Copy, 1 << 30, &steady(*factor)))
            .collect();
        cases.push(timing(
            "512 MiB",
            Mode::BaselineOfCopies,
            1 << 30,
            &steady(1.0),
        ));
        run(tool, cases)
    };
    let [mut a, mut b] = [
        of("a", &[("x", 1.0), ("y", 1.0), ("only a", 50.0)]),
        of("b", &[("x", 0.5), ("y", 0.125), ("z", 9.0)]),
    ];
    // Small work has no baseline in b, and its own in a.
    let small = |samples: f64| timing("small", Mode::Copy, 8, &[samples; 7]);
    a.cases.push(Timed {
        baseline: Some(1.0),
        ..small(100.0)
    });
    b.cases.push(small(25.0));
    let verdict = |runs: &[&Results]| {
        Comparison::new(&runs.iter().copied().cloned().collect::<Vec<_>>(), 5.0)
            .verdicts
            .remove(0)
    };
    let found = verdict(&[&a, &b]);
    let rest = "(2.0× to 8.0×) on 3 cases that both ran: 3 faster, 0 slower, 0 unsure";
    assert_eq!(
        (&*found.title, &*found.by_type),
        ("b is 4.0× as fast as a", "f32 4.0× (3 cases)")
    );
    assert_eq!(
        (found.sentence, found.unit),
        (
            format!("b is 4.0× as fast as a {rest}"),
            "speedup of b over a".to_owned()
        )
    );
    let all = found.all.expect("three cases");
    assert_eq!(
        (all.cases, all.of_baseline),
        (3, vec![Some(1.0), Some(4.0)]),
        "what one run lacks does not count"
    );
    // Every figure is the speedup of the second run.
    let swapped = verdict(&[&b, &a]);
    let rest = "(0.12× to 0.50×) on 3 cases that both ran: 0 faster, 3 slower, 0 unsure";
    assert_eq!(
        swapped.sentence,
        format!("a is slower than b: 0.25× as fast {rest}")
    );
    assert_eq!(
        (&*swapped.by_type, swapped.faster.as_deref()),
        ("f32 0.25×, slower (3 cases)", Some("b"))
    );
    let same = verdict(&[&a, &a]);
    assert!(same
        .sentence
        .starts_with("a (B) and a (A) are equally fast: a (B) is 1.00× as fast as a (A)"));
    assert!(verdict(&[&b])
        .sentence
        .starts_with("b runs at 121 % of the baseline's speed (11 % to 800 %) on 3 cases"));
    let noisy = |label: &str| {
        run(
            label,
            vec![timing("x", Mode::Copy, 1 << 30, &around(100.0, 2.0))],
        )
    };
    let why = "Not decided: the noise is larger than the difference. b was 1.00× as fast as a";
    assert!(verdict(&[&noisy("a"), &noisy("b")])
        .sentence
        .starts_with(why));
    assert_eq!(
        verdict(&[&noisy("a")]).sentence,
        "a has no baseline to compare its times with"
    );
    assert_eq!(
        verdict(&[&run("a", Vec::new())]).sentence,
        "a has no case with a time"
    );
    let mixed = verdict(&[
        &of("a", &[("x", 1.0), ("y", 1.0)]),
        &of("b", &[("x", 0.5), ("y", 2.0)]),
    ]);
    assert!(
        mixed
            .sentence
            .starts_with("Neither is faster on the whole: ")
            && mixed.faster.is_none(),
        "{}",
        mixed.sentence
    );
    let one = verdict(&[
        &of("a", &[("x", 1.0), ("y", 1.0), ("z", 1.0)]),
        &of("b", &[("x", 0.92), ("y", 1.0), ("z", 1.0)]),
    ]);
    assert!(
        one.sentence.starts_with("Neither is faster on the whole: "),
        "{}",
        one.sentence
    );
    let near = verdict(&[&of("a", &[("x", 1.05)]), &of("b", &[("x", 1.0)])]);
    let why =
        "Not decided: the difference is too near the threshold of 5 %. b was 1.05× as fast as a";
    assert!(near.sentence.starts_with(why), "{}", near.sentence);
    let [mut on_gpu, mut slower] = [of("a", &[("x", 1.0)]), of("b", &[("x", 2.0)])];
    for run in [&mut on_gpu, &mut slower] {
        "GPU".clone_into(&mut run.machine.device);
    }
    slower.cases[1].outcome = Outcome::Each(around(200.0, 0.01));
    let found = verdict(&[&on_gpu, &slower]);
    let why = "Not decided: the machine was not the same. b was 0.50× as fast as a (0.50× to 0.50×) on 1 case";
    assert!(
        found.sentence.starts_with(why) && found.by_kind.ends_with("0.50× ? (1 case)"),
        "{}",
        found.sentence
    );
}

#[test]
fn runs_are_named_by_what_differs() {
    let named = |runs: &[(&str, &str)]| {
        let run = |(label, file): &(&str, &str)| {
            let [label, file] = [label, file].map(|text| text.to_string());
            Results {
                label,
                file,
                ..Results::default()
            }
        };
        names::names(&runs.iter().map(run).collect::<Vec<_>>())
    };
    for (runs, found) in [
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
        assert_eq!(named(runs), found);
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
        let mut run = run(
            label,
            vec![timing(
                "x",
                Mode::Copy,
                1 << 30,
                &around(100.0 * factor, 0.01),
            )],
        );
        models[0].clone_into(&mut run.cases[0].model);
        run.outputs.insert(
            "o".to_owned(),
            Output {
                model: models[1].to_owned(),
                ..output(label, false)
            },
        );
        run
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
    let unknown = "perhaps because the models are not, which older runs do not say";
    assert_eq!(
        (found, end),
        (fails, ending(&format!("1 output not equal, {unknown}")))
    );
    assert!(notes.contains(unknown), "{notes}");
}

/// Warnings are for what makes figures doubtful, and notes for the rest.
#[test]
fn warnings_are_graded() {
    let of = |timing_of: &str, suite: &str, baseline: f64| {
        let cases = vec![
            timing("x", Mode::Copy, 1 << 30, &[1.0; 7]),
            timing("1", Mode::BaselineOfCopies, 1 << 30, &[baseline; 7]),
        ];
        Results {
            timing: timing_of.to_owned(),
            suite: suite.to_owned(),
            ..run(suite, cases)
        }
    };
    let gpu = "events on the GPU, the same buffers every time";
    let usual = || of(gpu, "full 1", 1.0);
    for (a, b, found) in [
        (usual(), usual(), &[][..]),
        (
            usual(),
            of(&format!("{gpu}, specialized kernels"), "full 1", 1.0),
            &["NOTE: full 1 (A) and full 1 (B) were timed in one way, but not in all details; see their timing"],
        ),
        (
            usual(),
            of("the host's clock", "full 1", 1.0),
            &["WARNING: full 1 (A) and full 1 (B) were timed differently. "],
        ),
        (usual(), of("", "full 1", 1.0), &["WARNING: full 1 (A) and full 1 (B) were timed differently. "]),
        (
            usual(),
            of(gpu, "full 2", 1.0),
            &["WARNING: the suites differ, so models of one name may also differ: full 1 ran full 1, and"],
        ),
        (
            usual(),
            of(gpu, "full 1", 1.25),
            &["WARNING: full 1 (B) runs at up to 125 % of the baseline's speed: the baseline is too slow"],
        ),
    ] {
        let Comparison { warnings, verdicts, .. } = Comparison::new(&[a, b], 5.0);
        let is_doubtful = found.iter().any(|words| words.contains("differ"));
        let (title, sentence) = (&verdicts[0].title, &verdicts[0].sentence);
        assert_eq!(title.starts_with("Not comparable: "), is_doubtful, "{title}");
        assert!(sentence.starts_with(title.as_str()), "{sentence}");
        let is_said = warnings.iter().zip(found).all(|(warning, words)| warning.text.starts_with(words));
        assert!(
            warnings.len() == found.len() && is_said,
            "{:?} {found:?}",
            warnings.iter().map(|warning| &warning.text).collect::<Vec<_>>()
        );
    }
}

/// No record has a baseline that is slower than what is compared with it.
#[test]
fn records_have_no_warning_of_a_baseline() {
    let records =
        std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/record"));
    // The published crate leaves them out.
    let Ok(folders) = std::fs::read_dir(records) else {
        return;
    };
    let folders = folders.filter_map(|folder| std::fs::read_dir(folder.ok()?.path()).ok());
    let files: Vec<_> = folders
        .flatten()
        .map(|file| file.expect("an entry").path())
        .filter(|path| Results::is_at(path))
        .collect();
    assert!(files.len() > 9, "{files:?}");
    for file in files {
        let warnings = Comparison::new(&[Results::read(&file).expect("a run")], 5.0).warnings;
        assert!(
            !warnings
                .iter()
                .any(|warning| warning.text.contains("baseline")),
            "{file:?}"
        );
    }
}

#[test]
fn what_cannot_be_compared_is_said() {
    let mut runs = [
        run(
            "a",
            vec![
                timing("x", Mode::Copy, 8, &[1.0]),
                timing("x", Mode::InPlace, 8, &[1.0]),
            ],
        ),
        run(
            "b",
            vec![
                timing("x", Mode::Copy, 9, &[1.0]),
                timing("y", Mode::Copy, 8, &[1.0]),
            ],
        ),
    ];
    let comparison = Comparison::new(&runs, 5.0);
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
    runs[1].cases[0] = timing("x", Mode::InPlace, 8, &[1.0]);
    assert!(Comparison::new(&runs, 5.0)
        .rows
        .iter()
        .any(|row| row.changes[0].is_some()));
    "DxDispatch".clone_into(&mut runs[0].machine.tool);
    let in_place = Comparison::new(&runs, 5.0);
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
    runs[0].cases.pop();
    let absent = format!("1 case (in place) that 'a' does not have: {known}");
    assert!(Comparison::new(&runs, 5.0).not_compared.contains(&absent));
}

/// Outputs with lengths above the axis size differ from DirectML's. Others, and those of other libraries, but must not.
#[test]
fn outputs_differ_as_expected_only_from_directmls() {
    let of = |tool: &str, bytes: &str, expected: bool| {
        let mut run = Results::default();
        tool.clone_into(&mut run.machine.tool);
        run.outputs.insert("o".to_owned(), output(bytes, expected));
        run
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
    for runs in [[wrong.clone(), right.clone()], [right, wrong]] {
        assert_eq!(
            regressions(&Comparison::new(&runs, 5.0), &Allowed::default()),
            Vec::<String>::new()
        );
    }
}
