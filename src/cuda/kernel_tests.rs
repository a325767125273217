//! Runs every kernel, on the host (`host`) and on the GPU (`gpu`), and compares its output with the oracle bit for bit.
//!
//! For each layout of the case table it runs every launch that can be selected, also those that a dispatch would skip
//! for a faster one. Each runs with pointers at multiples of 16 and at the smallest alignment that the launch accepts.
//! On the host, only a share of the launches runs, and with `EMULATE=all` that share and every small launch.

mod gpu;
mod host;

use std::collections::BTreeSet;
use std::io::Write;

use super::kernels::FAMILIES;
use super::{GpuTarget, Launch, Placement};
use crate::dml_cuda_testing::cases::Case;
use crate::dml_cuda_testing::difference;
use crate::operator_plan::OperatorPlan;
use crate::OperatorDesc;

/// Something that can run a launch.
trait Machine {
    /// Runs a launch on the case's inputs and returns the output's bytes. The first input and the output begin `past`
    /// bytes past a multiple of 16.
    fn run(&mut self, case: &Case, launch: &Launch, past: u32) -> Result<Vec<u8>, String>;
}

/// Prints how much was run. If it was `everything`, checks that it had every entry point.
fn report(run: &[&'static str], machine: &str, everything: bool) {
    let kernels: BTreeSet<&str> = run.iter().copied().collect();
    // Not println!: the harness hides what a passing test prints.
    let (launches, count) = (run.len(), kernels.len());
    let _ = writeln!(
        std::io::stderr(),
        "{launches} launches of {count} kernels are right on {machine}"
    );
    let all = FAMILIES
        .iter()
        .flat_map(|family| family.all())
        .map(|entry| entry.name);
    let missing: Vec<&str> = all.filter(|name| !kernels.contains(name)).collect();
    assert!(
        !everything || missing.is_empty(),
        "kernels that no case launches: {missing:?}"
    );
}

/// A GPU, and which of the launches selected for it to run.
type Wanted = (GpuTarget, fn(&Launch) -> bool);

/// The launches of a case, without duplicates.
fn launches(case: &Case, targets: &[Wanted]) -> Vec<Launch> {
    let plan = OperatorPlan::new(&case.desc).expect("the cases are valid");
    let mut distinct: Vec<Launch> = Vec::new();
    for (target, wanted) in targets {
        let launches = plan
            .candidates(target, Placement::new(case.in_place))
            .into_iter()
            .map(|candidate| candidate.launch);
        for launch in launches.filter(wanted) {
            if !distinct.contains(&launch) {
                distinct.push(launch);
            }
        }
    }
    distinct
}

/// Launches of more threads take the emulator most of its time.
const SMALL: u32 = 1 << 14;

/// A share of the launches of cases. In it every kernel has every small size that selects it, and one large launch,
/// both packed and with strides. `more` says which other launches are in it, by whether they are small.
fn work<'a>(
    cases: impl Iterator<Item = &'a Case>,
    targets: &[Wanted],
    more: fn(bool) -> bool,
) -> Vec<(&'a Case, Vec<Launch>)> {
    let mut seen = BTreeSet::new();
    let chosen = |case: &'a Case| {
        let mut launches = launches(case, targets);
        let output = case.desc.output_tensor();
        launches.retain(|launch| {
            let is_small = launch.grid.blocks * launch.grid.threads <= SMALL;
            let sizes = is_small.then_some(&output.sizes);
            // What these kernels do depends on the axis, and on which lengths vary.
            let how = match &case.desc {
                OperatorDesc::ReverseSubsequences(desc)
                    if launch.entry.name.contains("transposed") =>
                {
                    let strides = desc.sequence_lengths_tensor.strides.iter().flatten();
                    Some((
                        desc.axis,
                        strides.map(|&stride| stride != 0).collect::<Vec<bool>>(),
                    ))
                }
                _ => None,
            };
            let inserted = seen.insert((
                launch.entry.name,
                sizes,
                output.strides.is_some(),
                case.in_place,
                case.inputs.len(),
                how,
            ));
            inserted || more(is_small)
        });
        (case, launches)
    };
    cases
        .map(chosen)
        .filter(|(_, launches)| !launches.is_empty())
        .collect()
}

/// Runs launches and compares their outputs with what the cases expect. Returns the kernel of each run.
fn check<'a>(
    work: impl Iterator<Item = &'a (&'a Case, Vec<Launch>)>,
    machine: &mut impl Machine,
) -> Vec<&'static str> {
    let mut run = Vec::new();
    for (case, launches) in work {
        let expected = case.expected();
        for launch in launches {
            let name = launch.entry.name;
            // First with the largest alignment that a kernel may need, then with exactly the one that this launch
            // needs.
            for past in [0, launch.alignment].into_iter().filter(|past| *past < 16) {
                let what = format!(
                    "{name}, pointers {past} bytes past a multiple of 16: {:?}",
                    case.desc
                );
                let found = machine
                    .run(case, launch, past)
                    .unwrap_or_else(|report| panic!("{what}: {report}"));
                if let Some(difference) = difference(&case.desc, &found, &expected) {
                    panic!("{what}: {difference}");
                }
                run.push(name);
            }
        }
    }
    run
}
