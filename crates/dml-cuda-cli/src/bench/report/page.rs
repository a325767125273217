//! The page for a browser: the verdicts with their charts, the tables, and what their columns mean.
//!
//! ```text
//! h1   each verdict's title, its sentence, what ran where, warnings, chart
//! h2   Groups of cases      what the columns mean, then by type and by kind
//! h2   What ran             the machines
//! h2   All cases            and folded, what their names mean and those of one file only
//! ```
//!
//! It is one file that loads nothing from elsewhere, so that it can be sent by mail and kept with a release. maud escapes
//! all text, so that a label of a results file is never markup.

use maud::{html, Markup, PreEscaped, DOCTYPE};

use super::chart;
use super::tables::{self, Table};
use crate::bench::compare::{Comparison, Severity};
use crate::schema;

/// The style sheet, which is part of the page.
const STYLE: &str = include_str!("page.css");

/// The whole page.
pub fn page(comparison: &Comparison) -> String {
    let titles: Vec<&str> = comparison
        .verdicts
        .iter()
        .map(|verdict| &*verdict.title)
        .collect();
    let of_one_file = tables::of_one_file(comparison);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="generator" content=(schema::MARK);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (titles.join("; ")) }
                style { (PreEscaped(STYLE)) }
            }
            body { main {
                (verdicts(comparison))
                h2 id="groups" { "Groups of cases" }
                @if comparison.files.len() > 1 { (meaning_of_speedups(comparison)) }
                p { "Of baseline: the time of a plain copy, or for fills a plain fill, of as many bytes in the same results file, divided by the time of the case." }
                @for groups in tables::groups(comparison) { (table("groups", &groups)) }
                ul { @for note in comparison.notes() { li { (note) } } }
                h2 id="machines" { "What ran" }
                (table("machines", &tables::machines(comparison)))
                h2 id="cases" { "All cases" }
                p { "µs: the median time of a dispatch. Noise: (q75 − q25) / median. GB/s: the bytes that the work must move at least, divided by the time. "
                    "More figures: --format csv." }
                (case_names())
                @for cases in tables::cases(comparison) { (table("cases", &cases)) }
                @if !of_one_file.is_empty() {
                    details {
                        summary { (tables::counted_cases(&of_one_file)) " that only one of two files has" }
                        @for cases in &of_one_file { (table("cases", cases)) }
                    }
                }
            } }
        }
    };
    page.into_string() + "\n"
}

/// Each verdict with its chart. The warnings are about all of them, and come with the first one.
fn verdicts(comparison: &Comparison) -> Markup {
    html! {
        @for (n, verdict) in comparison.verdicts.iter().enumerate() {
            h1 { (verdict.title) }
            p { (verdict.sentence[verdict.title.len()..].trim_start_matches([' ', '.', ':'])) }
            @if n == 0 {
                p { (what_ran(comparison)) }
                @for warning in &comparison.warnings {
                    p class=(match warning.severity { Severity::Warning => "warning", Severity::Note => "note" }) { (warning.text) }
                }
            }
            @for (by, line) in [("By type", &verdict.by_type), ("By kind", &verdict.by_kind)] {
                @if !line.is_empty() { p { (by) ", " (verdict.unit) ": " (line) } }
            }
            @if verdict.all.is_some() { figure { (PreEscaped(chart::of_verdict(comparison, n))) } }
        }
    }
}

/// A sentence about the device and the system of each file, because a program may run faster elsewhere.
fn what_ran(comparison: &Comparison) -> String {
    let mut sentences = String::new();
    for file in &comparison.files {
        let machine = &file.machine;
        // What follows a semicolon is a remark, which the table of machines has.
        let system = machine
            .operating_system
            .split(';')
            .next()
            .unwrap_or_default();
        let mut sentence = format!("{} ran", file.name);
        if !machine.device.is_empty() {
            sentence += &format!(" on {}", machine.device);
        }
        if !system.is_empty() {
            sentence += &format!(" under {system}");
        }
        sentences += &format!("{sentence}. ");
    }
    let of_one_file = tables::of_one_file(comparison);
    if !of_one_file.is_empty() {
        let cases = tables::counted_cases(&of_one_file);
        sentences += &format!("Not compared: {cases} that only one of two files has.");
    }
    sentences.trim_end().to_owned()
}

/// What the figures of several files mean, and how a case is decided.
fn meaning_of_speedups(comparison: &Comparison) -> Markup {
    let first = &comparison.files[0].name;
    html! {
        p {
            "Speedup: the time of " (first) " divided by that of the other file; above 1, the other is faster. A group's speedup is the geometric mean of the cases that both ran. "
            "The 95 % interval is that of the ratio of the medians (order statistics); a group's is the geometric mean of its cases' intervals. A case or a group is FASTER or SLOWER if its interval is wholly beyond "
            (comparison.threshold) " %, SAME if it is wholly within, and otherwise UNSURE. The interval of fewer than 7 values is their range. If a file has fewer, the interval of the speedup is 10.5 % wider on both sides."
        }
    }
}

/// The names of the suite's cases. Sizes are in brackets, and an asterisk is a size that makes the tensor as large as the
/// others of its kind.
const CASE_NAMES: [(&str, &str); 9] = [
    ("fill", "packed, with padded rows, NHWC or transposed: the memory layout of the output"),
    ("inner [B, T]", "sequences along the last dimension, contiguous in memory"),
    ("block [B, T, F]", "sequences of rows of F elements, with one length for each sequence"),
    ("lanes [B, T, F]", "F interleaved sequences along T, each with its own length"),
    ("time first [T, B, F]", "as block, with the batch second"),
    ("transposed", "the input or the output is contiguous along another dimension"),
    ("odd, misaligned, long", "sizes that are no multiples of 16 bytes, rows at odd addresses, and sequences too long for shared memory"),
    ("tokens, model", "sizes of language models"),
    ("small, lanes of, blocks of", "tensors that take as long as a launch"),
];

/// A legend of the names of cases, folded.
fn case_names() -> Markup {
    html! {
        details {
            summary { "What the names of cases mean" }
            dl { @for (name, meaning) in CASE_NAMES { dt { (name) } dd { (meaning) } } }
        }
    }
}

/// A table below a heading, which names it for a reader who scrolls it with the keyboard.
fn table(heading: &str, rows: &Table) -> Markup {
    // A narrow page leaves some columns out.
    let is_wide = |n: usize| tables::WIDE.contains(&&*rows[0][n]);
    // The class of a cell, which gives it its colour and its alignment.
    let of_cell = |n: usize, cell: &str| match cell {
        "FASTER" => Some("faster"),
        "SLOWER" => Some("slower"),
        "UNSURE" => Some("unsure"),
        _ if n == 0 && cell == "failed" => Some("slower"),
        _ if is_wide(n) => Some("only-wide"),
        _ => tables::has_numbers(&rows[0][n]).then_some("number"),
    };
    html! {
        div.wide role="region" tabindex="0" aria-labelledby=(heading) { table class=(heading) {
            thead { tr { @for (n, name) in rows[0].iter().enumerate() { th scope="col" class=[is_wide(n).then_some("only-wide")] { (name) } } } }
            tbody { @for row in &rows[1..] { tr {
                @for (n, cell) in row.iter().enumerate() { td class=[of_cell(n, cell)] { (cell) } }
            } } }
        } }
    }
}
