//! What a model needs on the device before its first command: compiled dispatchables, and resources with their initial
//! values.
//!
//! ```text
//! dispatchables ─ compile ─> Compiled   by name: an operator with its default bindings
//! resources ──── place ───> Placed     by name: a buffer with its type
//! ```
//!
//! DxDispatch compiles first and prints a line for each dispatchable, so `compile` comes before `place`. Initial values
//! are freed resource by resource, as soon as they are in the device's memory.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use dml_cuda::{Buffer, BufferError, CompiledOperator, Device, TensorDataType, ValidationErrors};
use serde_json::json;

use super::events::tell;
use super::memory;
use super::samples::Result;
use crate::model::command::Bindings;
use crate::model::command::Dispatchable;
use crate::model::resource::Resource;
use crate::options::{Format, Options};
use crate::out::{complain, say, shown};

/// Time between two lines about a resource that takes long to fill.
const BETWEEN_NOTES: Duration = Duration::from_secs(2);

/// A dispatchable that is ready to be bound.
pub struct Compiled {
    pub operator: CompiledOperator,
    /// Bindings that a command may replace.
    pub defaults: Bindings,
}

/// A resource on the device. Its buffer has the initial values, which are no longer on the host.
pub struct Placed {
    pub buffer: Buffer,
    /// The type for printing and writing. None for a list of mixed types.
    pub data_type: Option<TensorDataType>,
    /// Bytes of the initial values. As many are printed, from the begin of the buffer on.
    pub initial_length: u64,
    /// Whether the model gives the size. Then a file of the resource holds all of it.
    pub explicit_size: bool,
}

/// Compiles each dispatchable, by name.
pub fn compile(
    dispatchables: Vec<Dispatchable>,
    device: &Device,
    options: &Options,
) -> Result<HashMap<String, Compiled>> {
    let mut all = HashMap::new();
    for dispatchable in dispatchables {
        let name = dispatchable.name;
        let operator = device
            .create_operator(dispatchable.desc)
            .map_err(|errors| rejection(&name, &errors))?;
        if options.format == Format::Text {
            say!("{}", dispatchable.compiling)?;
        }
        // Timed after the creation, as in DxDispatch.
        let started = Instant::now();
        let operator = device
            .compile_operator(&operator)
            .map_err(|error| format!("dispatchable '{}': {error}", shown(&name)))?;
        let milliseconds = started.elapsed().as_secs_f64() * 1e3;
        if options.format == Format::Json || options.timing_verbosity > 0 {
            let event = json!({ "event": "initialize", "dispatchable": name, "milliseconds": milliseconds });
            let text = format!("Initialize '{}': {milliseconds:.4} ms", shown(&name));
            tell(options.format, &event, text)?;
        }
        let defaults = dispatchable.bindings;
        all.insert(name, Compiled { operator, defaults });
    }
    Ok(all)
}

/// The message about a rejected descriptor, with a line for each broken rule.
fn rejection(name: &str, errors: &ValidationErrors) -> String {
    let mut message = format!("dispatchable '{}' is rejected:", shown(name));
    for error in errors.errors() {
        message += &format!("\n  {error}");
    }
    message
}

/// Creates each resource with its initial values, by name. Fails before the first one if they do not fit together.
pub fn place(
    resources: Vec<(String, Resource)>,
    device: &Device,
) -> Result<HashMap<String, Placed>> {
    memory::check(&resources, device)?;
    let mut told = Instant::now();
    let mut all = HashMap::new();
    for (name, resource) in resources {
        let buffer = filled(&name, &resource, device, &mut told)?;
        let placed = Placed {
            buffer,
            data_type: resource.data_type,
            initial_length: resource.initial_values.length(),
            explicit_size: resource.explicit_size,
        };
        all.insert(name, placed);
    }
    Ok(all)
}

/// Creates a buffer and writes the initial values. `told` is when the last line of progress was printed.
fn filled(
    name: &str,
    resource: &Resource,
    device: &Device,
    told: &mut Instant,
) -> Result<Buffer, String> {
    let failed = |error: BufferError| format!("resource '{}': {error}", shown(name));
    let length = resource.initial_values.length();
    let buffer = device
        .create_buffer(resource.size_in_bytes)
        .map_err(failed)?;
    // Part by part: values that are computed are never whole in memory besides the buffer.
    let mut at = resource.initial_values_offset;
    resource.initial_values.write(|part| {
        buffer.write(at, part).map_err(failed)?;
        at += part.len() as u64;
        if told.elapsed() >= BETWEEN_NOTES {
            let name = shown(name);
            complain!("NOTE: filling resource '{name}': {at} of {length} bytes");
            *told = Instant::now();
        }
        Ok::<(), String>(())
    })?;
    Ok(buffer)
}
