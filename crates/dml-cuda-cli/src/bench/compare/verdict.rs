//! What a comparison says first: who wins, over all cases, by type and by kind.

use serde::Serialize;

use super::cell::{status, Change, Status};
use super::{letter, Row};
use crate::bench::numbers::{counted, interval, percent, significant};
use crate::bench::statistics::geometric_mean;
use crate::bench::work::GROUPS;

/// Who wins, in words and figures: a run next to the first one, or the only run next to its baselines.
#[derive(Default, Serialize)]
pub struct Verdict {
    pub sentence: String,
    /// A line each.
    pub by_type: String,
    pub by_kind: String,
    /// The faster run, if that is decided.
    pub faster: Option<char>,
    /// The run whose speed over the other's the sentence and the lines have: that with the greater mean.
    #[serde(skip)]
    pub ahead: char,
    #[serde(skip)]
    behind: char,
    /// `None` if no case has the figure.
    pub all: Option<Group>,
    pub types: Vec<Group>,
    pub kinds: Vec<Group>,
}

/// Cases that count alike: those that both runs have times of, or of the only run those with a baseline.
/// Each figure is of the later run over the first one.
#[derive(Default, Serialize)]
pub struct Group {
    pub name: String,
    pub cases: usize,
    /// The geometric mean of the speed-ups over the first run. An only run has that of its shares of the baseline.
    pub mean: f64,
    /// The least and the greatest of them.
    pub range: (f64, f64),
    /// What noise makes of the mean: the geometric means of both ends of the cases' intervals.
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
    /// What there is to say of the only run.
    pub fn of_run(rows: &[Row]) -> Self {
        let groups = grouped(rows, |name, rows| Group::new(name, &shares(&rows, 0)));
        let mut verdict = Self::of_groups(('A', 'A'), groups);
        verdict.sentence = match &verdict.all {
            None if rows.iter().all(|row| row.cells[0].is_none()) => "A has no case with a time".to_owned(),
            None => "A has no baseline to compare its times with".to_owned(),
            Some(all) => {
                let (mean, range) = verdict.figures(all);
                format!("A runs at {mean} of the baseline's speed ({range}) on {}", counted(all.cases, "case"))
            }
        };
        verdict
    }

    /// What there is to say of a run next to the first one. `other_machine` is why nothing is decided.
    pub fn of_pair(rows: &[Row], run: usize, threshold: f64, other_machine: Option<&str>) -> Self {
        let groups = grouped(rows, |name, rows| {
            let changed = rows.into_iter().filter_map(|row| Some((row, row.changes[run - 1]?)));
            let (rows, changes): (Vec<&Row>, Vec<Change>) = changed.unzip();
            Group::of_changes(name, &rows, &changes, run, threshold, other_machine.is_some())
        });
        let of_first = groups.0.as_ref().is_some_and(|all| all.mean < 1.0);
        let mut verdict = Self::of_groups(if of_first { ('A', letter(run)) } else { (letter(run), 'A') }, groups);
        verdict.sentence = verdict.all.as_ref().map_or_else(
            || format!("Not decided: no case has a time in both A and {}", letter(run)),
            |all| verdict.who(all, threshold, other_machine),
        );
        let is_decided = |all: &Group| matches!(all.status, Some(Status::Faster | Status::Slower));
        verdict.faster = verdict.all.as_ref().filter(|all| is_decided(all)).map(|_| verdict.ahead);
        verdict
    }

    /// `ahead`: the run that is ahead, and the other; twice the same for an only run.
    fn of_groups((ahead, behind): (char, char), (all, types, kinds): (Option<Group>, Vec<Group>, Vec<Group>)) -> Self {
        let mut verdict = Self { ahead, behind, all, types, kinds, ..Self::default() };
        [verdict.by_type, verdict.by_kind] = [&verdict.types, &verdict.kinds].map(|groups| {
            let text = |(n, group): (usize, &Group)| {
                let cases = if n == 0 { counted(group.cases, "case") } else { group.cases.to_string() };
                format!("{} {} ({cases})", group.short_name(), verdict.figures(group).0)
            };
            groups.iter().enumerate().map(text).collect::<Vec<_>>().join(", ")
        });
        verdict
    }

    /// A group's mean, marked if it is UNSURE, and its range: of the baseline's speed, or of how many times as fast the
    /// faster run is.
    pub fn figures(&self, group: &Group) -> (String, String) {
        let (mean, (low, high)) = (group.mean, group.range);
        match group.status {
            None => (percent(mean), format!("{} to {}", percent(low), percent(high))),
            Some(status) => {
                let is_first = self.ahead == 'A';
                let (mean, range) = if is_first { (1.0 / mean, (1.0 / high, 1.0 / low)) } else { (mean, (low, high)) };
                (significant(mean, 3) + if status == Status::Unsure { " ?" } else { "" }, interval(range))
            }
        }
    }

    /// What the figures of the lines by type and by kind are.
    pub fn unit(&self) -> String {
        let &Self { ahead, behind, .. } = self;
        if ahead == behind {
            "of the baseline's speed".to_owned()
        } else {
            format!("{ahead}'s speed over {behind}'s")
        }
    }

    /// Who is faster, by how much, in how many cases, and whether that is decided.
    fn who(&self, all: &Group, threshold: f64, other_machine: Option<&str>) -> String {
        let &Self { ahead, behind, .. } = self;
        let [wins, losses] = if ahead == 'A' { [all.slower, all.faster] } else { [all.faster, all.slower] };
        let begin = match (all.status, other_machine) {
            (_, Some(why)) => format!("Not decided: {}. {ahead} was", why.split(':').next().unwrap_or(why)),
            (Some(Status::Unsure), _) if all.interval.is_some_and(|(low, high)| low <= 1.0 && high >= 1.0) => {
                format!("Not decided: the noise is larger than the difference. {ahead} was")
            }
            (Some(Status::Unsure), _) => {
                format!("Not decided: the difference is too near the threshold of {threshold} %. {ahead} was")
            }
            (Some(Status::Same), _) if wins + losses > 0 => format!("Neither is faster on the whole: {ahead} is"),
            (Some(Status::Same), _) => format!("A and {} are equally fast: {ahead} is", ahead.max(behind)),
            _ => format!("{ahead} is"),
        };
        let (mean, range) = self.figures(all);
        let same = if all.same > 0 { format!(", {} the same", all.same) } else { String::new() };
        format!(
            "{begin} {} times as fast as {behind} ({range}) on {} that both ran: {wins} faster, {losses} slower{same}, \
             {} unsure",
            mean.trim_end_matches(" ?"),
            counted(all.cases, "case"),
            all.unsure
        )
    }
}

/// A group of all rows, those of each type, and those of each kind. A group without cases is left out.
fn grouped(rows: &[Row], group: impl Fn(&str, Vec<&Row>) -> Option<Group>) -> (Option<Group>, Vec<Group>, Vec<Group>) {
    let mut types: Vec<&str> = Vec::new();
    for row in rows {
        if !types.contains(&&*row.work.data_type) {
            types.push(&row.work.data_type);
        }
    }
    let of_type = |name: &&str| group(name, rows.iter().filter(|row| row.work.data_type == *name).collect());
    let of_kind = |name: &&str| group(name, rows.iter().filter(|row| row.group == *name).collect());
    let all = group("all", rows.iter().collect());
    (all, types.iter().filter_map(of_type).collect(), GROUPS.iter().filter_map(of_kind).collect())
}

fn shares(rows: &[&Row], run: usize) -> Vec<f64> {
    rows.iter().filter_map(|row| row.cells[run].as_ref()?.of_baseline).collect()
}

impl Group {
    fn new(name: &str, values: &[f64]) -> Option<Self> {
        Some(Self {
            name: name.to_owned(),
            cases: values.len(),
            mean: geometric_mean(values)?,
            range: (values.iter().copied().fold(f64::MAX, f64::min), values.iter().copied().fold(0.0, f64::max)),
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
        let count = |wanted| changes.iter().filter(|change| change.status == wanted).count();
        let interval =
            (geometric_mean(&of(|change| change.interval.0))?, geometric_mean(&of(|change| change.interval.1))?);
        // A run that has no baseline takes none from the other.
        let has_any = [0, run].map(|run| !shares(rows, run).is_empty());
        let is_known =
            |row: &&&Row| [0, run].into_iter().zip(has_any).all(|(run, any)| !any || !shares(&[row], run).is_empty());
        let known: Vec<&Row> = rows.iter().filter(is_known).copied().collect();
        Some(Self {
            interval: Some(interval),
            status: Some(if is_unsure { Status::Unsure } else { status(interval, threshold) }),
            faster: count(Status::Faster),
            slower: count(Status::Slower),
            same: count(Status::Same),
            unsure: count(Status::Unsure),
            of_baseline: [0, run].map(|run| geometric_mean(&shares(&known, run))).to_vec(),
            ..Self::new(name, &of(|change| change.speed_up))?
        })
    }

    /// A kind's first words.
    pub fn short_name(&self) -> &str {
        self.name.split(',').next().unwrap_or_default()
    }
}
