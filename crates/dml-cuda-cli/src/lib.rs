//! The command line tool `dml-cuda` as a library. [`main`] is the program. [`dml_cuda_model`] reads the models.

mod bench;
mod completions;
mod options;
mod out;
mod output_file;
mod run;
mod schema;
mod signals;
mod tune;
mod unfinished;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use dml_cuda::{Adapter, Device, DeviceError, DirectMlVersion, Properties};
use dml_cuda_model::{self as model, names};
use serde_json::json;

use bench::{kernel, report, suite, timing};
use model::{file, json, members, strict};
use options::{Command, Format, Options};
use out::{complain, shown, shown_path};
use run::events::tell;
use run::{answers, events, execute};

/// Runs the command line and returns the exit code.
pub fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    if let Ok(bench) = std::env::var(signals::OF_A_BENCH) {
        let _ = nix::sys::prctl::set_pdeathsig(nix::sys::signal::SIGKILL);
        if std::os::unix::process::parent_id().to_string() != bench {
            return ExitCode::FAILURE;
        }
    }
    #[cfg(unix)]
    signals::outlive_limits();
    let outcome = match Options::read() {
        Ok(mut options) => options
            .command
            .take()
            .map_or_else(|| run_model(&options), subcommand),
        // Printing an error may fail silently. Printing help may not.
        Err(error) if error.use_stderr() => {
            complain!("{}", options::message(&error));
            Ok(ExitCode::from(2))
        }
        Err(help) => out::with(|_| help.print()).map(|()| ExitCode::SUCCESS),
    };
    outcome.unwrap_or_else(|error| {
        complain!("ERROR: {error}");
        ExitCode::from(bench::process::exit_code().max(1) as u8)
    })
}

fn subcommand(command: Command) -> Result<ExitCode, String> {
    match command {
        Command::Suite { folder, tier } => suite::write(&folder, tier),
        Command::Bench(options) => timing::time_cases(&options),
        Command::Report(options) => report::report(&options),
        Command::Tune(options) => tune::tune(&options, || choose_gpu(&options.adapter)),
        Command::Kernel {
            name,
            cold_l2,
            repeated,
        } => kernel::time(&name, cold_l2, &repeated, |any| {
            let choose = if any { choose_device } else { choose_gpu };
            choose(&repeated.adapter)
        }),
        Command::Schema => printed(members::SCHEMA.as_bytes()),
        Command::Completions { shell } => printed(completions::script(shell).as_bytes()),
        Command::Man { command } => printed(&completions::page(command.as_deref())?),
    }
}

fn printed(text: &[u8]) -> Result<ExitCode, String> {
    out::with(|out| out.write_all(text)).map(|()| ExitCode::SUCCESS)
}

fn run_model(options: &Options) -> Result<ExitCode, String> {
    for option in &options.ignored {
        complain!("NOTE: --{option} has no meaning here");
    }
    let mut models = options
        .model
        .iter()
        .chain(&options.positional_model)
        .chain(&options.more_models);
    let first = models.next();
    let further: Vec<&PathBuf> = models.collect();
    if options.show_dependencies {
        show_dependencies(options.format)?;
    }
    if options.show_adapters {
        show_adapters(options.format)?;
    }
    let Some(path) = first else {
        let shown = options.show_adapters || options.show_dependencies;
        return if shown {
            Ok(ExitCode::SUCCESS)
        } else {
            Err("no model is given".to_owned())
        };
    };
    match further.first() {
        None => run_one(path, options),
        Some(_) if options.validate => {
            Ok(validate_each(&[&[path], &further[..]].concat(), options))
        }
        Some(second) => Err(format!(
            "{} is a second model, but a run takes one; --validate checks several",
            shown_path(second)
        )),
    }
}

/// Checks several models, each under its name. Fails if one fails, after all are checked.
fn validate_each(paths: &[&PathBuf], options: &Options) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for path in paths {
        let event = json!({ "event": "model", "path": path.to_string_lossy() });
        let name = format!("{}:", shown_path(path));
        let checked = tell(options.format, &event, name).and_then(|()| run_one(path, options));
        match checked {
            Ok(of_model) if of_model == ExitCode::SUCCESS => {}
            Ok(failed) => code = failed,
            Err(error) => {
                complain!("ERROR: {error}");
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}

/// Runs a model, or answers what the options ask about it.
fn run_one(path: &Path, options: &Options) -> Result<ExitCode, String> {
    let found = options
        .input_path
        .as_ref()
        .map(|folder| folder.join(path))
        .filter(|found| !path.exists() && found.exists());
    let path = found.as_deref().unwrap_or(path);
    let in_file = |error: String| format!("{}: {error}", shown_path(path));
    if path
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("onnx"))
    {
        let where_to = "which dml-cuda does not run: ONNX Runtime does, with the library (docs/onnxruntime.md)";
        return Err(in_file(format!("it is an ONNX model, {where_to}")));
    }
    // It may come through a pipe, but not without end.
    let large = "; large data belongs in .npy files";
    let text = file::read_input(path, large).map_err(|error| {
        let absent = path
            .to_str()
            .filter(|_| error.kind() == std::io::ErrorKind::NotFound);
        let meant = absent.and_then(|word| options::mistyped(&[word.to_owned()]));
        let meant = meant.map_or_else(String::new, |meant| format!("; {meant}"));
        in_file(format!("the model cannot be read: {error}{meant}"))
    })?;
    let text = file::text(text)
        .map_err(|error| in_file(format!("the model is not UTF-8 text: {error}")))?;
    // Files written on Windows may begin with a byte order mark.
    let without_mark = text.strip_prefix('\u{feff}');
    let document = json::parse(without_mark.unwrap_or(&text)).map_err(in_file)?;
    let folder = options
        .input_path
        .as_deref()
        .or(path.parent())
        .unwrap_or(Path::new(""));
    // Verdicts need only the dispatchables, but --strict looks at all.
    let model = match options.strict || !(options.validate || options.explain) {
        true => model::read(&document, path, folder).map(Some),
        false => model::read_dispatchables(&document).map(|_| None),
    };
    // Misspelt members come before what their absence may break.
    let model = model
        .inspect_err(|_| warn(&document.findings.borrow().unread, in_file))
        .map_err(in_file)?;
    if let Some(model) = model.as_ref().filter(|_| options.strict) {
        strict::check(model, &document).map_err(in_file)?;
        document
            .findings
            .borrow_mut()
            .refused
            .extend(refused_around(path, without_mark.is_some(), options));
    }
    tell_findings(&document, options.strict, in_file)?;
    if options.validate {
        return answers::validate(&document, options).map_err(in_file);
    }
    // Plans for a target need no device, but what the environment sets.
    let adapter = options
        .target
        .map_or_else(|| options.adapter.clone(), |_| Some("cpu".to_owned()));
    let device = choose_device(&adapter)?.with_feature_level(options.feature_level);
    let chosen = device
        .compile_options()
        .with_text(&options.compile_options)
        .map_err(|error| error.to_string())?;
    if options.target.is_some() && chosen.measure {
        return Err(
            "the compile option is `select=measure`, but must be `select=estimate` with --target"
                .to_owned(),
        );
    }
    let device = device.with_compile_options(chosen);
    let Some(model) = model else {
        return answers::explain(&document, &device, options).map_err(in_file);
    };
    drop(document);
    drop(text);
    execute::execute(model, &device, options).map_err(|error| error.to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// The reasons for which DxDispatch refuses a command line. It tells a model by its name's ending, and ends an option's
/// value at the first space.
fn refused_around(model: &Path, has_mark: bool, options: &Options) -> Vec<String> {
    let has_space = |path: &Path| path.to_string_lossy().contains(' ');
    let mark = "line 1: the document begins with a byte order mark, but must begin with its text"
        .to_owned();
    let is_named =
        model == Path::new("-") || model.to_string_lossy().ends_with(".json") && !has_space(model);
    let name = format!(
        "the model's path is '{}', but must end in .json and have no space",
        shown_path(model)
    );
    let folders = [&options.input_path, &options.output_path]
        .into_iter()
        .flatten()
        .filter(|path| has_space(path));
    let folders =
        folders.map(|path| format!("a path is '{}', but must have no space", shown_path(path)));
    has_mark
        .then_some(mark)
        .into_iter()
        .chain((!is_named).then_some(name))
        .chain(folders)
        .collect()
}

fn warn(warnings: &[impl ToString], in_file: impl Fn(String) -> String) {
    warnings
        .iter()
        .for_each(|warning| complain!("WARNING: {}", in_file(warning.to_string())));
}

/// Prints what readers found. With `--strict`, what DxDispatch would refuse is an error.
fn tell_findings(
    document: &json::Document,
    strict: bool,
    in_file: impl Fn(String) -> String,
) -> Result<(), String> {
    let findings = document.findings.borrow();
    let is_refused = strict && !findings.refused.is_empty();
    warn(&findings.unread, &in_file);
    warn(&findings.misread, &in_file);
    if strict && !is_refused {
        warn(&findings.differing, &in_file);
    }
    if !is_refused {
        return Ok(());
    }
    let refused = findings.refused.join("\n  ");
    Err(in_file(format!(
        "DxDispatch would not run this model as dml-cuda does:\n  {refused}"
    )))
}

fn choose_device(adapter: &Option<String>) -> Result<Device, String> {
    let ordinal = match adapter.as_deref().unwrap_or_default() {
        "" => match Device::cuda_status() {
            Ok(count) => (count > 0).then_some(0),
            Err(DeviceError::NoDriver) => None,
            // A GPU may be there, which the right library would drive.
            Err(error @ DeviceError::Stub { .. }) => return Err(error.to_string()),
            Err(error) => return Err(format!("{error}; -a cpu runs on the CPU")),
        },
        name if name.eq_ignore_ascii_case("cpu") => None,
        name => Some(name.parse().or_else(|_| ordinal_of(name))?),
    };
    let device = ordinal
        .map_or(Ok(Device::cpu()), Device::cuda)
        .map_err(|error| error.to_string())?;
    device.with_environment().map_err(|error| error.to_string())
}

/// The GPU of a command that times kernels. No advice of an error leads to the CPU. Without a GPU, the error of the
/// first one says why.
fn choose_gpu(adapter: &Option<String>) -> Result<Device, String> {
    let device = choose_device(&adapter.clone().or(Some("0".to_owned()))).map_err(|error| {
        error
            .replace(", or use the CPU device", "")
            .replace(", or cpu", "")
    })?;
    match device.ordinal() {
        Some(_) => Ok(device),
        None => Err(format!(
            "the device is {device}, but must be a GPU, whose kernels are timed"
        )),
    }
}

/// The first GPU that has this text in its name.
fn ordinal_of(name: &str) -> Result<usize, String> {
    let adapters = Device::cuda_adapters().map_err(|error| error.to_string())?;
    let is_meant = |adapter: &&Adapter| adapter.name.to_lowercase().contains(&name.to_lowercase());
    let found = adapters
        .iter()
        .find(is_meant)
        .map(|adapter| adapter.ordinal);
    let names: Vec<&str> = adapters
        .iter()
        .map(|adapter| adapter.name.as_str())
        .collect();
    let list = if names.is_empty() {
        "this machine has none".to_owned()
    } else {
        names.join(", ")
    };
    found.ok_or(format!(
        "the adapter is '{}', but must be part of the name of a GPU ({list}), an ordinal, or cpu",
        shown(name)
    ))
}

fn show_adapters(format: Format) -> Result<(), String> {
    for Adapter {
        name,
        ordinal,
        properties,
        ..
    } in Device::cuda_adapters().map_err(|error| error.to_string())?
    {
        let driver = events::cuda_version(&properties);
        let Properties {
            compute_capability: (major, minor),
            multiprocessors,
            total_memory,
            ..
        } = properties;
        let gigabytes = total_memory as f64 / f64::from(1 << 30);
        let text = format!(
            "{name}\n-Ordinal: {ordinal}\n-Hardware: true\n-Driver: {driver}\n-Compute Capability: {major}.{minor}\n\
             -Multiprocessors: {multiprocessors}\n-Dedicated Adapter Memory: {gigabytes:.2} GB\n"
        );
        let event = json!({
            "event": "adapter",
            "name": name,
            "ordinal": ordinal,
            "hardware": true,
            "driver": driver,
            "compute_capability": format!("{major}.{minor}"),
            "multiprocessors": multiprocessors,
            "memory_bytes": total_memory,
        });
        events::tell(format, &event, text)?;
    }
    events::tell(
        format,
        &json!({ "event": "adapter", "name": "CPU", "hardware": false }),
        "CPU\n-Hardware: false",
    )
}

fn show_dependencies(format: Format) -> Result<(), String> {
    let recorded: Vec<String> = DirectMlVersion::recorded()
        .map(|version| version.to_string())
        .collect();
    let driver = Device::cuda_status()
        .map_or_else(|error| error.to_string(), |count| format!("{count} GPUs"));
    let (version, answered) = (env!("CARGO_PKG_VERSION"), recorded.join(", "));
    let text = format!(
        "dml-cuda {version}\n-DirectML versions it answers for: {answered}\n-CUDA driver: {driver}"
    );
    let event = json!({ "event": "dependencies", "version": version, "directml": recorded, "driver": driver });
    events::tell(format, &event, text)
}
