//! Runs a model, or only checks it: what `dml-cuda MODEL.json` does.
//!
//! ```text
//! text ─ json::parse ─> Document ─ model::read ─> Model ─ execute ─> events, files
//!                           └─ answers: --validate, --explain
//! ```
//!
//! A reader records in the document what it does not know and what DxDispatch would refuse. These findings are printed after
//! all is read: as warnings, or with `--strict` as one error.

pub mod answers;
pub mod events;
pub mod execute;
mod memory;
mod prepare;
pub mod samples;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use dml_cuda::Device;
use serde_json::json;

use crate::device::{choose_device, show_adapters, show_dependencies};
use crate::model::json::{self, Document};
use crate::model::{self, file, strict, Model};
use crate::options::{self, Options};
use crate::out::{complain, in_file, shown_path};
use events::tell;

/// Runs the model of the command line, or answers questions about one or several.
pub fn run_models(options: &Options) -> Result<ExitCode, String> {
    for option in &options.ignored {
        complain!("NOTE: --{option} has no meaning here");
    }
    let models: Vec<&PathBuf> = options
        .model
        .iter()
        .chain(&options.positional_model)
        .chain(&options.more_models)
        .collect();
    if options.show_dependencies {
        show_dependencies(options.format)?;
    }
    if options.show_adapters {
        show_adapters(options.format)?;
    }
    match &models[..] {
        [] if options.show_adapters || options.show_dependencies => Ok(ExitCode::SUCCESS),
        [] => Err("no model is given".to_owned()),
        [path] => run_one(path, options),
        several if options.validate => Ok(validate_each(several, options)),
        [_, second, ..] => Err(format!(
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
            Ok(ended) if ended == ExitCode::SUCCESS => {}
            Ok(failed) => code = failed,
            Err(error) => {
                complain!("ERROR: {error}");
                // The models after it are checked all the same.
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}

/// Runs a model, or answers what the options ask about it.
fn run_one(path: &Path, options: &Options) -> Result<ExitCode, String> {
    let path = &in_input_folder(path, options);
    let in_file = in_file(path);
    // The document borrows the text, and its arrays are read from it a second time.
    let text = read_text(path).map_err(in_file)?;
    // Files written on Windows may begin with a byte order mark.
    let without_mark = text.strip_prefix('\u{feff}');
    let document = json::parse(without_mark.unwrap_or(&text)).map_err(in_file)?;
    let model = match read_model(&document, path, options) {
        Ok(model) => model,
        Err(error) => {
            // Misspelt members come before what their absence may break.
            warn(&document.findings.borrow().unread, in_file);
            return Err(in_file(error));
        }
    };
    if let (true, Some(model)) = (options.strict, &model) {
        strict::check(model, &document).map_err(in_file)?;
        let around = refused_around(path, without_mark.is_some(), options);
        document.findings.borrow_mut().refused.extend(around);
    }
    tell_findings(&document, options.strict, in_file)?;
    if options.validate {
        return answers::validate(&document, options).map_err(in_file);
    }
    // Only now: a verdict needs no device, and a wrong model is an error on every machine.
    let device = device(options)?;
    let Some(model) = model else {
        return answers::explain(&document, &device, options).map_err(in_file);
    };
    // The text of a large model is as large as its values, which are in memory on their own.
    drop(document);
    drop(text);
    execute::execute(model, &device, options).map_err(|error| error.to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// The model's path: in the folder of `--input_path` if it is only there.
fn in_input_folder(path: &Path, options: &Options) -> PathBuf {
    if let Some(folder) = &options.input_path {
        let found = folder.join(path);
        if !path.exists() && found.exists() {
            return found;
        }
    }
    path.to_owned()
}

/// The text of a model's file. It may come through a pipe, but not without end.
fn read_text(path: &Path) -> Result<String, String> {
    if path
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("onnx"))
    {
        return Err("it is an ONNX model, which dml-cuda does not run: ONNX Runtime does, with the library (docs/onnxruntime.md)".to_owned());
    }
    let bytes = file::read_input(path, "; large data belongs in .npy files").map_err(|error| {
        let mut message = format!("the model cannot be read: {error}");
        // A mistyped command looks like the name of a file.
        if let (ErrorKind::NotFound, Some(word)) = (error.kind(), path.to_str()) {
            if let Some(meant) = options::mistyped(&[word.to_owned()]) {
                message += &format!("; {meant}");
            }
        }
        message
    })?;
    file::text(bytes).map_err(|error| format!("the model is not UTF-8 text: {error}"))
}

/// Reads the model, or only its dispatchables, which are all that verdicts need. `--strict` looks at everything.
fn read_model(
    document: &Document,
    path: &Path,
    options: &Options,
) -> Result<Option<Model>, String> {
    if !options.strict && (options.validate || options.explain) {
        model::read_dispatchables(document)?;
        return Ok(None);
    }
    let folder = options.input_path.as_deref().or(path.parent());
    model::read(document, path, folder.unwrap_or(Path::new(""))).map(Some)
}

/// The device of the options, with their feature level and compile options.
fn device(options: &Options) -> Result<Device, String> {
    // Plans for a target need no GPU, but what the environment sets.
    let adapter = match options.target {
        Some(_) => Some("cpu".to_owned()),
        None => options.adapter.clone(),
    };
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
    Ok(device.with_compile_options(chosen))
}

/// The reasons for which DxDispatch refuses a command line. It knows a model by the ending of its name, and ends an option's
/// value at the first space.
fn refused_around(model: &Path, has_mark: bool, options: &Options) -> Vec<String> {
    let mut refused = Vec::new();
    if has_mark {
        let mark =
            "line 1: the document begins with a byte order mark, but must begin with its text";
        refused.push(mark.to_owned());
    }
    let is_model = model.to_string_lossy().ends_with(".json") && !has_space(model);
    if !is_model && model != Path::new("-") {
        refused.push(format!(
            "the model's path is '{}', but must end in .json and have no space",
            shown_path(model)
        ));
    }
    for folder in [&options.input_path, &options.output_path]
        .into_iter()
        .flatten()
    {
        if has_space(folder) {
            let folder = shown_path(folder);
            refused.push(format!("a path is '{folder}', but must have no space"));
        }
    }
    refused
}

/// Whether DxDispatch would take the path for two words.
fn has_space(path: &Path) -> bool {
    path.to_string_lossy().contains(' ')
}

/// Prints warnings about a file.
fn warn(warnings: &[impl ToString], in_file: impl Fn(String) -> String) {
    for warning in warnings {
        complain!("WARNING: {}", in_file(warning.to_string()));
    }
}

/// Prints what readers found. With `--strict`, what DxDispatch would refuse is an error.
fn tell_findings(
    document: &Document,
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
