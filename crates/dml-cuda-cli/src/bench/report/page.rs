//! One page for a browser, with nothing from elsewhere.

use maud::{html, Markup, PreEscaped, DOCTYPE};

use crate::bench::compare::{letter, Comparison, Row, RunSummary, Status};
use crate::bench::record::{Run, Samples};

use super::{bytes, chart, lines, microseconds, percent, rate, significant, svg, text};

const STYLE: &str = include_str!("page.css");

pub fn page(comparison: &Comparison, runs: &[Run]) -> String {
    let labels: Vec<&str> = comparison.runs.iter().map(|run| run.label.as_str()).collect();
    let title = match labels.as_slice() {
        [one] => (*one).to_owned(),
        [first, others @ ..] => format!("{first} compared with {}", others.join(" and ")),
        [] => String::new(),
    };
    let several = labels.len() > 1;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) (PreEscaped(format!("@media screen and (prefers-color-scheme: dark) {{ {} }}", svg::dark_style()))) }
            }
            body {
                h1 { (title) }
                @let conclusions = text::conclusions_of(comparison);
                @if !conclusions.is_empty() { ul { @for line in &conclusions { li { (line) } } } }
                h2 { "What ran" }
                (machines(&comparison.runs))
                h2 { "How it was timed" }
                ul { @for (run, recorded) in comparison.runs.iter().zip(runs) { li { b { (run.label) } ": " (run.timing) ". " (sampling(recorded)) } } }
                p {
                    "A time is the median of a dispatch. Noise is (q75 − q25) / median. GB/s are the bytes that the work must move at least, over the time. "
                    "Of roof is the time that a plain copy, or for fills a plain fill, of as many bytes takes in the same run, over the time. "
                    @if several {
                        "A speed-up is A's time over the other's; it is called FASTER or SLOWER only above " (comparison.threshold)
                        " % and both noises, and UNSURE where a noise is above 10 % and can explain the difference: the middle halves of the samples overlap. "
                        "The noise of a single median is not known, and taken for 10 %."
                    }
                }
                h2 { "How near the roof" }
                p {
                    "100 % is a plain copy or fill of as many bytes in the same run. A mark for each type of elements."
                    @if several { " Cases that two runs have." }
                }
                (figure(&chart::of_roof(comparison)))
                @if several {
                    h2 { "Speed-up" }
                    (figure(&chart::speed_ups(comparison)))
                }
                h2 { "Rate" }
                (figure(&chart::rates(comparison)))
                (small(comparison))
                @if runs.iter().any(|run| run.cases.iter().any(|timing| timing.samples.values().len() > 1)) {
                    h2 { "Noise" }
                    (figure(&chart::samples(comparison, runs)))
                }
                @if !comparison.not_compared.is_empty() {
                    h2 { "Not compared" }
                    ul { @for why in &comparison.not_compared { li { (why) } } }
                }
                h2 { "All cases" }
                (table(comparison))
            }
        }
    };
    page.into_string() + "\n"
}

/// One of its two widths is shown.
fn figure(figure: &lines::Figure) -> Markup {
    html! { figure { (PreEscaped(&figure.wide)) (PreEscaped(&figure.narrow)) } }
}

/// What is said of the number of samples.
fn sampling(run: &Run) -> String {
    let of = |each: bool| {
        run.cases
            .iter()
            .filter(move |timing| matches!(timing.samples, Samples::Each(_)) == each)
            .map(|timing| timing.samples.values().len())
    };
    let range = |counts: Vec<usize>| match (counts.iter().min(), counts.iter().max()) {
        (Some(least), Some(most)) if least == most => least.to_string(),
        (Some(least), Some(most)) => format!("{least} to {most}"),
        _ => String::new(),
    };
    let mut said = Vec::new();
    let mut say = |each: bool, one: &str, many: &str| match range(of(each).collect()).as_str() {
        "" => {}
        "1" => said.push(one.to_owned()),
        several => said.push(format!("{several} {many} a case")),
    };
    say(true, "One sample a case", "samples");
    say(false, "One median a case, no samples", "medians, not samples,");
    said.join("; ") + "."
}

fn machines(runs: &[RunSummary]) -> Markup {
    type Field = fn(&RunSummary) -> &str;
    let fields: [(&str, Field); 10] = [
        ("tool", |run| &run.machine.tool),
        ("commit", |run| &run.machine.commit),
        ("device", |run| &run.machine.device),
        ("driver", |run| &run.machine.driver),
        ("clocks", |run| &run.machine.clocks),
        ("host", |run| &run.machine.host),
        ("operating system", |run| &run.machine.operating_system),
        ("date", |run| &run.machine.date),
        ("command", |run| &run.machine.command),
        ("suite", |run| &run.suite),
    ];
    html! {
        div.wide.machines { table {
            thead { tr { th { } @for (n, run) in runs.iter().enumerate() { th { (letter(n)) ": " (run.label) } } } }
            tbody {
                @for (name, field) in fields {
                    @if runs.iter().any(|run| !field(run).is_empty()) {
                        tr { th scope="row" { (name) } @for run in runs { td { (field(run)) } } }
                    }
                }
                @if runs.iter().any(|run| !run.notes.is_empty()) {
                    tr { th scope="row" { "notes" } @for run in runs { td { @for note in &run.notes { p { (note) } } } } }
                }
            }
        } }
    }
}

/// Work below 1 MiB, the smallest first.
fn small(comparison: &Comparison) -> Markup {
    let mut rows: Vec<&Row> = comparison.rows.iter().filter(|row| row.bytes < 1 << 20).collect();
    rows.sort_by_key(|row| row.bytes);
    html! {
        @if !rows.is_empty() {
            h2 { "Small work" }
            p { "Cases that move less than 1 MiB: microseconds of a dispatch among many." }
            div.wide { table {
                thead { tr { th { "case" } th { "type" } th { "mode" } th.number { "bytes" } @for (n, run) in comparison.runs.iter().enumerate() { th.number { @if comparison.runs.len() > 1 { (letter(n)) ": " } (run.label) } } } }
                tbody { @for row in rows { tr {
                    td { (row.case) } td { (row.data_type) } td { (row.mode.name()) } td.number { (bytes(row.bytes)) }
                    @for (cell, failure) in row.cells.iter().zip(&row.failures) { td.number { @match cell { Some(cell) => { (microseconds(cell.median)) } None => { @if failure.is_some() { "failed" } } } } }
                } } }
            } }
        }
    }
}

fn table(comparison: &Comparison) -> Markup {
    let several = comparison.runs.len() > 1;
    html! {
        div.wide { table {
            thead {
                @if several { tr { th colspan="4" { }
                    @for (n, run) in comparison.runs.iter().enumerate() { th colspan="4" { (letter(n)) ": " (run.label) } }
                    @for n in 1..comparison.runs.len() { th colspan="2" { "A / " (letter(n)) } }
                } }
                tr { th { "case" } th { "type" } th { "mode" } th.number { "bytes" }
                    @for _ in &comparison.runs { th.number { "µs" } th.number { "noise" } th.number { "GB/s" } th.number { "of roof" } }
                    @for _ in 1..comparison.runs.len() { th.number { "speed-up" } th { } }
                }
            }
            tbody { @for row in &comparison.rows { tr {
                td { (row.case) } td { (row.data_type) } td { (row.mode.name()) } td.number { (bytes(row.bytes)) }
                @for (cell, failure) in row.cells.iter().zip(&row.failures) {
                    @match cell {
                        Some(cell) => {
                            td.number { (microseconds(cell.median)) }
                            td.number { @match cell.noise { Some(noise) => { (format!("{:.1} %", noise * 100.0)) } None => { "?" } } }
                            td.number { (rate(cell.gigabytes_per_second)) }
                            td.number { @if let Some(of_roof) = cell.of_roof { (percent(of_roof)) } }
                        }
                        None => @match failure {
                            Some(error) => { td.failed colspan="4" { "failed: " (error) } }
                            None => { td { } td { } td { } td { } }
                        }
                    }
                }
                @for change in &row.changes {
                    @match change {
                        Some(change) => { td.number { (significant(change.speed_up, 3)) } td class=(class(change.status)) { (change.status.name()) } }
                        None => { td { } td { } }
                    }
                }
            } } }
        } }
    }
}

fn class(status: Status) -> &'static str {
    match status {
        Status::Faster => "faster",
        Status::Slower => "slower",
        Status::Unsure => "unsure",
        Status::Same => "same",
    }
}
