//! Every `unsafe` of the crates with its argument, in a list for each: `golden/unsafe`. A new one shows in the list's diff, for whoever
//! reviews it. `UPDATE_GOLDEN=1 cargo test --test unsafe_code` writes it anew.

mod common;

use std::fmt::Write;
use std::path::{Path, PathBuf};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// What stands behind `//`, of a comment or a doc comment.
fn comment(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("//").map(|text| text.trim_start_matches(['/', '!']).trim())
}

/// The argument of the `unsafe` in a line: the nearest SAFETY comment above it or the Safety section of its function, to its end.
fn argument(lines: &[&str], at: usize) -> Option<String> {
    let above = &lines[..at];
    let begin = above
        .iter()
        .rposition(|line| comment(line).is_some_and(|text| text.starts_with("SAFETY:") || text == "# Safety"))?;
    // A block's argument stands on the statement that holds it, which may begin some lines before.
    if at - begin > 24 || above[begin..].iter().any(|line| line.starts_with('}')) {
        return None;
    }
    let text: Vec<&str> =
        lines[begin..at].iter().map_while(|line| comment(line)).filter(|text| !text.is_empty()).collect();
    Some(text.join(" ").trim_start_matches("SAFETY:").trim_start_matches("# Safety").trim().to_owned())
}

/// Every `unsafe` below a folder with its argument, and how many there are.
fn listed(folder: &str) -> (String, usize) {
    let mut files = Vec::new();
    sources(&common::repository(folder), &mut files);
    files.sort();
    let (mut list, mut count) = (String::new(), 0);
    for path in files {
        let text = std::fs::read_to_string(&path).expect("text");
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let lines: Vec<&str> = code.lines().collect();
        let name = path.strip_prefix(common::repository("")).unwrap_or(&path).to_string_lossy().replace('\\', "/");
        for (at, line) in lines.iter().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let says = ["unsafe {", "unsafe impl", "unsafe fn"].iter().any(|word| code.contains(word));
            // Types of functions promise nothing yet; what C calls has the contract of its header, and blocks of its own.
            if !says || code.contains("type ") || code.contains("get::<unsafe") {
                continue;
            }
            let why =
                argument(&lines, at).unwrap_or_else(|| panic!("{name}:{}: {} has no argument", at + 1, line.trim()));
            writeln!(list, "{name}: {}\n    {why}", line.trim()).expect("a string takes all");
            count += 1;
        }
    }
    (list, count)
}

#[test]
fn every_unsafe_is_listed_with_its_argument() {
    for (folder, golden, least) in [
        ("src", "src.txt", 40),
        ("crates/dml-cuda-capi/src", "dml-cuda-capi.txt", 60),
        ("crates/dml-cuda-candle/src", "dml-cuda-candle.txt", 1),
    ] {
        // The packaged crate has no other crates.
        if !common::repository(folder).exists() {
            assert_ne!(folder, "src");
            continue;
        }
        let (list, count) = listed(folder);
        assert!(count >= least, "{count} were found in {folder}");
        let golden = common::repository("tests/golden/unsafe").join(golden);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&golden, &list).expect("written");
        }
        let known = std::fs::read_to_string(&golden).unwrap_or_default();
        assert!(
            list == known,
            "the list of unsafe code of {folder} is stale: run with UPDATE_GOLDEN=1 and look at the difference"
        );
    }
}

#[test]
fn an_unsafe_without_an_argument_would_be_seen() {
    let lines = ["// SAFETY: because", "unsafe { a() };", "}", "", "fn f() {", "    unsafe { b() };"];
    assert_eq!(argument(&lines, 1).as_deref(), Some("because"));
    assert_eq!(argument(&lines, 5), None);
}
