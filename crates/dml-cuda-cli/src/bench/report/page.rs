//! One page for a browser, with nothing from elsewhere.

use maud::{html, Markup, PreEscaped, DOCTYPE};

use super::chart;
use super::tables::{self, Table, NAMES};
use crate::bench::compare::Comparison;

const STYLE: &str = include_str!("page.css");

pub fn page(comparison: &Comparison) -> String {
    let labels: Vec<&str> = comparison.runs.iter().map(|run| run.label.as_str()).collect();
    let several = labels.len() > 1;
    let title = match labels.as_slice() {
        [first, others @ ..] if several => format!("{first} compared with {}", others.join(" and ")),
        _ => labels.concat(),
    };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="generator" content="dml-cuda";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                @for warning in tables::warnings(comparison) { p.warning { (warning) } }
                h1 { (title) }
                figure { (PreEscaped(chart::chart(comparison))) }
                h2 { "Groups of cases" }
                (table("", tables::groups(comparison), usize::MAX))
                p {
                    "Of baseline: the time of a plain copy, or for fills a plain fill, of as many bytes in the same run, over the time of the case. "
                    @if several {
                        "A / B: A's time over B's, the geometric mean of the cases; above 1, B is faster. "
                        "The interval holds the ratio of the medians with 95 % (order statistics). A case is FASTER or SLOWER if its interval is wholly beyond "
                        (comparison.threshold) " %, SAME if it is wholly within, else UNSURE. The interval of fewer than 7 values is their range and 10 % more on both sides, and they are SAME if the range is within 10 %."
                    }
                }
                ul { @for line in tables::outputs(comparison) { li { (line) } } }
                h2 { "What ran" }
                (table("machines", tables::machines(comparison), usize::MAX))
                @if !comparison.not_compared.is_empty() {
                    h2 { "Not compared" }
                    ul { @for why in &comparison.not_compared { li { (why) } } }
                }
                h2 { "All cases" }
                p { "µs: the median of a dispatch. Noise: (q75 − q25) / median. GB/s: the least bytes that the work must move, over the time." }
                (table("", tables::cases(comparison), NAMES.len() - 1))
            }
        }
    };
    page.into_string() + "\n"
}

/// Numbers begin in that column.
fn table(class: &str, rows: Table, numbers: usize) -> Markup {
    let of_cell = |n: usize, cell: &str| match cell {
        _ if rows[0][n] == "cause" => Some("failed"),
        "FASTER" => Some("number faster"),
        "SLOWER" => Some("number slower"),
        "UNSURE" => Some("number unsure"),
        _ => (n >= numbers).then_some("number"),
    };
    html! {
        div.wide { table class=[Some(class).filter(|class| !class.is_empty())] {
            thead { tr { @for name in &rows[0] { th { (name) } } } }
            tbody { @for row in &rows[1..] { tr { @for (n, cell) in row.iter().enumerate() { td class=[of_cell(n, cell)] { (cell) } } } } }
        } }
    }
}
