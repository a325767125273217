//! The first lines of a comparison: which file is faster, over all cases, by type and by kind.
//!
//! ```text
//! b is 4.0× as fast as a (2.0× to 8.0×) on 3 cases that both ran: 3 faster, 0 slower, 0 unsure
//! by type, speedup of b over a: f32 4.0× (3 cases)
//! by kind, speedup of b over a: rows and blocks 4.0× (2 cases); interleaved lanes 4.0× (1)
//! ```
//!
//! The first line is the sentence. Its beginning is the title. Each figure is the geometric mean of a [`Group`] of cases, in
//! which every case counts alike, however long it takes. A single file has no other to be compared with: its figures are
//! shares of the speed of its own baselines.

use serde::Serialize;

use super::cell::{status, Change, Status};
use super::Row;
use crate::bench::numbers::{counted, percent, times};
use crate::bench::statistics::{geometric_mean, Interval};
use crate::bench::work::GROUPS;

/// Which file is faster, in a sentence and in figures.
#[derive(Default, Serialize)]
pub struct Verdict {
    /// How the sentence begins.
    pub title: String,
    /// The title and the counts of cases.
    pub sentence: String,
    /// The figures of `types` in one line.
    pub by_type: String,
    /// The figures of `kinds` in one line.
    pub by_kind: String,
    /// The name of the faster file, if that is decided.
    pub faster: Option<String>,
    /// The name of the figures.
    pub unit: String,
    /// `None` if no case has the figure.
    pub all: Option<Group>,
    /// A group for each data type that a case has.
    pub types: Vec<Group>,
    /// A group for each of `GROUPS` that has cases.
    pub kinds: Vec<Group>,
}

/// Cases that count alike: those that both files have times of or, in a single file, those with a baseline. Each figure
/// compares the later file with the first one.
#[derive(Default, Serialize)]
pub struct Group {
    /// `all`, a data type such as `f32`, or one of `GROUPS`.
    pub name: String,
    /// How many cases have the figure.
    pub cases: usize,
    /// The geometric mean of the speedups over the first file, or of a single file's shares of the baseline.
    pub mean: f64,
    /// The lowest and the highest of them.
    pub range: Interval,
    /// The interval of the mean: the geometric means of both ends of the cases' intervals.
    pub interval: Option<Interval>,
    /// Decided by the interval as for a case. A single file has none.
    pub status: Option<Status>,
    /// How many of the cases are FASTER. The next three count the other statuses.
    pub faster: usize,
    pub slower: usize,
    pub same: usize,
    pub unsure: usize,
    /// Shares of the baseline in each of the two files, over the cases that have a share in both. If only one file has
    /// baselines, over all of its cases.
    pub of_baseline: Vec<Option<f64>>,
}

/// A results file next to the first one.
pub struct Pair<'a> {
    /// The place of the other file among the cells of a row.
    pub other: usize,
    pub first_name: &'a str,
    pub other_name: &'a str,
    /// Percent below which a difference is none.
    pub threshold: f64,
    /// Why nothing is decided, if the machine was another.
    pub other_machine: Option<&'a str>,
}

/// The groups of a verdict. A group without cases is left out.
struct Groups {
    all: Option<Group>,
    types: Vec<Group>,
    kinds: Vec<Group>,
}

/// A sentence in two parts.
struct Headline {
    /// What a page has as its heading.
    title: String,
    /// The range, and the counts of cases.
    rest: String,
}

/// The figures of a group as a reader sees them.
pub struct Figures {
    /// The mean, marked if it is SLOWER or UNSURE.
    pub mean: String,
    /// The lowest and the highest figure, such as `0.90× to 3.1×`.
    pub range: String,
}

impl Verdict {
    /// The verdict on a single file.
    pub fn of_one(rows: &[Row], name: &str) -> Self {
        let groups = Groups::new(rows, |name, rows| Group::new(name, &shares(rows, 0)));
        let mut verdict = Self::of_groups("of the baseline's speed".to_owned(), groups);
        let (title, rest) = match &verdict.all {
            Some(all) => {
                let Figures { mean, range } = all.figures();
                let rest = format!(" ({range}) on {}", counted(all.cases, "case"));
                (format!("runs at {mean} of the baseline's speed"), rest)
            }
            None if rows.iter().all(|row| row.cells[0].is_none()) => {
                ("has no case with a time".to_owned(), String::new())
            }
            None => {
                let title = "has no baseline to compare its times with";
                (title.to_owned(), String::new())
            }
        };
        verdict.say(Headline {
            title: format!("{name} {title}"),
            rest,
        });
        verdict
    }

    /// The verdict on a file next to the first one.
    pub fn of_pair(rows: &[Row], pair: &Pair) -> Self {
        let groups = Groups::new(rows, |name, rows| Group::of_pair(name, rows, pair));
        let (first, other) = (pair.first_name, pair.other_name);
        let mut verdict = Self::of_groups(format!("speedup of {other} over {first}"), groups);
        let Some(all) = &verdict.all else {
            verdict.say(Headline {
                title: format!("Not decided: no case has a time in both {first} and {other}"),
                rest: String::new(),
            });
            return verdict;
        };
        let headline = headline(all, pair);
        verdict.faster = match all.status {
            Some(Status::Faster) => Some(other.to_owned()),
            Some(Status::Slower) => Some(first.to_owned()),
            _ => None,
        };
        verdict.say(headline);
        verdict
    }

    /// Sets the title and the sentence, which begins with it.
    fn say(&mut self, Headline { title, rest }: Headline) {
        self.sentence = format!("{title}{rest}");
        self.title = title;
    }

    /// A verdict without a sentence.
    fn of_groups(unit: String, Groups { all, types, kinds }: Groups) -> Self {
        Self {
            unit,
            by_type: line(&types),
            by_kind: line(&kinds),
            all,
            types,
            kinds,
            ..Self::default()
        }
    }
}

/// The figures of groups, such as `f32 4.0× (3 cases); f16 2.0× (1)`. The word is in the first one only.
fn line(groups: &[Group]) -> String {
    let mut parts = Vec::new();
    for group in groups {
        let cases = if parts.is_empty() {
            counted(group.cases, "case")
        } else {
            group.cases.to_string()
        };
        let mean = group.figures().mean;
        parts.push(format!("{} {mean} ({cases})", group.short_name()));
    }
    parts.join("; ")
}

/// Who is faster, by how much, in how many cases, and whether that is decided.
fn headline(all: &Group, pair: &Pair) -> Headline {
    let (first, other) = (pair.first_name, pair.other_name);
    let (mean, range) = (times(all.mean), all.figures().range);
    // If the title does not have the figure, the rest begins with it.
    let figure = match all.status {
        Some(Status::Faster | Status::Slower) => String::new(),
        Some(Status::Same) => format!(": {other} is {mean} as fast as {first}"),
        _ => format!(". {other} was {mean} as fast as {first}"),
    };
    let &Group {
        faster,
        slower,
        same,
        unsure,
        ..
    } = all;
    let same = match same {
        0 => String::new(),
        same => format!(", {same} the same"),
    };
    let cases = counted(all.cases, "case");
    let counts = format!("{faster} faster, {slower} slower{same}, {unsure} unsure");
    Headline {
        title: title(all, pair, &mean),
        rest: format!("{figure} ({range}) on {cases} that both ran: {counts}"),
    }
}

/// The beginning of the sentence: who is faster, or why that is not decided.
fn title(all: &Group, pair: &Pair, mean: &str) -> String {
    let (first, other) = (pair.first_name, pair.other_name);
    // The reason up to its figures, which follow in a warning.
    if let Some(why) = pair.other_machine {
        let short = why.split(':').next().unwrap_or(why);
        return format!("Not decided: {short}");
    }
    let holds_1 = match all.interval {
        Some(Interval { low, high }) => low <= 1.0 && high >= 1.0,
        None => false,
    };
    match all.status {
        Some(Status::Unsure) if holds_1 => {
            "Not decided: the noise is larger than the difference".to_owned()
        }
        Some(Status::Unsure) => {
            let threshold = pair.threshold;
            format!("Not decided: the difference is too near the threshold of {threshold} %")
        }
        Some(Status::Same) if all.faster + all.slower > 0 => {
            "Neither is faster on the whole".to_owned()
        }
        Some(Status::Same) => format!("{other} and {first} are equally fast"),
        Some(Status::Slower) => format!("{other} is slower than {first}: {mean} as fast"),
        _ => format!("{other} is {mean} as fast as {first}"),
    }
}

impl Groups {
    /// Groups of all rows, of those of each type in their order, and of those of each kind.
    fn new(rows: &[Row], group: impl Fn(&str, &[&Row]) -> Option<Group>) -> Self {
        let all: Vec<&Row> = rows.iter().collect();
        // In the order of the first file.
        let mut names: Vec<&str> = Vec::new();
        for row in rows {
            if !names.contains(&&*row.work.data_type) {
                names.push(&row.work.data_type);
            }
        }
        let mut types = Vec::new();
        for name in names {
            let of_type = rows.iter().filter(|row| row.work.data_type == name);
            types.extend(group(name, &of_type.collect::<Vec<_>>()));
        }
        let mut kinds = Vec::new();
        for name in GROUPS {
            let of_kind = rows.iter().filter(|row| row.group == name);
            kinds.extend(group(name, &of_kind.collect::<Vec<_>>()));
        }
        Self {
            all: group("all", &all),
            types,
            kinds,
        }
    }
}

/// The shares of the baseline that are known.
fn shares(rows: &[&Row], file: usize) -> Vec<f64> {
    rows.iter().filter_map(|row| row.share(file)).collect()
}

/// The mean shares of two files, over the cases that have a share in both. If only one file has baselines, over all of
/// its cases.
fn mean_shares(rows: &[&Row], files: [usize; 2]) -> Vec<Option<f64>> {
    let has_any = |file: &usize| !shares(rows, *file).is_empty();
    let with_baselines: Vec<usize> = files.into_iter().filter(has_any).collect();
    let mut known = rows.to_vec();
    known.retain(|row| has_shares(row, &with_baselines));
    files
        .map(|file| geometric_mean(&shares(&known, file)))
        .to_vec()
}

/// Whether a case has a share of the baseline in all of these files.
fn has_shares(row: &Row, files: &[usize]) -> bool {
    files.iter().all(|&file| row.share(file).is_some())
}

impl Group {
    /// A group with the figures of cases. None without cases.
    fn new(name: &str, values: &[f64]) -> Option<Self> {
        Some(Self {
            name: name.to_owned(),
            cases: values.len(),
            mean: geometric_mean(values)?,
            // Shares and speedups are positive, so that 0 is below all of them.
            range: Interval {
                low: values.iter().copied().fold(f64::MAX, f64::min),
                high: values.iter().copied().fold(0.0, f64::max),
            },
            ..Self::default()
        })
    }

    /// The group of the rows that have a time in both files.
    fn of_pair(name: &str, rows: &[&Row], pair: &Pair) -> Option<Self> {
        let (mut compared, mut changes) = (Vec::new(), Vec::new());
        for row in rows {
            if let Some(change) = row.changes[pair.other - 1] {
                compared.push(*row);
                changes.push(change);
            }
        }
        let mut group = Self::new(name, &figures(&changes, |change| change.speed_up))?;
        let interval = Interval {
            low: geometric_mean(&figures(&changes, |change| change.interval.low))?,
            high: geometric_mean(&figures(&changes, |change| change.interval.high))?,
        };
        group.interval = Some(interval);
        group.status = Some(match pair.other_machine {
            Some(_) => Status::Unsure,
            None => status(interval, pair.threshold),
        });
        for change in &changes {
            match change.status {
                Status::Faster => group.faster += 1,
                Status::Slower => group.slower += 1,
                Status::Same => group.same += 1,
                Status::Unsure => group.unsure += 1,
            }
        }
        group.of_baseline = mean_shares(&compared, [0, pair.other]);
        Some(group)
    }

    /// The mean and the range: speedups, or shares of the baseline's speed.
    pub fn figures(&self) -> Figures {
        let (shown, mark): (fn(f64) -> String, _) = match self.status {
            None => (percent, ""),
            Some(Status::Slower) => (times, ", slower"),
            Some(Status::Unsure) => (times, " ?"),
            Some(_) => (times, ""),
        };
        let Interval { low, high } = self.range;
        Figures {
            mean: shown(self.mean) + mark,
            range: format!("{} to {}", shown(low), shown(high)),
        }
    }

    /// A kind's first words.
    pub fn short_name(&self) -> &str {
        self.name.split(',').next().unwrap_or_default()
    }
}

/// One figure of each change.
fn figures(changes: &[Change], figure: fn(&Change) -> f64) -> Vec<f64> {
    changes.iter().map(figure).collect()
}
