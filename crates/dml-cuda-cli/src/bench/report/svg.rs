//! SVG by hand: lines, text and marks, with attributes only, so that a figure looks the same in a page, alone, and in slides.

use maud::{html, Markup};

/// Colours of the runs.
pub const RUNS: [&str; 4] = ["#1F6FC5", "#C85A0B", "#2B834A", "#8A4BB0"];
pub const INK: &str = "#222222";
/// Lines that lead the eye.
pub const FAINT: &str = "#B4B4B4";
/// What text says besides.
pub const QUIET: &str = "#666666";
const PAPER: &str = "#FFFFFF";

/// How those colours look in the dark.
const IN_THE_DARK: [(&str, &str); 8] = [
    (RUNS[0], "#6FB1FF"),
    (RUNS[1], "#FF9F5A"),
    (RUNS[2], "#6FCF8E"),
    (RUNS[3], "#CD97EE"),
    (INK, "#E6E6E6"),
    (FAINT, "#4A5056"),
    (QUIET, "#A6ACB2"),
    (PAPER, "#14171A"),
];

/// Style rules for the dark.
pub fn dark_style() -> String {
    let rule =
        |(light, dark)| format!("svg [fill=\"{light}\"]{{fill:{dark}}} svg [stroke=\"{light}\"]{{stroke:{dark}}} ");
    IN_THE_DARK.map(rule).concat()
}

/// How wide a figure is, and where what it plots begins.
#[derive(Clone, Copy)]
pub struct Layout {
    pub width: f64,
    /// Where names end; none where each name stands above its marks.
    pub left: Option<f64>,
}

/// For a desk or a slide.
pub const WIDE: Layout = Layout { width: 960.0, left: Some(372.0) };
/// For a phone.
pub const NARROW: Layout = Layout { width: 368.0, left: None };

#[derive(Clone, Copy)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// The shape of a mark, by the width of the elements; types of one width do the same work.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    Triangle,
    Square,
    Circle,
    Diamond,
    Cross,
}

impl Shape {
    pub fn of(data_type: &str) -> Self {
        match data_type.trim_start_matches(|character: char| !character.is_ascii_digit()) {
            "8" => Self::Triangle,
            "16" => Self::Square,
            "32" => Self::Circle,
            "64" => Self::Diamond,
            _ => Self::Cross,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Triangle => "8-bit elements",
            Self::Square => "16-bit",
            Self::Circle => "32-bit",
            Self::Diamond => "64-bit",
            Self::Cross => "other elements",
        }
    }
}

/// How a mark is drawn.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Paint {
    Filled,
    Outlined,
    /// One of many in the same place.
    Transparent,
    /// A question mark in place of the shape.
    Unsure,
}

pub struct Mark {
    pub shape: Shape,
    pub colour: &'static str,
    pub paint: Paint,
    /// What a pointer shows.
    pub tip: String,
}

/// A figure that is being drawn, downwards.
pub struct Drawing {
    pub layout: Layout,
    body: String,
}

fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// Where text of this size ends, roughly: fonts differ.
pub fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * 0.56
}

/// Text that fits, its end left out where it must be.
pub fn clipped(text: &str, size: f64, width: f64) -> String {
    let most = (width / (size * 0.56)) as usize;
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).collect::<String>().trim_end().to_owned() + "…"
}

impl Drawing {
    pub fn new(layout: Layout) -> Self {
        Self { layout, body: String::new() }
    }

    fn add(&mut self, element: Markup) {
        self.body.push_str(&element.into_string());
        self.body.push('\n');
    }

    /// Text whose middle is at a height.
    pub fn text(&mut self, (x, y): (f64, f64), size: f64, anchor: Anchor, colour: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (x, y) = (rounded(x), rounded(y + 0.35 * size));
        self.add(html! {
            text x=(x) y=(y) font-family="system-ui, sans-serif" font-size=(size) text-anchor=(anchor) fill=(colour) { (text) }
        });
    }

    /// Text over lines, which end before it.
    pub fn name(&mut self, (x, y): (f64, f64), size: f64, text: &str) {
        let y = rounded(y + 0.35 * size);
        self.add(html! {
            text x=(x) y=(y) font-family="system-ui, sans-serif" font-size=(size) fill=(INK) stroke=(PAPER) stroke-width="4" paint-order="stroke" { (text) }
        });
    }

    /// Text at the left with quieter words behind it.
    pub fn described(&mut self, (x, y): (f64, f64), text: &str, about: &str) {
        let y = rounded(y + 4.5);
        self.add(html! {
            text x=(x) y=(y) font-family="system-ui, sans-serif" font-size="13" fill=(INK) {
                (text) tspan dx="14" font-size="12" fill=(QUIET) { (about) }
            }
        });
    }

    /// The same, in bold.
    pub fn heading(&mut self, (x, y): (f64, f64), size: f64, text: &str) {
        let y = rounded(y + 0.35 * size);
        self.add(html! {
            text x=(x) y=(y) font-family="system-ui, sans-serif" font-size=(size) font-weight="600" fill=(INK) { (text) }
        });
    }

    /// Text that is read from below.
    pub fn upright(&mut self, (x, y): (f64, f64), size: f64, text: &str) {
        let (x, y) = (rounded(x), rounded(y));
        let turn = format!("rotate(-90 {x} {y})");
        self.add(html! {
            text x=(x) y=(y) transform=(turn) font-family="system-ui, sans-serif" font-size=(size) text-anchor="middle" fill=(INK) { (text) }
        });
    }

    pub fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), colour: &str, width: f64) {
        let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(rounded);
        self.add(html! { line x1=(x1) y1=(y1) x2=(x2) y2=(y2) stroke=(colour) stroke-width=(width) {} });
    }

    /// A patch of a run's colour.
    pub fn patch(&mut self, (x, y): (f64, f64), colour: &str) {
        let y = rounded(y - 5.0);
        self.add(html! { rect x=(x) y=(y) width="10" height="10" rx="2" fill=(colour) {} });
    }

    pub fn mark(&mut self, (x, y): (f64, f64), mark: &Mark) {
        let Mark { shape, colour, paint, tip } = mark;
        let [x, y] = [x, y].map(rounded);
        let fill = if matches!(paint, Paint::Outlined) { "none" } else { colour };
        let opacity = if matches!(paint, Paint::Transparent) { "0.45" } else { "0.9" };
        let points = |offsets: &[(f64, f64)]| {
            let points = offsets.iter().map(|(dx, dy)| format!("{},{}", rounded(x + dx), rounded(y + dy)));
            points.collect::<Vec<_>>().join(" ")
        };
        let tip = html! { @if !tip.is_empty() { title { (tip) } } };
        let polygon = |offsets: &[(f64, f64)]| {
            html! { polygon points=(points(offsets)) fill=(fill) stroke=(colour) stroke-width="1.3" opacity=(opacity) { (tip) } }
        };
        let element = match (paint, shape) {
            (Paint::Unsure, _) => html! {
                text x=(x) y=(rounded(y + 4.0)) font-family="system-ui, sans-serif" font-size="12" font-weight="700" text-anchor="middle" fill=(colour) { "?" (tip) }
            },
            (_, Shape::Circle) => html! {
                circle cx=(x) cy=(y) r="3.6" fill=(fill) stroke=(colour) stroke-width="1.3" opacity=(opacity) { (tip) }
            },
            (_, Shape::Triangle) => polygon(&[(0.0, -4.4), (4.2, 3.2), (-4.2, 3.2)]),
            (_, Shape::Square) => polygon(&[(-3.3, -3.3), (3.3, -3.3), (3.3, 3.3), (-3.3, 3.3)]),
            (_, Shape::Diamond) => polygon(&[(0.0, -4.8), (4.8, 0.0), (0.0, 4.8), (-4.8, 0.0)]),
            (_, Shape::Cross) => html! {
                path d=(format!("M{},{}l7,7m0,-7l-7,7", rounded(x - 3.5), rounded(y - 3.5))) fill="none" stroke=(colour) stroke-width="1.6" { (tip) }
            },
        };
        self.add(element);
    }

    /// The figure, to be put into a page.
    pub fn finish(self, height: f64, title: &str) -> String {
        let (width, height) = (self.layout.width, height.ceil());
        let class = if self.layout.left.is_some() { "chart" } else { "chart narrow" };
        let view = format!("0 0 {width} {height}");
        format!(
            "<svg class=\"{class}\" role=\"img\" aria-label=\"{}\" width=\"{width}\" height=\"{height}\" viewBox=\"{view}\" xmlns=\"http://www.w3.org/2000/svg\">\n{}</svg>\n",
            html! { (title) }.into_string(),
            self.body
        )
    }
}

/// The figure with its own background and colours, as a file.
pub fn standing_alone(svg: &str) -> String {
    let style = format!(
        "\n<style>@media (prefers-color-scheme: dark) {{ {}}}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"{PAPER}\"/>",
        dark_style()
    );
    match svg.find('>') {
        Some(end) => format!("{}{style}{}", &svg[..=end], &svg[end + 1..]),
        None => svg.to_owned(),
    }
}
