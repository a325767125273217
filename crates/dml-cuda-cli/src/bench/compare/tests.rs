use super::*;
use crate::bench::record::Samples;
use crate::bench::suite::manifest::Work;

fn timing(case: &str, mode: Mode, bytes: u64, samples: &[f64]) -> Timing {
    let (case, data_type) = (case.to_owned(), "f32".to_owned());
    let work = Work { case, data_type, mode, bytes, dispatches: 1 };
    Timing { work, samples: Samples::Each(samples.to_vec()), baseline: None }
}

fn run(label: &str, cases: Vec<Timing>) -> Run {
    Run { label: label.to_owned(), cases, ..Run::default() }
}

fn statuses(a: &[f64], b: &[f64]) -> Change {
    let runs =
        [run("a", vec![timing("x", Mode::Copy, 1 << 30, a)]), run("b", vec![timing("x", Mode::Copy, 1 << 30, b)])];
    Comparison::new(&runs, 5.0).rows[0].changes[0].expect("both have it")
}

#[test]
fn a_difference_is_one_above_noise_and_threshold_only() {
    let (steady, noisy) = ([100.0, 100.0, 100.0], [92.0, 100.0, 108.0]);
    assert_eq!(statuses(&steady, &[50.0; 3]).status, Status::Faster);
    assert_eq!(statuses(&steady, &[50.0; 3]).speed_up, 2.0);
    assert_eq!(statuses(&steady, &[200.0; 3]).status, Status::Slower);
    assert_eq!(statuses(&steady, &[104.0; 3]).status, Status::Same);
    assert_eq!(statuses(&steady, &[106.0; 3]).status, Status::Slower);
    // A noise of 8 % hides 7 %, not 10 %.
    assert_eq!(statuses(&noisy, &[107.0; 3]).status, Status::Same);
    assert_eq!(statuses(&noisy, &[110.0; 3]).status, Status::Slower);
    // Above 10 % the middle halves decide: 90 to 110 overlaps 105 to 115, and neither 10 nor 270 to 330.
    assert_eq!(statuses(&[80.0, 100.0, 120.0], &[100.0, 110.0, 120.0]).status, Status::Unsure);
    assert_eq!(statuses(&[80.0, 100.0, 120.0], &[100.0; 3]).status, Status::Unsure);
    assert_eq!(statuses(&[80.0, 100.0, 120.0], &[10.0; 3]).status, Status::Faster);
    assert_eq!(statuses(&[80.0, 100.0, 120.0], &[240.0, 300.0, 360.0]).status, Status::Slower);
    // A long tail of slow samples explains nothing.
    assert_eq!(statuses(&[90.0, 100.0, 1000.0], &[290.0, 300.0, 3000.0]).status, Status::Unsure);
    assert_eq!(
        statuses(&[90.0, 100.0, 100.0, 100.0, 1000.0], &[290.0, 300.0, 300.0, 900.0, 900.0]).status,
        Status::Slower
    );
}

#[test]
fn a_guard_fails_for_slower_different_and_missing() {
    let outputs =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(name, bytes)| ((*name).to_owned(), (*bytes).to_owned())).collect();
    let mut runs = [
        run("a", vec![timing("x", Mode::Copy, 8, &[1.0; 3]), timing("y", Mode::Copy, 8, &[1.0; 3])]),
        run("b", vec![timing("x", Mode::Copy, 8, &[2.0; 3]), timing("z", Mode::Copy, 8, &[1.0; 3])]),
    ];
    runs[0].outputs = outputs(&[("o", "00"), ("p", "00"), ("q", "00")]);
    runs[1].outputs = outputs(&[("o", "00"), ("p", "01")]);
    let comparison = Comparison::new(&runs, 5.0);
    let said = |outputs, missing| comparison.regressions(outputs, missing).join("; ");
    assert_eq!(said(true, true), "1 case is SLOWER");
    assert_eq!(said(false, true), "1 case is SLOWER; 1 output differs (--allow-different-outputs lets it pass)");
    assert_eq!(
        said(true, false),
        "1 case is SLOWER; 2 cases are not in both runs (--allow-missing lets it pass); \
         1 output is not in both runs (--allow-missing lets it pass)"
    );
}

#[test]
fn a_roof_is_of_the_nearest_size_in_the_same_run() {
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
    let of_roof: Vec<Option<f64>> =
        comparison.rows.iter().map(|row| row.cells[0].as_ref().and_then(|cell| cell.of_roof)).collect();
    assert_eq!(of_roof, [Some(2.0 * 200.0 / 160.0 / 4.0), None, None]);
}

#[test]
fn what_cannot_be_compared_is_said() {
    let mut runs = [
        run("a", vec![timing("x", Mode::Copy, 8, &[1.0]), timing("x", Mode::InPlace, 8, &[1.0])]),
        run("b", vec![timing("x", Mode::Copy, 9, &[1.0]), timing("y", Mode::Copy, 8, &[1.0])]),
    ];
    let comparison = Comparison::new(&runs, 5.0);
    assert!(comparison.rows.iter().all(|row| row.changes[0].is_none()) && comparison.groups.is_empty());
    assert_eq!(comparison.not_compared.len(), 3, "{:?}", comparison.not_compared);
    assert!(comparison.not_compared.iter().any(|why| why.contains("which is other work")));
    for (run, suite) in runs.iter_mut().zip(["quick 0.1.0", "full 0.1.0"]) {
        suite.clone_into(&mut run.suite);
    }
    let said = Comparison::new(&runs, 5.0).not_compared;
    runs[0].suite.clear();
    runs[1].cases[0] = timing("x", Mode::InPlace, 8, &[1.0]);
    assert!(Comparison::new(&runs, 5.0).rows.iter().any(|row| row.changes[0].is_some()));
    "DxDispatch".clone_into(&mut runs[0].machine.tool);
    let in_place = Comparison::new(&runs, 5.0);
    assert!(in_place.rows.iter().all(|row| row.changes[0].is_none()), "DirectML's data is wrong");
    assert!(in_place.not_compared.iter().any(|why| why.starts_with("cases (in place): DirectML")));
    assert!(
        said.iter().any(|why| why.contains("'a' is of the suite 'quick 0.1.0' and 'b' of 'full 0.1.0'")),
        "{said:?}"
    );
}
