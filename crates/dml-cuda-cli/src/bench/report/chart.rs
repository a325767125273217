//! The figures of a report. Each has a title, the runs with machine and date, and titles of its axes, so that it can stand alone.

use std::collections::BTreeSet;

use crate::bench::compare::{letter, Comparison, Row, Status};
use crate::bench::record::Run;
use crate::bench::statistics::{geometric_mean, Quartiles};

use super::lines::{both, colour, shapes, shown, Figure, Header, Lines, Point, MARGIN};
use super::scale::{percent_tick, tick, Scale};
use super::svg::{clipped, text_width, Anchor, Drawing, Mark, Paint, Shape, FAINT, INK};
use super::{bytes, percent, rate, significant};

/// Cases without their types, each with the rows of all its types, in order.
fn by_case(comparison: &Comparison) -> Vec<(String, Vec<&Row>)> {
    let mut cases: Vec<(String, Vec<&Row>)> = Vec::new();
    for row in &comparison.rows {
        let name = format!("{}, {}", row.case.trim_start_matches("fill "), row.mode.name());
        match cases.iter_mut().find(|(found, _)| *found == name) {
            Some((_, rows)) => rows.push(row),
            None => cases.push((name, vec![row])),
        }
    }
    cases
}

/// How near its baseline each case is: a line for each case, a mark for each type and run.
pub fn of_roof(comparison: &Comparison) -> Figure {
    // Side by side, where there are two.
    let several = |row: &&&Row| comparison.runs.len() == 1 || row.cells.iter().flatten().count() > 1;
    let mut lines: Vec<(String, Vec<Point>)> = Vec::new();
    for (name, rows) in by_case(comparison) {
        let mut points = Vec::new();
        for row in rows.iter().filter(several) {
            for (run, cell) in row.cells.iter().enumerate() {
                let Some(of_roof) = cell.as_ref().and_then(|cell| cell.of_roof) else { continue };
                let tip = format!("{}, {}: {}", row.data_type, comparison.runs[run].label, percent(of_roof));
                let shape = Shape::of(&row.data_type);
                points.push(Point { run, value: of_roof, shape, paint: Paint::Filled, tip });
            }
        }
        if !points.is_empty() {
            lines.push((name, points));
        }
    }
    let scale = Scale::of_fractions(lines.iter().flat_map(|(_, points)| points).map(|point| point.value));
    let log = if scale.is_logarithmic() { ", log scale" } else { "" };
    let figure = Lines {
        header: Header {
            title: "How near each case is to a plain copy (fills: a plain fill) of as many bytes",
            runs: &comparison.runs,
            shown: shown(&lines),
            shapes: shapes(&lines),
            notes: Vec::new(),
        },
        axis: format!("time of the plain copy or fill ÷ time of the case{log}; right is faster"),
        scale,
        tick: percent_tick,
        middle: 1.0,
        lines,
    };
    both(|layout| figure.draw(layout))
}

/// Speed-ups over the first run, the best case first.
pub fn speed_ups(comparison: &Comparison) -> Figure {
    let mut lines: Vec<(f64, (String, Vec<Point>))> = Vec::new();
    for (name, rows) in by_case(comparison) {
        let mut points = Vec::new();
        for row in rows {
            for (n, change) in row.changes.iter().enumerate() {
                let Some(change) = change else { continue };
                let label = &comparison.runs[n + 1].label;
                let status = change.status.name();
                let tip = format!("{}, {label}: {} ({status})", row.data_type, significant(change.speed_up, 3));
                let paint = match change.status {
                    Status::Faster | Status::Slower => Paint::Filled,
                    Status::Same => Paint::Outlined,
                    Status::Unsure => Paint::Unsure,
                };
                points.push(Point { run: n + 1, value: change.speed_up, shape: Shape::of(&row.data_type), paint, tip });
            }
        }
        if let Some(mean) = geometric_mean(points.iter().map(|point| point.value)) {
            lines.push((mean, (name, points)));
        }
    }
    lines.sort_by(|a, b| b.0.total_cmp(&a.0));
    let lines: Vec<(String, Vec<Point>)> = lines.into_iter().map(|(_, line)| line).collect();
    let points = || lines.iter().flat_map(|(_, points)| points);
    let has = |paint| points().any(|point| point.paint == paint);
    let mut notes = Vec::new();
    if has(Paint::Outlined) {
        notes.push("Filled marks are FASTER or SLOWER, outlined ones the SAME within threshold and noise.");
    }
    if has(Paint::Unsure) {
        notes.push("“?” is UNSURE: noise can explain the difference.");
    }
    let first = comparison.runs.first().map_or("the first run", |run| run.label.as_str());
    let title = format!("Speed-up over {}", clipped(first, 15.0, 600.0));
    let others = match shown(&lines).into_iter().collect::<Vec<_>>().as_slice() {
        [run] => letter(*run).to_string(),
        _ => "the other run".to_owned(),
    };
    let figure = Lines {
        header: Header { title: &title, runs: &comparison.runs, shown: shown(&lines), shapes: shapes(&lines), notes },
        axis: format!("time of A ÷ time of {others}, log scale; right of 1 is faster than A"),
        scale: Scale::logarithmic(points().map(|point| point.value).chain([1.0])),
        tick,
        middle: 1.0,
        lines,
    };
    both(|layout| figure.draw(layout))
}

/// The samples of the noisiest cases, over their medians.
pub fn samples(comparison: &Comparison, runs: &[Run]) -> Figure {
    const MOST_CASES: usize = 24;
    let mut strips: Vec<(f64, (String, Vec<Point>))> = Vec::new();
    for (run, recorded) in runs.iter().enumerate() {
        for timing in recorded.cases.iter().filter(|timing| timing.samples.values().len() > 1) {
            let quartiles = Quartiles::of(timing.samples.values());
            let shape = Shape::Circle;
            let point = |sample: &f64| {
                let tip = format!("{}: {} µs", comparison.runs[run].label, super::microseconds(*sample));
                Point { run, value: sample / quartiles.median, shape, paint: Paint::Transparent, tip }
            };
            let points = timing.samples.values().iter().map(point).collect();
            let name = timing.work.name().trim_start_matches("fill ").to_owned();
            strips.push((quartiles.noise(), (name, points)));
        }
    }
    strips.sort_by(|a, b| b.0.total_cmp(&a.0));
    strips.truncate(MOST_CASES);
    let lines: Vec<(String, Vec<Point>)> = strips.into_iter().map(|(_, line)| line).collect();
    let scale = Scale::logarithmic(lines.iter().flat_map(|(_, points)| points).map(|point| point.value).chain([1.0]));
    let figure = Lines {
        header: Header {
            title: "Samples of the noisiest cases",
            runs: &comparison.runs,
            shown: shown(&lines),
            shapes: BTreeSet::new(),
            notes: Vec::new(),
        },
        axis: "sample ÷ median of its case, log scale; right is slower".to_owned(),
        scale,
        tick,
        middle: 1.0,
        lines,
    };
    both(|layout| figure.draw(layout))
}

/// Bytes against rate, both logarithmic.
pub fn rates(comparison: &Comparison) -> Figure {
    let points = || {
        comparison.rows.iter().flat_map(|row| {
            row.cells
                .iter()
                .enumerate()
                .filter_map(move |(run, cell)| Some((row, run, cell.as_ref()?.gigabytes_per_second)))
        })
    };
    let title = "Rate against size";
    let header = Header {
        title,
        runs: &comparison.runs,
        shown: points().map(|(_, run, _)| run).collect(),
        shapes: points().map(|(row, ..)| Shape::of(&row.data_type)).collect(),
        notes: Vec::new(),
    };
    let across = Scale::binary(points().map(|(row, ..)| row.bytes as f64));
    let up = Scale::logarithmic(points().map(|(.., rate)| rate));
    both(|layout| {
        let mut drawing = Drawing::new(layout);
        let top = header.draw(&mut drawing) + 6.0;
        let (left, right) = (MARGIN + 52.0, layout.width - MARGIN - 12.0);
        let bottom = top + if layout.left.is_some() { 340.0 } else { 260.0 };
        let x = |bytes: f64| left + across.place(bytes) * (right - left);
        let y = |rate: f64| bottom - up.place(rate) * (bottom - top);
        let mut free = f64::NEG_INFINITY;
        for &value in &across.ticks {
            drawing.line((x(value), top), (x(value), bottom), FAINT, 0.8);
            let name = bytes(value as u64);
            let half = text_width(&name, 12.0) / 2.0;
            if x(value) - half > free {
                drawing.text((x(value), bottom + 12.0), 12.0, Anchor::Middle, INK, &name);
                free = x(value) + half + 6.0;
            }
        }
        for &value in &up.ticks {
            drawing.line((left, y(value)), (right, y(value)), FAINT, 0.8);
            drawing.text((left - 6.0, y(value)), 12.0, Anchor::End, INK, &tick(value));
        }
        drawing.line((left, top), (left, bottom), INK, 1.0);
        drawing.line((left, bottom), (right, bottom), INK, 1.0);
        drawing.text(
            ((left + right) / 2.0, bottom + 32.0),
            12.0,
            Anchor::Middle,
            INK,
            "bytes that must move at least, log scale",
        );
        drawing.upright((MARGIN + 4.0, (top + bottom) / 2.0), 12.0, "GB/s (10⁹ bytes a second), log scale");
        for (row, run, rated) in points() {
            let name = format!("{}, {}, {}", row.case, row.data_type, row.mode.name());
            let tip = format!("{name}, {}: {} GB/s", comparison.runs[run].label, rate(rated));
            let mark = Mark { shape: Shape::of(&row.data_type), colour: colour(run), paint: Paint::Outlined, tip };
            drawing.mark((x(row.bytes as f64), y(rated)), &mark);
        }
        drawing.finish(bottom + 48.0, title)
    })
}
