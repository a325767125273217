//! The chart: a bar for each group of cases and run, large enough for the back of a room.

use maud::{html, Markup};

use super::tables::warnings;
use crate::bench::compare::{letter, Comparison, Group, Mean};
use crate::bench::numbers::{percent, significant};

/// Colours of the runs, from light to dark in turn, so that neighbours differ in grey too; and what they are on a dark
/// page.
const RUNS: [&str; 8] = ["#1F6FC5", "#F2A65A", "#1B5E38", "#C7A6E8", "#8C1D40", "#8FD3C8", "#4A4A4A", "#E3D26F"];
const ON_DARK: [&str; 8] = ["#6FB1FF", "#FFC78F", "#3FA66B", "#E3CDFA", "#D0547C", "#BFEFE7", "#8A8A8A", "#F5E9A6"];
const INK: (&str, &str) = ("#222222", "#E6E6E6");
const FAINT: (&str, &str) = ("#B4B4B4", "#4A5056");
const PAPER: (&str, &str) = ("#FFFFFF", "#14171A");

const WIDTH: f64 = 640.0;
const LEFT: f64 = 36.0;
const RIGHT: f64 = 240.0;
const BAR: f64 = 22.0;

/// Speed-ups over the first run, or of one run how near it is to its baseline.
pub fn chart(comparison: &Comparison) -> String {
    let several = comparison.runs.len() > 1;
    let all = comparison.groups.iter().map(|group| (&group.name, bars(group, several)));
    let groups: Vec<(&String, Vec<(usize, Mean)>)> = all.filter(|(_, bars)| !bars.is_empty()).collect();
    let ends = groups.iter().flat_map(|(_, bars)| bars).map(|(_, mean)| mean.interval.1);
    let most = ends.fold(1.0f64, f64::max);
    let x = |value: f64| round(LEFT + (value / most).clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT));
    let (title, one) = match several {
        true => ("Speed compared with A; a longer bar is faster", "1"),
        false => ("Share of the baseline's speed", "100 %"),
    };
    let mut body = String::new();
    let mut add = |element: Markup| body.push_str(&(element.into_string() + "\n"));
    let mut y = 26.0;
    add(text((8.0, y), 20, "600", title));
    let of = Some(&comparison.runs[0].suite).filter(|suite| !suite.is_empty());
    let of = of.map_or_else(String::new, |suite| format!(", cases of {suite}"));
    let lines = "bars: geometric means over the cases; lines: 95 % (bootstrap)".to_owned();
    for line in [format!("FILL_VALUE_SEQUENCE and REVERSE_SUBSEQUENCES{of}"), lines] {
        y += 20.0;
        add(text((8.0, y), 14, "400", &clipped(&line, 86)));
    }
    for (run, summary) in comparison.runs.iter().enumerate() {
        y += 24.0;
        let label = if several { format!("{}: {}", letter(run), summary.label) } else { summary.label.clone() };
        add(html! { rect x="8" y=(y - 13.0) width="16" height="16" fill=(RUNS[run]) stroke=(INK.0) {} });
        add(text((LEFT, y), 16, "400", &clipped(&label, 66)));
    }
    for warning in warnings(comparison) {
        // A line has room for its first sentence. The tables have the rest.
        let warning = warning.split(". ").next().unwrap_or_default();
        y += 22.0;
        add(text((8.0, y), 14, "600", &clipped(warning, 70)));
    }
    let at_one = x(1.0);
    for (name, bars) in &groups {
        y += 38.0;
        let known = bars.iter().filter(|(_, mean)| mean.cases > 0);
        let counts: Vec<String> = known.map(|(run, mean)| format!("{} {}", letter(*run), mean.cases)).collect();
        let end = y + (BAR + 6.0) * bars.len() as f64 + 9.0;
        add(html! {
            (text((8.0, y), 18, "600", &format!("{name}: {} cases", counts.join(", "))))
            line x1=(at_one) y1=(y + 6.0) x2=(at_one) y2=(end) stroke=(FAINT.0) stroke-width="2" {}
        });
        for &(run, mean) in bars {
            y += BAR + 6.0;
            let unsure = run > 0 && comparison.other_machine[run - 1].is_some();
            let value = match several {
                false => percent(mean.mean),
                true if run == 0 => "1".to_owned(),
                true => times_as_fast(run, mean.mean) + if unsure { " ?" } else { "" },
            };
            let [to, low, high] = [mean.mean, mean.interval.0, mean.interval.1].map(x);
            let (top, middle, width) = (y - BAR + 3.0, y - BAR / 2.0 + 3.0, round(to - LEFT).max(2.0));
            add(html! {
                rect x=(LEFT) y=(top) width=(width) height=(BAR) fill=(RUNS[run]) stroke=(INK.0) {}
                @if high > low { line x1=(low) y1=(middle) x2=(high) y2=(middle) stroke=(INK.0) stroke-width="3" {} }
                @if several { (text((8.0, y), 18, "400", &letter(run).to_string())) }
                (text((to.max(high) + 8.0, y), 18, "600", &value))
            });
        }
    }
    if groups.is_empty() {
        y += 38.0;
        add(text((8.0, y), 18, "400", "no case has this figure"));
    }
    add(text((at_one - 10.0, y + 32.0), 16, "400", one));
    let rule =
        |(light, dark)| format!("svg [fill=\"{light}\"]{{fill:{dark}}} svg [stroke=\"{light}\"]{{stroke:{dark}}} ");
    let on_dark: String = RUNS.into_iter().zip(ON_DARK).chain([INK, FAINT, PAPER]).map(rule).collect();
    let (height, paper) = (y + 44.0, PAPER.0);
    format!(
        "<svg class=\"dml-cuda\" role=\"img\" aria-label=\"{title}\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" xmlns=\"http://www.w3.org/2000/svg\">\n\
        <style>@media screen and (prefers-color-scheme: dark) {{ {on_dark}}}</style>\n\
        <rect width=\"100%\" height=\"100%\" fill=\"{paper}\"/>\n{body}</svg>\n"
    )
}

/// The faster of A and another run.
fn times_as_fast(run: usize, speed_up: f64) -> String {
    let (faster, times) = if speed_up < 1.0 { ('A', 1.0 / speed_up) } else { (letter(run), speed_up) };
    format!("{faster}: {} times as fast", significant(times, 3))
}

/// The means of a group that are drawn, with their runs.
fn bars(group: &Group, several: bool) -> Vec<(usize, Mean)> {
    if !several {
        return group.of_baseline.iter().flatten().map(|mean| (0, *mean)).collect();
    }
    let others = group.speed_ups.iter().enumerate().filter_map(|(n, mean)| Some((n + 1, (*mean)?)));
    let first = (0, Mean { cases: 0, mean: 1.0, interval: (1.0, 1.0) });
    let bars: Vec<(usize, Mean)> = std::iter::once(first).chain(others).collect();
    Some(bars).filter(|bars| bars.len() > 1).unwrap_or_default()
}

fn text((x, y): (f64, f64), size: u32, weight: &str, text: &str) -> Markup {
    let family = "system-ui, sans-serif";
    // On its paper, so that no line crosses it.
    let paper = PAPER.0;
    html! { text x=(round(x)) y=(y) paint-order="stroke" stroke=(paper) stroke-width="4" font-family=(family) font-size=(size) font-weight=(weight) fill=(INK.0) { (text) } }
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
