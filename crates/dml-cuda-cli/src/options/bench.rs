//! The options of `bench`, `report` and the hidden commands.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Deserialize;

#[derive(Args)]
pub struct Bench {
    /// The run that is written; `-` is standard output
    #[arg(short, long, value_name = "RUN.json")]
    pub output: PathBuf,
    /// Replace an older run, once this one is complete
    #[arg(long)]
    pub overwrite: bool,
    /// How large the tensors are
    #[arg(long, value_enum, default_value_t = Tier::Standard)]
    pub tier: Tier,
    /// Only cases whose names hold this
    ///
    /// Baselines are left out, without which a report decides nothing about two runs on one device.
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub only: Option<String>,
    /// Samples of a case, at most 1000
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub samples: u32,
    /// Seconds that a case may take
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..))]
    #[arg(hide_short_help = true)]
    pub timeout: u32,
    /// What runs the cases: DxDispatch or `onnxruntime` [default: this program]
    ///
    /// A path, such as that of DxDispatch or of a program with the same output, or the word `onnxruntime`.
    #[arg(long, value_name = "PROGRAM")]
    pub runner: Option<PathBuf>,
    /// The runner's device: part of a name, or a number
    #[arg(short, long)]
    pub adapter: Option<String>,
    /// Time on a GPU with a cold L2, and check the results
    ///
    /// Each case has random data and is next to its own baseline.
    #[arg(long, conflicts_with_all = ["runner", "tier"])]
    pub cold_l2: bool,
    /// With --runner onnxruntime: cuda, cpu, dml, or the name of an execution provider
    #[arg(long)]
    #[arg(help_heading = "ONNX Runtime", hide_short_help = true)]
    pub provider: Option<String>,
    /// With --runner onnxruntime: a library with an execution provider; --adapter is the number of one of its devices
    #[arg(long, value_name = "PATH", conflicts_with_all = ["provider", "library"])]
    #[arg(help_heading = "ONNX Runtime", hide_short_help = true)]
    pub provider_library: Option<PathBuf>,
    /// With --runner onnxruntime: the Python program that has onnxruntime and onnx
    #[arg(long, value_name = "PROGRAM")]
    #[arg(help_heading = "ONNX Runtime", hide_short_help = true)]
    pub python: Option<PathBuf>,
    /// With --runner onnxruntime: libdml_cuda.so or dml_cuda.dll, whose kernels replace ONNX Runtime's
    #[arg(long)]
    #[arg(help_heading = "ONNX Runtime", hide_short_help = true)]
    pub library: Option<PathBuf>,
}

#[derive(Args)]
pub struct Tune {
    /// Layouts, a JSON object a line, instead of random ones
    #[arg(value_name = "LAYOUTS.jsonl", conflicts_with_all = ["seed", "count"])]
    pub layouts: Option<PathBuf>,
    /// Another seed draws other layouts
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// How many layouts are drawn; 500 take minutes
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub count: u32,
    /// A new file for the times of all kernels, which scripts/fit-estimates.py reads
    #[arg(short, long, value_name = "TIMES.csv")]
    pub output: Option<PathBuf>,
    /// The GPU: part of its name, or a number [default: the first GPU]
    #[arg(short, long)]
    pub adapter: Option<String>,
}

/// How large the tensors of a bench may be, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
#[repr(u64)]
pub enum Tier {
    /// Tensors of up to 64 MiB
    Quick = 64 << 20,
    /// Tensors of up to 512 MiB
    Standard = 512 << 20,
    /// Tensors of up to 2 GiB, the most that Direct3D 12 guarantees
    Full = 2 << 30,
}

#[derive(Args)]
pub struct Report {
    /// Runs of `bench`; the others are compared with the first
    ///
    /// There are at most eight. `-` is standard input.
    #[arg(value_name = "RUN.json", num_args = 1..=8, required = true)]
    pub runs: Vec<PathBuf>,
    /// Differences below this many percent count as SAME
    #[arg(long, default_value_t = 5.0, value_parser = percent)]
    #[arg(hide_short_help = true)]
    pub threshold: f64,
    /// Exit 1 if a run is worse than the first one, and 2 if that is not known
    ///
    /// It is worse if a case is SLOWER or failed, an output differs, or a case or an output is missing. It is not known
    /// if the baselines of one device differ, so that the machine was not the same. Runs of two devices are compared as
    /// they are.
    #[arg(long)]
    #[arg(help_heading = "Pipelines")]
    pub fail_on_slower: bool,
    /// With --fail-on-slower, allow different outputs
    #[arg(long, requires = "fail_on_slower")]
    #[arg(help_heading = "Pipelines", hide_short_help = true)]
    pub allow_different_outputs: bool,
    /// With --fail-on-slower, allow cases and outputs that are missing from a run
    #[arg(long, requires = "fail_on_slower")]
    #[arg(help_heading = "Pipelines", hide_short_help = true)]
    pub allow_missing: bool,
    /// [default: by the extension of --output, else a table]
    #[arg(long, value_enum)]
    pub format: Option<ReportFormat>,
    /// The file to write, instead of standard output
    #[arg(short, long)]
    pub output: Option<PathBuf>,
    /// Replace an older report
    #[arg(long)]
    pub overwrite: bool,
    /// A run's name in the report, in the order of the runs
    #[arg(long)]
    pub label: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// Columns for a terminal
    #[value(alias = "txt")]
    Table,
    /// For a page of a repository
    #[value(alias = "md")]
    Markdown,
    /// For a spreadsheet
    Csv,
    /// All figures
    Json,
    /// One page with a chart, for a browser
    #[value(alias = "htm")]
    Html,
    /// The chart alone
    Svg,
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if (0.0..=1e6).contains(&value) => Ok(value),
        _ => Err("must be a percentage of 0 or more".to_owned()),
    }
}

/// How often the hidden command does its work, and where.
#[derive(Args)]
pub struct Repeated {
    #[arg(short, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub iterations: u32,
    #[arg(short, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: u32,
    #[arg(short, long)]
    pub adapter: Option<String>,
}
