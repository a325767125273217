//! One page for a browser, with nothing from elsewhere.

use maud::{html, Markup, PreEscaped, DOCTYPE};

use crate::bench::compare::{letter, Comparison};
use crate::bench::run::{Outcome, Run};

use super::{chart, header, of_row, text};

const STYLE: &str = include_str!("page.css");

pub fn page(comparison: &Comparison, runs: &[Run]) -> String {
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
                style { (PreEscaped(STYLE)) (PreEscaped(format!("@media screen and (prefers-color-scheme: dark) {{ {} }}", chart::dark_style()))) }
            }
            body {
                @for warning in text::warnings(comparison) { p.warning { (warning) } }
                h1 { (title) }
                figure { (PreEscaped(chart::groups(comparison))) }
                h2 { "Groups of cases" }
                (table(text::groups(comparison)))
                p {
                    "Of baseline: the time of a plain copy, or for fills a plain fill, of as many bytes in the same run, over the time of the case. "
                    @if several {
                        "A / B: A's time over B's, the geometric mean of the cases; above 1, B is faster. "
                        "The interval holds the ratio of the medians with 95 % (order statistics). A case is FASTER or SLOWER if its interval is wholly beyond "
                        (comparison.threshold) " %, SAME if it is wholly within, else UNSURE. Fewer than 7 values have their range as the interval, and 10 % as the least threshold."
                    }
                }
                ul { @for line in text::outputs(comparison) { li { (line) } } }
                h2 { "What ran" }
                (machines(comparison, runs))
                @if !comparison.not_compared.is_empty() {
                    h2 { "Not compared" }
                    ul { @for why in &comparison.not_compared { li { (why) } } }
                }
                h2 { "All cases" }
                p { "µs: the median of a dispatch. Noise: (q75 − q25) / median. GB/s: the least bytes that the work must move, over the time." }
                (cases(comparison))
            }
        }
    };
    page.into_string() + "\n"
}

/// The first line has the columns' names.
fn table(rows: Vec<Vec<String>>) -> Markup {
    let (names, rows) = rows.split_first().map(|(names, rows)| (names.clone(), rows.to_vec())).unwrap_or_default();
    html! {
        div.wide { table {
            thead { tr { @for name in names { th { (name) } } } }
            tbody { @for row in rows { tr { @for cell in row { td { (cell) } } } } }
        } }
    }
}

fn machines(comparison: &Comparison, runs: &[Run]) -> Markup {
    let facts: Vec<_> = comparison.runs.iter().map(text::facts).collect();
    let sampled: Vec<String> = runs.iter().map(sampling).collect();
    html! {
        div.wide.machines { table {
            thead { tr { th { } @for (n, run) in comparison.runs.iter().enumerate() { th { (letter(n)) ": " (run.label) } } } }
            tbody {
                @for n in 0..facts[0].len() {
                    @if facts.iter().any(|facts| !facts[n].1.is_empty()) {
                        tr { th scope="row" { (facts[0][n].0) } @for facts in &facts { td { (facts[n].1) } } }
                    }
                }
                tr { th scope="row" { "timing" } @for run in &comparison.runs { td { (run.timing) } } }
                tr { th scope="row" { "samples" } @for sampled in &sampled { td { (sampled) } } }
                @if runs.iter().any(|run| !run.notes.is_empty()) {
                    tr { th scope="row" { "notes" } @for run in &comparison.runs { td { @for note in &run.notes { p { (note) } } } } }
                }
            }
        } }
    }
}

/// How many samples the cases have.
fn sampling(run: &Run) -> String {
    let range = |is_wanted: fn(&Outcome) -> bool, what: &str| {
        let counts =
            run.cases.iter().filter(|timed| is_wanted(&timed.outcome)).map(|timed| timed.outcome.samples().len());
        match (counts.clone().min(), counts.max()) {
            (Some(least), Some(most)) if least == most => Some(format!("{least} {what} a case")),
            (Some(least), Some(most)) => Some(format!("{least} to {most} {what} a case")),
            _ => None,
        }
    };
    let each = range(|outcome| matches!(outcome, Outcome::Each(_)), "samples");
    let medians = range(|outcome| matches!(outcome, Outcome::Medians(_)), "medians");
    each.into_iter().chain(medians).collect::<Vec<_>>().join("; ")
}

fn cases(comparison: &Comparison) -> Markup {
    html! {
        div.wide { table {
            thead { tr { @for name in header(comparison) { th { (name) } } } }
            tbody { @for row in &comparison.rows { tr {
                @for (n, cell) in of_row(row).iter().enumerate() { td.number[n > 2] class=[class(cell)] { (cell) } }
                @let causes = text::causes(comparison, row);
                @if !causes.is_empty() { td.failed { (causes) } }
            } } }
        } }
    }
}

fn class(cell: &str) -> Option<&'static str> {
    match cell {
        "FASTER" => Some("faster"),
        "SLOWER" => Some("slower"),
        "UNSURE" => Some("unsure"),
        _ => None,
    }
}
