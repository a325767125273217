//! Every kernel, on the host (`host`; a share, unless `EMULATE=all`) and on the GPU (`gpu`): the launches that can be selected for a
//! layout of the case table, also those that a dispatch would pass over for a faster one, for pointers at multiples of 16 and at the least
//! alignment that each takes, bit for bit against the oracle.

mod gpu;
mod host;

use std::collections::BTreeSet;
use std::io::Write;

use super::kernels::FAMILIES;
use super::select::Until;
use super::{GpuTarget, Launch};
use crate::common::cases::Case;
use crate::common::difference;
use crate::registry::Plan;

/// What runs a launch.
trait Machine {
    /// The bytes of the output after a launch on the case's inputs, with the big tensors `past` bytes past a multiple of 16.
    fn run(&mut self, case: &Case, launch: &Launch, past: u32) -> Result<Vec<u8>, String>;
}

/// What was run.
#[derive(Default)]
struct Tally {
    launches: u64,
    kernels: BTreeSet<String>,
}

impl std::iter::Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(tallies: I) -> Self {
        tallies.fold(Self::default(), |sum, tally| Self {
            launches: sum.launches + tally.launches,
            kernels: &sum.kernels | &tally.kernels,
        })
    }
}

impl Tally {
    /// Prints what was run.
    fn print(&self, machine: &str) {
        // Not println!: the harness hides what a passing test prints.
        let (launches, kernels) = (self.launches, self.kernels.len());
        let _ = writeln!(std::io::stderr(), "{launches} launches of {kernels} kernels are right on {machine}");
    }

    /// Prints what was run. Every entry point must have been.
    fn report(&self, machine: &str) {
        self.print(machine);
        let all = FAMILIES.iter().flat_map(|family| family.names());
        let missing: Vec<&str> = all.filter(|&name| !self.kernels.contains(name)).collect();
        assert!(missing.is_empty(), "kernels that no case launches: {missing:?}");
    }
}

/// A GPU, and which of the launches selected for it are wanted.
type Wanted = (GpuTarget, fn(&Launch) -> bool);

/// The launches of a case, each once.
fn launches(case: &Case, targets: &[Wanted]) -> Vec<Launch> {
    let plan = Plan::new(&case.desc).expect("the cases are valid");
    let mut found: Vec<Launch> = Vec::new();
    for (target, wanted) in targets {
        let selection = plan.select_until(target, Until::Last);
        let mode = if case.in_place { selection.in_place.expect("equal strides") } else { selection.out_of_place };
        for launch in mode.launches.into_iter().filter(wanted) {
            if !found.contains(&launch) {
                found.push(launch);
            }
        }
    }
    found
}

/// The launches of cases: all, or a share of them, in which every kernel has every size that selects it, packed and with
/// strides, with and without its optional inputs.
fn work<'a>(cases: impl Iterator<Item = &'a Case>, targets: &[Wanted], all: bool) -> Vec<(&'a Case, Vec<Launch>)> {
    let mut seen = BTreeSet::new();
    let of_case = |case: &'a Case| {
        let mut launches = launches(case, targets);
        let output = case.desc.output_tensor();
        let layout = (&output.sizes, output.strides.is_some(), case.inputs.len());
        launches.retain(|launch| all || seen.insert((launch.entry.name(), layout)));
        (case, launches)
    };
    cases.map(of_case).filter(|(_, launches)| !launches.is_empty()).collect()
}

/// Runs launches.
fn check<'a>(work: impl Iterator<Item = &'a (&'a Case, Vec<Launch>)>, machine: &mut impl Machine) -> Tally {
    let mut tally = Tally::default();
    for (case, launches) in work {
        let expected = case.expected();
        for launch in launches {
            let name = launch.entry.name().to_string_lossy().into_owned();
            // Aligned to all that a kernel may ask for, and to what this one asks for and no more.
            for past in [0, launch.alignment].into_iter().filter(|past| *past < 16) {
                let what = format!("{name}, pointers {past} bytes past a multiple of 16: {:?}", case.desc);
                let found = machine.run(case, launch, past).unwrap_or_else(|report| panic!("{what}: {report}"));
                if let Some(difference) = difference(&case.desc, &found, &expected) {
                    panic!("{what}: {difference}");
                }
                tally.launches += 1;
            }
            tally.kernels.insert(name);
        }
    }
    tally
}
