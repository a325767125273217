//! The sentences of a comparison: its verdict and its warnings.

use super::*;

/// A group counts what both files have. The winner is named first, and by its own numbers.
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
        results(tool, cases)
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
    let verdict = |files: &[&Results]| {
        Comparison::new(&files.iter().copied().cloned().collect::<Vec<_>>(), 5.0)
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
        "what one file lacks does not count"
    );
    // Every figure is the speedup of the second file.
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
        results(
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
        verdict(&[&results("a", Vec::new())]).sentence,
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
    for file in [&mut on_gpu, &mut slower] {
        "GPU".clone_into(&mut file.machine.device);
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
            ..results(suite, cases)
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
    if !records.is_dir() {
        return; // The published crate leaves them out.
    }
    let mut folders = vec![records.to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if Results::is_at(&path) {
                files.push(path);
            }
        }
    }
    assert!(files.len() > 5, "{files:?}");
    for file in files {
        let warnings =
            Comparison::new(&[Results::read(&file).expect("a results file")], 5.0).warnings;
        assert!(
            !warnings
                .iter()
                .any(|warning| warning.text.contains("baseline")),
            "{file:?}"
        );
    }
}
