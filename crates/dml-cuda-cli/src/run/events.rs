//! The output of a run: DxDispatch's lines, or with `--format json` one object per line.

use std::fmt::Display;

use dml_cuda::{Device, TensorDataType};
use serde_json::{json, Value};

use super::samples::{report, Samples};
use crate::model::value::{from_bytes, Number};
use crate::options::{Format, Options};
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
pub fn device(device: &Device, graph: bool) -> Value {
    let properties = device.cuda_properties();
    let timing = match properties {
        Some(_) if graph => {
            "events on the GPU around the launches of an iteration, which are one CUDA graph, the same buffers every time"
        }
        Some(_) => "events on the GPU around launches that are queued one by one, the same buffers every time",
        None => "the host's clock around the dispatches of an iteration, the same buffers every time",
    };
    json!({
        "event": "device",
        "name": device.name(),
        "driver": properties.map_or_else(String::new, cuda_version),
        "pci": properties.map_or("", |properties| &properties.pci_bus_id),
        "timing": timing,
    })
}

/// The CUDA version of a driver.
pub fn cuda_version(properties: &dml_cuda::Properties) -> String {
    format!("CUDA {}.{}", properties.driver_version / 1000, properties.driver_version % 1000 / 10)
}

/// A dispatch and its samples.
pub fn dispatched(name: &str, samples: &Samples, repeat: u32) -> Value {
    // No dispatches take no time. DxDispatch divides by their number, and prints `inf`.
    let finite = |samples: &[f64]| -> Vec<f64> {
        samples.iter().map(|sample| if sample.is_finite() { *sample } else { 0.0 }).collect()
    };
    json!({
        "event": "dispatch",
        "dispatchable": name,
        "dispatches": repeat,
        "cpu_milliseconds": finite(&samples.cpu),
        "gpu_milliseconds": finite(&samples.gpu),
    })
}

/// Prints events in the requested format.
pub struct Printer<'a> {
    pub options: &'a Options,
}

impl Printer<'_> {
    fn is_json(&self) -> bool {
        self.options.format == Format::Json
    }

    fn tell(&self, event: Value, text: impl Display) -> Result<(), String> {
        tell(self.options.format, &event, text)
    }

    pub fn running_on(&self, on: &Device) -> Result<(), String> {
        self.tell(device(on, !self.options.no_graph), format_args!("Running on '{}'", on.name()))
    }

    pub fn compiles(&self, as_graph: bool) -> Result<(), String> {
        match (self.is_json(), as_graph) {
            (true, _) => Ok(()),
            (false, true) => say!("Compiling op using IDMLDevice1::CompileGraph"),
            (false, false) => say!("Compile Op"),
        }
    }

    pub fn initialized(&self, name: &str, milliseconds: f64) -> Result<(), String> {
        if !self.is_json() && self.options.timing_verbosity == 0 {
            return Ok(());
        }
        let event = json!({ "event": "initialize", "dispatchable": name, "milliseconds": milliseconds });
        self.tell(event, format_args!("Initialize '{}': {milliseconds:.4} ms", shown(name)))
    }

    pub fn dispatched(&self, name: &str, samples: &Samples) -> Result<(), String> {
        if self.is_json() {
            return line(&dispatched(name, samples, self.options.dispatch_repeat));
        }
        report(name, samples, self.options)
    }

    pub fn resource(&self, name: &str, bytes: &[u8], data_type: TensorDataType, verbose: bool) -> Result<(), String> {
        let width = (data_type.size_in_bits() / 8) as usize;
        let elements = bytes.chunks_exact(width).map(from_bytes);
        let index_width = elements.len().to_string().len();
        out::with(|out| {
            match self.is_json() {
                true => write!(out, r#"{{"event":"print","resource":{},"type":"{data_type}","values":["#, json!(name))?,
                false => write!(out, "Resource '{}':{}", shown(name), if verbose { "\n" } else { " " })?,
            }
            for (n, element) in elements.enumerate() {
                let (number, is_first) = (Number::new(element, data_type).to_string(), n == 0);
                if self.is_json() {
                    // NaN and infinities are strings, because JSON has no numbers for them.
                    let quote = if number.contains(['n', 'i']) { "\"" } else { "" };
                    write!(out, "{}{quote}{number}{quote}", if is_first { "" } else { "," })?;
                } else if verbose {
                    writeln!(out, "[{n:index_width$}] {number} (0x{element:digits$X})", digits = width * 2)?;
                } else {
                    write!(out, "{}{number}", if is_first { "" } else { ", " })?;
                }
            }
            writeln!(out, "{}", if self.is_json() { "]}" } else { "" })
        })
    }

    pub fn written(&self, name: &str, path: &str) -> Result<(), String> {
        let event = json!({ "event": "write", "resource": name, "path": path });
        self.tell(event, format_args!("Resource '{}' written to '{}'", shown(name), shown(path)))
    }

    /// Printed before each command, with `--print_commands`.
    pub fn command_begins(&self, n: usize, text: &str) -> Result<(), String> {
        if !self.options.print_commands {
            return Ok(());
        }
        let event = json!({ "event": "command_begins", "command": n, "text": text });
        self.tell(event, format_args!("[StartCmd][{n:4}]\t: {text}"))
    }

    /// Printed after each command: 0 or Windows' E_FAIL, which DxDispatch prints as a signed number, and the error.
    pub fn command_ends(&self, n: usize, error: Option<&String>) -> Result<(), String> {
        if !self.options.print_commands {
            return Ok(());
        }
        let code = if error.is_some() { "-0x7fffbffb" } else { "0x0" };
        let said = error.map_or("", String::as_str);
        let event = json!({ "event": "command_ends", "command": n, "error": error });
        self.tell(event, format_args!("[EndCmd][{n:4}]\t: hr={code:<10} {said}\n"))
    }
}
