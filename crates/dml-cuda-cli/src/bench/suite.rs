//! `dml-cuda suite`: a folder of models that this runner and DxDispatch time, case by case.

pub mod cases;
pub mod checks;
pub mod manifest;
mod models;
mod onnx;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use clap::ValueEnum;
use dml_cuda::{BufferTensorDesc, OperatorDesc, ReverseSubsequencesDesc, TensorDataType};

use crate::model::npy;
use crate::out::say;
use crate::schema;
use crate::whole_file;
use cases::Case;
use manifest::{Entry, Manifest, Mode, Work};

/// Bytes of the plain work by whose rate floors are computed.
pub const LARGE_BASELINE: u64 = 512 << 20;

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
    fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Standard => "standard",
            Self::Full => "full",
        }
    }

    fn most_bytes(self) -> u64 {
        match self {
            Self::Quick => 64 << 20,
            Self::Standard => 512 << 20,
            Self::Full => 2 << 30,
        }
    }
}

/// The script that times the ONNX models.
const RUN_ONNX: &str = "run_onnx.py";

/// Sizes of the plain copies and fills that the cases are compared with.
const BASELINES: [u64; 7] = [1 << 20, 8 << 20, 64 << 20, 128 << 20, 256 << 20, 512 << 20, 1 << 30];

/// Writes a suite's folder, a new one or over an older suite.
pub fn write(folder: &Path, tier: Tier, with_onnx: bool) -> Result<ExitCode, String> {
    match older(folder)? {
        Some(manifest) => remove(folder, &manifest)?,
        None => fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?,
    }
    // An interrupted call leaves a suite of no cases, which the next call may replace.
    save_manifest(folder, &Manifest::new(tier.name(), Vec::new()))?;
    let save = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        whole_file::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))
    };
    let save_model = |name: &str, model: &serde_json::Value| {
        let text = serde_json::to_string_pretty(model).map_err(|error| error.to_string())?;
        save(&format!("{name}.json"), text.as_bytes())
    };

    let (mut entries, mut written) = (Vec::new(), BTreeSet::new());
    for case in cases::all().iter().filter(|case| belongs(case, tier)) {
        let name = file_name(case);
        let lengths = case.lengths();
        let lengths_file = match &case.desc {
            OperatorDesc::ReverseSubsequences(reverse) => Some(lengths_name(reverse)),
            _ => None,
        };
        if let Some(file) = lengths_file.as_ref().filter(|file| written.insert((*file).clone())) {
            let shape = [lengths.len() as u64];
            save(file, &npy::write(TensorDataType::UInt32, &shape, bytemuck::cast_slice(&lengths))?)?;
        }
        save_model(&name, &models::timed(&name, &case.desc, case.in_place, lengths_file.as_deref()))?;
        entries.push(entry(case, &lengths));
    }
    for size in BASELINES.into_iter().filter(|&size| size <= tier.most_bytes()) {
        let [copy, fill] = baselines(size);
        save_model(&copy.name, &models::copy(&copy.name, size))?;
        entries.extend([copy, fill]);
    }
    let mut manifest = Manifest::new(tier.name(), entries);
    for (name, desc) in checks::checks() {
        save_model(&name, &models::check(&name, &desc, checks::lengths_that_fit))?;
        manifest.checks.push(name);
    }
    for (name, desc) in checks::over_long() {
        save_model(&name, &models::check(&name, &desc, checks::counted_lengths))?;
        manifest.over_long.push(name);
    }
    manifest.lengths = written.into_iter().collect();
    if with_onnx {
        manifest.onnx = Some(onnx::models(tier));
        save(RUN_ONNX, include_bytes!("suite/run_onnx.py"))?;
    }
    save("run.sh", script(include_str!("suite/run.sh"), &manifest, "\n").as_bytes())?;
    save("run.ps1", script(include_str!("suite/run.ps1"), &manifest, "\r\n").as_bytes())?;
    save_manifest(folder, &manifest)?;
    let (cases, checks) = (manifest.cases.len(), manifest.outputs().count());
    say!("Suite '{}' written to '{}': {cases} models to time, {checks} to compare", manifest.id, folder.display())?;
    if let Some(onnx) = &manifest.onnx {
        let (cases, checks) = (onnx.cases.len(), onnx.checks.len());
        say!("{} makes {cases} ONNX models to time, {checks} to compare", folder.join(RUN_ONNX).display())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn save_manifest(folder: &Path, manifest: &Manifest) -> Result<(), String> {
    let text = serde_json::to_string_pretty(manifest).map_err(|error| error.to_string())?;
    let path = folder.join("manifest.json");
    whole_file::write_record(&path, text.as_bytes()).map_err(|error| format!("{}: {error}", path.display()))
}

/// What is timed with a cold L2, of the names that are wanted: every case, of any size and at odd addresses too. No folder holds it.
pub fn cold(wanted: impl Fn(&str) -> bool) -> Manifest {
    let cases = cases::all().into_iter().filter(|case| wanted(&file_name(case)) || wanted(&case.name));
    let cases = cases.map(|case| entry(&case, &case.lengths()));
    let baselines = baselines(LARGE_BASELINE).into_iter().filter(|entry| wanted(&entry.name));
    let mut entries: Vec<Entry> = cases.chain(baselines).collect();
    // Queued one by one, a launch alone would be timed with its way to the GPU.
    entries.iter_mut().for_each(|entry| entry.work.dispatches = entry.work.dispatches.max(10));
    Manifest::new("cold", entries)
}

/// The case that a name of `cold` means.
pub fn case_named(name: &str) -> Option<Case> {
    cases::all().into_iter().find(|case| file_name(case) == name)
}

fn entry(case: &Case, lengths: &[u32]) -> Entry {
    let mode = match case.mode() {
        "fill" => Mode::Fill,
        "copy" => Mode::Copy,
        _ => Mode::InPlace,
    };
    let (bytes, data_type) = (case.floor_bytes(lengths), case.data_type().to_owned());
    let work = Work { case: case.name.clone(), data_type, mode, bytes, dispatches: dispatches(bytes) };
    Entry { name: file_name(case), work }
}

/// A copy and a fill of memory of that size.
fn baselines(size: u64) -> [Entry; 2] {
    [(Mode::BaselineOfCopies, 2 * size), (Mode::BaselineOfFills, size)].map(|(mode, bytes)| {
        let (case, data_type) = (format!("{} MiB", size >> 20), "u32".to_owned());
        let name = format!("{}.{}mib", mode.name().replace(' ', "_"), size >> 20);
        Entry { name, work: Work { case, data_type, mode, bytes, dispatches: dispatches(bytes) } }
    })
}

/// The suite that a folder holds; none where the folder is new or empty.
fn older(folder: &Path) -> Result<Option<Manifest>, String> {
    let named = folder.display();
    let metadata = match fs::metadata(folder) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let ending = folder.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
            return match ending.as_deref() {
                Some("json" | "csv" | "html" | "htm" | "md" | "svg" | "txt" | "npy" | "bin" | "log") => {
                    Err(format!("{named} has a file's name, must be a folder"))
                }
                _ => Ok(None),
            };
        }
        Err(error) => return Err(format!("{named}: {error}")),
    };
    if !metadata.is_dir() {
        return Err(format!("{named} is a file, must be a folder"));
    }
    if fs::read_dir(folder).map_err(|error| format!("{named}: {error}"))?.next().is_none() {
        return Ok(None);
    }
    Manifest::read(folder)
        .map(Some)
        .map_err(|error| format!("{named} is not empty, must be new, or hold a suite ({error})"))
}

/// Removes the files that the manifest of an older suite names, and nothing else.
fn remove(folder: &Path, manifest: &Manifest) -> Result<(), String> {
    let models = manifest.cases.iter().map(|entry| &entry.name).chain(manifest.outputs());
    let script = manifest.onnx.as_ref().map(|_| RUN_ONNX.to_owned());
    let files = models.map(|name| format!("{name}.json")).chain(manifest.lengths.iter().cloned()).chain(script);
    // A name that leads elsewhere is none of a suite's.
    for file in files.filter(|file| !file.contains(['/', '\\', ':']) && file != "manifest.json") {
        let path = folder.join(file);
        let is_file = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file());
        if is_file && !schema::is_in(&path) {
            fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    Ok(())
}

/// Direct3D binds at multiples of 16 bytes, so that misaligned cases cannot be asked there.
fn belongs(case: &Case, tier: Tier) -> bool {
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
    format!("{operator}.{}.{}.{}", words.join("_"), case.data_type(), case.mode().replace(' ', "_"))
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

/// A script with the models put in: names of those that DirectML runs, with their dispatches, and of those to compare.
fn script(template: &str, manifest: &Manifest, newline: &str) -> String {
    let timed = manifest.cases.iter().filter(|entry| entry.work.mode.is_directmls());
    let timed: Vec<String> = timed.map(|entry| format!("{} {}", entry.name, entry.work.dispatches)).collect();
    let outputs: Vec<&str> = manifest.outputs().map(String::as_str).collect();
    let text = template.replace("@TIMED@", &timed.join("\n")).replace("@OUTPUTS@", &outputs.join("\n"));
    text.replace('\n', newline)
}
