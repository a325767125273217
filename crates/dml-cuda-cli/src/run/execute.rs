//! Runs a model: creates resources, compiles dispatchables, then runs the commands in order.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use dml_cuda::{
    Buffer, BufferBinding, CompiledOperator, Device, OperatorDesc, Stream, TensorDataType,
};
use serde_json::json;

use super::events::{self, tell};
use super::memory;
use super::samples::{report, Result, Samples};
use crate::model::command::{Bindings, Command, Source};
use crate::model::npy;
use crate::model::resource::{separated, Resource};
use crate::model::strict;
use crate::model::Model;
use crate::options::{Format, Options};
use crate::out::{complain, say, shown, shown_path};
use crate::output_file;

/// The most dispatches of an iteration as a graph. A graph's memory grows with its dispatches.
const MOST_IN_A_GRAPH: u32 = 65_536;

/// A resource on the device. Its initial values are freed once they are there.
struct Placed {
    buffer: Buffer,
    data_type: Option<TensorDataType>,
    /// Bytes of the initial values.
    initial_length: u64,
    explicit_size: bool,
}

/// Runs commands. Their names of resources and dispatchables were checked when the model was read.
pub struct Executor<'a> {
    options: &'a Options,
    stream: Stream,
    resources: HashMap<String, Placed>,
    operators: HashMap<String, (CompiledOperator, Bindings)>,
    files_read: Vec<PathBuf>,
}

impl<'a> Executor<'a> {
    pub fn run(model: Model, device: &Device, options: &'a Options) -> Result<()> {
        let chosen = device.compile_options();
        let event = events::device(device, options.uses_graph(), chosen);
        tell(
            options.format,
            &event,
            format_args!("Running on '{}'", device.name()),
        )?;
        let mut operators = HashMap::new();
        for dispatchable in model.dispatchables {
            let name = dispatchable.name;
            let operator = device
                .create_operator(dispatchable.desc)
                .map_err(|errors| {
                    let lines: Vec<String> = errors
                        .errors()
                        .iter()
                        .map(|error| format!("\n  {error}"))
                        .collect();
                    format!(
                        "dispatchable '{}' is rejected:{}",
                        shown(&name),
                        lines.concat()
                    )
                })?;
            if options.format == Format::Text {
                say!("{}", dispatchable.compiling)?;
            }
            // Timed after the creation, as in DxDispatch.
            let started = Instant::now();
            let compiled = device.compile_operator(&operator);
            let compiled =
                compiled.map_err(|error| format!("dispatchable '{}': {error}", shown(&name)))?;
            let milliseconds = started.elapsed().as_secs_f64() * 1e3;
            if options.format == Format::Json || options.timing_verbosity > 0 {
                let event = json!({ "event": "initialize", "dispatchable": name, "milliseconds": milliseconds });
                let text = format!("Initialize '{}': {milliseconds:.4} ms", shown(&name));
                tell(options.format, &event, text)?;
            }
            operators.insert(name, (compiled, dispatchable.bindings));
        }
        memory::check(&model.resources, device)?;
        let mut told = Instant::now();
        let mut resources = HashMap::new();
        for (name, resource) in model.resources {
            let failed =
                |error: dml_cuda::BufferError| format!("resource '{}': {error}", shown(&name));
            let buffer = device
                .create_buffer(resource.size_in_bytes)
                .map_err(failed)?;
            let (mut at, initial_length) = (
                resource.initial_values_offset,
                resource.initial_values.length(),
            );
            resource.initial_values.write(|part| {
                buffer.write(at, part).map_err(failed)?;
                at += part.len() as u64;
                if told.elapsed() >= Duration::from_secs(2) {
                    complain!(
                        "NOTE: filling resource '{}': {at} of {initial_length} bytes",
                        shown(&name)
                    );
                    told = Instant::now();
                }
                Ok::<(), String>(())
            })?;
            let Resource {
                data_type,
                explicit_size,
                ..
            } = resource;
            resources.insert(
                name,
                Placed {
                    buffer,
                    data_type,
                    initial_length,
                    explicit_size,
                },
            );
        }
        let stream = device.create_stream()?;
        let executor = Self {
            options,
            stream,
            resources,
            operators,
            files_read: model.files,
        };
        model
            .commands
            .iter()
            .enumerate()
            .try_for_each(|(n, (command, place, text))| {
                executor
                    .command(n, command, text)
                    .map_err(|error| format!("{place}: {error}").into())
            })
    }

    fn command(&self, n: usize, command: &Command, text: &str) -> Result<()> {
        let Options {
            format,
            print_commands,
            ..
        } = *self.options;
        if print_commands {
            let event = json!({ "event": "command_begins", "command": n, "text": text });
            tell(format, &event, format_args!("[StartCmd][{n:4}]\t: {text}"))?;
        }
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
            } => {
                let what = format!(
                    "writeFile '{}' to '{}'",
                    shown(resource),
                    shown_path(target_path.as_ref())
                );
                (what, self.write_file(resource, target_path, dimensions))
            }
        };
        let outcome = outcome.map_err(|error| format!("{what}: {error}"));
        let error = outcome.as_ref().err();
        if print_commands {
            // 0 or Windows' E_FAIL, which DxDispatch prints as a signed number.
            let (code, said) = error.map_or(("0x0", ""), |error| ("-0x7fffbffb", error));
            let event = json!({ "event": "command_ends", "command": n, "error": error });
            tell(
                format,
                &event,
                format_args!("[EndCmd][{n:4}]\t: hr={code:<10} {said}\n"),
            )?;
        }
        Ok(outcome?)
    }

    fn dispatch(&self, name: &str, bindings: &Bindings) -> Result<()> {
        let (operator, defaults) = &self.operators[name];
        let bound = operator.operator().tensors().map(|(role, _)| {
            let point = role.name();
            let source = bindings.get(point).or_else(|| defaults.get(point));
            let source = source.ok_or_else(|| format!("nothing is bound to {point}"))?;
            self.binding(source)
                .map_err(|error| format!("{point}: {error}"))
        });
        let bound = bound.collect::<Result<Vec<BufferBinding>, String>>()?;
        let (output, inputs) = bound
            .split_last()
            .ok_or("nothing is bound to OutputTensor")?;
        if self.options.strict {
            refuse_long_lengths(operator.operator().desc(), inputs)?;
        }
        let samples = self.samples(operator, inputs, output)?;
        match self.options.format {
            _ if samples.cpu.is_empty() => {}
            Format::Json => {
                let in_place = inputs
                    .first()
                    .is_some_and(|input| input.buffer.same_as(&output.buffer));
                let kernel = events::kernel_of(operator, in_place);
                events::line(&events::dispatched(
                    name,
                    &samples,
                    self.options.dispatch_repeat,
                    &kernel,
                ))?;
            }
            Format::Text => report(name, &samples, self.options)?,
        }
        Ok(())
    }

    /// Dispatches as often as the options say.
    fn samples(
        &self,
        operator: &CompiledOperator,
        inputs: &[BufferBinding],
        output: &BufferBinding,
    ) -> Result<Samples> {
        let options = self.options;
        let table = operator.bind(inputs, output)?;
        // DxDispatch records the dispatches of an iteration into one command list. A graph has at least one.
        let mut graph = None;
        if operator.device().ordinal().is_some()
            && options.uses_graph()
            && options.dispatch_repeat > 0
        {
            if options.dispatch_repeat > MOST_IN_A_GRAPH {
                let required =
                    format!("at most {MOST_IN_A_GRAPH} in a graph; --no-graph queues one by one");
                return Err(format!(
                    "dispatch_repeat is {}, but must be {required}",
                    options.dispatch_repeat
                )
                .into());
            }
            graph = Some(
                operator
                    .device()
                    .record_graph((0..options.dispatch_repeat).map(|_| &table))?,
            );
        }
        let mut samples = Samples::default();
        let started = Instant::now();
        let interval = Duration::from_millis(options.dispatch_interval.into());
        let more = |done: u32| match options.milliseconds_to_run {
            Some(milliseconds) => {
                done == 0 || started.elapsed() < Duration::from_millis(milliseconds.into())
            }
            None => done < options.dispatch_iterations,
        };
        let mut begun: Option<Instant> = None;
        while more(samples.cpu.len() as u32) {
            std::thread::sleep(begun.map_or(Duration::ZERO, |begun| {
                interval.saturating_sub(begun.elapsed())
            }));
            begun = Some(Instant::now());
            samples.add(
                options.dispatch_repeat,
                &self.stream,
                graph.as_mut(),
                || Ok((0..options.dispatch_repeat).try_for_each(|_| table.dispatch(&self.stream))?),
            )?;
        }
        let most = options
            .max_gpu_time_measurements
            .map_or(usize::MAX, |most| most as usize);
        samples.gpu.drain(..samples.gpu.len().saturating_sub(most));
        Ok(samples)
    }

    fn binding(&self, source: &Source) -> Result<BufferBinding> {
        let Placed {
            buffer, data_type, ..
        } = &self.resources[&source.resource];
        let offset = source.offset_in_bytes(*data_type);
        let offset =
            offset.ok_or_else(|| format!("elementOffset {} is past 2^64 bytes", source.offset))?;
        Ok(BufferBinding::range(
            buffer,
            offset,
            buffer.size_in_bytes().saturating_sub(offset),
        ))
    }

    fn print(&self, name: &str, verbose: bool) -> Result<()> {
        let placed = &self.resources[name];
        let without = "a list of mixed types cannot be printed: its elements have no common type";
        let data_type = placed.data_type.ok_or(without)?;
        let width = u64::from(data_type.size_in_bits() / 8);
        let lines = events::Print {
            format: self.options.format,
            name,
            data_type,
            count: placed.initial_length / width,
            verbose,
        };
        in_parts(&placed.buffer, placed.initial_length, |offset, part| {
            lines.part(offset / width, part).map_err(io::Error::other)
        })?;
        Ok(lines.end()?)
    }

    fn write_file(&self, name: &str, target_path: &str, dimensions: &[u32]) -> Result<()> {
        let placed = &self.resources[name];
        let path = self
            .options
            .output_path
            .clone()
            .unwrap_or_default()
            .join(separated(target_path));
        let is_npy = path
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("npy"));
        // A raw file holds the whole resource. An array holds its elements without the padding to 4 bytes.
        let whole = !is_npy || placed.explicit_size;
        let length = if whole {
            placed.buffer.size_in_bytes()
        } else {
            placed.initial_length
        };
        let (start, length) = if is_npy {
            let data_type = placed
                .data_type
                .ok_or("a list of mixed types cannot be written as an array")?;
            array(data_type, dimensions, length)?
        } else {
            (Vec::new(), length)
        };
        let is_path = |read: &PathBuf| matches!((read.canonicalize(), path.canonicalize()), (Ok(a), Ok(b)) if a == b);
        if self.files_read.iter().any(is_path) {
            return Err("the model was read from it, but must be another file".into());
        }
        let path = std::path::absolute(&path).unwrap_or(path);
        // The error of an earlier dispatch comes here, and not after an older file was emptied.
        placed
            .buffer
            .read(0, &mut [0; 4][..length.min(4) as usize])?;
        output_file::write(&path, &|file| {
            file.write_all(&start)?;
            in_parts(&placed.buffer, length, |_, part| file.write_all(part))
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

/// The begin of a .npy file of as many elements as the dimensions hold, by default all, and the bytes of these
/// elements. The resource has `length` bytes of elements.
fn array(data_type: TensorDataType, dimensions: &[u32], length: u64) -> Result<(Vec<u8>, u64)> {
    let width = u64::from(data_type.size_in_bits() / 8);
    let count = length / width;
    let shape = match dimensions {
        [] => vec![count],
        _ => dimensions.iter().map(|&size| size.into()).collect(),
    };
    let wanted = shape
        .iter()
        .try_fold(1u64, |elements, &size| elements.checked_mul(size));
    let Some(wanted) = wanted.filter(|wanted| *wanted <= count) else {
        return Err(format!(
            "dimensions is {shape:?}, but must hold at most the {count} elements of the resource"
        )
        .into());
    };
    Ok((npy::start(data_type, &shape)?, wanted * width))
}

/// Fails if DirectML would reverse otherwise, by the lengths that are there now.
fn refuse_long_lengths(desc: &OperatorDesc, inputs: &[BufferBinding]) -> Result<()> {
    let (OperatorDesc::ReverseSubsequences(desc), [_, lengths]) = (desc, inputs) else {
        return Ok(());
    };
    // Nothing after the lengths is read: the resource may be much larger.
    let length = desc.sequence_lengths_tensor.total_tensor_size_in_bytes;
    let end = lengths.offset.saturating_add(length);
    let end = end.min(lengths.buffer.size_in_bytes());
    let bytes: Vec<u8> = lengths.buffer.read_elements(end as usize)?;
    let range = lengths.offset as usize..;
    strict::long_lengths(bytes.get(range).unwrap_or_default(), desc).map_or(
        Ok(()),
        |(found, required)| {
            Err(format!(
                "SequenceLengthsTensor is bound to a resource {found}, but must be {required}"
            )
            .into())
        },
    )
}
