//! The cases of a bench, and `dml-cuda suite`, which writes them as models.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use super::cases::{self, Case};
use super::checks;
use super::job::Job;
use super::work::LARGE_BASELINE;
use crate::options::Tier;
use crate::out::{say, shown_path};

/// Sizes of the plain copies and fills that the cases are compared with.
const BASELINES: [u64; 7] = [1 << 20, 8 << 20, 64 << 20, 128 << 20, 256 << 20, LARGE_BASELINE, 1 << 30];

/// Identifies the cases: version and tier.
pub fn id(tier: Option<Tier>) -> String {
    let name = tier.map_or("cold".to_owned(), |tier| format!("{tier:?}").to_lowercase());
    format!("{name} {}", env!("CARGO_PKG_VERSION"))
}

/// Whether a name is one of those that are asked for.
pub type Wanted<'a> = &'a dyn Fn(&str) -> bool;

/// Whether a case or its model is asked for. Other cases cost nothing: to count bytes takes long.
pub fn is_wanted(case: &Case, only: Wanted) -> bool {
    only(&case.file_name()) || only(&case.name)
}

/// Baselines, the cases of a tier, small models whose outputs are compared, and baselines again: they tell whether the
/// machine stayed the same.
pub fn jobs(tier: Tier, only: Wanted) -> Vec<Job> {
    let cases = cases::all().into_iter().filter(|case| belongs(case, tier) && is_wanted(case, only));
    let case = |job: &Job| job.work.as_ref().is_some_and(|work| only(&work.case));
    let named = |job: &Job| only(&job.name) || case(job);
    let sizes = || BASELINES.into_iter().filter(|&size| size <= tier as u64);
    let baselines = || sizes().flat_map(Job::baselines).filter(named);
    let checks = checks::jobs().into_iter().filter(named);
    baselines().chain(cases.map(Job::of_case)).chain(checks).chain(baselines()).collect()
}

/// Every case, of any size and at odd addresses too, for a cold L2.
pub fn cold_jobs(only: Wanted) -> Vec<Job> {
    let cases = cases::all().into_iter().filter(|case| is_wanted(case, only)).map(Job::of_case);
    let baselines = || Job::baselines(LARGE_BASELINE).into_iter().filter(|job| only(&job.name));
    let mut jobs: Vec<Job> = baselines().chain(cases).chain(baselines()).collect();
    // Queued one by one, a launch alone would be timed with its way to the GPU.
    jobs.iter_mut().for_each(|job| job.dispatches = job.dispatches.max(10));
    jobs
}

/// The case of a name.
pub fn case_named(name: &str) -> Option<Case> {
    cases::all().into_iter().find(|case| case.file_name() == name)
}

/// Writes the models of a tier into a new folder.
pub fn write(folder: &Path, tier: Tier) -> Result<ExitCode, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", shown_path(folder));
    if folder.exists() && fs::read_dir(folder).map_err(failed)?.next().is_some() {
        return Err(format!("{} is not empty, must be new", shown_path(folder)));
    }
    fs::create_dir_all(folder).map_err(failed)?;
    let mut written = BTreeSet::new();
    for job in jobs(tier, &|_| true) {
        for (name, bytes) in job.files()? {
            if written.insert(name.clone()) {
                fs::write(folder.join(&name), bytes).map_err(failed)?;
            }
        }
    }
    let models = written.iter().filter(|name| name.ends_with(".json")).count();
    say!("Suite '{}' written to '{}': {models} models", id(Some(tier)), shown_path(folder))?;
    Ok(ExitCode::SUCCESS)
}

/// Direct3D binds at multiples of 16 bytes, so that no suite has misaligned cases. Outputs are as large as inputs.
pub fn belongs(case: &Case, tier: Tier) -> bool {
    case.misaligned == 0 && case.desc.output_tensor().total_tensor_size_in_bytes <= tier as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::run::Run;
    use crate::bench::work::Work;

    /// Runs with a cold L2 are compared with what an older bench recorded.
    #[test]
    fn an_older_record_has_the_cases_of_a_cold_run() {
        let records = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/record"));
        if !records.is_dir() {
            return; // The published crate leaves them out.
        }
        let record = Run::read(&records.join("nvidia-h200/2026-11-22.json")).expect("a run");
        let cold = cold_jobs(&|_| true);
        let is_missing = |work: &Work| {
            let same = |other: &Work| other.name() == work.name() && other.bytes == work.bytes;
            !cold.iter().any(|job| job.work.as_ref().is_some_and(same))
        };
        let missing = record.cases.iter().map(|timed| &timed.work).filter(|work| is_missing(work)).map(Work::name);
        assert_eq!(missing.collect::<Vec<_>>(), Vec::<String>::new());
        assert_eq!(cold.len(), record.cases.len() + 4, "and a copy and a fill of 512 MiB, first and last");
        for job in &cold[2..record.cases.len() + 2] {
            let case = case_named(&job.name).expect("a case");
            let named = (&case.name, &case.data_type(), case.mode());
            let work = job.work.as_ref().expect("a case has work");
            assert_eq!(named, (&work.case, &work.data_type, work.mode));
        }
    }
}
