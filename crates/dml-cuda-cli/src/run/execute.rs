//! Runs the commands of a model in order: dispatches, prints and written files.
//!
//! ```text
//! Model ─ prepare ─> compiled operators ─┐
//!                └─> filled resources ───┴─ execute ─> events, files
//! ```
//!
//! Names of resources and dispatchables were checked when the model was read, so that no command fails halfway because
//! of a misspelt name.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dml_cuda::{
    BindingTable, Buffer, BufferBinding, CompiledOperator, Device, Graph, OperatorDesc, Stream,
    TensorDataType,
};
use serde_json::json;

use super::events::{self, tell};
use super::memory;
use super::prepare::{compile, place, Compiled, Placed};
use super::samples::{report, Result, Samples};
use crate::model::command::{Bindings, Command, Source};
use crate::model::file::separated;
use crate::model::npy;
use crate::model::npy::is_npy;
use crate::model::strict;
use crate::model::{Model, ModelCommand};
use crate::options::{Format, Options};
use crate::out::{shown, shown_path};
use crate::output_file;

/// The most dispatches of an iteration as a graph. A graph's memory grows with its dispatches.
const MOST_IN_A_GRAPH: u32 = 65_536;

/// Runs a whole model.
pub fn execute(model: Model, device: &Device, options: &Options) -> Result<()> {
    let event = events::device(device, options.uses_graph(), device.compile_options());
    let text = format_args!("Running on '{}'", device.name());
    tell(options.format, &event, text)?;
    let executor = Executor {
        options,
        operators: compile(model.dispatchables, device, options)?,
        resources: place(model.resources, device)?,
        stream: device.create_stream()?,
        files_read: model.files,
    };
    for (n, command) in model.commands.iter().enumerate() {
        executor
            .command(n, command)
            .map_err(|error| format!("{}: {error}", command.place))?;
    }
    Ok(())
}

/// The state between two commands. Commands change the contents of resources, and `writeFile` writes files; nothing else
/// changes.
struct Executor<'a> {
    options: &'a Options,
    stream: Stream,
    resources: HashMap<String, Placed>,
    operators: HashMap<String, Compiled>,
    /// The model's file and those that it names. None of them is written.
    files_read: Vec<PathBuf>,
}

impl Executor<'_> {
    /// Runs a command. With `--print_commands` it prints a line before and after, as DxDispatch does.
    fn command(&self, n: usize, command: &ModelCommand) -> Result<()> {
        let Options {
            format,
            print_commands,
            ..
        } = *self.options;
        if print_commands {
            let text = &command.text;
            let event = json!({ "event": "command_begins", "command": n, "text": text });
            tell(format, &event, format_args!("[StartCmd][{n:4}]\t: {text}"))?;
        }
        let outcome = self.run_command(&command.command);
        if print_commands {
            let error = outcome.as_ref().err();
            // 0 or Windows' E_FAIL, which DxDispatch prints as a signed number.
            let (code, said) = error.map_or(("0x0", ""), |error| ("-0x7fffbffb", error));
            let event = json!({ "event": "command_ends", "command": n, "error": error });
            let text = format_args!("[EndCmd][{n:4}]\t: hr={code:<10} {said}\n");
            tell(format, &event, text)?;
        }
        Ok(outcome?)
    }

    /// Runs a command. An error begins with what the command does.
    fn run_command(&self, command: &Command) -> Result<(), String> {
        let (what, outcome) = match command {
            Command::Dispatch {
                dispatchable,
                bindings,
            } => (
                format!("dispatch '{}'", shown(dispatchable)),
                self.dispatch(dispatchable, bindings),
            ),
            Command::Print { resource, verbose } => (
                format!("print '{}'", shown(resource)),
                self.print(resource, *verbose),
            ),
            Command::WriteFile {
                resource,
                target_path,
                dimensions,
            } => (
                format!(
                    "writeFile '{}' to '{}'",
                    shown(resource),
                    shown_path(target_path.as_ref())
                ),
                self.write_file(resource, target_path, dimensions),
            ),
        };
        outcome.map_err(|error| format!("{what}: {error}"))
    }

    /// Dispatches as often as the options say, and prints the times.
    fn dispatch(&self, name: &str, bindings: &Bindings) -> Result<()> {
        let Compiled { operator, defaults } = &self.operators[name];
        let mut bound = Vec::new();
        for (role, _) in operator.operator().tensors() {
            let point = role.name();
            // A binding of the command replaces that of the dispatchable.
            let source = bindings.get(point).or_else(|| defaults.get(point));
            let source = source.ok_or_else(|| format!("nothing is bound to {point}"))?;
            let binding = self.binding(source);
            bound.push(binding.map_err(|error| format!("{point}: {error}"))?);
        }
        // The output is the last tensor of every operator.
        let (output, inputs) = bound
            .split_last()
            .ok_or("nothing is bound to OutputTensor")?;
        // Only now are the lengths known that an earlier dispatch has written.
        if self.options.strict {
            refuse_long_lengths(operator.operator().desc(), inputs)?;
        }
        let samples = self.samples(operator, inputs, output)?;
        match self.options.format {
            _ if samples.cpu.is_empty() => Ok(()),
            Format::Json => {
                let in_place = inputs
                    .first()
                    .is_some_and(|input| input.buffer.same_as(&output.buffer));
                let kernel = events::kernel_of(operator, in_place);
                let repeat = self.options.dispatch_repeat;
                Ok(events::line(&events::dispatched(
                    name, &samples, repeat, &kernel,
                ))?)
            }
            Format::Text => Ok(report(name, &samples, self.options)?),
        }
    }

    /// The times of all iterations. An iteration is a number of dispatches, as one graph or queued one by one.
    fn samples(
        &self,
        operator: &CompiledOperator,
        inputs: &[BufferBinding],
        output: &BufferBinding,
    ) -> Result<Samples> {
        let options = self.options;
        let repeat = options.dispatch_repeat;
        // Bound once, as in DxDispatch: an iteration only dispatches.
        let table = operator.bind(inputs, output)?;
        let mut graph = self.graph(operator, &table)?;
        let interval = Duration::from_millis(options.dispatch_interval.into());
        let started = Instant::now();
        let mut samples = Samples::default();
        let mut begun: Option<Instant> = None;
        while self.has_more(samples.cpu.len() as u32, started) {
            // The interval is from the begin of an iteration to the begin of the next one.
            if let Some(begun) = begun {
                std::thread::sleep(interval.saturating_sub(begun.elapsed()));
            }
            begun = Some(Instant::now());
            samples.add(repeat, &self.stream, graph.as_mut(), || {
                for _ in 0..repeat {
                    table.dispatch(&self.stream)?;
                }
                Ok(())
            })?;
        }
        if let Some(most) = options.max_gpu_time_measurements {
            // The last ones stay: DxDispatch overwrites the first ones.
            let extra = samples.gpu.len().saturating_sub(most as usize);
            samples.gpu.drain(..extra);
        }
        Ok(samples)
    }

    /// The dispatches of an iteration as a graph: DxDispatch records them into one command list. None on a CPU, and
    /// where the options ask for none.
    fn graph(&self, operator: &CompiledOperator, table: &BindingTable) -> Result<Option<Graph>> {
        let (device, repeat) = (operator.device(), self.options.dispatch_repeat);
        // A graph has at least one dispatch.
        if device.ordinal().is_none() || !self.options.uses_graph() || repeat == 0 {
            return Ok(None);
        }
        if repeat > MOST_IN_A_GRAPH {
            let required =
                format!("at most {MOST_IN_A_GRAPH} in a graph; --no-graph queues one by one");
            return Err(format!("dispatch_repeat is {repeat}, but must be {required}").into());
        }
        Ok(Some(device.record_graph((0..repeat).map(|_| table))?))
    }

    /// Whether another iteration follows those that are done. With a limit of time there is at least one.
    fn has_more(&self, done: u32, started: Instant) -> bool {
        match self.options.milliseconds_to_run {
            Some(milliseconds) => {
                done == 0 || started.elapsed() < Duration::from_millis(milliseconds.into())
            }
            None => done < self.options.dispatch_iterations,
        }
    }

    /// The part of a buffer from an offset to its end.
    fn binding(&self, source: &Source) -> Result<BufferBinding> {
        let Placed {
            buffer, data_type, ..
        } = &self.resources[&source.resource];
        let offset = source
            .offset_in_bytes(*data_type)
            .ok_or_else(|| format!("elementOffset {} is past 2^64 bytes", source.offset))?;
        let length = buffer.size_in_bytes().saturating_sub(offset);
        Ok(BufferBinding::range(buffer, offset, length))
    }

    /// Prints the elements of a resource, as many as it has initial values.
    fn print(&self, name: &str, verbose: bool) -> Result<()> {
        let placed = &self.resources[name];
        let without = "a list of mixed types cannot be printed: its elements have no common type";
        let data_type = placed.data_type.ok_or(without)?;
        let width = u64::from(data_type.size_in_bits() / 8);
        let lines = events::Print {
            format: self.options.format,
            name,
            data_type,
            // Elements, not bytes.
            count: placed.initial_length / width,
            verbose,
        };
        in_parts(&placed.buffer, placed.initial_length, |offset, part| {
            lines.part(offset / width, part).map_err(io::Error::other)
        })?;
        Ok(lines.end()?)
    }

    /// Writes a resource into a file, whose ending chooses the format.
    fn write_file(&self, name: &str, target_path: &str, dimensions: &[u32]) -> Result<()> {
        let placed = &self.resources[name];
        let folder = self.options.output_path.clone().unwrap_or_default();
        let path = folder.join(separated(target_path));
        let contents = contents(placed, &path, dimensions)?;
        if self
            .files_read
            .iter()
            .any(|read| output_file::is_same(read, &path))
        {
            return Err("the model was read from it, but must be another file".into());
        }
        // Messages name the whole path.
        let path = std::path::absolute(&path).unwrap_or(path);
        // The error of an earlier dispatch comes here, and not after an older file was emptied.
        placed
            .buffer
            .read(0, &mut [0; 4][..contents.length.min(4) as usize])?;
        output_file::write(&path, &|file| {
            file.write_all(&contents.header)?;
            in_parts(&placed.buffer, contents.length, |_, part| {
                file.write_all(part)
            })
        })?;
        let path = path.display().to_string();
        let event = json!({ "event": "write", "resource": name, "path": path });
        let text = format!(
            "Resource '{}' written to '{}'",
            shown(name),
            shown_path(path.as_ref())
        );
        Ok(tell(self.options.format, &event, text)?)
    }
}

/// What a file gets of a resource: a header, and the first bytes of the buffer.
struct Contents {
    /// The header of a .npy file. Raw files have none.
    header: Vec<u8>,
    length: u64,
}

/// A raw file holds the whole resource. An array holds its elements, without the padding to 4 bytes.
fn contents(placed: &Placed, path: &Path, dimensions: &[u32]) -> Result<Contents> {
    let is_npy = is_npy(path);
    let length = if !is_npy || placed.explicit_size {
        placed.buffer.size_in_bytes()
    } else {
        placed.initial_length
    };
    if !is_npy {
        let header = Vec::new();
        return Ok(Contents { header, length });
    }
    let data_type = placed
        .data_type
        .ok_or("a list of mixed types cannot be written as an array")?;
    npy_contents(data_type, dimensions, length)
}

/// Hands the first bytes of a buffer to `take`, with the offset of each part. Only one part is in memory at a time.
fn in_parts(
    buffer: &Buffer,
    length: u64,
    mut take: impl FnMut(u64, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut part = vec![0; length.min(memory::PART) as usize];
    let mut done = 0;
    while done < length {
        let now = (length - done).min(memory::PART);
        let part = &mut part[..now as usize];
        buffer.read(done, part).map_err(io::Error::other)?;
        take(done, part)?;
        done += now;
    }
    Ok(())
}

/// An array of as many elements as the dimensions hold, by default all. The resource has `length` bytes of elements.
fn npy_contents(data_type: TensorDataType, dimensions: &[u32], length: u64) -> Result<Contents> {
    let width = u64::from(data_type.size_in_bits() / 8);
    let count = length / width;
    let shape = match dimensions {
        [] => vec![count],
        _ => dimensions.iter().map(|&size| size.into()).collect(),
    };
    match elements(&shape) {
        Some(wanted) if wanted <= count => Ok(Contents {
            header: npy::start(data_type, &shape)?,
            length: wanted * width,
        }),
        _ => Err(format!(
            "dimensions is {shape:?}, but must hold at most the {count} elements of the resource"
        )
        .into()),
    }
}

/// The elements of a shape, or none if they are more than 2^64.
fn elements(shape: &[u64]) -> Option<u64> {
    shape
        .iter()
        .try_fold(1u64, |elements, &size| elements.checked_mul(size))
}

/// Fails if DirectML would reverse otherwise. Lengths may come from an earlier dispatch, so that this is known only now.
fn refuse_long_lengths(desc: &OperatorDesc, inputs: &[BufferBinding]) -> Result<()> {
    let (OperatorDesc::ReverseSubsequences(desc), [_, lengths]) = (desc, inputs) else {
        return Ok(());
    };
    // Nothing after the lengths is read: the resource may be much larger.
    let length = desc.sequence_lengths_tensor.total_tensor_size_in_bytes;
    let end = lengths.offset.saturating_add(length);
    let end = end.min(lengths.buffer.size_in_bytes());
    let bytes: Vec<u8> = lengths.buffer.read_elements(end as usize)?;
    let bytes = bytes.get(lengths.offset as usize..).unwrap_or_default();
    match strict::long_lengths(bytes, desc) {
        None => Ok(()),
        Some(strict::Finding { found, required }) => Err(format!(
            "SequenceLengthsTensor is bound to a resource {found}, but must be {required}"
        )
        .into()),
    }
}
