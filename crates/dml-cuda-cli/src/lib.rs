//! The command line tool `dml-cuda` as a library. [`main`] is the program.
//!
//! ```text
//! dml-cuda MODEL.json    options ─> run: one model, or answers about several
//! dml-cuda bench         options ─> bench::timing ─> results file
//! dml-cuda report        options ─> bench::report ─> text, page or chart
//! dml-cuda tune          options ─> tune ─> table of times
//! ```
//!
//! A function that fails usually returns a message without the word ERROR, and `main` prints it. Those that go on, or that
//! exit with code 2, print it themselves. Without options that dml-cuda alone has, the lines of a model are DxDispatch's.
//! [`dml_cuda_model`] reads the models.

mod bench;
mod completions;
mod device;
mod options;
mod out;
mod output_file;
mod run;
mod schema;
mod signals;
mod tune;
mod unfinished;

use std::process::ExitCode;

use dml_cuda_model::{self as model, names};

use bench::{kernel, process, report, suite, timing};
use device::{choose_device, choose_gpu};
use model::members;
use options::{Command, Options};
use out::complain;

/// Runs the command line and returns the exit code.
pub fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    if signals::end_with_bench().is_err() {
        return ExitCode::FAILURE;
    }
    #[cfg(unix)]
    signals::outlive_limits();
    let outcome = match Options::read() {
        Ok(mut options) => match options.command.take() {
            Some(command) => subcommand(command),
            None => run::run_models(&options),
        },
        // Printing an error may fail silently. Printing help may not.
        Err(error) if error.use_stderr() => {
            complain!("{}", options::message(&error));
            Ok(ExitCode::from(2))
        }
        Err(help) => out::with(|_| help.print()).map(|()| ExitCode::SUCCESS),
    };
    outcome.unwrap_or_else(|error| {
        complain!("ERROR: {error}");
        ExitCode::from(process::exit_code().max(1) as u8)
    })
}

/// Runs a command of dml-cuda, which is not DxDispatch's.
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

/// Prints a text that is a file: a schema, a script or a page.
fn printed(text: &[u8]) -> Result<ExitCode, String> {
    out::with(|out| out.write_all(text)).map(|()| ExitCode::SUCCESS)
}
