//! A case in the chart: a dot at its figure, a line for its interval, and its name on the side with more room.
//!
//! ```text
//!    begin                      end
//!      ├───●───┤ small 16x256    │
//!     low     high               the place that no other mark of this line may take
//! ```

use maud::{html, Markup};

use super::{text, Axis, CHARACTER, FASTER, LEFT, OTHER, PAPER, PLAIN, RADIUS, SLOWER};
use super::{TEXT, WIDTH};
use crate::bench::compare::{Point, Row, Status};
use crate::bench::numbers::{clipped, percent, times};
use crate::bench::statistics::Interval;
use crate::bench::work::Mode;

/// A case as it is drawn, without its height: the line is chosen when all widths are known.
pub struct Mark<'a> {
    row: &'a Row,
    point: Point,
    /// Where the line of its interval begins and ends.
    line: Interval,
    /// Where the mark begins, with its name.
    pub begin: f64,
    /// Where the mark ends, with its name.
    pub end: f64,
    /// Its name, if there is room for names.
    pub label: Option<Label>,
}

/// The name of a case next to its dot.
pub struct Label {
    name: String,
    x: f64,
    /// Which end of the name is at `x`.
    anchor: &'static str,
}

impl<'a> Mark<'a> {
    /// In a dense chart only the dot is drawn, without its interval.
    pub fn new(row: &'a Row, point: Point, axis: &Axis, is_named: bool, is_dense: bool) -> Self {
        let x = axis.x(point.value);
        let Interval { low, high } = point.interval;
        let line = match is_dense {
            true => Interval::at(x),
            false => Interval {
                low: axis.x(low),
                high: axis.x(high),
            },
        };
        let mut mark = Self {
            row,
            point,
            line,
            begin: line.low.min(x - RADIUS - 1.0),
            end: line.high.max(x + RADIUS + 1.0),
            label: None,
        };
        if is_named {
            mark.add_label();
        }
        mark
    }

    /// Adds the name, and makes place for it.
    fn add_label(&mut self) {
        let (before, after) = (self.begin - LEFT - 3.0, WIDTH - 3.0 - self.end);
        // The chart of this kind has cases of both modes, which have the same names.
        let is_ambiguous = self.row.work.mode == Mode::InPlace && self.row.group != "in place";
        let mode = if is_ambiguous { ", in place" } else { "" };
        let name = format!("{}{mode}", self.row.work.case);
        // At most what the larger side has room for. Characters differ in width, and this is a guess.
        let name = clipped(&name, (before.max(after) / CHARACTER / TEXT) as usize);
        let width = name.chars().count() as f64 * CHARACTER * TEXT + 3.0;
        let (x, anchor) = if after >= before {
            (self.end + 3.0, "start")
        } else {
            (self.begin - 3.0, "end")
        };
        if after >= before {
            self.end += width
        } else {
            self.begin -= width
        }
        self.label = Some(Label { name, x, anchor });
    }

    /// The mark at a height, for the chart of verdict `n`.
    pub fn drawn(&self, axis: &Axis, n: usize, y: f64) -> Markup {
        let (colour, fill) = match self.row.status(n) {
            Some(Status::Faster) => (FASTER, FASTER),
            Some(Status::Slower) => (SLOWER, SLOWER),
            Some(Status::Unsure) => (OTHER, PAPER),
            _ => (OTHER, OTHER),
        };
        let is_share = self.row.cells.len() == 1;
        let shown = if is_share { percent } else { times };
        let Point { value, interval } = self.point;
        html! {
            g {
                title { (self.row.work.name()) ": " (shown(value)) " (" (shown(interval.low)) " to " (shown(interval.high)) ")" }
                line x1=(self.line.low) x2=(self.line.high) y1=(y) y2=(y) stroke=(colour.light) stroke-width="1.5" {}
                circle cx=(axis.x(value)) cy=(y) r=(RADIUS) fill=(fill.light) stroke=(colour.light) {}
                @if let Some(Label { name, x, anchor }) = &self.label { (text(*x, y + 4.5, PLAIN, anchor, name)) }
            }
        }
    }
}
