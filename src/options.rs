//! Options of compiled operators. One string sets them in the environment, C, Python and on the command line.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use crate::text::echoed;

/// When the driver compiles kernels with the sizes and strides of one operator as constants. A generic kernel reads
/// them, and serves every operator.
///
/// A specialized kernel is up to 1.2 times as fast where little work is done, and rarely slower. The driver compiles it
/// in some 13 ms, or takes it from its cache on disk in less than 1 ms: this is for fixed shapes. If the driver cannot
/// compile it, the generic kernel runs, without an error. Nothing changes on the CPU.
///
/// Specialized kernels stay loaded while the process uses the GPU through any object of this crate, so that graphs that
/// captured them can be replayed after the operator is gone. At most [`MAX_KEPT`](Self::MAX_KEPT) stay per GPU. Further
/// ones are generic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Specialize {
    /// Only for dispatches that are captured into a CUDA graph, which are compiled once and replayed for ever. The
    /// first one that is captured takes the time to compile. Drivers older than CUDA 12.3 cannot compile during a
    /// capture: there, captured dispatches take kernels that are already loaded.
    #[default]
    InGraphs,
    /// For every dispatch, when the operator is compiled.
    Always,
    /// For no dispatch.
    Never,
}

impl Specialize {
    /// How many specialized kernels stay loaded.
    pub const MAX_KEPT: usize = 1024;
}

/// Writes the value of the option `specialize`.
impl fmt::Display for Specialize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(text_of(SPECIALIZE, *self))
    }
}

/// How an operator is compiled.
///
/// ```
/// use dml_cuda::{CompileOptions, Specialize};
/// let options: CompileOptions = "specialize=always".parse()?;
/// assert_eq!(options, CompileOptions::default().with_specialize(Specialize::Always));
/// assert_eq!(options.to_string(), "specialize=always select=estimate");
/// # Ok::<(), dml_cuda::ParseCompileOptionsError>(())
/// ```
///
#[doc = include_str!(concat!(env!("OUT_DIR"), "/compile-options.md"))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CompileOptions {
    /// `specialize`.
    pub specialize: Specialize,
    /// `select`: whether kernels are measured. That takes milliseconds, and memory for both tensors or three times the
    /// L2 cache, whichever is more. If kernels cannot be timed, the estimate chooses, without an error.
    pub measure: bool,
}

/// The strings of all options, for errors.
const OPTIONS: &str = "specialize=in_graphs|always|never, select=estimate|measure";

/// The strings of an option's values.
type Values<T> = &'static [(&'static str, T)];

const SPECIALIZE: Values<Specialize> = &[
    ("in_graphs", Specialize::InGraphs),
    ("always", Specialize::Always),
    ("never", Specialize::Never),
];
const SELECT: Values<bool> = &[("estimate", false), ("measure", true)];

impl CompileOptions {
    /// These options with [specialized](Specialize) kernels or generic ones.
    pub fn with_specialize(self, specialize: Specialize) -> Self {
        Self { specialize, ..self }
    }

    /// These options with kernels that are chosen by [measuring](Self::measure) them, or by an estimate.
    pub fn with_measure(self, measure: bool) -> Self {
        Self { measure, ..self }
    }

    /// These options with those of a string, of which a later one wins.
    ///
    /// # Errors
    ///
    /// The string has an unknown option or value.
    pub fn with_text(self, text: &str) -> Result<Self, ParseCompileOptionsError> {
        text.split_whitespace().try_fold(self, |options, option| {
            options
                .with_option(option)
                .ok_or_else(|| ParseCompileOptionsError {
                    place: "",
                    found: echoed(option),
                })
        })
    }

    fn with_option(mut self, option: &str) -> Option<Self> {
        let (key, text) = option.split_once('=')?;
        match key {
            "specialize" => self.specialize = value_of(SPECIALIZE, text)?,
            "select" => self.measure = value_of(SELECT, text)?,
            _ => return None,
        }
        Some(self)
    }

    /// The options that the environment sets when the process first asks.
    pub(crate) fn of_environment() -> Result<Self, ParseCompileOptionsError> {
        static READ: OnceLock<Result<CompileOptions, ParseCompileOptionsError>> = OnceLock::new();
        let read = || {
            let text = std::env::var_os("DML_CUDA_COMPILE_OPTIONS").unwrap_or_default();
            let in_variable = |error| ParseCompileOptionsError {
                place: "in DML_CUDA_COMPILE_OPTIONS, ",
                ..error
            };
            text.to_string_lossy().parse().map_err(in_variable)
        };
        READ.get_or_init(read).clone()
    }
}

/// Writes the string of all options, which reads as the same options.
impl fmt::Display for CompileOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "specialize={} select={}",
            self.specialize,
            text_of(SELECT, self.measure)
        )
    }
}

/// Reads the defaults [with a string](CompileOptions::with_text).
impl FromStr for CompileOptions {
    type Err = ParseCompileOptionsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::default().with_text(text)
    }
}

/// A string of [`CompileOptions`] has an option or a value that is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{place}the compile option is `{found}`, but must be one of {}",
    OPTIONS
)]
pub struct ParseCompileOptionsError {
    place: &'static str,
    found: String,
}

fn value_of<T: Copy>(values: Values<T>, text: &str) -> Option<T> {
    values
        .iter()
        .find(|(known, _)| *known == text)
        .map(|&(_, value)| value)
}

fn text_of<T: PartialEq>(values: Values<T>, value: T) -> &'static str {
    values
        .iter()
        .find(|(_, known)| *known == value)
        .map_or("", |(text, _)| text)
}
