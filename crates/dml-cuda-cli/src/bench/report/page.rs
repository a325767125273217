//! The page for a browser: the verdicts with their charts, the tables, and what their columns mean.
//!
//! ```text
//! h1   each verdict's title, its sentence, warnings, chart
//! h2   Groups of cases      by type and by kind
//! h2   What ran             the machines
//! h2   All cases            and those of one file only, folded
//! ```
//!
//! It is one file that loads nothing from elsewhere, so that it can be sent by mail and kept with a release. maud escapes
//! all text, so that a label of a results file is never markup.

use maud::{html, Markup, PreEscaped, DOCTYPE};

use super::chart;
use super::tables::{self, Table};
use crate::bench::compare::Comparison;
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
                @for groups in tables::groups(comparison) { (table("groups", &groups)) }
                p {
                    "Of baseline: the time of a plain copy, or for fills a plain fill, of as many bytes in the same run, divided by the time of the case. "
                    @if comparison.files.len() > 1 { (meaning_of_speedups(comparison)) }
                }
                ul { @for note in comparison.notes() { li { (note) } } }
                h2 id="machines" { "What ran" }
                (table("machines", &tables::machines(comparison)))
                h2 id="cases" { "All cases" }
                p { "µs: the median time of a dispatch. Noise: (q75 − q25) / median. GB/s: the bytes that the work must move at least, divided by the time. "
                    "More figures: --format csv." }
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
                @for warning in &comparison.warnings {
                    p class=(if warning.is_serious() { "warning" } else { "note" }) { (warning.text) }
                }
            }
            @for (by, line) in [("By type", &verdict.by_type), ("By kind", &verdict.by_kind)] {
                @if !line.is_empty() { p { (by) ", " (verdict.unit) ": " (line) } }
            }
            @if verdict.all.is_some() { figure { (PreEscaped(chart::of_verdict(comparison, n))) } }
        }
    }
}

/// What the figures of several files mean, and how a case is decided.
fn meaning_of_speedups(comparison: &Comparison) -> Markup {
    let first = &comparison.files[0].name;
    html! {
        "Speedup: the time of " (first) " divided by that of the other run; above 1, the other is faster. A group's speedup is the geometric mean of the cases that both ran. "
        "The 95 % interval is that of the ratio of the medians (order statistics); a group's is the geometric mean of its cases' intervals. A case or a group is FASTER or SLOWER if its interval is wholly beyond "
        (comparison.threshold) " %, SAME if it is wholly within, and otherwise UNSURE. The interval of fewer than 7 values is their range. If a run has fewer, the interval of the speedup is 10.5 % wider on both sides."
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
