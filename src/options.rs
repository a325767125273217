//! Options of compiled operators. One string sets them in the environment, C, Python and on the command line.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use crate::address::Address;
use crate::text::{echoed, number};

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
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
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

/// How an operator is compiled, and properties that all its dispatches share. A dispatch that differs fails.
///
/// ```
/// use dml_cuda::{CompileOptions, Specialize};
/// let options: CompileOptions = "specialize=always in_place=never".parse()?;
/// assert_eq!(options, CompileOptions::default().with_specialize(Specialize::Always).with_in_place(false));
/// assert_eq!(options.to_string(), "specialize=always select=estimate alignment=0 in_place=never");
/// # Ok::<(), dml_cuda::ParseCompileOptionsError>(())
/// ```
///
#[doc = include_str!("../docs/compile-options.md")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CompileOptions {
    /// `alignment`, in bytes, of the first elements of the first input and of the output. For bound buffers, 16 is
    /// always right.
    pub pointer_alignment: u32,
    /// `in_place`: always, never, or either (`None`).
    pub in_place: Option<bool>,
    /// `specialize`.
    pub specialize: Specialize,
    /// `select`: whether kernels are measured. That takes milliseconds, and memory for both tensors or three times the
    /// L2 cache, whichever is more. If kernels cannot be timed, the estimate chooses, without an error.
    pub measure: bool,
}

/// The strings of all options, for errors.
const OPTIONS: &str =
    "specialize=in_graphs|always|never, select=estimate|measure, alignment=0|1|2|4|…|2147483648, in_place=either|always|never";

/// The strings of an option's values.
type Values<T> = &'static [(&'static str, T)];

const SPECIALIZE: Values<Specialize> =
    &[("in_graphs", Specialize::InGraphs), ("always", Specialize::Always), ("never", Specialize::Never)];
const SELECT: Values<bool> = &[("estimate", false), ("measure", true)];
const IN_PLACE: Values<Option<bool>> = &[("either", None), ("always", Some(true)), ("never", Some(false))];

impl CompileOptions {
    /// These options with a [`pointer_alignment`](Self::pointer_alignment).
    pub fn with_pointer_alignment(self, pointer_alignment: u32) -> Self {
        Self { pointer_alignment, ..self }
    }

    /// These options for dispatches that are always (`true`), never or sometimes (`None`) [`in_place`](Self::in_place).
    pub fn with_in_place(self, in_place: impl Into<Option<bool>>) -> Self {
        Self { in_place: in_place.into(), ..self }
    }

    /// These options with [specialized](Specialize) kernels or generic ones.
    pub fn with_specialize(self, specialize: Specialize) -> Self {
        Self { specialize, ..self }
    }

    /// These options with kernels that are chosen by [measuring](Self::measure) them, or by an estimate.
    pub fn with_measure(self, measure: bool) -> Self {
        Self { measure, ..self }
    }

    /// The options for dispatches with the first input and the output at these addresses, or at others that are as
    /// aligned to 16 bytes, and in place or not, as these are. What these options already promise stays. No kernel
    /// depends on the alignment of the lengths.
    pub fn with_addresses(self, input: Option<Address>, output: Address) -> Self {
        let is_aligned = (input.unwrap_or_default().0 | output.0).is_multiple_of(16);
        let alignment = if self.pointer_alignment == 0 && is_aligned { 16 } else { self.pointer_alignment };
        self.with_pointer_alignment(alignment).with_in_place(self.in_place.unwrap_or(input == Some(output)))
    }

    /// These options with those of a string, of which a later one wins.
    ///
    /// # Errors
    ///
    /// The string has an unknown option or value.
    pub fn with_text(self, text: &str) -> Result<Self, ParseCompileOptionsError> {
        text.split_whitespace().try_fold(self, |options, option| {
            options.with_option(option).ok_or_else(|| ParseCompileOptionsError { place: "", found: echoed(option) })
        })
    }

    fn with_option(mut self, option: &str) -> Option<Self> {
        let (key, text) = option.split_once('=')?;
        match key {
            "specialize" => self.specialize = value_of(SPECIALIZE, text)?,
            "select" => self.measure = value_of(SELECT, text)?,
            "alignment" => self.pointer_alignment = number(text).filter(is_alignment)?,
            "in_place" => self.in_place = value_of(IN_PLACE, text)?,
            _ => return None,
        }
        Some(self)
    }

    /// The options that the environment sets when the process first asks.
    pub(crate) fn of_environment() -> Result<Self, ParseCompileOptionsError> {
        static READ: OnceLock<Result<CompileOptions, ParseCompileOptionsError>> = OnceLock::new();
        let read = || {
            let text = std::env::var_os("DML_CUDA_COMPILE_OPTIONS").unwrap_or_default();
            let in_variable = |error| ParseCompileOptionsError { place: "in DML_CUDA_COMPILE_OPTIONS, ", ..error };
            text.to_string_lossy().parse().map_err(in_variable)
        };
        READ.get_or_init(read).clone()
    }
}

/// Writes the string of all options, which reads as the same options.
impl fmt::Display for CompileOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { specialize, pointer_alignment: alignment, .. } = self;
        let (select, in_place) = (text_of(SELECT, self.measure), text_of(IN_PLACE, self.in_place));
        write!(f, "specialize={specialize} select={select} alignment={alignment} in_place={in_place}")
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
#[error("{place}the compile option is `{found}`, but must be one of {}", OPTIONS)]
pub struct ParseCompileOptionsError {
    place: &'static str,
    found: String,
}

/// Whether [`CompileOptions::pointer_alignment`] may be this.
pub(crate) fn is_alignment(bytes: &u32) -> bool {
    *bytes == 0 || bytes.is_power_of_two()
}

fn value_of<T: Copy>(values: Values<T>, text: &str) -> Option<T> {
    values.iter().find(|(known, _)| *known == text).map(|&(_, value)| value)
}

fn text_of<T: PartialEq>(values: Values<T>, value: T) -> &'static str {
    values.iter().find(|(_, known)| *known == value).map_or("", |(text, _)| text)
}
