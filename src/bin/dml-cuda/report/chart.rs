//! The figures of a report, as SVG whose colours a page's style replaces in the dark and in print.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::compare::{Comparison, Row};
use crate::record::Run;
use crate::statistics::Quartiles;

/// Colours of the runs, then of text, of lines, and of what is faint.
const RUNS: [RGBColor; 4] =
    [RGBColor(0x1F, 0x6F, 0xC5), RGBColor(0xC8, 0x5A, 0x0B), RGBColor(0x2B, 0x83, 0x4A), RGBColor(0x8A, 0x4B, 0xB0)];
const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
const FAINT: RGBColor = RGBColor(0x8F, 0x8F, 0x8F);

/// How those colours look in the dark.
pub const DARK_STYLE: &str = concat!(
    "svg [fill=\"#1F6FC5\"]{fill:#6FB1FF} svg [stroke=\"#1F6FC5\"]{stroke:#6FB1FF} ",
    "svg [fill=\"#C85A0B\"]{fill:#FF9F5A} svg [stroke=\"#C85A0B\"]{stroke:#FF9F5A} ",
    "svg [fill=\"#2B834A\"]{fill:#6FCF8E} svg [stroke=\"#2B834A\"]{stroke:#6FCF8E} ",
    "svg [fill=\"#8A4BB0\"]{fill:#CD97EE} svg [stroke=\"#8A4BB0\"]{stroke:#CD97EE} ",
    "svg [fill=\"#222222\"]{fill:#E6E6E6} svg [stroke=\"#222222\"]{stroke:#E6E6E6} ",
);

const WIDTH: i32 = 960;
/// Height of a line of a figure that has one for each case.
const LINE: i32 = 18;
/// Where names end and the plot begins.
const LEFT: i32 = 330;
const RIGHT: i32 = 30;
const TOP: i32 = 46;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn draw(height: i32, paint: impl FnOnce(&Area<'_>)) -> String {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, (WIDTH as u32, height as u32)).into_drawing_area();
        paint(&area);
        // Writing to a string does not fail.
        let _ = area.present();
    }
    // A browser scales it to the page.
    text.replacen("<svg ", "<svg class=\"chart\" role=\"img\" ", 1)
}

/// The figure with its own background and colours, as a file.
pub fn standing_alone(svg: &str) -> String {
    let style = format!(
        "<style>svg{{background:#FFFFFF}} @media (prefers-color-scheme: dark){{svg{{background:#14171A}} {DARK_STYLE}}}</style>"
    );
    match svg.find('>') {
        Some(end) => format!("{}{style}{}", &svg[..=end], &svg[end + 1..]),
        None => svg.to_owned(),
    }
}

fn write(area: &Area<'_>, text: &str, at: (i32, i32), size: u32, colour: &RGBColor, anchor: HPos) {
    let style = TextStyle::from(("sans-serif", size).into_font()).color(colour).pos(Pos::new(anchor, VPos::Center));
    let _ = area.draw(&Text::new(text.to_owned(), at, style));
}

fn line(area: &Area<'_>, from: (i32, i32), to: (i32, i32), colour: &RGBColor) {
    let _ = area.draw(&PathElement::new(vec![from, to], colour.stroke_width(1)));
}

/// A mark of a run: shapes differ as well as colours.
fn mark(area: &Area<'_>, at: (i32, i32), run: usize) {
    let style = RUNS[run % RUNS.len()].filled();
    let _ = match run % 3 {
        0 => area.draw(&Circle::new(at, 4, style)),
        1 => area.draw(&TriangleMarker::new(at, 6, style)),
        _ => area.draw(&Cross::new(at, 4, style.stroke_width(2))),
    };
}

fn legend(area: &Area<'_>, labels: &[&str]) {
    let mut x = LEFT;
    for (run, label) in labels.iter().enumerate() {
        mark(area, (x, 12), run);
        write(area, label, (x + 10, 12), 13, &INK, HPos::Left);
        x += 30 + 7 * label.chars().count() as i32;
    }
}

fn labels(comparison: &Comparison) -> Vec<&str> {
    comparison.runs.iter().map(|run| run.label.as_str()).collect()
}

/// A vertical scale line with its name above.
fn scale(area: &Area<'_>, x: i32, height: i32, name: &str, colour: &RGBColor) {
    line(area, (x, TOP - 8), (x, height - 8), colour);
    write(area, name, (x, TOP - 16), 12, &INK, HPos::Center);
}

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

/// How near its roof each case is: a line for each case, a mark for each type and run.
pub fn of_roof(comparison: &Comparison) -> String {
    let has_roof = |row: &&Row| row.cells.iter().flatten().any(|cell| cell.of_roof.is_some());
    // Side by side, where there are two.
    let several = |row: &&Row| comparison.runs.len() == 1 || row.cells.iter().flatten().count() > 1;
    let mut cases = by_case(comparison);
    cases.iter_mut().for_each(|(_, rows)| rows.retain(|row| has_roof(row) && several(row)));
    cases.retain(|(_, rows)| !rows.is_empty());
    let height = TOP + LINE * cases.len().max(1) as i32 + 12;
    let most = 1.2;
    let x = |of_roof: f64| LEFT + (of_roof.clamp(0.0, most) / most * f64::from(WIDTH - LEFT - RIGHT)) as i32;
    draw(height, |area| {
        legend(area, &labels(comparison));
        for percent in [0, 25, 50, 75, 100] {
            let colour = if percent == 100 { INK } else { FAINT };
            scale(area, x(f64::from(percent) / 100.0), height, &format!("{percent} %"), &colour);
        }
        for (n, (name, rows)) in cases.iter().enumerate() {
            let y = TOP + LINE * n as i32 + LINE / 2;
            write(area, name, (LEFT - 12, y), 13, &INK, HPos::Right);
            for (run, _) in comparison.runs.iter().enumerate().rev() {
                let cells = rows.iter().filter_map(|row| row.cells[run].as_ref()?.of_roof);
                cells.for_each(|of_roof| mark(area, (x(of_roof), y), run));
            }
        }
        if cases.is_empty() {
            write(area, "no case has a roof", (LEFT, TOP + LINE / 2), 13, &INK, HPos::Left);
        }
    })
}

/// Speed-ups over the first run, sorted, on a logarithmic scale; those above 1 to the right.
pub fn speed_ups(comparison: &Comparison) -> String {
    let mut bars: Vec<(String, usize, f64)> = Vec::new();
    for row in &comparison.rows {
        for (n, change) in row.changes.iter().enumerate() {
            let Some(change) = change else { continue };
            let name = format!("{}, {}, {}", row.case.trim_start_matches("fill "), row.data_type, row.mode.name());
            bars.push((name, n + 1, change.speed_up));
        }
    }
    bars.sort_by(|a, b| b.2.total_cmp(&a.2));
    let most = bars.iter().map(|(.., speed_up)| speed_up.ln().abs()).fold(2f64.ln(), f64::max);
    let height = TOP + LINE * bars.len().max(1) as i32 + 12;
    let middle = f64::from(LEFT) + f64::from(WIDTH - LEFT - RIGHT) / 2.0;
    let x = |speed_up: f64| (middle + speed_up.ln() / most * f64::from(WIDTH - LEFT - RIGHT) / 2.0) as i32;
    draw(height, |area| {
        legend(area, &labels(comparison));
        for step in [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0].into_iter().filter(|step: &f64| step.ln().abs() <= most) {
            scale(area, x(step), height, &format!("{step}"), if step == 1.0 { &INK } else { &FAINT });
        }
        for (n, (name, run, speed_up)) in bars.iter().enumerate() {
            let y = TOP + LINE * n as i32 + LINE / 2;
            write(area, name, (LEFT - 12, y), 13, &INK, HPos::Right);
            let (from, to) = (x(1.0).min(x(*speed_up)), x(1.0).max(x(*speed_up)).max(x(1.0) + 1));
            let _ = area.draw(&Rectangle::new([(from, y - 5), (to, y + 5)], RUNS[run % RUNS.len()].filled()));
            let (at, anchor) = if *speed_up >= 1.0 { (from - 5, HPos::Right) } else { (to + 5, HPos::Left) };
            write(area, &format!("{speed_up:.2}"), (at, y), 12, &INK, anchor);
        }
    })
}

/// Bytes against rate, both logarithmic.
pub fn rates(comparison: &Comparison) -> String {
    let points = |run: usize| {
        comparison
            .rows
            .iter()
            .filter_map(move |row| Some((row.bytes as f64, row.cells[run].as_ref()?.gigabytes_per_second)))
    };
    let all: Vec<(f64, f64)> = (0..comparison.runs.len()).flat_map(points).collect();
    let range = |values: &dyn Fn(&(f64, f64)) -> f64| {
        let least = all.iter().map(values).fold(f64::INFINITY, f64::min);
        let most = all.iter().map(values).fold(0.0, f64::max);
        (least / 1.5)..(most * 1.5)
    };
    draw(420, |area| {
        legend(area, &labels(comparison));
        let chart = ChartBuilder::on(area)
            .margin_top(34)
            .margin_right(RIGHT)
            .x_label_area_size(44)
            .y_label_area_size(76)
            .build_cartesian_2d(range(&|point| point.0).log_scale(), range(&|point| point.1).log_scale());
        let Ok(mut chart) = chart else { return };
        let _ = chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(FAINT.stroke_width(1))
            .axis_style(INK)
            .label_style(("sans-serif", 12).into_font().color(&INK))
            .x_desc("bytes that must move")
            .y_desc("GB/s")
            .x_label_formatter(&|value| decimal(*value))
            .y_label_formatter(&|value| format!("{value:.0}"))
            .draw();
        for run in 0..comparison.runs.len() {
            let style = RUNS[run % RUNS.len()].filled();
            let _ = match run % 3 {
                0 => chart.draw_series(points(run).map(|at| Circle::new(at, 4, style))).map(drop),
                1 => chart.draw_series(points(run).map(|at| TriangleMarker::new(at, 6, style))).map(drop),
                _ => chart.draw_series(points(run).map(|at| Cross::new(at, 4, style.stroke_width(2)))).map(drop),
            };
        }
    })
}

/// Powers of ten, as bytes.
fn decimal(bytes: f64) -> String {
    let (unit, name) = match bytes {
        ..1e3 => (1.0, "B"),
        ..1e6 => (1e3, "kB"),
        ..1e9 => (1e6, "MB"),
        _ => (1e9, "GB"),
    };
    format!("{:.0} {name}", bytes / unit)
}

/// The samples of the noisiest cases, over their medians.
pub fn samples(runs: &[Run]) -> String {
    const MOST_CASES: usize = 24;
    let mut strips: Vec<(String, usize, Vec<f64>, f64)> = Vec::new();
    for (n, run) in runs.iter().enumerate() {
        for timing in run.cases.iter().filter(|timing| timing.samples.values().len() > 1) {
            let quartiles = Quartiles::of(timing.samples.values());
            let relative = timing.samples.values().iter().map(|sample| sample / quartiles.median).collect();
            let name = timing.work.name().trim_start_matches("fill ").to_owned();
            strips.push((name, n, relative, quartiles.noise()));
        }
    }
    strips.sort_by(|a, b| b.3.total_cmp(&a.3));
    strips.truncate(MOST_CASES);
    let height = TOP + LINE * strips.len().max(1) as i32 + 12;
    let (least, most) = (0.5, 2.0);
    let x = |relative: f64| {
        LEFT + ((relative.clamp(least, most) - least) / (most - least) * f64::from(WIDTH - LEFT - RIGHT)) as i32
    };
    draw(height, |area| {
        legend(area, &runs.iter().map(|run| run.label.as_str()).collect::<Vec<_>>());
        for step in [0.5, 0.75, 1.0, 1.25, 1.5, 2.0] {
            scale(area, x(step), height, &format!("{step}"), if step == 1.0 { &INK } else { &FAINT });
        }
        for (n, (name, run, samples, _)) in strips.iter().enumerate() {
            let y = TOP + LINE * n as i32 + LINE / 2;
            write(area, name, (LEFT - 12, y), 13, &INK, HPos::Right);
            for &sample in samples {
                let _ = area.draw(&Circle::new((x(sample), y), 3, RUNS[run % RUNS.len()].mix(0.45).filled()));
            }
        }
    })
}
