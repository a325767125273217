//! `dml-cuda`: runs DxDispatch's JSON models that use FILL_VALUE_SEQUENCE and REVERSE_SUBSEQUENCES.

mod command;
mod dispatchable;
mod execute;
mod json;
mod model;
mod npy;
mod out;
mod resource;
mod timing;
mod validate;
mod value;
mod whole_file;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use dml_cuda::{Device, DeviceError, Explanation, FeatureLevel, Operator};
use out::say;

/// Runs a DxDispatch model that uses DML_OPERATOR_FILL_VALUE_SEQUENCE and DML_OPERATOR_REVERSE_SUBSEQUENCES,
/// on an NVIDIA GPU or on the CPU.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
pub struct Options {
    /// The model, a JSON file
    #[arg(value_name = "MODEL.json", required_unless_present = "show_adapters")]
    model: Option<PathBuf>,

    /// Device: a substring of a GPU's name, an ordinal, or `cpu` [default: the first GPU, or the CPU]
    #[arg(short, long)]
    adapter: Option<String>,

    /// Show the devices there are
    #[arg(short, long = "show_adapters", alias = "show-adapters")]
    show_adapters: bool,

    /// Iterations of the bind/dispatch/wait loop
    #[arg(short = 'i', long = "dispatch_iterations", alias = "dispatch-iterations", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    dispatch_iterations: u32,

    /// Dispatches in each iteration
    #[arg(short = 'r', long = "dispatch_repeat", alias = "dispatch-repeat", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    dispatch_repeat: u32,

    /// Milliseconds to run for; overrides the iterations
    #[arg(short = 't', long = "milliseconds_to_run", alias = "milliseconds-to-run")]
    milliseconds_to_run: Option<u32>,

    /// At most so many first samples are left out of the statistics
    #[arg(short = 'w', long = "warmup_samples", alias = "warmup-samples", default_value_t = 1)]
    warmup_samples: u32,

    /// 0: hot medians; 1: also initialization and cold timings; 2: also every iteration
    #[arg(short = 'v', long = "timing_verbosity", alias = "timing-verbosity", default_value_t = 0)]
    timing_verbosity: u32,

    /// Only say of each dispatchable whether DirectML's rules accept it; nothing is allocated or run
    #[arg(long)]
    validate: bool,

    /// Only say of each dispatchable how it would run: merged shape, kernels, grids, bytes, and why no faster kernel
    #[arg(long, conflicts_with = "validate")]
    explain: bool,

    /// With --explain, a GPU that need not be there: t4, l4, a100, h100, b200, or shared=KIB,sm=COUNT[,clusters]
    #[cfg(feature = "cuda")]
    #[arg(long, requires = "explain", conflicts_with = "adapter")]
    target: Option<dml_cuda::GpuTarget>,

    /// With --validate, the version of DirectML that answers, such as 1.8.0; or `all`: which recorded versions accept
    #[arg(long, value_name = "VERSION", requires = "validate", conflicts_with = "feature_level")]
    directml: Option<validate::Versions>,

    /// The feature level whose rules apply, such as 5_0
    #[arg(long = "feature-level", alias = "feature_level", value_name = "LEVEL", default_value = FeatureLevel::HIGHEST.name())]
    feature_level: FeatureLevel,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let outcome = if options.show_adapters { show_adapters() } else { run(&options) };
    // What was printed must be seen before what went wrong.
    let _ = std::io::stdout().flush();
    outcome.unwrap_or_else(|error| {
        eprintln!("ERROR: {error}");
        ExitCode::FAILURE
    })
}

/// Reads a model, which may come through a pipe, but must end.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    const MOST: u64 = 256 << 20;
    let mut text = Vec::new();
    match std::fs::File::open(path)?.take(MOST + 1).read_to_end(&mut text)? as u64 {
        ..=MOST => Ok(text),
        _ => Err(std::io::Error::other("it is longer than 256 MiB; large data belongs in .npy files")),
    }
}

fn run(options: &Options) -> Result<ExitCode, String> {
    let Some(path) = &options.model else {
        return Err("no model is given".to_owned());
    };
    let in_file = |error: String| format!("{}: {error}", path.display());
    let text = read(path).map_err(|error| in_file(format!("the model cannot be read: {error}")))?;
    let text = String::from_utf8(text).map_err(|error| in_file(format!("the model is not UTF-8 text: {error}")))?;
    // Files written on Windows may begin with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let document = json::parse(text).map_err(in_file)?;
    let level = options.feature_level;
    if options.validate {
        return match &options.directml {
            None => validate::at_level(&document, level),
            Some(validate::Versions::One(version)) => validate::as_version(&document, version),
            Some(validate::Versions::All) => validate::by_version(&document),
        }
        .map_err(in_file);
    }
    let directory = path.parent().unwrap_or(Path::new(""));
    if options.explain {
        #[cfg(feature = "cuda")]
        if let Some(target) = options.target {
            let device = Device::cpu().with_feature_level(level);
            let plan = |operator: &Operator| Ok(operator.explain(&target));
            return explain(&document, &device, &target.to_string(), plan).map_err(in_file);
        }
        let device = choose_device(options.adapter.as_deref())?.with_feature_level(level);
        let plan =
            |operator: &Operator| Ok(device.compile_operator(operator).map_err(|error| error.to_string())?.explain());
        return explain(&document, &device, device.name(), plan).map_err(in_file);
    }
    let model = model::read(&document, directory).map_err(in_file)?;
    drop(document);
    let device = choose_device(options.adapter.as_deref())?.with_feature_level(level);
    say!("Running on '{}'", device.name())?;
    execute::Executor::run(model, &device, options)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the plan of each dispatchable, or the rules it breaks.
fn explain(
    document: &json::Document,
    device: &Device,
    target: &str,
    plan: impl Fn(&Operator) -> Result<Explanation, String>,
) -> Result<ExitCode, String> {
    let mut all_accepted = true;
    let mut text = format!("Planned for '{target}'\n");
    for (name, desc) in model::read_dispatchables(document)? {
        text.push_str(&format!("Dispatchable '{name}'\n"));
        let operator = desc.and_then(|desc| device.create_operator(desc).map_err(|errors| errors.to_string()));
        let explained = operator.and_then(|operator| plan(&operator)).map(|explanation| explanation.to_string());
        all_accepted &= explained.is_ok();
        let lines = explained.unwrap_or_else(|error| error);
        lines.lines().for_each(|line| text.push_str(&format!("  {line}\n")));
    }
    out::with(|out| out.write_all(text.as_bytes()))?;
    Ok(if all_accepted { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn choose_device(adapter: Option<&str>) -> Result<Device, String> {
    let open = |ordinal| Device::cuda(ordinal).map_err(|error| error.to_string());
    match adapter {
        None => match Device::cuda_status() {
            Ok(0) | Err(DeviceError::NoDriver | DeviceError::NotCompiled) => Ok(Device::cpu()),
            Ok(_) => open(0),
            Err(error) => {
                eprintln!("WARNING: {error}; running on the CPU");
                Ok(Device::cpu())
            }
        },
        Some(name) if name.eq_ignore_ascii_case("cpu") => Ok(Device::cpu()),
        Some(name) => match name.parse() {
            Ok(ordinal) => open(ordinal),
            Err(_) => {
                let names = adapter_names()?;
                match names.iter().position(|found| found.to_lowercase().contains(&name.to_lowercase())) {
                    Some(ordinal) => open(ordinal),
                    None => Err(format!(
                        "the adapter is '{name}', must be part of the name of a GPU ({}), an ordinal, or cpu",
                        list(&names)
                    )),
                }
            }
        },
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        "of which there are none".to_owned()
    } else {
        names.join(", ")
    }
}

#[cfg(feature = "cuda")]
fn adapter_names() -> Result<Vec<String>, String> {
    let adapters = Device::cuda_adapters().map_err(|error| error.to_string())?;
    Ok(adapters.into_iter().map(|adapter| adapter.name).collect())
}

#[cfg(not(feature = "cuda"))]
fn adapter_names() -> Result<Vec<String>, String> {
    Ok(Vec::new())
}

fn show_adapters() -> Result<ExitCode, String> {
    #[cfg(feature = "cuda")]
    for adapter in Device::cuda_adapters().map_err(|error| error.to_string())? {
        let properties = adapter.properties;
        let (major, minor) = properties.compute_capability;
        say!("{}", adapter.name)?;
        say!("-Ordinal: {}", adapter.ordinal)?;
        say!("-Driver: CUDA {}.{}", properties.driver_version / 1000, properties.driver_version % 1000 / 10)?;
        say!("-Compute Capability: {major}.{minor}")?;
        say!("-Multiprocessors: {}", properties.multiprocessors)?;
        say!("-Dedicated Adapter Memory: {:.2} GB\n", properties.total_memory as f64 / f64::from(1 << 30))?;
    }
    say!("CPU")?;
    say!("-Hardware: false")?;
    Ok(ExitCode::SUCCESS)
}
