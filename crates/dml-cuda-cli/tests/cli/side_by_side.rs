//! suite, bench and report: from the cases to a report, and what each says of wrong input.

mod bench;
mod reports;
mod runners;

use crate::{stderr, stdout, Ended, Folder};

#[test]
fn every_model_of_a_suite_runs_on_windows_too() {
    let folder = Folder::new();
    let said = folder.well(&["suite", "my suite", "--tier", "quick"]);
    assert!(said.starts_with("Suite 'quick "), "{said}");
    let suite = folder.names("my suite");
    let models: Vec<&str> = suite.iter().filter_map(|name| name.strip_suffix(".json")).collect();
    let (mut in_place, mut outputs, mut over_long) = (0, 0, 0);
    for name in &models {
        let file = format!("{name}.json");
        assert!(name.is_ascii() && folder.read(&format!("my suite/{file}")).is_ascii());
        let mut runner = folder.runner();
        let runner = runner.current_dir(folder.path("my suite")).args([&file, "--strict", "--validate"]);
        let output = runner.output().expect("it starts");
        let said = stdout(&output) + &stderr(&output);
        // --strict refuses lengths above the axis size, and the copies, which are another operator. Nothing else.
        let why = match name {
            _ if name.starts_with("over_long.") => "the size of the axis",
            _ if name.starts_with("baseline_of_copies.") => "ELEMENT_WISE_IDENTITY",
            _ => "",
        };
        assert!(output.status.success() == why.is_empty() && said.contains(why), "{name}: {said}");
        // DirectML accepts in place and is wrong.
        let warned = said.contains("one resource for InputTensor and OutputTensor");
        assert_eq!(warned, name.ends_with(".in_place"), "{name}");
        in_place += usize::from(warned);
        outputs += usize::from(name.starts_with("check."));
        over_long += usize::from(name.starts_with("over_long."));
    }
    assert!(models.len() > 180 && in_place > 50, "{} {in_place}", models.len());
    assert_eq!((outputs, over_long), (26, 4));
    folder.refuses(&["suite", "my suite"], "is not empty, must be new");
    folder.write("file", "kept");
    folder.refuses(&["suite", "file"], "");
    // On a full disk there is no half of a file.
    #[cfg(unix)]
    {
        let limited = "trap '' XFSZ; ulimit -f 4; \"$0\" suite part --tier quick";
        folder.shell(limited).fails(1, "ERROR: part: ");
        let whole = |name: &String| folder.read(&format!("part/{name}")) == folder.read(&format!("my suite/{name}"));
        assert!(folder.names("part").len() > 1 && folder.names("part").iter().all(whole));
    }
}
