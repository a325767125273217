//! Whether a difference of times is one: by the intervals, the baselines and the threshold.

mod comparable;
mod verdicts;

use super::cell::Change;
use super::*;
use crate::bench::results::{Outcome, Output, Timed};
use crate::bench::work::{Mode, Work};

/// A timed case.
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

/// The output of a small model.
fn output(bytes: &str, expected_to_differ: bool) -> Output {
    Output {
        model: String::new(),
        written: Outcome::Bytes(bytes.to_owned()),
        expected_to_differ,
    }
}

/// The content of a results file.
fn results(label: &str, cases: Vec<Timed>) -> Results {
    Results {
        label: label.to_owned(),
        cases,
        ..Results::default()
    }
}

/// How two lists of samples differ, as cases of two files.
fn change(a: &[f64], b: &[f64]) -> Change {
    let files = [
        results("a", vec![timing("x", Mode::Copy, 1 << 30, a)]),
        results("b", vec![timing("x", Mode::Copy, 1 << 30, b)]),
    ];
    Comparison::new(&files, 5.0).rows[0].changes[0].expect("both have it")
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
    let status = |b: &[f64]| change(&steady, b).status;
    assert_eq!(change(&[100.0; 30], &[50.0; 30]).speed_up, 2.0);
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
        change(&noisy, &noisy.map(|sample| sample / 2.0)).status,
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

/// Other work next to one of two benches of one program: every case is UNSURE, and the baselines say why.
#[test]
fn baselines_that_differ_say_that_the_machine_was_another() {
    let on = |device: &str, factor: f64| {
        let samples = |middle: f64| around(middle * factor, 0.01);
        let cases = vec![
            timing("x", Mode::Copy, 1 << 30, &samples(100.0)),
            timing("512 MiB", Mode::BaselineOfCopies, 1 << 30, &samples(90.0)),
        ];
        let mut file = results(device, cases);
        device.clone_into(&mut file.machine.device);
        file.machine.tool = format!("of one name {factor}");
        file
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
        let mut file = on("GPU", 1.0);
        let more = |name| timing(name, Mode::BaselineOfCopies, 1 << 30, &around(90.0, spread));
        file.cases.extend(["1", "2"].map(more));
        file
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
    let file = results(
        "a",
        vec![
            timing("x", Mode::Copy, 200, &[4.0]),
            timing("fill", Mode::Fill, 200, &[4.0]),
            timing("small", Mode::Copy, 2, &[4.0]),
            timing("1", Mode::BaselineOfCopies, 160, &[2.0]),
            timing("2", Mode::BaselineOfCopies, 1000, &[2.0]),
        ],
    );
    let comparison = Comparison::new(&[file], 5.0);
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
    let comparison = Comparison::new(&[results("a", cases)], 5.0);
    assert_eq!(
        comparison.rows[99_999].cells[0]
            .as_ref()
            .and_then(|cell| cell.of_baseline),
        Some(0.5)
    );
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}
