//! The cases of a bench, and `dml-cuda suite`, which writes them as models.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use clap::ValueEnum;
use dml_cuda::{BufferTensorDesc, OperatorDesc, ReverseSubsequencesDesc, TensorDataType};

use super::cases::{self, Case};
use super::work::{Mode, Work};
use super::{checks, models, onnx};
use crate::model::npy;
use crate::out::say;

/// Bytes of the plain work by whose rate floors are computed.
pub const LARGE_BASELINE: u64 = 512 << 20;

/// Sizes of the plain copies and fills that the cases are compared with.
const BASELINES: [u64; 7] = [1 << 20, 8 << 20, 64 << 20, 128 << 20, 256 << 20, LARGE_BASELINE, 1 << 30];

/// How large the tensors of a suite may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Tier {
    /// Tensors of up to 64 MiB
    Quick,
    /// Tensors of up to 512 MiB
    Standard,
    /// Tensors of up to 2 GiB, the most that Direct3D 12 guarantees
    Full,
}

impl Tier {
    /// Tier and release, which tell the cases.
    pub fn id(self) -> String {
        let name = self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        format!("{name} {}", env!("CARGO_PKG_VERSION"))
    }

    fn most_bytes(self) -> u64 {
        match self {
            Self::Quick => 64 << 20,
            Self::Standard => 512 << 20,
            Self::Full => 2 << 30,
        }
    }
}

/// One case for a runner. Its model and its dispatchable have its name.
pub struct Job {
    pub name: String,
    pub work: Work,
    pub task: Task,
}

pub enum Task {
    /// Time a case.
    Time(Box<Case>),
    /// Time a plain copy or fill of so many bytes.
    Baseline(u64),
    /// Write the output of a small operator.
    Output {
        desc: OperatorDesc,
        length: fn(u32, u32) -> u32,
        expected_to_differ: bool,
    },
    Onnx(onnx::Model),
}

impl Job {
    pub fn of_case(case: Case) -> Self {
        let bytes = case.floor_bytes(&case.lengths());
        let (data_type, mode) = (case.data_type().to_owned(), case.mode());
        let work = Work { case: case.name.clone(), data_type, mode, bytes, dispatches: dispatches(bytes) };
        Self { name: file_name(&case), work, task: Task::Time(Box::new(case)) }
    }

    /// Whether its output is compared instead of its time.
    pub fn is_output(&self) -> bool {
        match &self.task {
            Task::Output { .. } => true,
            Task::Onnx(model) => model.check,
            _ => false,
        }
    }

    pub fn is_expected_to_differ(&self) -> bool {
        matches!(self.task, Task::Output { expected_to_differ: true, .. })
    }

    /// The model and the files that it reads: names and bytes.
    pub fn files(&self) -> Result<Vec<(String, Vec<u8>)>, String> {
        let mut files = Vec::new();
        let model = match &self.task {
            Task::Time(case) => {
                let lengths = match &case.desc {
                    OperatorDesc::ReverseSubsequences(desc) => Some(lengths_name(desc)),
                    _ => None,
                };
                if let Some(name) = &lengths {
                    let lengths = case.lengths();
                    let bytes = bytemuck::cast_slice(&lengths);
                    files.push((name.clone(), npy::write(TensorDataType::UInt32, &[lengths.len() as u64], bytes)?));
                }
                models::timed(&self.name, &case.desc, case.in_place, lengths.as_deref())
            }
            Task::Baseline(bytes) if self.work.mode.is_directmls() => models::copy(&self.name, *bytes),
            Task::Output { desc, length, .. } => models::check(&self.name, desc, *length),
            Task::Baseline(_) | Task::Onnx(_) => return Ok(files),
        };
        let text = serde_json::to_string_pretty(&model).map_err(|error| error.to_string())?;
        files.push((format!("{}.json", self.name), text.into_bytes()));
        Ok(files)
    }
}

/// Tells by the name of a case or of its model whether it is asked for. Others cost nothing: to count bytes takes long.
pub type Wanted<'a> = &'a dyn Fn(&str) -> bool;

pub fn is_wanted(case: &Case, wanted: Wanted) -> bool {
    wanted(&file_name(case)) || wanted(&case.name)
}

/// The cases of a tier, baselines, then small models whose outputs are compared.
pub fn jobs(tier: Tier, wanted: Wanted) -> Vec<Job> {
    let cases = cases::all().into_iter().filter(|case| belongs(case, tier) && is_wanted(case, wanted));
    let cases = cases.map(Job::of_case);
    let baselines = BASELINES.into_iter().filter(|&size| size <= tier.most_bytes()).flat_map(baselines);
    let of = |(name, desc): (String, OperatorDesc), length, expected_to_differ| {
        let work = Work { case: name.clone(), data_type: String::new(), mode: Mode::Copy, bytes: 1, dispatches: 1 };
        Job { name, work, task: Task::Output { desc, length, expected_to_differ } }
    };
    let checks = checks::checks().into_iter().map(|check| of(check, checks::lengths_that_fit, false));
    let over_long = checks::over_long().into_iter().map(|check| of(check, checks::counted_lengths, true));
    let others = baselines.chain(checks).chain(over_long);
    cases.chain(others.filter(|job| wanted(&job.name) || wanted(&job.work.case))).collect()
}

/// Every case, of any size and at odd addresses too, for a cold L2.
pub fn cold_jobs(wanted: Wanted) -> Vec<Job> {
    let cases = cases::all().into_iter().filter(|case| is_wanted(case, wanted)).map(Job::of_case);
    let baselines = baselines(LARGE_BASELINE).into_iter().filter(|job| wanted(&job.name));
    let mut jobs: Vec<Job> = cases.chain(baselines).collect();
    // Queued one by one, a launch alone would be timed with its way to the GPU.
    jobs.iter_mut().for_each(|job| job.work.dispatches = job.work.dispatches.max(10));
    jobs
}

/// The case of a name.
pub fn case_named(name: &str) -> Option<Case> {
    cases::all().into_iter().find(|case| file_name(case) == name)
}

/// A copy and a fill of memory of that size.
fn baselines(size: u64) -> [Job; 2] {
    [(Mode::BaselineOfCopies, 2 * size), (Mode::BaselineOfFills, size)].map(|(mode, bytes)| {
        let (case, data_type) = (format!("{} MiB", size >> 20), "u32".to_owned());
        let name = format!("{}.{}mib", mode.name().replace(' ', "_"), size >> 20);
        let work = Work { case, data_type, mode, bytes, dispatches: dispatches(bytes) };
        Job { name, work, task: Task::Baseline(size) }
    })
}

/// Writes the models of a tier into a new folder.
pub fn write(folder: &Path, tier: Tier) -> Result<ExitCode, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    if folder.exists() && fs::read_dir(folder).map_err(failed)?.next().is_some() {
        return Err(format!("{} is not empty, must be new", folder.display()));
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
    say!("Suite '{}' written to '{}': {models} models", tier.id(), folder.display())?;
    Ok(ExitCode::SUCCESS)
}

/// Direct3D binds at multiples of 16 bytes, so that no suite has misaligned cases.
pub fn belongs(case: &Case, tier: Tier) -> bool {
    let bytes = |tensor: &BufferTensorDesc| tensor.total_tensor_size_in_bytes;
    let largest = match &case.desc {
        OperatorDesc::ReverseSubsequences(reverse) => bytes(&reverse.input_tensor).max(bytes(&reverse.output_tensor)),
        desc => bytes(desc.output_tensor()),
    };
    case.misaligned == 0 && largest <= tier.most_bytes()
}

/// As many dispatches in an iteration as take 2 ms on a GPU whose memory moves 2 TB/s.
fn dispatches(bytes: u64) -> u32 {
    let microseconds = 2.0 + bytes as f64 / 2e6;
    (2000.0 / microseconds).ceil().clamp(1.0, 1000.0) as u32
}

/// `reverse.inner_16384x8192.f32.copy`
fn file_name(case: &Case) -> String {
    let operator = if case.is_fill() { "fill" } else { "reverse" };
    // Commas between sizes, in brackets, become `x`.
    let (words, sizes) = case.name.split_once('[').unwrap_or((&case.name, ""));
    let name = format!("{words} {}", sizes.replace(", ", "x")).replace('*', "n").replace('^', "p");
    let words = name.split(|character: char| !character.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let words: Vec<&str> = words.skip_while(|word| *word == operator).collect();
    format!("{operator}.{}.{}.{}", words.join("_"), case.data_type(), case.mode().name().replace(' ', "_"))
}

/// `lengths.16384x1.8192.npy`, by the sizes of their tensor and the axis size.
fn lengths_name(desc: &ReverseSubsequencesDesc) -> String {
    let lengths = &desc.sequence_lengths_tensor;
    let strides = lengths.strides.as_deref().unwrap_or(&[]);
    let sizes = lengths.sizes.iter().enumerate().map(|(d, size)| match strides.get(d) {
        Some(0) if *size > 1 => format!("{size}r"),
        _ => size.to_string(),
    });
    let sizes: Vec<String> = sizes.collect();
    format!("lengths.{}.{}.npy", sizes.join("x"), desc.input_tensor.sizes[desc.axis as usize])
}

#[cfg(all(test, in_repository))]
mod tests {
    use super::*;
    use crate::bench::run::Run;

    /// Runs with a cold L2 are compared with what an older bench recorded.
    #[test]
    fn an_older_record_has_the_cases_of_a_cold_run() {
        let record = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/record/nvidia-h200/2026-11-22.json");
        let record = Run::read(Path::new(record)).expect("a run");
        let cold = cold_jobs(&|_| true);
        let is_missing = |work: &Work| {
            let same = |other: &Work| other.key() == work.key() && other.bytes == work.bytes;
            !cold.iter().any(|job| same(&job.work))
        };
        let missing = record.cases.iter().map(|timed| &timed.work).filter(|work| is_missing(work)).map(Work::name);
        assert_eq!(missing.collect::<Vec<_>>(), Vec::<String>::new());
        assert_eq!(cold.len(), record.cases.len() + 2, "and a copy and a fill of 512 MiB");
        for job in &cold[..record.cases.len()] {
            let case = case_named(&job.name).expect("a case");
            let named = (case.name.as_str(), case.data_type(), case.mode());
            assert_eq!(named, (job.work.case.as_str(), job.work.data_type.as_str(), job.work.mode));
        }
    }

    /// A row of a comparison is equal work: ONNX's lengths take 8 bytes each, but count as the suite's 4.
    #[test]
    fn onnx_models_do_the_work_of_the_suites_models() {
        let (jobs, models) = (jobs(Tier::Quick, &|_| true), onnx::jobs(Tier::Quick, &|_| true));
        let mut shared = 0;
        for model in models.iter().filter(|job| !job.is_output()) {
            if let Some(job) = jobs.iter().find(|job| job.work.key() == model.work.key()) {
                assert_eq!((&job.work.bytes, &job.name), (&model.work.bytes, &model.name));
                shared += 1;
            }
        }
        let outputs = models.iter().filter(|job| job.is_output()).count();
        assert_eq!((shared, models.len() - outputs, outputs), (17, 32, 36));
        let has_features = |job: &&Job| matches!(&job.task, Task::Onnx(model) if model.has_features());
        let twins = models.iter().filter(|job| job.work.case.starts_with("one feature"));
        assert!(twins.clone().count() == 5 && !twins.clone().any(|job| has_features(&job)));
        assert!(models.iter().filter(has_features).count() > 12);
    }
}
