//! The picture: a mark for each case on a logarithmic axis, by kind and type, over the mean of its kind. It is so
//! narrow that a phone shows it.

use maud::{html, Markup};

use crate::bench::compare::{Comparison, Group, Point, Row, Status, Verdict};
use crate::bench::numbers::{clipped, counted, percent, times};
use crate::bench::work::Mode;
use crate::schema;

const INK: (&str, &str) = ("#222222", "#E6E6E6");
const FAINT: (&str, &str) = ("#DDE3EA", "#343B43");
const PAPER: (&str, &str) = ("#FFFFFF", "#14171A");
/// Marks of faster, slower and other cases, also on a dark page. Those of UNSURE cases are hollow.
const FASTER: (&str, &str) = ("#17693A", "#6FCF8E");
const SLOWER: (&str, &str) = ("#A3240F", "#FF9A87");
const OTHER: (&str, &str) = ("#5A6068", "#AEB6BF");

const WIDTH: f64 = 420.0;
const MARGIN: f64 = 12.0;
/// Where the axis begins, after the names of types.
const LEFT: f64 = 52.0;
/// The size of text, and of the title.
const TEXT: f64 = 13.0;
const TITLE: f64 = 15.0;
const RADIUS: f64 = 3.0;
/// The width of a character of size 1, and of a bold one.
const CHARACTER: f64 = 0.56;
const BOLD: f64 = 0.64;
/// With more cases than these, only the lowest and the highest of each kind have their names next to their marks,
/// and none has its interval.
const MOST_NAMES: usize = 48;

/// The values at both ends of the picture.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
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

/// A case in the picture: what it takes of its row, and its name with its place and its anchor.
struct Mark<'a> {
    row: &'a Row,
    point: Point,
    /// Where its interval begins and ends. Where there are many cases, only the mark is drawn.
    interval: (f64, f64),
    begin: f64,
    end: f64,
    name: Option<(String, f64, &'static str)>,
}

impl<'a> Mark<'a> {
    /// The name is on the side that has more room.
    fn new(row: &'a Row, point: Point, axis: &Axis, is_named: bool, is_alone: bool) -> Self {
        let x = axis.x(point.0);
        let (low, high) = if is_alone {
            (x, x)
        } else {
            (axis.x(point.1 .0), axis.x(point.1 .1))
        };
        let (mut begin, mut end) = (low.min(x - RADIUS - 1.0), high.max(x + RADIUS + 1.0));
        let (before, after) = (begin - LEFT - 3.0, WIDTH - 3.0 - end);
        let is_in_place = row.work.mode == Mode::InPlace && row.group != "in place";
        let name = row.work.case.clone() + if is_in_place { ", in place" } else { "" };
        let name = clipped(&name, (before.max(after) / CHARACTER / TEXT) as usize);
        let width = name.chars().count() as f64 * CHARACTER * TEXT + 3.0;
        let (x, anchor) = if after >= before {
            (end + 3.0, "start")
        } else {
            (begin - 3.0, "end")
        };
        match after >= before {
            _ if !is_named => {}
            true => end += width,
            false => begin -= width,
        }
        let name = is_named.then_some((name, x, anchor));
        Self {
            row,
            point,
            interval: (low, high),
            begin,
            end,
            name,
        }
    }

    fn drawn(&self, axis: &Axis, n: usize, y: f64) -> Markup {
        let (row, (value, (low, high))) = (self.row, self.point);
        let (colour, fill) = match row
            .changes
            .get(n)
            .copied()
            .flatten()
            .map(|change| change.status)
        {
            Some(Status::Faster) => (FASTER.0, FASTER.0),
            Some(Status::Slower) => (SLOWER.0, SLOWER.0),
            Some(Status::Unsure) => (OTHER.0, PAPER.0),
            _ => (OTHER.0, OTHER.0),
        };
        let shown = if row.cells.len() == 1 { percent } else { times };
        html! {
            g {
                title { (row.work.name()) ": " (shown(value)) " (" (shown(low)) " to " (shown(high)) ")" }
                line x1=(self.interval.0) x2=(self.interval.1) y1=(y) y2=(y) stroke=(colour) stroke-width="1.5" {}
                circle cx=(axis.x(value)) cy=(y) r=(RADIUS) fill=(fill) stroke=(colour) {}
                @if let Some((name, x, anchor)) = &self.name { (written((*x, y + 4.5), TEXT, "400", anchor, name)) }
            }
        }
    }
}

#[derive(Default)]
struct Drawing {
    body: String,
    y: f64,
}

impl Drawing {
    fn add(&mut self, element: Markup) {
        self.body += &(element.into_string() + "\n");
    }

    /// A line of text below all others, smaller if it is long.
    fn line(&mut self, size: f64, weight: &str, text: &str) {
        self.y += (size * 1.35).round();
        let most = |size: f64| (WIDTH - 2.0 * MARGIN) / BOLD / size;
        let text = clipped(text, most(0.7 * size) as usize);
        let size = round(size.min(size * most(size) / text.chars().count() as f64));
        self.add(written((MARGIN, self.y), size, weight, "start", &text));
    }

    fn picture(&mut self, comparison: &Comparison, n: usize) {
        let verdict = &comparison.verdicts[n];
        let points: Vec<(&Row, Point)> = comparison
            .rows
            .iter()
            .filter_map(|row| Some((row, row.point(n)?)))
            .collect();
        let low = points
            .iter()
            .map(|(_, (_, (low, _)))| *low)
            .fold(0.75, f64::min)
            / 1.06;
        let high = points
            .iter()
            .map(|(_, (_, (_, high)))| *high)
            .fold(1.33, f64::max)
            * 1.06;
        let axis = Axis { low, high };
        let is_share = comparison.runs.len() == 1;
        if points.len() > MOST_NAMES {
            self.ticks(&axis, is_share);
        }
        verdict
            .kinds
            .iter()
            .for_each(|kind| self.kind(&verdict.types, kind, &points, &axis, n));
        self.ticks(&axis, is_share);
        self.y += 19.0;
        self.add(written((LEFT, self.y), TEXT, "600", "start", "← slower"));
        self.add(written(
            (WIDTH - MARGIN, self.y),
            TEXT,
            "600",
            "end",
            "faster →",
        ));
        self.line(TEXT, "400", &verdict.unit);
        self.y += 12.0;
    }

    fn ticks(&mut self, axis: &Axis, is_share: bool) {
        self.y += 19.0;
        for tick in axis.ticks() {
            let name = if is_share {
                percent(tick)
            } else {
                format!("{tick}×")
            };
            self.add(written(
                (axis.x(tick), self.y),
                TEXT,
                "400",
                "middle",
                &name,
            ));
        }
    }

    /// A kind's figures, and a row for each type, in which no mark and no name is over another. Behind them are the
    /// mean, as a bar from 1 on, and lines at the axis's ticks.
    fn kind(
        &mut self,
        types: &[Group],
        kind: &Group,
        points: &[(&Row, Point)],
        axis: &Axis,
        n: usize,
    ) {
        let ((mean, range), cases) = (kind.figures(), counted(kind.cases, "case"));
        self.y += 4.0;
        self.line(
            TEXT,
            "600",
            &format!("{}: {mean} ({range}), {cases}", kind.short_name()),
        );
        let (behind, top) = (self.body.len(), self.y + 5.0);
        self.y = top;
        for name in types.iter().map(|group| &group.name) {
            let is_in =
                |(row, _): &&(&Row, Point)| row.group == kind.name && row.work.data_type == *name;
            let is_dense = points.len() > MOST_NAMES;
            let is_named = |value| !is_dense || [kind.range.0, kind.range.1].contains(&value);
            let of_type = points
                .iter()
                .filter(is_in)
                .map(|(row, point)| (*row, *point));
            let mark = |(row, at): (_, Point)| Mark::new(row, at, axis, is_named(at.0), is_dense);
            let mut marks: Vec<Mark> = of_type.map(mark).collect();
            marks.sort_by(|a, b| a.begin.total_cmp(&b.begin));
            let mut lanes: Vec<Vec<Mark>> = Vec::new();
            for mark in marks {
                match lanes
                    .iter_mut()
                    .find(|lane| lane.last().is_none_or(|last| last.end < mark.begin))
                {
                    Some(lane) => lane.push(mark),
                    None => lanes.push(vec![mark]),
                }
            }
            if !lanes.is_empty() {
                self.add(written(
                    (MARGIN, self.y + 12.5),
                    TEXT,
                    "400",
                    "start",
                    &clipped(name, 5),
                ));
            }
            for (place, lane) in lanes.iter().enumerate() {
                let has_text = place == 0 || lane.iter().any(|mark| mark.name.is_some());
                let height = if has_text { 16.0 } else { 2.0 * RADIUS + 1.0 };
                lane.iter()
                    .for_each(|mark| self.add(mark.drawn(axis, n, self.y + height / 2.0)));
                self.y += height;
            }
        }
        let (one, mean, end) = (axis.x(1.0), axis.x(kind.mean), self.y);
        let line = |x: f64, width: f64| html! { line x1=(x) x2=(x) y1=(top) y2=(end) stroke=(INK.0) stroke-width=(width) {} };
        let background = html! {
            rect x=(one.min(mean)) y=(top) width=(round((one - mean).abs()).max(1.0)) height=(end - top) fill=(FAINT.0) {}
            @for tick in axis.ticks() { (line(axis.x(tick), if tick == 1.0 { 1.5 } else { 0.4 })) }
            (line(mean, 3.0))
        };
        self.body
            .insert_str(behind, &(background.into_string() + "\n"));
    }

    /// The document. Its title and description tell a reader without the picture what it shows.
    fn svg(&self, verdicts: &[Verdict]) -> String {
        let title = verdicts
            .iter()
            .map(|verdict| &*verdict.sentence)
            .collect::<Vec<_>>()
            .join(". ");
        let lines = verdicts.iter().map(|verdict| {
            let Verdict {
                by_type,
                by_kind,
                unit,
                ..
            } = verdict;
            format!("{unit}, by type: {by_type}. By kind: {by_kind}.")
        });
        let alternative =
            html! { title { (title) } desc { (lines.collect::<Vec<_>>().join(" ")) } }
                .into_string();
        let rule = |(light, dark)| {
            format!(
                "svg [fill=\"{light}\"]{{fill:{dark}}} svg [stroke=\"{light}\"]{{stroke:{dark}}} "
            )
        };
        let on_dark: String = [INK, FAINT, PAPER, FASTER, SLOWER, OTHER]
            .into_iter()
            .map(rule)
            .collect();
        let (height, paper, body, mark) = (self.y.ceil(), PAPER.0, &self.body, schema::MARK);
        format!(
            "<svg class=\"dml-cuda\" data-mark=\"{mark}\" role=\"img\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" xmlns=\"http://www.w3.org/2000/svg\">\n\
            {alternative}\n<style>.dml-cuda {{ max-width: 100%; height: auto; }} @media screen and (prefers-color-scheme: dark) {{ {on_dark}}}</style>\n\
            <rect width=\"100%\" height=\"100%\" fill=\"{paper}\"/>\n{body}</svg>\n"
        )
    }
}

/// One for each verdict, below each other, with its title and what a reader must know.
pub fn chart(comparison: &Comparison) -> String {
    let mut drawing = Drawing::default();
    for (n, verdict) in comparison.verdicts.iter().enumerate() {
        drawing.y += 4.0;
        drawing.line(TITLE, "700", &verdict.title);
        let is_shown = |run: usize| [0, n + 1].contains(&run);
        for warning in comparison
            .warnings
            .iter()
            .filter(|warning| is_shown(warning.run) && warning.is_serious())
        {
            // A line has room for its first sentence. The tables have the rest.
            drawing.line(
                TEXT,
                "600",
                warning.text.split(". ").next().unwrap_or_default(),
            );
        }
        drawing.picture(comparison, n);
    }
    drawing.svg(&comparison.verdicts)
}

/// The picture of a verdict, for a page that says it.
pub fn of_verdict(comparison: &Comparison, n: usize) -> String {
    let mut drawing = Drawing::default();
    drawing.picture(comparison, n);
    drawing.svg(&comparison.verdicts[n..=n])
}

fn written((x, y): (f64, f64), size: f64, weight: &str, anchor: &str, text: &str) -> Markup {
    // On its paper, so that no line crosses it.
    let paper = PAPER.0;
    html! { text x=(round(x)) y=(round(y)) paint-order="stroke" stroke=(paper) stroke-width="5" font-family="system-ui, sans-serif" font-size=(size) font-weight=(weight) text-anchor=(anchor) fill=(INK.0) { (text) } }
}

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
