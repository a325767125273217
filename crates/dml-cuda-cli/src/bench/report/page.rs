//! One page for a browser, with nothing from elsewhere.

use maud::{html, Markup, PreEscaped, DOCTYPE};

use super::chart;
use super::tables::{self, Table, NAMES};
use crate::bench::compare::{letter, Comparison};
use crate::bench::run::{Outcome, Run};

const STYLE: &str = include_str!("page.css");

pub fn page(comparison: &Comparison, runs: &[Run]) -> String {
    let labels: Vec<&str> = runs.iter().map(|run| run.label.as_str()).collect();
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
                style { (PreEscaped(STYLE)) "@media screen and (prefers-color-scheme: dark) { " (PreEscaped(chart::dark_style())) " }" }
            }
            body {
                @for warning in tables::warnings(comparison) { p.warning { (warning) } }
                h1 { (title) }
                figure { (PreEscaped(chart::groups(comparison))) }
                h2 { "Groups of cases" }
                (table(tables::groups(comparison), usize::MAX))
                p {
                    "Of baseline: the time of a plain copy, or for fills a plain fill, of as many bytes in the same run, over the time of the case. "
                    @if several {
                        "A / B: A's time over B's, the geometric mean of the cases; above 1, B is faster. "
                        "The interval holds the ratio of the medians with 95 % (order statistics). A case is FASTER or SLOWER if its interval is wholly beyond "
                        (comparison.threshold) " %, SAME if it is wholly within, else UNSURE. Fewer than 7 values have their range as the interval, and 10 % as the least threshold."
                    }
                }
                ul { @for line in tables::outputs(comparison) { li { (line) } } }
                h2 { "What ran" }
                (machines(comparison, runs))
                @if !comparison.not_compared.is_empty() {
                    h2 { "Not compared" }
                    ul { @for why in &comparison.not_compared { li { (why) } } }
                }
                h2 { "All cases" }
                p { "µs: the median of a dispatch. Noise: (q75 − q25) / median. GB/s: the least bytes that the work must move, over the time." }
                (table(tables::cases(comparison), NAMES.len() - 1))
            }
        }
    };
    page.into_string() + "\n"
}

/// Numbers begin in that column.
fn table(rows: Table, numbers: usize) -> Markup {
    let class = |n: usize, name: &str, cell: &str| match cell {
        _ if name == "cause" => Some("failed"),
        "FASTER" => Some("number faster"),
        "SLOWER" => Some("number slower"),
        "UNSURE" => Some("number unsure"),
        _ => (n >= numbers).then_some("number"),
    };
    let cells = |row: &[String]| -> Vec<(Option<&str>, String)> {
        row.iter().enumerate().map(|(n, cell)| (class(n, &rows[0][n], cell), cell.clone())).collect()
    };
    html! {
        div.wide { table {
            thead { tr { @for name in &rows[0] { th { (name) } } } }
            tbody { @for row in &rows[1..] { tr { @for (class, cell) in cells(row) { td class=[class] { (cell) } } } } }
        } }
    }
}

/// What ran: a column for each run.
fn machines(comparison: &Comparison, runs: &[Run]) -> Markup {
    let facts: Vec<Vec<(&str, String)>> = comparison
        .runs
        .iter()
        .zip(runs)
        .map(|(summary, run)| tables::facts(summary).into_iter().chain([("samples", sampling(run))]).collect())
        .collect();
    html! {
        div.wide.machines { table {
            thead { tr { th { } @for (n, run) in runs.iter().enumerate() { th { (letter(n)) ": " (run.label) } } } }
            tbody {
                @for (n, (name, _)) in facts[0].iter().enumerate() {
                    @if facts.iter().any(|facts| !facts[n].1.is_empty()) {
                        tr { th scope="row" { (name) } @for facts in &facts { td { (facts[n].1) } } }
                    }
                }
                @if runs.iter().any(|run| !run.notes.is_empty()) {
                    tr { th scope="row" { "notes" } @for run in runs { td { @for note in &run.notes { p { (note) } } } } }
                }
            }
        } }
    }
}

/// How many samples the cases have.
fn sampling(run: &Run) -> String {
    let range = |what: &str, is_wanted: fn(&Outcome) -> bool| {
        let wanted = run.cases.iter().map(|timed| &timed.outcome).filter(|outcome| is_wanted(outcome));
        let counts = wanted.map(|outcome| outcome.samples().len());
        let (least, most) = (counts.clone().min()?, counts.max()?);
        let least = if least == most { String::new() } else { format!("{least} to ") };
        Some(format!("{least}{most} {what} a case"))
    };
    let each = range("samples", |outcome| matches!(outcome, Outcome::Each(_)));
    let medians = range("medians", |outcome| matches!(outcome, Outcome::Medians(_)));
    each.into_iter().chain(medians).collect::<Vec<_>>().join("; ")
}
