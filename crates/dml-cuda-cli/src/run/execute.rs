//! Runs a model: creates resources, compiles dispatchables, then runs the commands in order.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use dml_cuda::{
    BindingTable, Buffer, BufferBinding, CompileOptions, CompiledOperator, Device, Graph, OperatorDesc, Stream,
    TensorRole,
};

use super::events::Printer;
use super::memory;
use super::samples::Samples;
use crate::model::command::{Bindings, Command, Source};
use crate::model::initial::Values;
use crate::model::npy;
use crate::model::resource::{self, Resource};
use crate::model::strict;
use crate::model::Model;
use crate::options::Options;
use crate::out::{shown, Patience};
use crate::whole_file;

type Result<T> = std::result::Result<T, String>;

/// The most dispatches of an iteration as a graph. A graph's memory grows with its dispatches.
const MOST_IN_A_GRAPH: u32 = 65_536;

/// A resource on the device.
struct Placed {
    buffer: Buffer,
    resource: Resource,
    /// Bytes of the initial values. The values themselves are freed once they are on the device.
    initial_length: u64,
}

pub struct Executor<'a> {
    options: &'a Options,
    printer: Printer<'a>,
    stream: Stream,
    resources: HashMap<String, Placed>,
    operators: HashMap<String, (CompiledOperator, Bindings)>,
    files_read: Vec<PathBuf>,
}

impl<'a> Executor<'a> {
    pub fn run(model: Model, device: &Device, options: &'a Options) -> Result<()> {
        let printer = Printer { options };
        printer.running_on(device)?;
        let mut operators = HashMap::new();
        for dispatchable in model.dispatchables {
            let name = dispatchable.name;
            let failed = |error: &dyn std::fmt::Display| format!("dispatchable '{name}': {error}");
            let operator = device.create_operator(dispatchable.desc).map_err(|errors| {
                let lines: Vec<String> = errors.errors().iter().map(|error| format!("\n  {error}")).collect();
                format!("dispatchable '{name}' is rejected:{}", lines.concat())
            })?;
            printer.compiles(dispatchable.compiled_as_graph)?;
            // Timed after the creation, as in DxDispatch.
            let started = Instant::now();
            // Bound buffers are aligned to 16 bytes.
            let bound = CompileOptions { pointer_alignment: 16, in_place: None };
            let compiled = device.compile_operator_with(&operator, bound).map_err(|error| failed(&error))?;
            printer.initialized(&name, started.elapsed().as_secs_f64() * 1e3)?;
            operators.insert(name, (compiled, dispatchable.bindings));
        }
        memory::check(&model.resources, device)?;
        let mut patience = Patience::default();
        let mut resources = HashMap::new();
        for (name, mut resource) in model.resources {
            let failed = |error: dml_cuda::BufferError| format!("resource '{}': {error}", shown(&name));
            let buffer = device.create_buffer(resource.size_in_bytes).map_err(failed)?;
            let values = std::mem::replace(&mut resource.initial_values, Values::Bytes(Vec::new()));
            let (mut at, end) = (resource.initial_values_offset, values.length());
            values.write(|part| {
                buffer.write(at, part).map_err(failed)?;
                at += part.len() as u64;
                patience.tell(|| format!("filling resource '{}': {} of {end} bytes", shown(&name), at));
                Ok::<(), String>(())
            })?;
            resources.insert(name, Placed { buffer, resource, initial_length: end });
        }
        let stream = device.create_stream().map_err(|error| error.to_string())?;
        let executor = Self { options, printer, stream, resources, operators, files_read: model.files };
        model.commands.iter().enumerate().try_for_each(|(n, (command, text))| executor.command(n, command, text))
    }

    fn command(&self, n: usize, command: &Command, text: &str) -> Result<()> {
        self.printer.command_begins(n, text)?;
        let outcome = self.carry_out(command);
        self.printer.command_ends(n, outcome.as_ref().err())?;
        outcome
    }

    fn carry_out(&self, command: &Command) -> Result<()> {
        match command {
            Command::Dispatch { dispatchable, bindings } => {
                self.dispatch(dispatchable, bindings).map_err(|error| format!("dispatch '{dispatchable}': {error}"))
            }
            Command::Print { resource, verbose } => {
                self.print(resource, *verbose).map_err(|error| format!("print '{resource}': {error}"))
            }
            Command::WriteFile { resource, target_path, dimensions } => self
                .write_file(resource, target_path, dimensions)
                .map_err(|error| format!("writeFile '{resource}' to '{target_path}': {error}")),
        }
    }

    fn placed(&self, name: &str) -> Result<&Placed> {
        // Names were checked when the model was read.
        self.resources.get(name).ok_or_else(|| format!("there is no resource '{name}'"))
    }

    fn dispatch(&self, name: &str, bindings: &Bindings) -> Result<()> {
        let (operator, defaults) = self.operators.get(name).ok_or("there is no such dispatchable")?;
        let tensors = operator.operator().tensors();
        if let Some(unknown) = bindings.keys().find(|point| !tensors.iter().any(|(role, _)| role.name() == *point)) {
            let names: Vec<&str> = tensors.iter().map(|(role, _)| role.name()).collect();
            return Err(format!("the bind point is '{unknown}', must be one of {}", names.join(", ")));
        }
        let (mut inputs, mut output) = (Vec::new(), None);
        for (role, _) in tensors {
            let source = bindings.get(role.name()).or_else(|| defaults.get(role.name()));
            let source = source.ok_or_else(|| format!("nothing is bound to {}", role.name()))?;
            let binding = self.binding(source).map_err(|error| format!("{}: {error}", role.name()))?;
            match role {
                TensorRole::Output => output = Some(binding),
                _ => inputs.push(binding),
            }
        }
        let output = output.ok_or("nothing is bound to OutputTensor")?;

        if let (true, OperatorDesc::ReverseSubsequences(desc), [_, lengths]) =
            (self.options.strict, operator.operator().desc(), &inputs[..])
        {
            let mut bytes = vec![0; lengths.size_in_bytes as usize];
            if !bytes.is_empty() {
                lengths.buffer.read(lengths.offset, &mut bytes).map_err(|error| error.to_string())?;
            }
            if let Some((found, required)) = strict::long_lengths(&bytes, desc) {
                return Err(format!("SequenceLengthsTensor is bound to a resource {found}, must be {required}"));
            }
        }

        let on_gpu = operator.device().ordinal().is_some();
        // A graph has at least one dispatch.
        let mut graph = if on_gpu && !self.options.no_graph && self.options.dispatch_repeat > 0 {
            Some(self.graph(&operator.bind(&inputs, &output).map_err(|error| error.to_string())?)?)
        } else {
            None
        };
        let mut samples = Samples::default();
        let (started, options) = (Instant::now(), self.options);
        let interval = Duration::from_millis(options.dispatch_interval.into());
        let more = |done: u32| match options.milliseconds_to_run {
            Some(milliseconds) => done == 0 || started.elapsed() < Duration::from_millis(milliseconds.into()),
            None => done < options.dispatch_iterations,
        };
        let mut begun: Option<Instant> = None;
        while more(samples.count()) {
            std::thread::sleep(begun.map_or(Duration::ZERO, |begun| interval.saturating_sub(begun.elapsed())));
            begun = Some(Instant::now());
            let (cpu, gpu) = match &mut graph {
                Some(graph) => self.launch(graph)?,
                None => self.repeat(&operator.bind(&inputs, &output).map_err(|error| error.to_string())?, on_gpu)?,
            };
            let repeat = f64::from(options.dispatch_repeat);
            samples.cpu.push(cpu / repeat);
            samples.gpu.extend(gpu.map(|gpu| gpu / repeat));
        }
        samples.keep_last_of_gpu(options.max_gpu_time_measurements);
        match samples.count() {
            0 => Ok(()),
            _ => self.printer.dispatched(name, &samples),
        }
    }

    /// The dispatches of an iteration as one graph. DxDispatch records them into one command list.
    fn graph(&self, table: &BindingTable) -> Result<Graph> {
        let repeat = self.options.dispatch_repeat;
        if repeat > MOST_IN_A_GRAPH {
            return Err(format!(
                "dispatch_repeat is {repeat}, must be at most {MOST_IN_A_GRAPH} in a graph; --no-graph queues one by one"
            ));
        }
        let dispatches = (0..repeat).map(|_| table);
        table.operator().device().record_graph(dispatches).map_err(|error| error.to_string())
    }

    /// Milliseconds of an iteration as a graph, on the host and on the GPU.
    fn launch(&self, graph: &mut Graph) -> Result<(f64, Option<f64>)> {
        let before = Instant::now();
        graph.launch(&self.stream).map_err(|error| error.to_string())?;
        self.stream.synchronize().map_err(|error| error.to_string())?;
        let cpu = before.elapsed().as_secs_f64() * 1e3;
        Ok((cpu, Some(graph.milliseconds().map_err(|error| error.to_string())?)))
    }

    /// The same for dispatches that are queued one by one.
    fn repeat(&self, table: &BindingTable, on_gpu: bool) -> Result<(f64, Option<f64>)> {
        let event = || on_gpu.then(|| self.stream.record_event()).transpose().map_err(|error| error.to_string());
        let before = Instant::now();
        let first = event()?;
        for _ in 0..self.options.dispatch_repeat {
            table.dispatch(&self.stream).map_err(|error| error.to_string())?;
        }
        let last = event()?;
        self.stream.synchronize().map_err(|error| error.to_string())?;
        let cpu = before.elapsed().as_secs_f64() * 1e3;
        let Some((first, last)) = first.zip(last) else { return Ok((cpu, None)) };
        Ok((cpu, Some(last.milliseconds_since(&first).map_err(|error| error.to_string())?)))
    }

    fn binding(&self, source: &Source) -> Result<BufferBinding> {
        let placed = self.placed(&source.resource)?;
        let offset = source.offset_in_bytes(placed.resource.data_type);
        let offset = offset.ok_or_else(|| format!("elementOffset {} is past 2^64 bytes", source.offset))?;
        let size_in_bytes = placed.buffer.size_in_bytes().saturating_sub(offset);
        Ok(BufferBinding::range(&placed.buffer, offset, size_in_bytes))
    }

    fn print(&self, name: &str, verbose: bool) -> Result<()> {
        let placed = self.placed(name)?;
        let data_type = placed
            .resource
            .data_type
            .ok_or("a list of mixed types cannot be printed: its elements have no common type")?;
        let width = (data_type.size_in_bits() / 8) as usize;
        let mut bytes = vec![0; placed.initial_length as usize / width * width];
        placed.buffer.read(0, &mut bytes).map_err(|error| error.to_string())?;
        self.printer.resource(name, &bytes, data_type, verbose)
    }

    fn write_file(&self, name: &str, target_path: &str, dimensions: &[u32]) -> Result<()> {
        let placed = self.placed(name)?;
        let base = self.options.output_path.clone().unwrap_or_default();
        let path: PathBuf = base.join(resource::separated(target_path));
        let is_npy = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy"));
        // A raw file holds the whole resource. An array holds its elements without the padding to 4 bytes.
        let whole = !is_npy || placed.resource.explicit_size;
        let mut length = if whole { placed.resource.size_in_bytes } else { placed.initial_length };
        let mut shape = Vec::new();
        let data_type = placed.resource.data_type;
        if is_npy {
            let width = data_type.map(|data_type| u64::from(data_type.size_in_bits() / 8));
            let width = width.ok_or("a list of mixed types cannot be written as an array")?;
            shape = dimensions.iter().map(|&size| u64::from(size)).collect();
            if shape.is_empty() {
                shape.push(length / width);
            }
            let wanted = shape.iter().try_fold(width, |bytes, &size| bytes.checked_mul(size));
            match wanted {
                Some(wanted) if wanted <= length => length = wanted,
                _ => {
                    return Err(format!(
                        "dimensions is {shape:?}, must hold at most the {} elements of the resource",
                        length / width
                    ))
                }
            }
        }
        let mut bytes = vec![0; length as usize];
        placed.buffer.read(0, &mut bytes).map_err(|error| error.to_string())?;
        if let (true, Some(data_type)) = (is_npy, data_type) {
            bytes = npy::write(data_type, &shape, &bytes)?;
        }
        let is_path = |read: &PathBuf| matches!((read.canonicalize(), path.canonicalize()), (Ok(a), Ok(b)) if a == b);
        if self.files_read.iter().any(is_path) {
            return Err("the model was read from it, must be another file".to_owned());
        }
        whole_file::write(&path, &bytes)?;
        let path = std::path::absolute(&path).unwrap_or(path);
        self.printer.written(name, &path.display().to_string())
    }
}
