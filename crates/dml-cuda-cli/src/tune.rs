//! `tune`: times every kernel that can run a layout, and says how much the estimates lose by which one is chosen.

mod layouts;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use dml_cuda::{
    BindingTable, Buffer, BufferTensorDesc, CompiledOperator, Device, FillValueSequenceDesc, MeasuredKernel, Operator,
    OperatorDesc, ReverseSubsequencesDesc, Stream, TensorDataType,
};

use crate::bench::plain::{Gpu, Kind, PlainWork, Way};
use crate::bench::statistics::median;
use crate::options::{Repeated, Tune};
use crate::out::{complain, say, shown_path};
use crate::run::samples::Result;
use layouts::Layout;

const HEADER: &str = "kind,width,sizes,axis,in_strides,out_strides,length_sizes,mode,kernel,variant,alignment,estimate_us,us,chosen,copy_us\n";

/// Layouts between two lines of progress.
const STEP: usize = 25;

/// Times the layouts of a file, or drawn ones.
pub fn tune(options: &Tune, device: &Device) -> std::result::Result<ExitCode, String> {
    if device.ordinal().is_none() {
        return Err(format!("the device is {device}, must be a GPU, whose kernels are timed"));
    }
    let layouts = match &options.layouts {
        Some(path) => layouts::read(path)?,
        None => layouts::draw(options.seed, options.count),
    };
    let create = |path: &PathBuf| {
        let file = OpenOptions::new().write(true).create_new(true).open(path);
        file.map_err(|error| format!("{} cannot be written: {error}", shown_path(path)))
    };
    let mut file = options.output.as_ref().map(create).transpose()?;
    write(&mut file, HEADER)?;
    let gpu = Gpu::new(device).map_err(|error| error.to_string())?;
    let mut losses = Losses::default();
    for (n, layout) in layouts.iter().enumerate() {
        match timed(layout, device, &gpu, &mut losses) {
            Ok(rows) => write(&mut file, &rows)?,
            Err(error) => {
                complain!("NOTE: layout {}, {}, is left out: {error}", n + 1, layout.columns().replace(',', " "))
            }
        }
        if (n + 1) % STEP == 0 {
            complain!("{} of {} layouts, {}", n + 1, layouts.len(), losses.all());
        }
    }
    say!("{device}: the time of the chosen kernel / the time of the fastest")?;
    say!("{:24} {:>8} {:>8} {:>8} {:>9} {:>7}", "layouts", "count", "mean", "over 5 %", "over 25 %", "worst")?;
    losses.rows().into_iter().try_for_each(|row| say!("{row}"))?;
    match losses.wrong {
        0 => Ok(ExitCode::SUCCESS),
        wrong => Err(format!("{wrong} results differ from the CPU's")),
    }
}

/// Writes whole lines at once, so that an interrupted run leaves a file that can be read.
fn write(file: &mut Option<File>, text: &str) -> std::result::Result<(), String> {
    let Some(file) = file else { return Ok(()) };
    file.write_all(text.as_bytes()).map_err(|error| format!("the times cannot be written: {error}"))
}

/// How much slower than the fastest kernel the chosen ones are, by mode and kind.
#[derive(Default)]
struct Losses {
    ratios: BTreeMap<(&'static str, String), Vec<f64>>,
    wrong: usize,
}

impl Losses {
    fn row(name: &str, ratios: &[f64]) -> String {
        let count = ratios.len().max(1) as f64;
        let over = |limit: f64| ratios.iter().filter(|ratio| **ratio > limit).count() as f64 / count * 100.0;
        let mean = ratios.iter().sum::<f64>() / count;
        let (over_5, over_25, worst) = (over(1.05), over(1.25), ratios.iter().copied().fold(1.0, f64::max));
        format!("{name:24} {:>8} {mean:>8.4} {over_5:>6.1} % {over_25:>7.1} % {worst:>7.2}", ratios.len())
    }

    fn of_mode(&self, mode: &str) -> Vec<f64> {
        self.ratios.iter().filter(|((of, _), _)| *of == mode).flat_map(|(_, ratios)| ratios).copied().collect()
    }

    fn rows(&self) -> Vec<String> {
        let modes = MODES.iter().map(|(mode, _)| Self::row(mode, &self.of_mode(mode)));
        let kinds = self.ratios.iter().map(|((mode, kind), ratios)| Self::row(&format!("{kind}, {mode}"), ratios));
        modes.chain(kinds).collect()
    }

    fn all(&self) -> String {
        let mean = |mode| {
            let ratios = self.of_mode(mode);
            ratios.iter().sum::<f64>() / ratios.len().max(1) as f64
        };
        format!("loss {:.4} copying, {:.4} in place", mean("copying"), mean("in place"))
    }
}

const MODES: [(&str, bool); 2] = [("copying", false), ("in place", true)];

/// The rows of a layout.
fn timed(layout: &Layout, device: &Device, gpu: &Gpu, losses: &mut Losses) -> Result<String> {
    let operator = device.create_operator(layout.desc())?;
    let copy = copied(layout, device, gpu)?;
    let data = Data::new(layout, &operator, device)?;
    let mut rows = String::new();
    for (mode, in_place) in MODES {
        let kernels = device.measure_kernels(&operator, in_place)?;
        let Some(fastest) = kernels.iter().map(|kernel| kernel.time).min() else { continue };
        for (n, measured) in kernels.iter().enumerate() {
            if !data.is_right(&measured.operator, &gpu.stream, in_place)? {
                losses.wrong += 1;
                complain!("WRONG: {}, {} {}", layout.columns(), measured.kernel, measured.variant);
            }
            let MeasuredKernel { kernel, variant, alignment, estimate, time, .. } = measured;
            let microseconds = |time: Duration| format!("{:.3}", time.as_secs_f64() * 1e6);
            let (estimate, time) = (microseconds(estimate.unwrap_or_default()), microseconds(*time));
            let chosen = if n == 0 { "yes" } else { "no" };
            let row = [layout.columns(), mode.to_owned(), kernel.clone(), variant.clone(), alignment.to_string()];
            rows += &format!("{},{estimate},{time},{chosen},{copy:.3}\n", row.join(","));
        }
        let ratio = kernels[0].time.as_secs_f64() / fastest.as_secs_f64();
        losses.ratios.entry((mode, layout.kind.clone())).or_default().push(ratio);
    }
    Ok(rows)
}

/// The microseconds of a copy of as many bytes, from and to memory that takes turns.
fn copied(layout: &Layout, device: &Device, gpu: &Gpu) -> Result<f64> {
    const CACHES: u64 = 150 << 20;
    let bytes = layout.elements() * u64::from(layout.width);
    let sets = CACHES.div_ceil(2 * bytes).clamp(1, 48) as u32;
    let buffers = || (0..sets).map(|_| device.create_buffer(bytes)).collect::<std::result::Result<Vec<_>, _>>();
    let (from, to) = (buffers()?, buffers()?);
    let times = Repeated { iterations: 6, repeat: sets, adapter: None };
    let samples =
        PlainWork { gpu, buffers: (&from, &to), bytes, times: &times }.fastest(&[Kind::Copy], &[Way::InGraph])?;
    Ok(median(&samples.gpu) * 1e3)
}

/// Random data on a GPU, and what the CPU makes of them: copying, and in place.
struct Data {
    input: Buffer,
    lengths: Buffer,
    output: Buffer,
    /// Fills the output with what no kernel wrote.
    poison: BindingTable,
    /// Copies the input to the output: all lengths are 0.
    restore: BindingTable,
    expected: [Vec<u8>; 2],
}

impl Data {
    fn new(layout: &Layout, operator: &Operator, device: &Device) -> Result<Self> {
        let sizes = operator.tensors().map(|(_, desc)| desc.total_tensor_size_in_bytes as usize);
        let sizes: Vec<usize> = sizes.collect();
        let mut random = layouts::Random(7);
        let input: Vec<u8> =
            (0..sizes[0].div_ceil(8)).flat_map(|_| random.next().to_le_bytes()).take(sizes[0]).collect();
        let most = u64::from(layout.sizes[layout.axis]) + 1;
        let lengths: Vec<u32> = (0..sizes[1] / 4).map(|_| (random.next() % most) as u32).collect();
        let cpu = Device::cpu();
        let on_cpu = cpu.compile_operator(&cpu.create_operator(operator.desc().clone())?)?;
        let stream = cpu.create_stream()?;
        let [input_here, lengths_here] = [cpu.create_buffer_from(&input)?, cpu.create_buffer_from(&lengths)?];
        let expected = |output: &Buffer| -> Result<Vec<u8>> {
            on_cpu.bind(&[(&input_here).into(), (&lengths_here).into()], output)?.dispatch(&stream)?;
            Ok(output.to_vec()?)
        };
        let output = cpu.create_buffer_from(&vec![POISON; sizes[2]])?;
        let expected = [expected(&output)?, if layout.runs_in_place() { expected(&input_here)? } else { Vec::new() }];
        // Not the layout's operator: a copy of bytes is right whatever it computes.
        let bytes = |count: usize| BufferTensorDesc::packed(TensorDataType::UInt8, &[1, count as u32]);
        let one_length = BufferTensorDesc::packed(TensorDataType::UInt32, &[1, 1]);
        let copy = ReverseSubsequencesDesc {
            input_tensor: bytes(sizes[0]),
            sequence_lengths_tensor: one_length,
            output_tensor: bytes(sizes[0]),
            axis: 1,
        };
        let fill = FillValueSequenceDesc {
            output_tensor: bytes(sizes[2]),
            value_data_type: TensorDataType::UInt8,
            value_start: POISON.into(),
            value_delta: 0u8.into(),
        };
        let compile = |desc: OperatorDesc| {
            Ok::<_, Box<dyn std::error::Error>>(device.compile_operator(&device.create_operator(desc)?)?)
        };
        let output = device.create_buffer(sizes[0].max(sizes[2]) as u64 + 4)?;
        let (input, zero) = (device.create_buffer_from(&input)?, device.create_buffer(4)?);
        let restore = compile(copy.into())?.bind(&[(&input).into(), (&zero).into()], &output)?;
        let poison = compile(fill.into())?.bind(&[], &output)?;
        Ok(Self { input, lengths: device.create_buffer_from(&lengths)?, output, poison, restore, expected })
    }

    /// Whether an operator computes the same as the CPU, and writes nothing else.
    fn is_right(&self, operator: &CompiledOperator, stream: &Stream, in_place: bool) -> Result<bool> {
        let (before, input) = if in_place { (&self.restore, &self.output) } else { (&self.poison, &self.input) };
        before.dispatch(stream)?;
        operator.bind(&[input.into(), (&self.lengths).into()], &self.output)?.dispatch(stream)?;
        let expected = &self.expected[usize::from(in_place)];
        Ok(self.output.read_elements::<u8>(expected.len())? == *expected)
    }
}

/// What outputs contain before they are written.
const POISON: u8 = 0xa5;
