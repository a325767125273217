//! One page for a browser, with nothing from elsewhere.

use maud::{html, Markup, PreEscaped, DOCTYPE};

use super::chart;
use super::tables::{self, Table};
use crate::bench::compare::Comparison;
use crate::schema;

const STYLE: &str = include_str!("page.css");

pub fn page(comparison: &Comparison) -> String {
    let several = comparison.runs.len() > 1;
    let title = comparison.verdicts.iter().map(|verdict| &*verdict.title).collect::<Vec<_>>().join("; ");
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="generator" content=(schema::MARK);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
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
                h2 { "Groups of cases" }
                @for groups in tables::groups(comparison) { (table("", &groups)) }
                p {
                    "Of baseline: the time of a plain copy, or for fills a plain fill, of as many bytes in the same run, over the time of the case. "
                    @if several {
                        "Speedup: the time of " (comparison.runs[0].name) " over that of the other run; above 1, the other is faster. A group's is the geometric mean of the cases that both ran. "
                        "The interval (95 %) holds the ratio of the medians (order statistics); a group's is the geometric mean of its cases'. A case or a group is FASTER or SLOWER if its interval is wholly beyond "
                        (comparison.threshold) " %, SAME if it is wholly within, else UNSURE. The interval of fewer than 7 values is their range; if a run has so few, that of the speedup has 10.5 % more on both sides."
                    }
                }
                ul { @for note in comparison.notes() { li { (note) } } }
                h2 { "What ran" }
                (table("machines", &tables::machines(comparison)))
                h2 { "All cases" }
                p { "µs: the median of a dispatch. Noise: (q75 − q25) / median. GB/s: the least bytes that the work must move, over the time. "
                    "More figures: --format csv." }
                @for cases in tables::cases(comparison) { (table("", &cases)) }
            }
        }
    };
    page.into_string() + "\n"
}

fn table(class: &str, rows: &Table) -> Markup {
    let is_wide = |n: usize| tables::WIDE.contains(&&*rows[0][n]);
    let of_cell = |n: usize, cell: &str| match cell {
        "FASTER" => Some("faster"),
        "SLOWER" => Some("slower"),
        "UNSURE" => Some("unsure"),
        _ if n == 0 && cell == "failed" => Some("slower"),
        _ if is_wide(n) => Some("only-wide"),
        _ => tables::has_numbers(&rows[0][n]).then_some("number"),
    };
    html! {
        div.wide { table class=[Some(class).filter(|class| !class.is_empty())] {
            thead { tr { @for (n, name) in rows[0].iter().enumerate() { th class=[is_wide(n).then_some("only-wide")] { (name) } } } }
            tbody { @for row in &rows[1..] { tr {
                @for (n, cell) in row.iter().enumerate() { td class=[of_cell(n, cell)] { (cell) } }
            } } }
        } }
    }
}
