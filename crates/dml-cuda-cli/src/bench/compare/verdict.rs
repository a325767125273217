//! The first lines of a comparison: who wins, over all cases, by type and by kind.

use serde::Serialize;

use super::cell::{status, Change, Status};
use super::Row;
use crate::bench::numbers::{counted, percent, times};
use crate::bench::statistics::geometric_mean;
use crate::bench::work::GROUPS;

/// Who wins, in a sentence and in figures: a run next to the first one, or the only run next to its baselines.
#[derive(Default, Serialize)]
pub struct Verdict {
    /// How the sentence begins.
    pub title: String,
    pub sentence: String,
    /// A line each.
    pub by_type: String,
    pub by_kind: String,
    /// The name of the faster run, if that is decided.
    pub faster: Option<String>,
    /// The name of the figures.
    pub unit: String,
    /// `None` if no case has the figure.
    pub all: Option<Group>,
    pub types: Vec<Group>,
    pub kinds: Vec<Group>,
}

/// Cases that count alike: those that both runs have times of or, in a single run, those with a baseline. Each figure
/// compares the later run with the first one.
#[derive(Default, Serialize)]
pub struct Group {
    pub name: String,
    pub cases: usize,
    /// The geometric mean of the speed-ups over the first run. An only run has that of its shares of the baseline.
    pub mean: f64,
    /// The lowest and the highest of them.
    pub range: (f64, f64),
    /// The interval of the mean: the geometric means of both ends of the cases' intervals.
    pub interval: Option<(f64, f64)>,
    pub status: Option<Status>,
    pub faster: usize,
    pub slower: usize,
    pub same: usize,
    pub unsure: usize,
    /// Shares of the baseline in each of the two runs, over the cases where all runs that have any are known.
    pub of_baseline: Vec<Option<f64>>,
}

impl Verdict {
    /// The verdict of a single run.
    pub fn of_run(rows: &[Row], run: &str) -> Self {
        let groups = grouped(rows, |name, rows| Group::new(name, &shares(&rows, 0)));
        let mut verdict = Self::of_groups("of the baseline's speed".to_owned(), groups);
        let (title, rest) = match &verdict.all {
            None if rows.iter().all(|row| row.cells[0].is_none()) => {
                ("has no case with a time".to_owned(), String::new())
            }
            None => (
                "has no baseline to compare its times with".to_owned(),
                String::new(),
            ),
            Some(all) => {
                let (mean, range) = all.figures();
                let rest = format!(" ({range}) on {}", counted(all.cases, "case"));
                (format!("runs at {mean} of the baseline's speed"), rest)
            }
        };
        verdict.title = format!("{run} {title}");
        verdict.sentence = format!("{}{rest}", verdict.title);
        verdict
    }

    /// The verdict of a run next to the first one, by their names. `other_machine` is why nothing is decided.
    pub fn of_pair(
        rows: &[Row],
        run: usize,
        [first, second]: [&str; 2],
        threshold: f64,
        other_machine: Option<&str>,
    ) -> Self {
        let groups = grouped(rows, |name, rows| {
            let changed = rows
                .into_iter()
                .filter_map(|row| Some((row, row.changes[run - 1]?)));
            let (rows, changes): (Vec<&Row>, Vec<Change>) = changed.unzip();
            Group::of_changes(
                name,
                &rows,
                &changes,
                run,
                threshold,
                other_machine.is_some(),
            )
        });
        let mut verdict = Self::of_groups(format!("speedup of {second} over {first}"), groups);
        let Some(all) = &verdict.all else {
            verdict.title = format!("Not decided: no case has a time in both {first} and {second}");
            verdict.sentence.clone_from(&verdict.title);
            return verdict;
        };
        let (title, rest) = who(all, [first, second], threshold, other_machine);
        verdict.faster = match all.status {
            Some(Status::Faster) => Some(second.to_owned()),
            Some(Status::Slower) => Some(first.to_owned()),
            _ => None,
        };
        verdict.sentence = format!("{title}{rest}");
        verdict.title = title;
        verdict
    }

    fn of_groups(
        unit: String,
        (all, types, kinds): (Option<Group>, Vec<Group>, Vec<Group>),
    ) -> Self {
        let [by_type, by_kind] = [&types, &kinds].map(|groups| {
            let text = |(n, group): (usize, &Group)| {
                let cases = if n == 0 {
                    counted(group.cases, "case")
                } else {
                    group.cases.to_string()
                };
                format!("{} {} ({cases})", group.short_name(), group.figures().0)
            };
            groups
                .iter()
                .enumerate()
                .map(text)
                .collect::<Vec<_>>()
                .join("; ")
        });
        Self {
            unit,
            all,
            types,
            kinds,
            by_type,
            by_kind,
            ..Self::default()
        }
    }
}

/// Who is faster, by how much, in how many cases, and whether that is decided: the title, and the rest of the sentence.
fn who(
    all: &Group,
    [first, second]: [&str; 2],
    threshold: f64,
    other_machine: Option<&str>,
) -> (String, String) {
    let (mean, range) = (times(all.mean), all.figures().1);
    let title = match (all.status, other_machine) {
        (_, Some(why)) => format!("Not decided: {}", why.split(':').next().unwrap_or(why)),
        (Some(Status::Unsure), _)
            if all
                .interval
                .is_some_and(|(low, high)| low <= 1.0 && high >= 1.0) =>
        {
            "Not decided: the noise is larger than the difference".to_owned()
        }
        (Some(Status::Unsure), _) => {
            format!("Not decided: the difference is too near the threshold of {threshold} %")
        }
        (Some(Status::Same), _) if all.faster + all.slower > 0 => {
            "Neither is faster on the whole".to_owned()
        }
        (Some(Status::Same), _) => format!("{second} and {first} are equally fast"),
        (Some(Status::Slower), _) => format!("{second} is slower than {first}: {mean} as fast"),
        _ => format!("{second} is {mean} as fast as {first}"),
    };
    let begin = match all.status {
        Some(Status::Faster | Status::Slower) => String::new(),
        Some(Status::Same) => format!(": {second} is {mean} as fast as {first}"),
        _ => format!(". {second} was {mean} as fast as {first}"),
    };
    let same = if all.same > 0 {
        format!(", {} the same", all.same)
    } else {
        String::new()
    };
    let (
        cases,
        &Group {
            faster,
            slower,
            unsure,
            ..
        },
    ) = (counted(all.cases, "case"), all);
    let counts = format!("{faster} faster, {slower} slower{same}, {unsure} unsure");
    (
        title,
        format!("{begin} ({range}) on {cases} that both ran: {counts}"),
    )
}

/// A group of all rows, those of each type, and those of each kind. A group without cases is left out.
fn grouped(
    rows: &[Row],
    group: impl Fn(&str, Vec<&Row>) -> Option<Group>,
) -> (Option<Group>, Vec<Group>, Vec<Group>) {
    let mut types: Vec<&str> = Vec::new();
    for row in rows {
        if !types.contains(&&*row.work.data_type) {
            types.push(&row.work.data_type);
        }
    }
    let of_type = |name: &&str| {
        group(
            name,
            rows.iter()
                .filter(|row| row.work.data_type == *name)
                .collect(),
        )
    };
    let of_kind = |name: &&str| group(name, rows.iter().filter(|row| row.group == *name).collect());
    let all = group("all", rows.iter().collect());
    (
        all,
        types.iter().filter_map(of_type).collect(),
        GROUPS.iter().filter_map(of_kind).collect(),
    )
}

fn shares(rows: &[&Row], run: usize) -> Vec<f64> {
    rows.iter()
        .filter_map(|row| row.cells[run].as_ref()?.of_baseline)
        .collect()
}

impl Group {
    fn new(name: &str, values: &[f64]) -> Option<Self> {
        Some(Self {
            name: name.to_owned(),
            cases: values.len(),
            mean: geometric_mean(values)?,
            range: (
                values.iter().copied().fold(f64::MAX, f64::min),
                values.iter().copied().fold(0.0, f64::max),
            ),
            ..Self::default()
        })
    }

    fn of_changes(
        name: &str,
        rows: &[&Row],
        changes: &[Change],
        run: usize,
        threshold: f64,
        is_unsure: bool,
    ) -> Option<Self> {
        let of = |figure: fn(&Change) -> f64| changes.iter().map(figure).collect::<Vec<_>>();
        let count = |wanted| {
            changes
                .iter()
                .filter(|change| change.status == wanted)
                .count()
        };
        let interval = (
            geometric_mean(&of(|change| change.interval.0))?,
            geometric_mean(&of(|change| change.interval.1))?,
        );
        // A run that has no baseline takes none from the other.
        let has_any = [0, run].map(|run| !shares(rows, run).is_empty());
        let is_known = |row: &&&Row| {
            [0, run]
                .into_iter()
                .zip(has_any)
                .all(|(run, any)| !any || !shares(&[row], run).is_empty())
        };
        let known: Vec<&Row> = rows.iter().filter(is_known).copied().collect();
        Some(Self {
            interval: Some(interval),
            status: Some(if is_unsure {
                Status::Unsure
            } else {
                status(interval, threshold)
            }),
            faster: count(Status::Faster),
            slower: count(Status::Slower),
            same: count(Status::Same),
            unsure: count(Status::Unsure),
            of_baseline: [0, run]
                .map(|run| geometric_mean(&shares(&known, run)))
                .to_vec(),
            ..Self::new(name, &of(|change| change.speed_up))?
        })
    }

    /// The mean, marked if it is SLOWER or UNSURE, and the range: speedups, or shares of the baseline's speed.
    pub fn figures(&self) -> (String, String) {
        let (text, mark): (fn(f64) -> String, _) = match self.status {
            None => (percent, ""),
            Some(Status::Slower) => (times, ", slower"),
            Some(Status::Unsure) => (times, " ?"),
            Some(_) => (times, ""),
        };
        (
            text(self.mean) + mark,
            format!("{} to {}", text(self.range.0), text(self.range.1)),
        )
    }

    /// A kind's first words.
    pub fn short_name(&self) -> &str {
        self.name.split(',').next().unwrap_or_default()
    }
}
