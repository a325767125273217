//! `dml-cuda tune` times every kernel that can run a layout, and reports how much slower the chosen kernel is than the
//! fastest one.
//!
//! The cost model chooses a kernel without running it. The times show where its estimates are wrong, and
//! `scripts/fit-estimates.py` fits the model's coefficients to them:
//!
//! ```text
//! kernel       A        B        C
//! estimate   10 µs    11 µs    15 µs    A is chosen
//! time       12 µs    10 µs    16 µs    B is the fastest: the loss is 12 / 10 = 1.2
//! ```
//!
//! Every output is compared with the CPU's. A specialized kernel is compiled for the sizes of a layout; it should never
//! be slower than the generic one.

mod layouts;
mod random_layouts;
mod times_file;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use dml_cuda::{Buffer, CompiledOperator, Device, MeasuredKernel, Operator};

use crate::bench::gpu::{Gpu, Kind, Memory, Way};
use crate::bench::statistics::median;
use crate::options::{Repeated, Tune};
use crate::out::{complain, say};
use crate::run::samples::Result;
use layouts::Layout;
use random_layouts::Random;
use times_file::TimesFile;

/// The columns of the file of times. scripts/fit-estimates.py reads them by name.
const HEADER: &str = "kind,width,sizes,axis,in_strides,out_strides,length_sizes,mode,kernel,variant,alignment,estimate_us,us,specialized_us,chosen,copy_us\n";

/// Layouts between two lines of progress.
const STEP: usize = 25;

/// The modes with their names in the file, and whether they are in place.
const MODES: [(&str, bool); 2] = [("copying", false), ("in place", true)];

/// A kernel is slower specialized if it takes more than this multiple of the generic time.
const SLOWER: f64 = 1.03;

/// The bytes of outputs before they are written, on both devices. A kernel that writes into the gaps of a tensor is found
/// by them, and so is one that leaves out an element.
const POISON: u8 = 0xa5;

/// Ratios of two times of one kernel or mode, by name.
type Ratios = BTreeMap<String, Vec<f64>>;

/// What the measurements of all layouts say about the choice of kernels.
#[derive(Default)]
struct Findings {
    /// The time of the chosen kernel over that of the fastest: by mode, and by mode and kind of layout.
    losses: Ratios,
    /// The specialized time of each entry point over the generic one.
    specialized: Ratios,
    /// Outputs that differ from the CPU's.
    wrong: usize,
}

/// Times the layouts of a file, or random ones. Opens the files before the device, so that a wrong path is an error at
/// once and not after the GPU has started.
pub fn tune(
    options: &Tune,
    open: impl FnOnce() -> Result<Device, String>,
) -> Result<ExitCode, String> {
    let layouts = match &options.layouts {
        Some(path) => layouts::read(path)?,
        None => random_layouts::draw(options.seed, options.count),
    };
    let mut file = TimesFile::create(options.output.as_deref())?;
    let opened = open().and_then(|device| {
        let gpu = Gpu::new(&device).map_err(|error| error.to_string())?;
        Ok((device, gpu))
    });
    let (device, gpu) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            // Without a GPU no empty file stays.
            file.remove();
            return Err(error);
        }
    };
    // At once, so that even a file without a layout can be read.
    file.add(HEADER);
    let mut findings = Findings::default();
    for (n, layout) in (1..).zip(&layouts) {
        match time_layout(layout, &device, &gpu, &mut findings) {
            Ok(rows) => file.add(&rows),
            Err(error) => {
                let columns = layout.columns().replace(',', " ");
                complain!("NOTE: layout {n}, {columns}, is skipped: {error}");
            }
        }
        if n % STEP == 0 {
            let [copying, in_place] = MODES.map(|(mode, _)| findings.mean_loss(mode));
            let losses = format!("loss {copying:.4} copying, {in_place:.4} in place");
            complain!("{n} of {} layouts, {losses}", layouts.len());
        }
    }
    say!("{device}: the time of the chosen kernel / the time of the fastest")?;
    print_losses(&findings.losses)?;
    print_slower_specialized(&findings.specialized)?;
    file.finish()?;
    match findings.wrong {
        0 => Ok(ExitCode::SUCCESS),
        wrong => Err(format!("{wrong} results differ from the CPU's")),
    }
}

impl Findings {
    /// Adds a kernel whose specialized form was timed as well.
    fn add_specialized(&mut self, measured: &MeasuredKernel) {
        if let Some(specialized) = measured.specialized_time {
            let ratios = self.specialized.entry(measured.kernel.clone());
            let ratio = specialized.as_secs_f64() / measured.time.as_secs_f64();
            ratios.or_default().push(ratio);
        }
    }

    /// Adds the loss of a layout in a mode.
    fn add_loss(&mut self, mode: &str, kind: &str, chosen: Duration, fastest: Duration) {
        let ratio = chosen.as_secs_f64() / fastest.as_secs_f64();
        for name in [mode.to_owned(), format!("{mode}, {kind}")] {
            self.losses.entry(name).or_default().push(ratio);
        }
    }

    /// The mean loss of a mode so far, or 0 before its first layout.
    fn mean_loss(&self, mode: &str) -> f64 {
        self.losses.get(mode).map_or(0.0, |ratios| mean(ratios))
    }
}

/// Prints how much slower chosen kernels are than the fastest ones.
fn print_losses(losses: &Ratios) -> Result<(), String> {
    say!(
        "{:28} {:>8} {:>8} {:>8} {:>9} {:>7}",
        "layouts",
        "count",
        "mean",
        "over 5 %",
        "over 25 %",
        "worst"
    )?;
    for (name, ratios) in losses {
        let (count, mean, worst) = (ratios.len(), mean(ratios), worst(ratios));
        let over_5 = percent_over(ratios, 1.05);
        let over_25 = percent_over(ratios, 1.25);
        say!("{name:28} {count:>8} {mean:>8.4} {over_5:>6.1} % {over_25:>7.1} % {worst:>7.2}")?;
    }
    Ok(())
}

/// Prints the entry points that are slower specialized on one layout at least.
fn print_slower_specialized(specialized: &Ratios) -> Result<(), String> {
    say!("\nslower specialized: the specialized time / the generic time")?;
    say!(
        "{:36} {:>8} {:>8} {:>8} {:>7}",
        "kernel",
        "count",
        "mean",
        "slower",
        "worst"
    )?;
    for (kernel, ratios) in specialized {
        let slower = count_over(ratios, SLOWER);
        if slower > 0 {
            let (count, mean, worst) = (ratios.len(), mean(ratios), worst(ratios));
            say!("{kernel:36} {count:>8} {mean:>8.4} {slower:>8} {worst:>7.2}")?;
        }
    }
    Ok(())
}

/// The arithmetic mean of at least one value.
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The largest ratio, but at least 1.
fn worst(ratios: &[f64]) -> f64 {
    ratios.iter().copied().fold(1.0, f64::max)
}

/// How many ratios are above a limit.
fn count_over(ratios: &[f64], limit: f64) -> usize {
    ratios.iter().filter(|ratio| **ratio > limit).count()
}

/// The share of the ratios that are above a limit, in percent.
fn percent_over(ratios: &[f64], limit: f64) -> f64 {
    count_over(ratios, limit) as f64 / ratios.len() as f64 * 100.0
}

/// The bytes that a layout is timed and checked with, the same on the CPU and on the GPU.
struct Data {
    /// The input's bytes as whole numbers: drawn byte by byte, a large tensor would take longer than everything else.
    numbers: Vec<u64>,
    /// The bytes of them that are the input.
    input_size: usize,
    lengths: Vec<u32>,
    /// What the output holds before a dispatch out of place.
    output: Vec<u8>,
}

impl Data {
    /// Random input, and random lengths from 0 up to the size along the axis.
    fn random(layout: &Layout, operator: &Operator) -> Self {
        let sizes: Vec<usize> = operator
            .tensors()
            .map(|(_, desc)| desc.total_tensor_size_in_bytes as usize)
            .collect();
        let [input_size, lengths_size, output_size] = sizes[..] else {
            unreachable!("a reversal has an input, lengths and an output");
        };
        let mut random = Random(7);
        let count = u64::from(layout.sizes[layout.axis]) + 1;
        let lengths = (0..lengths_size / 4).map(|_| (random.next() % count) as u32);
        Self {
            lengths: lengths.collect(),
            numbers: (0..input_size.div_ceil(8)).map(|_| random.next()).collect(),
            input_size,
            output: vec![POISON; output_size],
        }
    }

    /// The bytes of the input.
    fn input(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.numbers)[..self.input_size]
    }

    /// What the output buffer holds before a dispatch.
    fn before(&self, in_place: bool) -> &[u8] {
        if in_place {
            self.input()
        } else {
            &self.output
        }
    }

    /// Buffers of the input, the lengths and the output.
    fn buffers(&self, device: &Device) -> Result<[Buffer; 3]> {
        Ok([
            device.create_buffer_from(self.input())?,
            device.create_buffer_from(&self.lengths)?,
            device.create_buffer_from(&self.output)?,
        ])
    }
}

/// Times every kernel on a layout, in both modes. Returns the rows of the table.
fn time_layout(
    layout: &Layout,
    device: &Device,
    gpu: &Gpu,
    findings: &mut Findings,
) -> Result<String> {
    let operator = device.create_operator(layout.desc())?;
    let copy_time = copy_microseconds(layout, device, gpu)?;
    let data = Data::random(layout, &operator);
    let cpu = Device::cpu();
    let (on_cpu, on_gpu) = (data.buffers(&cpu)?, data.buffers(device)?);
    let reference = cpu.compile_operator(&cpu.create_operator(layout.desc())?)?;
    // Both are kept for all kernels: a large layout has gigabytes.
    let mut expected = vec![0; data.output.len()];
    let mut result = expected.clone();
    let mut rows = String::new();
    for (mode, in_place) in MODES {
        // The first one has the lowest estimate: it is the kernel that a dispatch would take.
        let kernels = device.measure_kernels(&operator, in_place)?;
        // Some layouts cannot be reversed in place.
        let Some(fastest) = kernels.iter().map(|kernel| kernel.time).min() else {
            continue;
        };
        let before = data.before(in_place);
        dispatch(&reference, &on_cpu, before, in_place, &mut expected)?;
        for (n, measured) in kernels.iter().enumerate() {
            let MeasuredKernel {
                kernel, variant, ..
            } = measured;
            dispatch(&measured.operator, &on_gpu, before, in_place, &mut result)?;
            // A wrong result is reported, and its row is kept.
            if result != expected {
                findings.wrong += 1;
                complain!("WRONG: {}, {kernel} {variant}", layout.columns());
            }
            findings.add_specialized(measured);
            let kernel_columns = kernel_columns(measured, n == 0);
            rows += &format!(
                "{},{mode},{kernel_columns},{copy_time:.3}\n",
                layout.columns()
            );
        }
        findings.add_loss(mode, &layout.kind, kernels[0].time, fastest);
    }
    Ok(rows)
}

/// The columns from `kernel` to `chosen`.
fn kernel_columns(measured: &MeasuredKernel, is_chosen: bool) -> String {
    let MeasuredKernel {
        kernel,
        variant,
        alignment,
        ..
    } = measured;
    let estimate = microseconds(measured.estimate.unwrap_or_default());
    let time = microseconds(measured.time);
    let specialized = measured.specialized_time.map(microseconds);
    let specialized = specialized.unwrap_or_default();
    let chosen = if is_chosen { "yes" } else { "no" };
    format!("{kernel},{variant},{alignment},{estimate},{time},{specialized},{chosen}")
}

/// A time as the file has it, with nanoseconds.
fn microseconds(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64() * 1e6)
}

/// The microseconds of a plain copy of the layout's elements. Its buffers take turns, enough of them that no copy finds
/// its bytes in the L2 cache.
fn copy_microseconds(layout: &Layout, device: &Device, gpu: &Gpu) -> Result<f64> {
    // Meant to be larger than the L2 cache of every GPU.
    const CACHES: u64 = 150 << 20;
    let bytes = layout.elements() * u64::from(layout.width);
    let sets = CACHES.div_ceil(2 * bytes).clamp(1, 48) as u32;
    let (mut from, mut to) = (Vec::new(), Vec::new());
    for _ in 0..sets {
        from.push(device.create_buffer(bytes)?);
        to.push(device.create_buffer(bytes)?);
    }
    let times = Repeated {
        iterations: 6,
        repeat: sets,
        adapter: None,
    };
    let memory = Memory {
        from: &from,
        to: &to,
        bytes,
    };
    let samples = gpu.fastest(&memory, &[Kind::Copy], &[Way::InGraph], &times)?;
    Ok(median(&samples.gpu) * 1e3)
}

/// Dispatches an operator whose output holds the bytes `before`, and reads the output into `result`.
fn dispatch(
    operator: &CompiledOperator,
    [input, lengths, output]: &[Buffer; 3],
    before: &[u8],
    in_place: bool,
    result: &mut [u8],
) -> Result<()> {
    output.write(0, before)?;
    let input = if in_place { output } else { input };
    operator
        .bind(&[input.into(), lengths.into()], output)?
        .dispatch(&output.device().create_stream()?)?;
    Ok(output.read(0, result)?)
}
