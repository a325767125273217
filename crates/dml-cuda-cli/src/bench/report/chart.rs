//! The picture: a mark for each case on a logarithmic axis, in rows by kind, over the mean of its kind. It is drawn so
//! narrow that a phone shows it, and large enough for the back of a room.

use maud::{html, Markup};

use super::text::wrapped;
use crate::bench::compare::{letter, Comparison, Group, Point, Row, Verdict};
use crate::bench::numbers::{counted, percent};

const INK: (&str, &str) = ("#222222", "#E6E6E6");
const FAINT: (&str, &str) = ("#D0D0D0", "#444A50");
const PAPER: (&str, &str) = ("#FFFFFF", "#14171A");
/// Elements of 8, 16, 32 and 64 bits: their colours, which differ in grey too, also on a dark page.
const COLOURS: [(&str, &str); 4] =
    [("#1F6FC5", "#6FB1FF"), ("#F2A65A", "#FFC78F"), ("#1B5E38", "#3FA66B"), ("#C7A6E8", "#E3CDFA")];

const WIDTH: f64 = 480.0;
const MARGIN: f64 = 14.0;
/// Characters of a line of the size of titles.
const LINE: u16 = 45;
/// Half of a mark, and the height of a type's row.
const MARK: f64 = 5.5;
const ROW: f64 = 15.0;
/// The width of a type in the legend.
const LEGEND: f64 = 113.0;

/// The values at both ends of the picture.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    fn x(&self, value: f64) -> f64 {
        let part = (value / self.low).ln() / (self.high / self.low).ln();
        round(MARGIN + part.clamp(0.0, 1.0) * (WIDTH - 2.0 * MARGIN))
    }

    /// Round values, and those next to 1 that say how large the difference is. The first ones have room before others.
    fn ticks(&self) -> Vec<f64> {
        let decades = (-3..4).flat_map(|decade| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(decade)));
        let mut ticks: Vec<f64> = Vec::new();
        for tick in [1.0, 0.8, 1.25, 0.5, 2.0].into_iter().chain(decades) {
            let has_room = ticks.iter().all(|other| (self.x(*other) - self.x(tick)).abs() > 34.0);
            if has_room && (self.low..=self.high).contains(&tick) {
                ticks.push(tick);
            }
        }
        ticks
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

    /// A line of text below all others.
    fn line(&mut self, size: f64, weight: &str, text: &str) {
        self.y += (size * 1.35).round();
        self.add(written((MARGIN, self.y), size, weight, "start", text));
    }

    /// What a picture alone says above itself. A page has it as text.
    fn head(&mut self, comparison: &Comparison, n: usize) {
        let verdict = &comparison.verdicts[n];
        wrapped(&verdict.sentence, LINE).lines().for_each(|line| self.line(17.0, "700", line));
        let is_shown = |run: usize| [0, n + 1].contains(&run);
        for (run, summary) in comparison.runs.iter().enumerate().filter(|(run, _)| is_shown(*run)) {
            self.line(14.0, "400", &clipped(&format!("{}: {}", letter(run), summary.label), 62));
        }
        for warning in comparison.warnings.iter().filter(|warning| is_shown(warning.run)) {
            // A line has room for its first sentence. The tables have the rest.
            self.line(13.0, "600", &clipped(warning.text.split(". ").next().unwrap_or_default(), 62));
        }
    }

    fn picture(&mut self, comparison: &Comparison, n: usize) {
        let verdict = &comparison.verdicts[n];
        let points: Vec<(&Row, Point)> = comparison.rows.iter().filter_map(|row| Some((row, row.point(n)?))).collect();
        let low = points.iter().map(|(_, (_, (low, _)))| *low).fold(0.75, f64::min) / 1.06;
        let high = points.iter().map(|(_, (_, (_, high)))| *high).fold(1.33, f64::max) * 1.06;
        let axis = Axis { low, high };
        self.legend(verdict);
        // The axis is below the rows, and its lines are behind them.
        let (begin, behind) = (self.y, self.body.len());
        verdict.kinds.iter().for_each(|kind| self.kind(verdict, kind, &points, &axis));
        let end = self.y + 6.0;
        self.y += 22.0;
        let is_share = comparison.runs.len() == 1;
        let tick = |&tick: &f64| {
            let (x, width) = (axis.x(tick), if tick == 1.0 { 2.0 } else { 0.5 });
            let name = if is_share { percent(tick) } else { tick.to_string() };
            html! {
                line x1=(x) x2=(x) y1=(begin + 6.0) y2=(end) stroke=(INK.0) stroke-width=(width) {}
                (written((x, self.y), 13.0, "400", "middle", &name))
            }
        };
        let ticks = axis.ticks().iter().map(tick).map(|tick| tick.into_string() + "\n").collect::<String>();
        self.body.insert_str(behind, &ticks);
        self.y += 19.0;
        let (y, b) = (self.y, letter(n + 1));
        let ends = match is_share {
            true => ["← slower than the baseline".to_owned(), "faster →".to_owned()],
            false => ["← A is faster".to_owned(), format!("A's time / {b}'s: {b} is faster →")],
        };
        self.add(written((MARGIN, y), 14.0, "600", "start", &ends[0]));
        self.add(written((WIDTH - MARGIN, y), 14.0, "600", "end", &ends[1]));
        self.y += 14.0;
    }

    /// A kind's numbers, its mean as a bar from 1 on, and over that its cases, a row for each type.
    fn kind(&mut self, verdict: &Verdict, kind: &Group, points: &[(&Row, Point)], axis: &Axis) {
        let ((mean, range), cases) = (verdict.figures(kind), counted(kind.cases, "case"));
        self.y += 6.0;
        self.line(15.0, "600", &format!("{}: {mean} ({range}), {cases}", kind.short_name()));
        let of_kind: Vec<_> = points.iter().filter(|(row, _)| row.group == kind.name).collect();
        let is_there = |group: &&Group| of_kind.iter().any(|(row, _)| row.work.data_type == group.name);
        let types: Vec<&Group> = verdict.types.iter().filter(is_there).collect();
        let (top, height) = (self.y + 5.0, ROW * types.len() as f64);
        let (one, mean) = (axis.x(1.0), axis.x(kind.mean));
        self.add(html! {
            rect x=(one.min(mean)) y=(top) width=(round((one - mean).abs()).max(1.0)) height=(height) fill=(FAINT.0) {}
            line x1=(mean) x2=(mean) y1=(top) y2=(top + height) stroke=(INK.0) stroke-width="3" {}
        });
        for (row, (value, (low, high))) in of_kind {
            let n = types.iter().position(|group| group.name == row.work.data_type).unwrap_or_default();
            let y = top + ROW * (n as f64 + 0.5);
            self.add(html! {
                line x1=(axis.x(*low)) x2=(axis.x(*high)) y1=(y) y2=(y) stroke=(INK.0) stroke-width="1.5" {}
                (mark_of(&row.work.data_type, (axis.x(*value), y)))
            });
        }
        self.y = top + height;
    }

    /// The document. Its title and description tell a reader without the picture what it shows.
    fn svg(&self, verdicts: &[Verdict]) -> String {
        let title = verdicts.iter().map(|verdict| &*verdict.sentence).collect::<Vec<_>>().join(". ");
        let lines = verdicts.iter().map(|verdict| {
            let Verdict { by_type, by_kind, .. } = verdict;
            format!("{}, by type: {by_type}. By kind: {by_kind}.", verdict.unit())
        });
        let alternative = html! { title { (title) } desc { (lines.collect::<Vec<_>>().join(" ")) } }.into_string();
        let rule =
            |(light, dark)| format!("svg [fill=\"{light}\"]{{fill:{dark}}} svg [stroke=\"{light}\"]{{stroke:{dark}}} ");
        let on_dark: String = COLOURS.into_iter().chain([INK, FAINT, PAPER]).map(rule).collect();
        let (height, paper, body) = (self.y.ceil(), PAPER.0, &self.body);
        format!(
            "<svg class=\"dml-cuda\" role=\"img\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" xmlns=\"http://www.w3.org/2000/svg\">\n\
            {alternative}\n<style>.dml-cuda {{ max-width: 100%; height: auto; }} @media screen and (prefers-color-scheme: dark) {{ {on_dark}}}</style>\n\
            <rect width=\"100%\" height=\"100%\" fill=\"{paper}\"/>\n{body}</svg>\n"
        )
    }

    /// The marks of types, with their means.
    fn legend(&mut self, verdict: &Verdict) {
        self.line(14.0, "400", &format!("Figures: {}", verdict.unit()));
        let columns = ((WIDTH - 2.0 * MARGIN) / LEGEND) as usize;
        for groups in verdict.types.chunks(columns) {
            self.y += 20.0;
            for (n, group) in groups.iter().enumerate() {
                let (x, y) = (MARGIN + LEGEND * n as f64, self.y);
                let text = format!("{} {}", clipped(&group.name, 5), verdict.figures(group).0);
                self.add(html! { (mark_of(&group.name, (x + MARK, y - 5.0))) (written((x + 16.0, y), 14.0, "400", "start", &text)) });
            }
        }
    }
}

/// One for each verdict, below each other, with what they say.
pub fn chart(comparison: &Comparison) -> String {
    let mut drawing = Drawing::default();
    for n in 0..comparison.verdicts.len() {
        drawing.head(comparison, n);
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

/// A circle, a triangle, a square or a diamond: the more bits, the more corners.
fn mark_of(data_type: &str, (x, y): (f64, f64)) -> Markup {
    let bits = data_type.trim_start_matches(|c: char| !c.is_ascii_digit());
    let size = ["8", "16", "32", "64"].iter().position(|known| *known == bits).unwrap_or(0);
    let (fill, r) = (COLOURS[size].0, MARK);
    let corners: &[(f64, f64)] = match size {
        1 => &[(0.0, -1.1), (1.1, 0.9), (-1.1, 0.9)],
        2 => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
        _ => &[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
    };
    let corner = |(dx, dy): &(f64, f64)| format!("{},{}", round(x + dx * r), round(y + dy * r));
    let points = corners.iter().map(corner).collect::<Vec<_>>().join(" ");
    html! {
        @if size == 0 { circle cx=(x) cy=(y) r=(r) fill=(fill) stroke=(INK.0) {} }
        @else { polygon points=(points) fill=(fill) stroke=(INK.0) {} }
    }
}

fn written((x, y): (f64, f64), size: f64, weight: &str, anchor: &str, text: &str) -> Markup {
    // On its paper, so that no line crosses it.
    let paper = PAPER.0;
    html! { text x=(round(x)) y=(round(y)) paint-order="stroke" stroke=(paper) stroke-width="4" font-family="system-ui, sans-serif" font-size=(size) font-weight=(weight) text-anchor=(anchor) fill=(INK.0) { (text) } }
}

fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

fn clipped(text: &str, most: usize) -> String {
    match text.chars().nth(most) {
        Some(_) => text.chars().take(most - 1).collect::<String>().trim_end().to_owned() + "…",
        None => text.to_owned(),
    }
}
