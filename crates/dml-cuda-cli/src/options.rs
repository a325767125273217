//! The command line: DxDispatch's options with the same meaning, and dml-cuda's own.

mod bench;
mod ignored;

use std::path::PathBuf;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use dml_cuda::{DirectMlVersion, FeatureLevel, ParseDirectMlVersionError};

pub use bench::{Bench, Repeated, Report, ReportFormat, Tier, Tune};

use crate::names::{likeness, nearest};

/// Runs a DxDispatch model on an NVIDIA GPU or on the CPU
///
/// The model uses DML_OPERATOR_FILL_VALUE_SEQUENCE and DML_OPERATOR_REVERSE_SUBSEQUENCES.
#[derive(Parser)]
#[command(name = "dml-cuda", version, arg_required_else_help = true)]
#[command(args_conflicts_with_subcommands = true, args_override_self = true)]
pub struct Options {
    #[command(subcommand)]
    pub command: Option<Command>,

    /// The model, a JSON file
    #[arg(value_name = "MODEL.json")]
    pub positional_model: Option<PathBuf>,

    /// The model, in DxDispatch's spelling
    #[arg(short = 'm', long = "model", value_name = "MODEL.json")]
    #[arg(hide_short_help = true)]
    pub model: Vec<PathBuf>,

    /// DxDispatch runs the first model
    #[arg(hide = true)]
    pub more_models: Vec<PathBuf>,

    /// Device: a substring of a GPU's name, an ordinal, or `cpu`
    ///
    /// By default the first GPU, or the CPU if there is no GPU.
    #[arg(short, long)]
    pub adapter: Option<String>,

    /// Show the devices, and run the model if one is given
    #[arg(short, long = "show_adapters", alias = "show-adapters")]
    #[arg(hide_short_help = true)]
    pub show_adapters: bool,

    /// Show the versions of the runner, of DirectML's rules and of the CUDA driver
    #[arg(short = 'S', long = "show_dependencies", alias = "show-dependencies")]
    #[arg(hide_short_help = true)]
    pub show_dependencies: bool,

    /// Iterations of the bind/dispatch/wait loop
    #[arg(short = 'i', long = "dispatch_iterations", alias = "dispatch-iterations")]
    #[arg(default_value_t = 1, value_parser = count)]
    #[arg(help_heading = "Timing", value_name = "N")]
    pub dispatch_iterations: u32,

    /// Dispatches in each iteration
    #[arg(short = 'r', long = "dispatch_repeat", alias = "dispatch-repeat", default_value_t = 1, value_parser = count)]
    #[arg(help_heading = "Timing", value_name = "N")]
    pub dispatch_repeat: u32,

    /// On a GPU, queue the dispatches of an iteration one by one instead of as one CUDA graph
    #[arg(long)]
    #[arg(help_heading = "Timing", hide_short_help = true)]
    pub no_graph: bool,

    /// On a GPU, compile kernels for the model's sizes and strides
    #[arg(long)]
    #[arg(help_heading = "Timing", hide_short_help = true)]
    pub specialize: bool,

    /// On a GPU, time the kernels with the least estimates, and take the fastest
    #[arg(long)]
    #[arg(help_heading = "Timing", hide_short_help = true)]
    pub measure: bool,

    /// Milliseconds to run for, instead of a number of iterations
    #[arg(short = 't', long = "milliseconds_to_run", alias = "milliseconds-to-run", value_parser = count)]
    #[arg(help_heading = "Timing", hide_short_help = true, value_name = "MILLISECONDS")]
    pub milliseconds_to_run: Option<u32>,

    /// Least milliseconds between the starts of two iterations
    #[arg(short = 'I', long = "dispatch_interval", alias = "dispatch-interval")]
    #[arg(default_value_t = 0, value_parser = count)]
    #[arg(help_heading = "Timing", hide_short_help = true, value_name = "MILLISECONDS")]
    pub dispatch_interval: u32,

    /// Leave at most this many first samples out of the statistics
    #[arg(short = 'w', long = "warmup_samples", alias = "warmup-samples", default_value_t = 1, value_parser = count)]
    #[arg(help_heading = "Timing", hide_short_help = true, value_name = "N")]
    pub warmup_samples: u32,

    /// 0: hot medians; 1: also initialization and cold timings; 2: also every iteration
    #[arg(short = 'v', long = "timing_verbosity", alias = "timing-verbosity")]
    #[arg(default_value_t = 0, value_parser = verbosity)]
    #[arg(help_heading = "Timing", hide_short_help = true, value_name = "LEVEL")]
    pub timing_verbosity: u32,

    /// Time at most this many iterations on the GPU
    #[arg(long = "max_gpu_time_measurements", alias = "max-gpu-time-measurements", value_parser = count)]
    #[arg(help_heading = "Timing", hide_short_help = true, value_name = "N")]
    pub max_gpu_time_measurements: Option<u32>,

    /// Folder of input files, instead of the model's folder
    #[arg(long = "input_path", alias = "input-path", value_name = "FOLDER")]
    #[arg(help_heading = "Files", hide_short_help = true)]
    pub input_path: Option<PathBuf>,

    /// Folder of written files, instead of the current folder
    #[arg(long = "output_path", alias = "output-path", value_name = "FOLDER")]
    #[arg(help_heading = "Files", hide_short_help = true)]
    pub output_path: Option<PathBuf>,

    /// Print each command before it runs
    #[arg(long = "print_commands", alias = "print-commands")]
    #[arg(hide_short_help = true)]
    pub print_commands: bool,

    /// Only check each dispatchable against DirectML's rules; allocate and run nothing
    #[arg(long)]
    #[arg(help_heading = "Checks and explanations")]
    pub validate: bool,

    /// Refuse a model that DxDispatch on Windows would not run in the same way
    #[arg(long, conflicts_with = "explain")]
    #[arg(help_heading = "Checks and explanations")]
    pub strict: bool,

    /// Only explain how each dispatchable would run
    ///
    /// Print the merged shape, kernels with estimates of their times, grids and bytes, and why other kernels cannot
    /// run.
    #[arg(long, conflicts_with = "validate")]
    #[arg(help_heading = "Checks and explanations")]
    pub explain: bool,

    /// With --explain, plan for this GPU, which the machine need not have: t4, l4, a100, h100, h200, b200, or
    /// shared=KIB,sm=COUNT[,clusters] and more figures (docs/cli.md)
    #[arg(long, requires = "explain", conflicts_with_all = ["adapter", "measure"])]
    #[arg(help_heading = "Checks and explanations", hide_short_help = true)]
    pub target: Option<dml_cuda::GpuTarget>,

    /// With --validate, apply the rules of this version of DirectML, such as 1.8.0; `all` lists the recorded versions
    /// that accept
    #[arg(long, value_name = "VERSION", value_parser = versions)]
    #[arg(requires = "validate", conflicts_with = "feature_level")]
    #[arg(help_heading = "Checks and explanations", hide_short_help = true)]
    pub directml: Option<Versions>,

    /// The feature level whose rules apply, such as 5_0
    #[arg(long = "feature-level", aliases = ["feature_level", "dml_feature_level"], value_name = "LEVEL")]
    #[arg(default_value = FeatureLevel::HIGHEST.name())]
    #[arg(help_heading = "Checks and explanations", hide_short_help = true)]
    pub feature_level: FeatureLevel,

    /// Lines of text or of JSON
    ///
    /// Print DxDispatch's lines, or one JSON object per line.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,

    /// The names of given options that have no meaning here
    #[arg(skip)]
    pub ignored: Vec<&'static str>,
}

impl Options {
    /// Reads the command line. An error suggests the command that a mistyped word may mean.
    pub fn read() -> Result<Self, clap::Error> {
        let read = ignored::accepted_by(Self::command()).try_get_matches().and_then(|matches| {
            let ignored = ignored::given(&matches);
            Ok(Self { ignored, ..Self::from_arg_matches(&matches)? })
        });
        let is_odd = read.as_ref().map_or_else(clap::Error::use_stderr, |options| !options.more_models.is_empty());
        let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
        let words: Vec<String> = words.take_while(|word| word != "--").collect();
        match mistyped(&words).filter(|_| is_odd) {
            Some(said) => Err(Self::command().error(clap::error::ErrorKind::InvalidSubcommand, said)),
            None => read,
        }
    }

    /// Whether the dispatches of an iteration are a graph on a GPU. A single dispatch without timing options is not.
    pub fn uses_graph(&self) -> bool {
        let is_timed = self.milliseconds_to_run.is_some() || self.timing_verbosity > 0;
        !self.no_graph && (is_timed || self.dispatch_iterations != 1 || self.dispatch_repeat != 1)
    }
}

/// The message for a word that resembles a command, if no command is given.
pub fn mistyped(words: &[String]) -> Option<String> {
    let command = Options::command();
    let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
    let names: Vec<&str> = visible.map(clap::Command::get_name).collect();
    if words.iter().any(|word| names.contains(&word.as_str())) {
        return None;
    }
    // A word with a dot or a folder is the name of a file.
    let (word, name) = words.iter().filter(|word| !word.contains(['.', '/', '\\'])).find_map(|word| {
        let name = nearest(word, &names).filter(|name| likeness(word, name) > 0.85)?;
        Some((word, name))
    })?;
    Some(format!("there is no command '{word}'; did you mean '{name}'?"))
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

/// `1.8` is the recorded version 1.8.0.
fn versions(text: &str) -> Result<Versions, ParseDirectMlVersionError> {
    let of_release =
        |version: &DirectMlVersion| text.contains('.') && version.to_string().starts_with(&format!("{text}."));
    match DirectMlVersion::recorded().find(of_release) {
        _ if text == "all" => Ok(Versions::All),
        Some(version) => Ok(Versions::One(version)),
        None => text.parse().map(Versions::One),
    }
}

/// A number as DxDispatch reads it: `0x2` is 2.
fn count(text: &str) -> Result<u32, std::num::ParseIntError> {
    text.strip_prefix("0x").map_or_else(|| text.parse(), |digits| u32::from_str_radix(digits, 16))
}

fn verbosity(text: &str) -> Result<u32, String> {
    count(text).ok().filter(|&level| level <= 2).ok_or_else(|| "must be 0, 1 or 2".to_owned())
}

#[derive(Subcommand)]
pub enum Command {
    /// Time cases, and write a run
    Bench(Bench),
    /// Show a run, or compare runs with the first one
    Report(Report),
    /// Time every kernel on random layouts and report how much the cost model loses
    Tune(Tune),
    /// Write the models of `bench` into a folder, to look at or to run with other tools
    Suite {
        /// A new folder
        folder: PathBuf,
        /// How large the tensors are
        #[arg(long, value_enum, default_value_t = Tier::Standard)]
        tier: Tier,
    },
    /// Time a baseline, or one of the cases of `bench --cold-l2`
    #[command(hide = true)]
    Kernel {
        name: String,
        #[arg(long)]
        cold_l2: bool,
        #[command(flatten)]
        repeated: Repeated,
    },
    /// Print the JSON Schema of a model, by which editors complete and check one
    Schema,
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
