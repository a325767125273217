//! The command line: DxDispatch's options with the same meaning, and this runner's own.

mod bench;
mod ignored;

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use dml_cuda::{DirectMlVersion, FeatureLevel, ParseDirectMlVersionError};

pub use bench::{Bench, Guard, Plain, Repeated, Report, ReportFormat, Tier};
use ignored::IgnoredOptions;

/// Runs a DxDispatch model that uses DML_OPERATOR_FILL_VALUE_SEQUENCE and DML_OPERATOR_REVERSE_SUBSEQUENCES,
/// on an NVIDIA GPU or on the CPU.
#[derive(Parser)]
#[command(
    name = "dml-cuda",
    version,
    arg_required_else_help = true,
    args_conflicts_with_subcommands = true,
    args_override_self = true
)]
pub struct Options {
    #[command(subcommand)]
    pub command: Option<Command>,

    /// The model, a JSON file
    #[arg(value_name = "MODEL.json")]
    pub positional_model: Option<PathBuf>,

    /// The model, in DxDispatch's spelling
    #[arg(short = 'm', long = "model", value_name = "MODEL.json")]
    pub model: Vec<PathBuf>,

    /// DxDispatch runs the first model
    #[arg(hide = true)]
    pub more_models: Vec<PathBuf>,

    /// Device: a substring of a GPU's name, an ordinal, or `cpu` [default: the first GPU, or the CPU]
    #[arg(short, long)]
    pub adapter: Option<String>,

    /// Show the devices, and run the model if one is given
    #[arg(short, long = "show_adapters", alias = "show-adapters")]
    pub show_adapters: bool,

    /// Show the versions of the runner, of DirectML's rules and of the CUDA driver
    #[arg(short = 'S', long = "show_dependencies", alias = "show-dependencies")]
    pub show_dependencies: bool,

    /// Iterations of the bind/dispatch/wait loop
    #[arg(short = 'i', long = "dispatch_iterations", alias = "dispatch-iterations", default_value_t = 1, value_parser = count)]
    pub dispatch_iterations: u32,

    /// Dispatches in each iteration
    #[arg(short = 'r', long = "dispatch_repeat", alias = "dispatch-repeat", default_value_t = 1, value_parser = count)]
    pub dispatch_repeat: u32,

    /// On a GPU, queue the dispatches of an iteration one by one instead of as one CUDA graph
    #[arg(long)]
    pub no_graph: bool,

    /// Milliseconds to run for, instead of a number of iterations
    #[arg(short = 't', long = "milliseconds_to_run", alias = "milliseconds-to-run", value_parser = count)]
    pub milliseconds_to_run: Option<u32>,

    /// Least milliseconds between the starts of two iterations
    #[arg(short = 'I', long = "dispatch_interval", alias = "dispatch-interval", default_value_t = 0, value_parser = count)]
    pub dispatch_interval: u32,

    /// Leave at most this many first samples out of the statistics
    #[arg(short = 'w', long = "warmup_samples", alias = "warmup-samples", default_value_t = 1, value_parser = count)]
    pub warmup_samples: u32,

    /// 0: hot medians; 1: also initialization and cold timings; 2: also every iteration
    #[arg(short = 'v', long = "timing_verbosity", alias = "timing-verbosity", default_value_t = 0, value_parser = count)]
    pub timing_verbosity: u32,

    /// Time at most this many iterations on the GPU
    #[arg(long = "max_gpu_time_measurements", alias = "max-gpu-time-measurements", value_parser = count)]
    pub max_gpu_time_measurements: Option<u32>,

    /// Folder of input files, instead of the model's folder
    #[arg(long = "input_path", alias = "input-path", value_name = "FOLDER")]
    pub input_path: Option<PathBuf>,

    /// Folder of written files, instead of the current folder
    #[arg(long = "output_path", alias = "output-path", value_name = "FOLDER")]
    pub output_path: Option<PathBuf>,

    /// Print each command before it runs
    #[arg(long = "print_commands", alias = "print-commands")]
    pub print_commands: bool,

    /// Only check each dispatchable against DirectML's rules; allocate and run nothing
    #[arg(long)]
    pub validate: bool,

    /// Refuse a model that DxDispatch on Windows would not run in the same way
    #[arg(long, conflicts_with = "explain")]
    pub strict: bool,

    /// Only explain how each dispatchable would run: merged shape, kernels, grids, bytes, and why no faster kernel
    #[arg(long, conflicts_with = "validate")]
    pub explain: bool,

    /// With --explain, plan for this GPU, which the machine need not have: t4, l4, a100, h100, b200, or shared=KIB,sm=COUNT[,clusters]
    #[arg(long, requires = "explain", conflicts_with = "adapter")]
    pub target: Option<dml_cuda::GpuTarget>,

    /// With --validate, apply the rules of this version of DirectML, such as 1.8.0; `all` lists the recorded versions that accept
    #[arg(long, value_name = "VERSION", requires = "validate", conflicts_with = "feature_level")]
    pub directml: Option<Versions>,

    /// The feature level whose rules apply, such as 5_0
    #[arg(long = "feature-level", aliases = ["feature_level", "dml_feature_level"], value_name = "LEVEL", default_value = FeatureLevel::HIGHEST.name())]
    pub feature_level: FeatureLevel,

    /// DxDispatch's lines, or one JSON object per line
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,

    #[command(flatten)]
    pub ignored: IgnoredOptions,
}

impl Options {
    /// Reads the command line. An error suggests the command that a mistyped word may mean.
    pub fn read() -> Result<Self, clap::Error> {
        let said = || mistyped(words());
        let matches = Self::command().try_get_matches().map_err(|error| match said() {
            Some(said) if error.use_stderr() => usage(said),
            _ => error,
        })?;
        let options = Self::from_arg_matches(&matches)?;
        match said() {
            Some(said) if !options.more_models.is_empty() => Err(usage(said)),
            _ => Ok(options),
        }
    }

    /// The model to run.
    pub fn model_path(&self) -> Option<&Path> {
        self.model.first().or(self.positional_model.as_ref()).map(PathBuf::as_path)
    }

    /// Models behind the first one, which do not run.
    pub fn ignored_models(&self) -> impl Iterator<Item = &PathBuf> {
        let positional = self.positional_model.iter().chain(&self.more_models);
        self.model.iter().chain(positional).skip(1)
    }
}

/// The words of the command line, without the program's name.
fn words() -> impl Iterator<Item = String> {
    std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned())
}

fn usage(said: String) -> clap::Error {
    Options::command().error(clap::error::ErrorKind::InvalidSubcommand, said)
}

/// The message for a word that resembles a command, if no command is given.
fn mistyped(words: impl Iterator<Item = String>) -> Option<String> {
    let words: Vec<String> = words.take_while(|word| word != "--").collect();
    let command = Options::command();
    let names: Vec<&str> =
        command.get_subcommands().filter(|command| !command.is_hide_set()).map(clap::Command::get_name).collect();
    if words.iter().any(|word| names.contains(&word.as_str())) {
        return None;
    }
    let (word, name) = words.iter().find_map(|word| Some((word, nearly(word, &names)?)))?;
    Some(format!("there is no command '{word}'; did you mean '{name}'?"))
}

/// The command that a mistyped word may mean.
pub fn suggestion(word: &str) -> Option<String> {
    mistyped(std::iter::once(word.to_owned()))
}

fn nearly<'a>(word: &str, names: &[&'a str]) -> Option<&'a str> {
    // A word with a dot or a folder is the name of a file.
    if word.contains(['.', '/', '\\']) {
        return None;
    }
    let word = word.to_lowercase();
    let likeness = |name: &&str| strsim::jaro_winkler(&word, name);
    names.iter().copied().max_by(|a, b| likeness(a).total_cmp(&likeness(b))).filter(|name| likeness(name) > 0.85)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
}

/// The values of `--directml`.
#[derive(Clone, Debug)]
pub enum Versions {
    One(DirectMlVersion),
    All,
}

impl FromStr for Versions {
    type Err = ParseDirectMlVersionError;

    /// `1.8` is the recorded version 1.8.0.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let of_release =
            |version: &DirectMlVersion| text.contains('.') && version.to_string().starts_with(&format!("{text}."));
        match DirectMlVersion::recorded().find(of_release) {
            _ if text == "all" => Ok(Self::All),
            Some(version) => Ok(Self::One(version)),
            None => text.parse().map(Self::One),
        }
    }
}

/// A number as DxDispatch reads it: `0x2` is 2.
fn count(text: &str) -> Result<u32, std::num::ParseIntError> {
    text.strip_prefix("0x").map_or_else(|| text.parse(), |digits| u32::from_str_radix(digits, 16))
}

#[derive(Subcommand)]
pub enum Command {
    /// Time cases, and write a run
    Bench(Bench),
    /// Show a run, or compare runs with the first one
    Report(Report),
    /// Write the models of `bench` into a folder, to look at or to run with other tools
    Suite {
        /// A new folder
        folder: PathBuf,
        #[arg(long, value_enum, default_value_t = Tier::Standard)]
        tier: Tier,
    },
    /// Time one of the cases of `bench --cold-l2`
    #[command(hide = true)]
    Kernel {
        name: String,
        #[command(flatten)]
        repeated: Repeated,
    },
    /// Time a plain copy or fill of so many bytes
    #[command(hide = true)]
    Baseline {
        #[arg(value_enum)]
        work: Plain,
        bytes: u64,
        #[command(flatten)]
        repeated: Repeated,
    },
    /// Print the completions of a shell
    Completions {
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print the manual page of this program, or of one of its commands
    Man {
        #[arg(value_name = "COMMAND")]
        command: Option<String>,
    },
}
