//! What a model prints while it runs: DxDispatch's lines, or with `--format json` one object per line.
//!
//! An event usually has both forms, so that a script gets every fact that a reader sees. Only DxDispatch's line before an
//! operator is compiled is text alone:
//!
//! ```text
//! Initialize 'a': 0.0210 ms
//! {"event":"initialize","dispatchable":"a","milliseconds":0.021}
//! ```

use std::fmt::Display;

use dml_cuda::{CompileOptions, CompiledOperator, Device, Outcome, Specialize, TensorDataType};
use serde_json::{json, Value};

use super::samples::Samples;
use crate::model::value::{from_bytes, Number};
use crate::options::Format;
use crate::out::{self, say, shown};

/// Writes an object as one line.
pub fn line(event: &Value) -> Result<(), String> {
    out::with(|out| writeln!(out, "{event}"))
}

/// Writes an event as one line of JSON, or the same as text.
pub fn tell(format: Format, event: &Value, text: impl Display) -> Result<(), String> {
    match format {
        Format::Json => line(event),
        Format::Text => say!("{text}"),
    }
}

/// The first event: the device, and how samples are taken on it.
pub fn device(device: &Device, graph: bool, options: CompileOptions) -> Value {
    let properties = device.cuda_properties();
    let timing = match properties {
        Some(_) if graph => {
            "events on the GPU around the launches of an iteration, which are one CUDA graph"
        }
        Some(_) => "events on the GPU around launches that are queued one by one",
        None => "the host's clock around the dispatches of an iteration",
    };
    let kernels = properties.map_or("", |_| of_kernels(options, graph));
    json!({
        "event": "device",
        "name": device.name(),
        "driver": properties.map_or_else(String::new, cuda_version),
        "pci": properties.map_or("", |properties| &properties.pci_bus_id),
        "timing": format!("{timing}, the same buffers every time{kernels}"),
    })
}

/// The end of a line about timing. `graph`: whether dispatches are captured.
pub fn of_kernels(options: CompileOptions, graph: bool) -> &'static str {
    let is_captured = graph && options.specialize == Specialize::InGraphs;
    let is_specialized = is_captured || options.specialize == Specialize::Always;
    match (is_specialized, options.measure) {
        (false, false) => "",
        (false, true) => ", measured kernels",
        (true, false) => ", specialized kernels",
        (true, true) => ", specialized and measured kernels",
    }
}

/// The CUDA version of a driver.
pub fn cuda_version(properties: &dml_cuda::Properties) -> String {
    format!(
        "CUDA {}.{}",
        properties.driver_version / 1000,
        properties.driver_version % 1000 / 10
    )
}

/// The kernel that a dispatch of buffers takes, with its variant. Empty on a CPU, and where nothing moves.
pub fn kernel_of(operator: &CompiledOperator, in_place: bool) -> String {
    let explanation = operator.explain();
    let Some(mode) = explanation
        .modes
        .iter()
        .find(|mode| mode.in_place == in_place)
    else {
        return String::new();
    };
    match mode
        .kernels
        .iter()
        .find(|kernel| matches!(kernel.outcome, Outcome::Chosen(_)))
    {
        Some(chosen) if chosen.variant.is_empty() => chosen.kernel.clone(),
        Some(chosen) => format!("{}, {}", chosen.kernel, chosen.variant),
        None => String::new(),
    }
}

/// A dispatch and its samples. `kernel` is empty if it has none.
pub fn dispatched(name: &str, samples: &Samples, repeat: u32, kernel: &str) -> Value {
    let mut event = json!({
        "event": "dispatch",
        "dispatchable": name,
        "dispatches": repeat,
        "cpu_milliseconds": finite(&samples.cpu),
        "gpu_milliseconds": finite(&samples.gpu),
    });
    if !kernel.is_empty() {
        event["kernel"] = json!(kernel);
    }
    event
}

/// The samples that JSON can express. No dispatches take no time: DxDispatch divides by their number, and prints `inf`.
fn finite(samples: &[f64]) -> Vec<f64> {
    let mut samples = samples.to_vec();
    for sample in &mut samples {
        if !sample.is_finite() {
            *sample = 0.0;
        }
    }
    samples
}

/// Prints the elements of a resource, part by part.
pub struct Print<'a> {
    pub format: Format,
    pub name: &'a str,
    pub data_type: TensorDataType,
    /// Elements of all parts.
    pub count: u64,
    /// A line for each element, with its index and its bits.
    pub verbose: bool,
}

impl Print<'_> {
    /// What comes before the first element.
    fn begin(&self) -> String {
        let Self {
            name, data_type, ..
        } = self;
        match self.format {
            Format::Json => format!(
                r#"{{"event":"print","resource":{},"type":"{data_type}","values":["#,
                json!(name)
            ),
            Format::Text if self.verbose => format!("Resource '{}':\n", shown(name)),
            Format::Text => format!("Resource '{}': ", shown(name)),
        }
    }

    /// Prints the elements from `first` on. Nothing is printed before the first part was read.
    pub fn part(&self, first: u64, bytes: &[u8]) -> Result<(), String> {
        let width = (self.data_type.size_in_bits() / 8) as usize;
        let index_width = self.count.to_string().len();
        let begin = self.begin();
        let between = match self.format {
            Format::Json => ",",
            Format::Text if self.verbose => "\n",
            Format::Text => ", ",
        };
        // One lock and one buffer for all elements of the part.
        out::with(|out| {
            for (n, element) in (first..).zip(bytes.chunks_exact(width).map(from_bytes)) {
                let number = Number::new(element, self.data_type);
                let text = match self.format {
                    Format::Json => number.shortest(self.data_type),
                    Format::Text if self.verbose => {
                        format!("[{n:index_width$}] {number} (0x{element:0$X})", width * 2)
                    }
                    Format::Text => number.to_string(),
                };
                write!(out, "{}{text}", if n == 0 { &begin } else { between })?;
            }
            Ok(())
        })
    }

    /// Prints the end of the line, and its begin if there is no element.
    pub fn end(&self) -> Result<(), String> {
        let begin = match self.count {
            0 => self.begin(),
            _ => String::new(),
        };
        let end = match self.format {
            Format::Json => "]}",
            Format::Text if self.verbose => "\n",
            Format::Text => "",
        };
        say!("{begin}{end}")
    }
}
