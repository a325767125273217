//! The command line: DxDispatch's options with the same meaning, and dml-cuda's own.
//!
//! The doc comments of fields and commands are the help texts that users read: imperative, one sentence, no final period.
//! The short help shows what most users need, and `--help` shows all.
//!
//! DxDispatch spells its options with underscores. Each has an alias with hyphens, as the other options have. A command line
//! of DxDispatch that means something else here must not be accepted silently: options without a meaning are in `ignored`.

mod bench;
mod ignored;

use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use dml_cuda::{
    CompileOptions, DirectMlVersion, FeatureLevel, ParseCompileOptionsError,
    ParseDirectMlVersionError,
};

pub use bench::{Bench, Repeated, Report, ReportFormat, Tier, Tune};

use crate::names::{likeness, nearest};
use crate::out::shown;

/// Run a DxDispatch model on an NVIDIA GPU or on the CPU
///
/// The model uses DML_OPERATOR_FILL_VALUE_SEQUENCE and DML_OPERATOR_REVERSE_SUBSEQUENCES.
#[derive(Parser)]
#[command(name = "dml-cuda", version, arg_required_else_help = true)]
#[command(args_conflicts_with_subcommands = true, args_override_self = true)]
pub struct Options {
    #[command(subcommand)]
    pub command: Option<Command>,

    /// Read the model from this JSON file
    #[arg(value_name = "MODEL.json")]
    pub positional_model: Option<PathBuf>,

    /// Read the model from this JSON file, in DxDispatch's spelling
    #[arg(short = 'm', long = "model", value_name = "MODEL.json")]
    #[arg(hide_short_help = true)]
    pub model: Vec<PathBuf>,

    /// Further models, which --validate checks as well
    #[arg(hide = true)]
    pub more_models: Vec<PathBuf>,

    /// Use the GPU with this text in its name or with this number, or `cpu`
    ///
    /// The default is the first GPU, or the CPU if there is no GPU.
    #[arg(short, long)]
    pub adapter: Option<String>,

    /// Show the devices, then run the model if one is given
    #[arg(short, long = "show_adapters", alias = "show-adapters")]
    #[arg(hide_short_help = true)]
    pub show_adapters: bool,

    /// Show the versions of dml-cuda, of DirectML's rules and of the CUDA driver
    #[arg(short = 'S', long = "show_dependencies", alias = "show-dependencies")]
    #[arg(hide_short_help = true)]
    pub show_dependencies: bool,

    /// Bind, dispatch and wait this many times
    #[arg(
        short = 'i',
        long = "dispatch_iterations",
        alias = "dispatch-iterations"
    )]
    #[arg(default_value_t = 1, value_parser = count)]
    #[arg(help_heading = "Timing", value_name = "N")]
    pub dispatch_iterations: u32,

    /// Dispatch this many times in each iteration
    #[arg(short = 'r', long = "dispatch_repeat", alias = "dispatch-repeat", default_value_t = 1, value_parser = count)]
    #[arg(help_heading = "Timing", value_name = "N")]
    pub dispatch_repeat: u32,

    /// Queue the dispatches of an iteration one by one on a GPU, instead of as one CUDA graph
    #[arg(long)]
    #[arg(help_heading = "Timing", hide_short_help = true)]
    pub no_graph: bool,

    /// Compile operators with these options, such as "specialize=always select=measure" (docs/compile-options.md)
    #[arg(long, value_name = "OPTIONS", default_value = "", hide_default_value = true, value_parser = compile_options)]
    #[arg(help_heading = "Timing", hide_short_help = true)]
    pub compile_options: String,

    /// Run for this many milliseconds, instead of a number of iterations
    #[arg(short = 't', long = "milliseconds_to_run", alias = "milliseconds-to-run", value_parser = count)]
    #[arg(
        help_heading = "Timing",
        hide_short_help = true,
        value_name = "MILLISECONDS"
    )]
    pub milliseconds_to_run: Option<u32>,

    /// Start an iteration at least this many milliseconds after the one before
    #[arg(short = 'I', long = "dispatch_interval", alias = "dispatch-interval")]
    #[arg(default_value_t = 0, value_parser = count)]
    #[arg(
        help_heading = "Timing",
        hide_short_help = true,
        value_name = "MILLISECONDS"
    )]
    pub dispatch_interval: u32,

    /// Exclude up to this many initial samples from the statistics
    #[arg(short = 'w', long = "warmup_samples", alias = "warmup-samples", default_value_t = 1, value_parser = count)]
    #[arg(help_heading = "Timing", hide_short_help = true, value_name = "N")]
    pub warmup_samples: u32,

    /// Print hot medians (0), initialization and cold timings as well (1), or every iteration as well (2)
    #[arg(short = 'v', long = "timing_verbosity", alias = "timing-verbosity")]
    #[arg(default_value_t = 0, value_parser = verbosity)]
    #[arg(help_heading = "Timing", hide_short_help = true, value_name = "LEVEL")]
    pub timing_verbosity: u32,

    /// Time at most this many iterations on the GPU
    #[arg(long = "max_gpu_time_measurements", alias = "max-gpu-time-measurements", value_parser = count)]
    #[arg(help_heading = "Timing", hide_short_help = true, value_name = "N")]
    pub max_gpu_time_measurements: Option<u32>,

    /// Read input files from this folder, instead of the model's folder
    #[arg(long = "input_path", alias = "input-path", value_name = "FOLDER")]
    #[arg(help_heading = "Files", hide_short_help = true)]
    pub input_path: Option<PathBuf>,

    /// Write files into this folder, instead of the current folder
    #[arg(long = "output_path", alias = "output-path", value_name = "FOLDER")]
    #[arg(help_heading = "Files", hide_short_help = true)]
    pub output_path: Option<PathBuf>,

    /// Print each command before it runs
    #[arg(long = "print_commands", alias = "print-commands")]
    #[arg(hide_short_help = true)]
    pub print_commands: bool,

    /// Check each dispatchable against DirectML's rules, without running it
    #[arg(long)]
    #[arg(help_heading = "Checks and explanations")]
    pub validate: bool,

    /// Refuse a model that DxDispatch on Windows would not run in the same way
    #[arg(long, conflicts_with = "explain")]
    #[arg(help_heading = "Checks and explanations")]
    pub strict: bool,

    /// Show how each dispatchable would run, without running it
    ///
    /// Print the merged shape, candidate kernels with estimated times, grids, bytes, and why other kernels were
    /// rejected.
    #[arg(long, conflicts_with = "validate")]
    #[arg(help_heading = "Checks and explanations")]
    pub explain: bool,

    /// Explain for this GPU, which the machine need not have: t4, l4, a100, h100, h200, b200, or
    /// shared=KIB,sm=COUNT[,clusters] and more figures (docs/cli.md)
    #[arg(long, requires = "explain", conflicts_with = "adapter")]
    #[arg(help_heading = "Checks and explanations", hide_short_help = true)]
    pub target: Option<dml_cuda::GpuTarget>,

    /// Validate by the rules of this version of DirectML, such as 1.8.0, or list with `all` the recorded versions that
    /// accept
    #[arg(long, value_name = "VERSION", value_parser = versions)]
    #[arg(requires = "validate", conflicts_with = "feature_level")]
    #[arg(help_heading = "Checks and explanations", hide_short_help = true)]
    pub directml: Option<Versions>,

    /// Apply the rules of this feature level, such as 5_0
    #[arg(long = "feature-level", aliases = ["feature_level", "dml_feature_level"], value_name = "LEVEL")]
    #[arg(default_value = FeatureLevel::HIGHEST.name())]
    #[arg(help_heading = "Checks and explanations", hide_short_help = true)]
    pub feature_level: FeatureLevel,

    /// Print DxDispatch's lines, or one JSON object per line
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,

    /// The names of given options that have no meaning here
    #[arg(skip)]
    pub ignored: Vec<&'static str>,
}

impl Options {
    /// Reads the command line. An error suggests the command that a mistyped word may mean, and repeats no word without
    /// end.
    pub fn read() -> Result<Self, clap::Error> {
        let read = Self::parsed();
        let is_odd = match &read {
            Ok(options) => !options.more_models.is_empty(),
            Err(error) => error.use_stderr(),
        };
        if is_odd {
            let words = std::env::args_os()
                .skip(1)
                .map(|word| word.to_string_lossy().into_owned());
            let words: Vec<String> = words.take_while(|word| word != "--").collect();
            if let Some(said) = mistyped(&words) {
                let kind = ErrorKind::InvalidSubcommand;
                return Err(Self::command().error(kind, said));
            }
        }
        read.map_err(shortened)
    }

    /// The command line as it is, or clap's error.
    fn parsed() -> Result<Self, clap::Error> {
        let command = with_negative_values(ignored::accepted_by(Self::command()));
        let matches = command.try_get_matches()?;
        let mut options = Self::from_arg_matches(&matches)?;
        options.ignored = ignored::given(&matches);
        Ok(options)
    }

    /// Whether the dispatches of an iteration are a graph on a GPU. A single dispatch without timing options is not.
    pub fn uses_graph(&self) -> bool {
        let is_timed = self.milliseconds_to_run.is_some() || self.timing_verbosity > 0;
        !self.no_graph && (is_timed || self.dispatch_iterations != 1 || self.dispatch_repeat != 1)
    }
}

/// Shortens the words of an error that are too long to be shown. A suggestion for such a word would not help.
fn shortened(mut error: clap::Error) -> clap::Error {
    let mut short = Vec::new();
    for (kind, value) in error.context() {
        if let ContextValue::String(word) = value {
            let shown = shown(word);
            if shown.ends_with('…') {
                short.push((kind, shown));
            }
        }
    }
    for (kind, word) in short {
        error.insert(kind, ContextValue::String(word));
        error.remove(ContextKind::Suggested);
    }
    error
}

/// Lets options take values that begin with a minus, so that an error is about the value and not about an option.
fn with_negative_values(command: clap::Command) -> clap::Command {
    command
        .mut_args(|arg| {
            let is_option = arg.get_action().takes_values() && !arg.is_positional();
            arg.allow_negative_numbers(is_option)
        })
        .mut_subcommands(with_negative_values)
}

/// The message of an error of the command line, which begins like those of all other errors.
pub fn message(error: &clap::Error) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    format!("ERROR: {}", text.trim_end())
}

/// A parser of whole numbers in a range.
fn within(
    least: u32,
    most: u32,
) -> impl Fn(&str) -> Result<u32, String> + Clone + Send + Sync + 'static {
    move |text| match text.parse() {
        Ok(value) if (least..=most).contains(&value) => Ok(value),
        _ => Err(format!("must be a whole number from {least} to {most}")),
    }
}

/// The message for a word that resembles a command, if no command is given.
pub fn mistyped(words: &[String]) -> Option<String> {
    let command = Options::command();
    let visible = command
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    let names: Vec<&str> = visible.map(clap::Command::get_name).collect();
    if words.iter().any(|word| names.contains(&word.as_str())) {
        return None;
    }
    for word in words {
        // A word with a dot or a folder is the name of a file.
        if word.contains(['.', '/', '\\']) {
            continue;
        }
        match nearest(word, &names) {
            Some(name) if likeness(word, name) > 0.85 => {
                return Some(format!(
                    "there is no command '{word}'; did you mean '{name}'?"
                ));
            }
            _ => {}
        }
    }
    None
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
    if text == "all" {
        return Ok(Versions::All);
    }
    let release = format!("{text}.");
    for version in DirectMlVersion::recorded() {
        if text.contains('.') && version.to_string().starts_with(&release) {
            return Ok(Versions::One(version));
        }
    }
    text.parse().map(Versions::One)
}

/// The string of compile options, which come on top of those of the environment.
fn compile_options(text: &str) -> Result<String, ParseCompileOptionsError> {
    text.parse::<CompileOptions>().map(|_| text.to_owned())
}

/// A number as DxDispatch reads it: `0x2` is 2.
fn count(text: &str) -> Result<u32, String> {
    let (digits, radix) = text
        .strip_prefix("0x")
        .map_or((text, 10), |digits| (digits, 16));
    match u32::from_str_radix(digits, radix) {
        Ok(number) if !digits.starts_with('+') => Ok(number),
        _ => Err(format!("must be a number from 0 to {}", u32::MAX)),
    }
}

/// DxDispatch has three levels.
fn verbosity(text: &str) -> Result<u32, String> {
    match count(text) {
        Ok(level @ 0..=2) => Ok(level),
        _ => Err("must be 0, 1 or 2".to_owned()),
    }
}

#[derive(Subcommand)]
pub enum Command {
    /// Time cases and write a results file
    Bench(Bench),
    /// Show a results file, or compare several with the first one
    Report(Report),
    /// Time every kernel on random layouts and report how much the cost model loses
    Tune(Tune),
    /// Write the models of `bench` into a folder, for reading or for other tools
    Suite {
        /// Write into this new or empty folder
        folder: PathBuf,
        /// Limit the size of the tensors
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
    /// Print the JSON Schema of models, by which editors complete and check them
    Schema,
    /// Print the completion script of a shell
    Completions {
        /// Print the script of this shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print the manual page of dml-cuda, or of one of its commands
    Man {
        /// Print the page of this command, instead of that of dml-cuda
        #[arg(value_name = "COMMAND")]
        command: Option<String>,
    },
}
