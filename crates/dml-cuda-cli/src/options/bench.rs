//! The options of `bench`, `tune`, `report` and the hidden commands. The doc comments are the help texts.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Deserialize;

use super::within;

#[derive(Args)]
pub struct Bench {
    /// Write the results to this file, or to standard output if it is `-`
    #[arg(short, long, value_name = "RESULTS.json")]
    pub output: PathBuf,
    /// Replace an older results file, once the new one is complete
    #[arg(long)]
    pub overwrite: bool,
    /// Limit the size of the tensors
    #[arg(long, value_enum, default_value_t = Tier::Standard)]
    pub tier: Tier,
    /// Time only cases whose names contain this text
    ///
    /// This skips the baselines, so a report cannot compare two results files of one device.
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub only: Option<String>,
    /// Take this many samples of each case, at most 1000
    #[arg(long, default_value_t = 30, value_parser = within(1, 1000))]
    pub samples: u32,
    /// Stop a case after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = within(1, u32::MAX))]
    #[arg(hide_short_help = true)]
    pub timeout: u32,
    /// Time the cases with this program, such as DxDispatch, or with `onnxruntime` [default: dml-cuda]
    ///
    /// This is the path of DxDispatch or of a program with the same output, or the word `onnxruntime`.
    #[arg(long, value_name = "PROGRAM")]
    pub runner: Option<PathBuf>,
    /// Use the runner's device with this text in its name or with this number, or `cpu`
    #[arg(short, long)]
    pub adapter: Option<String>,
    /// Time on a GPU with a cold L2 cache, and check the results
    ///
    /// Each case has random data and is timed next to its own baseline.
    #[arg(long, conflicts_with_all = ["runner", "tier"])]
    pub cold_l2: bool,
    /// Use this execution provider of ONNX Runtime: cuda, cpu, dml, or the name of another
    #[arg(long)]
    #[arg(help_heading = "ONNX Runtime", hide_short_help = true)]
    pub provider: Option<String>,
    /// Load an execution provider from this library, and take --adapter as the number of one of its devices
    #[arg(long, value_name = "PATH", conflicts_with_all = ["provider", "library"])]
    #[arg(help_heading = "ONNX Runtime", hide_short_help = true)]
    pub provider_library: Option<PathBuf>,
    /// Run ONNX Runtime with this Python program, which has onnxruntime and onnx
    #[arg(long, value_name = "PROGRAM")]
    #[arg(help_heading = "ONNX Runtime", hide_short_help = true)]
    pub python: Option<PathBuf>,
    /// Replace ONNX Runtime's kernels with those of this library, libdml_cuda.so or dml_cuda.dll
    #[arg(long)]
    #[arg(help_heading = "ONNX Runtime", hide_short_help = true)]
    pub library: Option<PathBuf>,
}

#[derive(Args)]
pub struct Tune {
    /// Time the layouts in this file, one JSON object per line, instead of random ones
    #[arg(value_name = "LAYOUTS.jsonl", conflicts_with_all = ["seed", "count"])]
    pub layouts: Option<PathBuf>,
    /// Draw the random layouts with this seed
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Draw this many layouts, of which 500 take minutes
    #[arg(long, default_value_t = 500, value_parser = within(1, 100_000))]
    pub count: u32,
    /// Write the times of all kernels to this new file, which scripts/fit-estimates.py reads
    #[arg(short, long, value_name = "TIMES.csv")]
    pub output: Option<PathBuf>,
    /// Use the GPU with this text in its name or with this number [default: the first GPU]
    #[arg(short, long)]
    pub adapter: Option<String>,
}

/// How large the tensors of a bench may be, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
#[repr(u64)]
pub enum Tier {
    /// Use tensors of up to 64 MiB
    Quick = 64 << 20,
    /// Use tensors of up to 512 MiB
    Standard = 512 << 20,
    /// Use tensors of up to 2 GiB, the most that Direct3D 12 guarantees
    Full = 2 << 30,
}

#[derive(Args)]
pub struct Report {
    /// Show these results files of `bench`, compared with the first one
    ///
    /// There are at most eight. `-` is standard input.
    #[arg(value_name = "RESULTS.json", num_args = 1..=8, required = true)]
    pub files: Vec<PathBuf>,
    /// Count differences below this many percent as SAME
    #[arg(long, default_value_t = 5.0, value_parser = percent)]
    #[arg(hide_short_help = true)]
    pub threshold: f64,
    /// List the cases that only one of two files has, in a table or Markdown
    #[arg(long, hide_short_help = true)]
    pub all_cases: bool,
    /// Exit with status 1 on a regression, and with 2 if the machines are not comparable
    ///
    /// A regression is a case that is SLOWER, fails or is missing, or an output that differs or is missing. The
    /// machines are not comparable if the baselines of one device differ, fewer than a third of them are SAME, or no case
    /// has a time in both files. Results of two devices are compared as they are.
    #[arg(long)]
    #[arg(help_heading = "Pipelines")]
    pub fail_on_slower: bool,
    /// Allow outputs that differ
    #[arg(long, requires = "fail_on_slower")]
    #[arg(help_heading = "Pipelines", hide_short_help = true)]
    pub allow_different_outputs: bool,
    /// Allow cases and outputs that are missing from a results file
    #[arg(long, requires = "fail_on_slower")]
    #[arg(help_heading = "Pipelines", hide_short_help = true)]
    pub allow_missing: bool,
    /// Write this format [default: by --output, else a table]
    #[arg(long, value_enum)]
    pub format: Option<ReportFormat>,
    /// Write the report to this file, instead of standard output
    #[arg(short, long)]
    pub output: Option<PathBuf>,
    /// Replace an older report
    #[arg(long)]
    pub overwrite: bool,
    /// Give a results file this name in the report, in the order of the files
    #[arg(long)]
    pub label: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// Write columns for a terminal
    #[value(alias = "txt")]
    Table,
    /// Write Markdown for a page of a repository
    #[value(alias = "md")]
    Markdown,
    /// Write all cases for a spreadsheet
    Csv,
    /// Write all figures as data
    Json,
    /// Write one page with a chart, for a browser
    #[value(alias = "htm")]
    Html,
    /// Write only the chart
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
    #[arg(short, default_value_t = 1, value_parser = within(1, u32::MAX))]
    pub iterations: u32,
    #[arg(short, default_value_t = 1, value_parser = within(1, u32::MAX))]
    pub repeat: u32,
    #[arg(short, long)]
    pub adapter: Option<String>,
}
