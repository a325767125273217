//! The chart: a mark for each case on a logarithmic axis, by kind and type, over the mean of its kind.
//!
//! ```text
//! rows and blocks: 1.4× (0.90× to 3.1×), 12 cases       a kind's line
//! f32  ░░░░│░░░█──●──┤ 16x256x1024                       a type's marks, on as many lines as they need
//!      ├─●─┤ 2x5x7                                       over the bar from 1× to the mean
//! f16 ...
//!      0.8×   1×        2×       4×                      the ticks of all kinds
//! ```
//!
//! It is an SVG without scripts, as narrow as a phone. Its colours are attributes, so that it is right in programs that do
//! not know style sheets; a style sheet replaces them on a dark page.

mod mark;

use maud::{html, Markup};

use crate::bench::compare::{Comparison, Figures, Group, Point, Row, Severity, Verdict};
use crate::bench::numbers::{clipped, counted, percent};
use crate::schema;
use mark::Mark;

/// A colour on a light page and on a dark one.
#[derive(Clone, Copy)]
struct Colour {
    light: &'static str,
    dark: &'static str,
}

/// Text, axes and the lines of ticks.
const INK: Colour = colour("#222222", "#E6E6E6");
/// The bar from 1 to the mean of a kind.
const FAINT: Colour = colour("#DDE3EA", "#343B43");
/// The background, and the inside of hollow marks.
const PAPER: Colour = colour("#FFFFFF", "#14171A");
/// Marks of faster, slower and other cases. Those of UNSURE cases are hollow.
const FASTER: Colour = colour("#17693A", "#6FCF8E");
const SLOWER: Colour = colour("#A3240F", "#FF9A87");
const OTHER: Colour = colour("#5A6068", "#AEB6BF");

/// A function, so that a colour takes one line.
const fn colour(light: &'static str, dark: &'static str) -> Colour {
    Colour { light, dark }
}

/// The width of the picture. A browser scales it to the page.
const WIDTH: f64 = 420.0;
/// The room at both sides.
const MARGIN: f64 = 12.0;
/// Where the axis begins, after the names of types.
const LEFT: f64 = 52.0;
/// The size of text.
const TEXT: f64 = 13.0;
/// The radius of a mark.
const RADIUS: f64 = 3.0;
/// The width of a character of size 1, and of a bold one. The program that shows the chart chooses the font, so these are
/// those of a wide one.
const CHARACTER: f64 = 0.56;
const BOLD_CHARACTER: f64 = 0.64;
/// With more cases than these, only the lowest and the highest of each kind have their names next to their marks,
/// and none has its interval.
const MOST_NAMES: usize = 48;

/// The size and the weight of text.
#[derive(Clone, Copy)]
struct Font {
    size: f64,
    weight: &'static str,
}

const PLAIN: Font = Font {
    size: TEXT,
    weight: "400",
};
const BOLD: Font = Font {
    size: TEXT,
    weight: "600",
};
const TITLE: Font = Font {
    size: 15.0,
    weight: "700",
};

/// A case with its figure for one verdict.
struct Case<'a> {
    row: &'a Row,
    point: Point,
}

/// The values at both ends of the picture.
struct Axis {
    /// The value at the left end.
    low: f64,
    /// The value at the right end.
    high: f64,
}

impl Axis {
    /// An axis with some room around all intervals, and around 1.
    fn around(cases: &[Case]) -> Self {
        let (mut low, mut high): (f64, f64) = (0.75, 1.33);
        for Case { point, .. } in cases {
            low = low.min(point.interval.low);
            high = high.max(point.interval.high);
        }
        Self {
            low: low / 1.06,
            high: high * 1.06,
        }
    }

    /// The place of a value.
    fn x(&self, value: f64) -> f64 {
        let part = (value / self.low).ln() / (self.high / self.low).ln();
        round(LEFT + part.clamp(0.0, 1.0) * (WIDTH - MARGIN - LEFT))
    }

    /// Round values, and those next to 1 that say how large the difference is. The first ones have room before others.
    /// They are read from text, because powers of ten may be inexact.
    fn ticks(&self) -> Vec<f64> {
        let decades = (-3..4).flat_map(|decade| {
            [1, 2, 5].map(|digit| format!("{digit}e{decade}").parse().unwrap_or(1.0))
        });
        let mut ticks: Vec<f64> = Vec::new();
        for tick in [1.0, 0.8, 1.25, 0.5, 2.0].into_iter().chain(decades) {
            let has_room = ticks
                .iter()
                .all(|other| (self.x(*other) - self.x(tick)).abs() > 46.0);
            if has_room && (self.low..=self.high).contains(&tick) {
                ticks.push(tick);
            }
        }
        ticks
    }
}

/// The chart of one verdict, before it is drawn.
struct Plot<'a> {
    /// The number of the verdict.
    n: usize,
    verdict: &'a Verdict,
    cases: Vec<Case<'a>>,
    /// One axis for all kinds, so that their marks can be compared.
    axis: Axis,
    /// Whether figures are shares of the baseline's speed, and not speedups.
    is_share: bool,
}

impl<'a> Plot<'a> {
    /// Collects the cases that have the verdict's figure.
    fn new(comparison: &'a Comparison, n: usize) -> Self {
        let mut cases = Vec::new();
        for row in &comparison.rows {
            if let Some(point) = row.point(n) {
                cases.push(Case { row, point });
            }
        }
        Self {
            n,
            verdict: &comparison.verdicts[n],
            axis: Axis::around(&cases),
            cases,
            is_share: comparison.files.len() == 1,
        }
    }

    /// Whether there are too many cases for names.
    fn is_dense(&self) -> bool {
        self.cases.len() > MOST_NAMES
    }

    /// The marks of a kind and a type, in lines in which no mark and no name is over another.
    fn lines(&self, kind: &Group, data_type: &str) -> Vec<Vec<Mark<'a>>> {
        let mut marks = Vec::new();
        for &Case { row, point } in &self.cases {
            if row.group == kind.name && row.work.data_type == data_type {
                let ends = [kind.range.low, kind.range.high];
                let is_named = !self.is_dense() || ends.contains(&point.value);
                let mark = Mark::new(row, point, &self.axis, is_named, self.is_dense());
                marks.push(mark);
            }
        }
        // From left to right, each mark goes into the first line that has ended before it. No other order needs fewer lines.
        marks.sort_by(|a, b| a.begin.total_cmp(&b.begin));
        let mut lines: Vec<Vec<Mark>> = Vec::new();
        for mark in marks {
            let has_room =
                |line: &&mut Vec<Mark>| line.last().is_none_or(|last| last.end < mark.begin);
            match lines.iter_mut().find(has_room) {
                Some(line) => line.push(mark),
                None => lines.push(vec![mark]),
            }
        }
        lines
    }
}

/// The elements that are drawn so far, and where the next one begins.
#[derive(Default)]
struct Drawing {
    /// The elements as text.
    body: String,
    /// How far down they reach.
    y: f64,
}

impl Drawing {
    /// Draws an element over those before it.
    fn add(&mut self, element: Markup) {
        self.body += &(element.into_string() + "\n");
    }

    /// A line of text below all others. A long one is smaller, down to 70 % of its size, and then it is cut.
    fn line(&mut self, Font { size, weight }: Font, line: &str) {
        self.y += (size * 1.35).round();
        let room = (WIDTH - 2.0 * MARGIN) / BOLD_CHARACTER;
        let line = clipped(line, (room / (0.7 * size)) as usize);
        let size = round(size.min(size * (room / size) / line.chars().count() as f64));
        let font = Font { size, weight };
        self.add(text(MARGIN, self.y, font, "start", &line));
    }

    /// The chart of verdict `n`: its kinds, its axis and the name of its figures.
    fn picture(&mut self, comparison: &Comparison, n: usize) {
        let plot = Plot::new(comparison, n);
        // A high picture has its ticks at both ends.
        if plot.is_dense() {
            self.ticks(&plot);
        }
        for kind in &plot.verdict.kinds {
            self.kind(kind, &plot);
        }
        self.ticks(&plot);
        self.y += 19.0;
        self.add(text(LEFT, self.y, BOLD, "start", "← slower"));
        self.add(text(WIDTH - MARGIN, self.y, BOLD, "end", "faster →"));
        self.line(PLAIN, &plot.verdict.unit);
        self.y += 12.0;
    }

    /// A line of round values, each at its place.
    fn ticks(&mut self, plot: &Plot) {
        self.y += 19.0;
        for tick in plot.axis.ticks() {
            let name = if plot.is_share {
                percent(tick)
            } else {
                format!("{tick}×")
            };
            self.add(text(plot.axis.x(tick), self.y, PLAIN, "middle", &name));
        }
    }

    /// A kind's figures, and lines of marks for each type.
    fn kind(&mut self, kind: &Group, plot: &Plot) {
        let Figures { mean, range } = kind.figures();
        let (name, cases) = (kind.short_name(), counted(kind.cases, "case"));
        self.y += 4.0;
        self.line(BOLD, &format!("{name}: {mean} ({range}), {cases}"));
        let (behind, top) = (self.body.len(), self.y + 5.0);
        self.y = top;
        for Group { name, .. } in &plot.verdict.types {
            self.marks(name, &plot.lines(kind, name), plot);
        }
        // What is drawn later hides what is drawn before, and only now the height is known.
        let background = background(&plot.axis, kind.mean, top, self.y);
        self.body
            .insert_str(behind, &(background.into_string() + "\n"));
    }

    /// The lines of a type, with its name before the first one.
    fn marks(&mut self, data_type: &str, lines: &[Vec<Mark>], plot: &Plot) {
        if lines.is_empty() {
            return;
        }
        let name = clipped(data_type, 5);
        self.add(text(MARGIN, self.y + 12.5, PLAIN, "start", &name));
        for (n, line) in lines.iter().enumerate() {
            // The first line has the type's name.
            let has_text = n == 0 || line.iter().any(|mark| mark.label.is_some());
            let height = if has_text { 16.0 } else { 2.0 * RADIUS + 1.0 };
            for mark in line {
                self.add(mark.drawn(&plot.axis, plot.n, self.y + height / 2.0));
            }
            self.y += height;
        }
    }

    /// The document. Its title and description tell a reader without the picture what it shows.
    fn svg(&self, verdicts: &[Verdict]) -> String {
        let (mut sentences, mut lines) = (Vec::new(), Vec::new());
        for verdict in verdicts {
            let Verdict {
                by_type,
                by_kind,
                unit,
                ..
            } = verdict;
            sentences.push(&*verdict.sentence);
            lines.push(format!("{unit}, by type: {by_type}. By kind: {by_kind}."));
        }
        let alternative =
            html! { title { (sentences.join(". ")) } desc { (lines.join(" ")) } }.into_string();
        let mut on_dark = String::new();
        for Colour { light, dark } in [INK, FAINT, PAPER, FASTER, SLOWER, OTHER] {
            on_dark += &format!(
                "svg [fill=\"{light}\"]{{fill:{dark}}} svg [stroke=\"{light}\"]{{stroke:{dark}}} "
            );
        }
        let (height, paper, body, mark) = (self.y.ceil(), PAPER.light, &self.body, schema::MARK);
        format!(
            "<svg class=\"dml-cuda\" data-mark=\"{mark}\" role=\"img\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" xmlns=\"http://www.w3.org/2000/svg\">\n\
            {alternative}\n<style>.dml-cuda {{ max-width: 100%; height: auto; }} @media screen and (prefers-color-scheme: dark) {{ {on_dark}}}</style>\n\
            <rect width=\"100%\" height=\"100%\" fill=\"{paper}\"/>\n{body}</svg>\n"
        )
    }
}

/// What is behind the marks of a kind: its mean, as a bar from 1 on, and lines at the axis's ticks.
fn background(axis: &Axis, mean: f64, top: f64, end: f64) -> Markup {
    let (one, mean) = (axis.x(1.0), axis.x(mean));
    let line = |x: f64, width: f64| html! { line x1=(x) x2=(x) y1=(top) y2=(end) stroke=(INK.light) stroke-width=(width) {} };
    html! {
        rect x=(one.min(mean)) y=(top) width=(round((one - mean).abs()).max(1.0)) height=(end - top) fill=(FAINT.light) {}
        @for tick in axis.ticks() { (line(axis.x(tick), if tick == 1.0 { 1.5 } else { 0.4 })) }
        (line(mean, 3.0))
    }
}

/// The charts of all verdicts, below each other, each with its title and its warnings.
pub fn chart(comparison: &Comparison) -> String {
    let mut drawing = Drawing::default();
    for (n, verdict) in comparison.verdicts.iter().enumerate() {
        drawing.y += 4.0;
        drawing.line(TITLE, &verdict.title);
        for warning in &comparison.warnings {
            if warning.severity == Severity::Warning && [0, n + 1].contains(&warning.file) {
                // A line has room for its first sentence. The tables have the rest.
                let sentence = warning.text.split(". ").next().unwrap_or_default();
                drawing.line(BOLD, sentence);
            }
        }
        drawing.picture(comparison, n);
    }
    drawing.svg(&comparison.verdicts)
}

/// The chart of a verdict, for a page that says it.
pub fn of_verdict(comparison: &Comparison, n: usize) -> String {
    let mut drawing = Drawing::default();
    drawing.picture(comparison, n);
    drawing.svg(&comparison.verdicts[n..=n])
}

/// Text at a place. The anchor says which end of it is there.
fn text(x: f64, y: f64, font: Font, anchor: &str, text: &str) -> Markup {
    // With an outline of the paper's colour, so that no line crosses it.
    let (paper, Font { size, weight }) = (PAPER.light, font);
    html! { text x=(round(x)) y=(round(y)) paint-order="stroke" stroke=(paper) stroke-width="5" font-family="system-ui, sans-serif" font-size=(size) font-weight=(weight) text-anchor=(anchor) fill=(INK.light) { (text) } }
}

/// To tenths, so that the file is small and the same on every machine.
fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers() {
        let ticks = |low, high| {
            Axis { low, high }
                .ticks()
                .iter()
                .map(f64::to_string)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            ticks(0.0009, 1100.0),
            ["1", "0.001", "0.01", "0.1", "10", "100", "1000"]
        );
        assert_eq!(ticks(0.7, 1.4), ["1", "0.8", "1.25"]);
    }
}
