//! A figure with a line for each case, and what all figures say above their axes.

use std::collections::BTreeSet;

use crate::bench::compare::{letter, RunSummary};

use super::scale::Scale;
use super::svg::{
    clipped, text_width, Anchor, Drawing, Layout, Mark, Paint, Shape, FAINT, INK, NARROW, QUIET, RUNS, WIDE,
};

pub const MARGIN: f64 = 16.0;
/// Height of a run's marks in a line.
const BAND: f64 = 9.0;

/// A figure in both widths.
pub struct Figure {
    pub wide: String,
    pub narrow: String,
}

pub fn both(draw: impl Fn(Layout) -> String) -> Figure {
    Figure { wide: draw(WIDE), narrow: draw(NARROW) }
}

pub fn colour(run: usize) -> &'static str {
    RUNS[run % RUNS.len()]
}

/// What a figure says above its axes.
pub struct Header<'a> {
    pub title: &'a str,
    pub runs: &'a [RunSummary],
    /// Places of the runs that have marks.
    pub shown: BTreeSet<usize>,
    pub shapes: BTreeSet<Shape>,
    /// Lines of explanation.
    pub notes: Vec<&'static str>,
}

impl Header<'_> {
    /// Draws it; the height where it ends.
    pub fn draw(&self, drawing: &mut Drawing) -> f64 {
        let width = drawing.layout.width - 2.0 * MARGIN;
        let mut y = 18.0;
        // Bold letters are wider.
        for line in wrapped(self.title, 17.0, width) {
            drawing.heading((MARGIN, y), 15.0, &line);
            y += 20.0;
        }
        for &run in &self.shown {
            let summary = &self.runs[run];
            let name =
                if self.runs.len() > 1 { format!("{}: {}", letter(run), summary.label) } else { summary.label.clone() };
            drawing.patch((MARGIN, y), colour(run));
            let name = clipped(&name, 13.0, width - 18.0);
            let about = about(summary);
            let (both, at) = (text_width(&name, 13.0) + text_width(&about, 12.0) + 32.0, MARGIN + 18.0);
            // Beside the name where there is room.
            if drawing.layout.left.is_some() && both < width {
                drawing.described((at, y), &name, &about);
            } else {
                drawing.described((at, y), &name, "");
                for line in wrapped(&about, 12.0, width - 18.0) {
                    y += 16.0;
                    drawing.text((at, y), 12.0, Anchor::Start, QUIET, &clipped(&line, 12.0, width - 18.0));
                }
            }
            y += 18.0;
        }
        let mut x = MARGIN + 5.0;
        for &shape in &self.shapes {
            let end = x + 12.0 + text_width(shape.name(), 12.0) + 16.0;
            if end > drawing.layout.width && x > MARGIN + 5.0 {
                (x, y) = (MARGIN + 5.0, y + 16.0);
            }
            drawing.mark((x, y), &Mark { shape, colour: QUIET, paint: Paint::Filled, tip: String::new() });
            drawing.text((x + 10.0, y), 12.0, Anchor::Start, INK, shape.name());
            x += 10.0 + text_width(shape.name(), 12.0) + 18.0;
        }
        if !self.shapes.is_empty() {
            y += 18.0;
        }
        for line in self.notes.iter().flat_map(|note| wrapped(note, 12.0, width)) {
            drawing.text((MARGIN, y), 12.0, Anchor::Start, QUIET, &line);
            y += 16.0;
        }
        y
    }
}

/// The machine and the day of a run, without what its label says.
fn about(run: &RunSummary) -> String {
    let machine = &run.machine;
    let commit = if machine.commit.is_empty() { String::new() } else { format!("commit {}", machine.commit) };
    let day = machine.date.split('T').next().unwrap_or_default().to_owned();
    // A CPU has a name as well.
    let device = if machine.device == "CPU" { machine.host.clone() } else { machine.device.clone() };
    let parts = [device, machine.tool.clone(), commit, day];
    let parts = parts.into_iter().filter(|part| !part.is_empty() && !run.label.contains(part.as_str()));
    parts.collect::<Vec<_>>().join(", ")
}

/// Text in lines of a width.
fn wrapped(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if text_width(line, size) + text_width(word, size) + size * 0.56 <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A mark in a line of a figure.
pub struct Point {
    pub run: usize,
    pub value: f64,
    pub shape: Shape,
    pub paint: Paint,
    pub tip: String,
}

/// A figure with a line for each name.
pub struct Lines<'a> {
    pub header: Header<'a>,
    pub axis: String,
    pub scale: Scale,
    pub tick: fn(f64) -> String,
    /// The value that all others are seen against.
    pub middle: f64,
    pub lines: Vec<(String, Vec<Point>)>,
}

impl Lines<'_> {
    pub fn draw(&self, layout: Layout) -> String {
        let mut drawing = Drawing::new(layout);
        let top = self.header.draw(&mut drawing) + 8.0;
        let left = layout.left.unwrap_or(MARGIN + 4.0);
        let right = layout.width - MARGIN - 12.0;
        let x = |value: f64| left + self.scale.place(value) * (right - left);
        for (n, line) in wrapped(&self.axis, 12.0, layout.width - 2.0 * MARGIN).iter().enumerate() {
            drawing.text(((left + right) / 2.0, top + 15.0 * n as f64), 12.0, Anchor::Middle, INK, line);
        }
        let top = top + 15.0 * wrapped(&self.axis, 12.0, layout.width - 2.0 * MARGIN).len() as f64;
        let shown: Vec<usize> = self.header.shown.iter().copied().collect();
        let bands = BAND * shown.len().max(1) as f64;
        let (above, height) = if layout.left.is_some() { (0.0, (bands + 7.0).max(18.0)) } else { (16.0, bands + 24.0) };
        let begin = top + 14.0;
        let end = begin + height * self.lines.len() as f64 + 4.0;
        let mut free = f64::NEG_INFINITY;
        for &value in &self.scale.ticks {
            let main = (value - self.middle).abs() < 1e-9;
            drawing.line(
                (x(value), begin),
                (x(value), end),
                if main { INK } else { FAINT },
                if main { 1.4 } else { 0.8 },
            );
            let name = (self.tick)(value);
            // Names that would touch are left out.
            let half = text_width(&name, 12.0) / 2.0;
            if x(value) - half > free {
                drawing.text((x(value), top + 4.0), 12.0, Anchor::Middle, INK, &name);
                drawing.text((x(value), end + 10.0), 12.0, Anchor::Middle, INK, &name);
                free = x(value) + half + 6.0;
            }
        }
        for (n, (name, points)) in self.lines.iter().enumerate() {
            let line = begin + height * n as f64;
            let middle = line + above + (height - above) / 2.0;
            match layout.left {
                Some(left) => {
                    let name = clipped(name, 12.0, left - MARGIN - 12.0);
                    drawing.text((left - 12.0, middle), 12.0, Anchor::End, INK, &name);
                }
                None => {
                    let name = clipped(name, 12.0, layout.width - 2.0 * MARGIN);
                    drawing.name((MARGIN, line + 9.0), 12.0, &name);
                }
            }
            drawing.line((left, middle), (right, middle), FAINT, 0.4);
            for point in points {
                let band = shown.iter().position(|&run| run == point.run).unwrap_or(0);
                let y = middle + (band as f64 - (shown.len() as f64 - 1.0) / 2.0) * BAND;
                let tip = format!("{name}, {}", point.tip);
                let mark = Mark { shape: point.shape, colour: colour(point.run), paint: point.paint, tip };
                drawing.mark((x(point.value), y), &mark);
            }
        }
        if self.lines.is_empty() {
            drawing.text((left, begin), 12.0, Anchor::Start, INK, "no case has this figure");
        }
        drawing.finish(end + 24.0, self.header.title)
    }
}

pub fn shapes(lines: &[(String, Vec<Point>)]) -> BTreeSet<Shape> {
    lines
        .iter()
        .flat_map(|(_, points)| points)
        .filter(|point| point.paint != Paint::Unsure)
        .map(|point| point.shape)
        .collect()
}

pub fn shown(lines: &[(String, Vec<Point>)]) -> BTreeSet<usize> {
    lines.iter().flat_map(|(_, points)| points).map(|point| point.run).collect()
}
