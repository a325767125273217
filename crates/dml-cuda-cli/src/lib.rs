//! The runner `dml-cuda` as a library. [`main`] is the program. The fuzzer uses [`model`].

mod bench;
mod completions;
#[doc(hidden)]
pub mod model;
mod options;
mod out;
mod run;
mod schema;
mod whole_file;

use std::path::Path;
use std::process::ExitCode;

use dml_cuda::{Device, DeviceError, Explanation, Operator};
use serde_json::json;

use bench::{baseline, kernel, report, suite, timing};
use model::json;
use options::{Command, Format, Options, Versions};
use out::{complain, say, shown};
use run::{events, execute, validate};

/// Runs the command line and returns the exit code.
pub fn main() -> ExitCode {
    let mut options = match Options::read() {
        Ok(options) => options,
        // Printing an error may fail silently. Printing help may not.
        Err(error) if error.use_stderr() => error.exit(),
        Err(help) => return ended(out::with(|_| help.print()).map(|()| ExitCode::SUCCESS)),
    };
    let outcome = match options.command.take() {
        Some(command) => subcommand(command),
        None => run_model(&options),
    };
    ended(outcome)
}

fn ended(outcome: Result<ExitCode, String>) -> ExitCode {
    outcome.unwrap_or_else(|error| {
        complain!("ERROR: {error}");
        ExitCode::FAILURE
    })
}

fn subcommand(command: Command) -> Result<ExitCode, String> {
    match command {
        Command::Suite { folder, tier } => suite::write(&folder, tier),
        Command::Bench(options) => timing::run(&options),
        Command::Report(options) => report::report(&options),
        Command::Kernel { name, repeated } => {
            kernel::time(&name, &repeated, &choose_device(repeated.adapter.as_deref())?)
        }
        Command::Baseline { work, bytes, repeated } => {
            baseline::time(work, bytes, &repeated, &choose_device(repeated.adapter.as_deref())?)
        }
        Command::Completions { shell } => printed(completions::script(shell).as_bytes()),
        Command::Man { command } => printed(&completions::page(command.as_deref())?),
    }
}

fn printed(text: &[u8]) -> Result<ExitCode, String> {
    out::with(|out| out.write_all(text))?;
    Ok(ExitCode::SUCCESS)
}

/// Reads a model. It may come through a pipe, but not without end.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    whole_file::read(std::fs::File::open(path)?, "; large data belongs in .npy files")
}

fn run_model(options: &Options) -> Result<ExitCode, String> {
    for option in options.ignored.given() {
        complain!("NOTE: --{option} has no meaning here");
    }
    for more in options.ignored_models() {
        complain!("NOTE: one model a run: {} is ignored", shown(&more.to_string_lossy()));
    }
    if options.show_dependencies {
        show_dependencies(options.format)?;
    }
    if options.show_adapters {
        show_adapters(options.format)?;
    }
    let Some(path) = options.model_path() else {
        let shown = options.show_adapters || options.show_dependencies;
        return if shown { Ok(ExitCode::SUCCESS) } else { Err("no model is given".to_owned()) };
    };
    let found =
        options.input_path.as_ref().map(|folder| folder.join(path)).filter(|found| !path.exists() && found.exists());
    let path = found.as_deref().unwrap_or(path);
    let in_file = |error: String| format!("{}: {error}", shown(&path.to_string_lossy()));
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("onnx")) {
        let where_to = "which this runner does not run: ONNX Runtime does, with libdml_cuda.so (docs/onnxruntime.md)";
        return Err(in_file(format!("it is an ONNX model, {where_to}")));
    }
    let text = read(path).map_err(|error| {
        let meant =
            path.to_str().filter(|_| error.kind() == std::io::ErrorKind::NotFound).and_then(options::suggestion);
        in_file(format!(
            "the model cannot be read: {error}{}",
            meant.map(|meant| format!("; {meant}")).unwrap_or_default()
        ))
    })?;
    let text = String::from_utf8(text).map_err(|error| in_file(format!("the model is not UTF-8 text: {error}")))?;
    // Files written on Windows may begin with a byte order mark.
    let without_mark = text.strip_prefix('\u{feff}');
    let document = json::parse(without_mark.unwrap_or(&text)).map_err(in_file)?;
    let level = options.feature_level;
    let folder = options.input_path.as_deref().or(path.parent()).unwrap_or(Path::new(""));
    // Verdicts need only the dispatchables, but --strict looks at all.
    let model = if options.strict || !(options.validate || options.explain) {
        Some(model::read(&document, path, folder).map_err(in_file)?)
    } else {
        model::read_dispatchables(&document).map_err(in_file)?;
        None
    };
    if options.strict {
        if without_mark.is_some() {
            document.refuse("line 1: the document begins with a byte order mark, must begin with its text".to_owned());
        }
        refuse_paths(&document, path, options);
    }
    tell_findings(&document, options.strict, in_file)?;
    if options.validate {
        return match &options.directml {
            None => validate::at_level(&document, level, options.format),
            Some(Versions::One(version)) => validate::as_version(&document, version, options.format),
            Some(Versions::All) => validate::by_version(&document, options.format),
        }
        .map_err(in_file);
    }
    if options.explain {
        if let Some(target) = options.target {
            let device = Device::cpu().with_feature_level(level);
            let plan = |operator: &Operator| Ok(operator.explain(&target));
            return explain(&document, &device, &target.to_string(), options.format, plan).map_err(in_file);
        }
        let device = choose_device(options.adapter.as_deref())?.with_feature_level(level);
        let plan =
            |operator: &Operator| Ok(device.compile_operator(operator).map_err(|error| error.to_string())?.explain());
        return explain(&document, &device, device.name(), options.format, plan).map_err(in_file);
    }
    let Some(model) = model else { return Ok(ExitCode::SUCCESS) };
    drop(document);
    drop(text);
    let device = choose_device(options.adapter.as_deref())?.with_feature_level(level);
    execute::Executor::run(model, &device, options)?;
    Ok(ExitCode::SUCCESS)
}

/// DxDispatch tells a model by its name's ending, and ends an option's value at the first space.
fn refuse_paths(document: &json::Document, model: &Path, options: &Options) {
    let has_space = |path: &Path| path.to_string_lossy().contains(' ');
    if !model.to_string_lossy().ends_with(".json") || has_space(model) {
        document.refuse(format!("the model's path is '{}', must end in .json and have no space", model.display()));
    }
    let others = [&options.input_path, &options.output_path].into_iter().flatten();
    others.filter(|path| has_space(path)).for_each(|path| {
        document.refuse(format!("a path is '{}', must have no space", path.display()));
    });
}

/// Prints what readers found. With `--strict`, what DxDispatch would refuse is an error.
fn tell_findings(document: &json::Document, strict: bool, in_file: impl Fn(String) -> String) -> Result<(), String> {
    let findings = document.findings();
    findings.warnings.iter().for_each(|warning| complain!("WARNING: {}", in_file(warning.clone())));
    if !strict {
        return Ok(());
    }
    if findings.refused.is_empty() {
        findings.differing.iter().for_each(|warning| complain!("WARNING: {}", in_file(warning.clone())));
        return Ok(());
    }
    let lines: Vec<String> = findings.refused.iter().map(|refused| format!("\n  {refused}")).collect();
    Err(in_file(format!("DxDispatch would not run this model as this runner does:{}", lines.concat())))
}

/// Prints the plan of each dispatchable, or the rules that it breaks.
fn explain(
    document: &json::Document,
    device: &Device,
    target: &str,
    format: Format,
    plan: impl Fn(&Operator) -> Result<Explanation, String>,
) -> Result<ExitCode, String> {
    let mut all_accepted = true;
    let mut text = String::new();
    if format == Format::Text {
        text = format!("Planned for '{target}'\n");
    }
    for (name, desc) in model::read_dispatchables(document)? {
        let operator = desc.and_then(|desc| device.create_operator(desc).map_err(|errors| errors.to_string()));
        let explained = operator.and_then(|operator| plan(&operator));
        all_accepted &= explained.is_ok();
        if format == Format::Json {
            text.push_str(&events::explained(&name, target, &explained).to_string());
            text.push('\n');
            continue;
        }
        text.push_str(&format!("Dispatchable '{}'\n", shown(&name)));
        let lines = explained.map_or_else(|error| error, |explanation| explanation.to_string());
        lines.lines().for_each(|line| text.push_str(&format!("  {line}\n")));
    }
    out::with(|out| out.write_all(text.as_bytes()))?;
    Ok(if all_accepted { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn choose_device(adapter: Option<&str>) -> Result<Device, String> {
    let open = |ordinal| Device::cuda(ordinal).map_err(|error| error.to_string());
    match adapter.filter(|name| !name.is_empty()) {
        None => match Device::cuda_status() {
            Ok(0) | Err(DeviceError::NoDriver | DeviceError::NotCompiled) => Ok(Device::cpu()),
            Ok(_) => open(0),
            Err(error) => {
                complain!("WARNING: {error}; running on the CPU");
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
        "this machine has none".to_owned()
    } else {
        names.join(", ")
    }
}

fn adapter_names() -> Result<Vec<String>, String> {
    let adapters = Device::cuda_adapters().map_err(|error| error.to_string())?;
    Ok(adapters.into_iter().map(|adapter| adapter.name).collect())
}

fn show_adapters(format: Format) -> Result<(), String> {
    for adapter in Device::cuda_adapters().map_err(|error| error.to_string())? {
        let properties = adapter.properties;
        let (major, minor) = properties.compute_capability;
        let driver = events::cuda_version(&properties);
        if format == Format::Json {
            events::line(&json!({
                "event": "adapter",
                "name": adapter.name,
                "ordinal": adapter.ordinal,
                "hardware": true,
                "driver": driver,
                "compute_capability": format!("{major}.{minor}"),
                "multiprocessors": properties.multiprocessors,
                "memory_bytes": properties.total_memory,
            }))?;
            continue;
        }
        say!("{}", adapter.name)?;
        say!("-Ordinal: {}", adapter.ordinal)?;
        say!("-Hardware: true")?;
        say!("-Driver: {driver}")?;
        say!("-Compute Capability: {major}.{minor}")?;
        say!("-Multiprocessors: {}", properties.multiprocessors)?;
        say!("-Dedicated Adapter Memory: {:.2} GB\n", properties.total_memory as f64 / f64::from(1 << 30))?;
    }
    if format == Format::Json {
        return events::line(&json!({ "event": "adapter", "name": "CPU", "hardware": false }));
    }
    say!("CPU")?;
    say!("-Hardware: false")
}

fn show_dependencies(format: Format) -> Result<(), String> {
    let recorded: Vec<String> = dml_cuda::DirectMlVersion::recorded().map(|version| version.to_string()).collect();
    let driver = match Device::cuda_status() {
        Ok(count) => format!("{count} GPUs"),
        Err(error) => error.to_string(),
    };
    let version = env!("CARGO_PKG_VERSION");
    if format == Format::Json {
        return events::line(
            &json!({ "event": "dependencies", "version": version, "directml": recorded, "driver": driver }),
        );
    }
    say!("dml-cuda {version}")?;
    say!("-DirectML versions it answers for: {}", recorded.join(", "))?;
    say!("-CUDA driver: {driver}")
}
