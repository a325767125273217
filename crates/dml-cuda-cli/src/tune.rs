//! `tune`: times every kernel that can run a layout, and says how much the estimates lose by which one is chosen, and
//! which kernels are slower specialized.

mod layouts;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use dml_cuda::{Buffer, CompiledOperator, Device, MeasuredKernel};

use crate::bench::gpu::{Gpu, Kind, Memory, Way};
use crate::bench::statistics::median;
use crate::options::{Repeated, Tune};
use crate::out::{complain, say, shown_path};
use crate::run::samples::Result;
use crate::whole_file;
use layouts::{Layout, Random};

const HEADER: &str = "kind,width,sizes,axis,in_strides,out_strides,length_sizes,mode,kernel,variant,alignment,estimate_us,us,specialized_us,chosen,copy_us\n";

/// Layouts between two lines of progress.
const STEP: usize = 25;

const MODES: [(&str, bool); 2] = [("copying", false), ("in place", true)];

/// A kernel is slower specialized if it takes more than this multiple of the generic time.
const SLOWER: f64 = 1.03;

/// The bytes of outputs before they are written.
const POISON: u8 = 0xa5;

/// The times of the chosen kernels over those of the fastest: by mode, and by mode and kind.
type Losses = BTreeMap<String, Vec<f64>>;

/// The measurements of all layouts.
#[derive(Default)]
struct Found {
    losses: Losses,
    /// The specialized times of each entry point over the generic ones.
    specialized: Losses,
    wrong: usize,
}

/// Times the layouts of a file, or drawn ones. Opens the files before the device.
pub fn tune(
    options: &Tune,
    open: impl FnOnce() -> Result<Device, String>,
) -> Result<ExitCode, String> {
    let layouts = match &options.layouts {
        Some(path) => layouts::read(path)?,
        None => layouts::draw(options.seed, options.count),
    };
    let create = |path: &PathBuf| {
        let open = |()| {
            OpenOptions::new()
                .write(true)
                .create_new(!whole_file::is_stream(path))
                .open(path)
        };
        let file = whole_file::has_folder(path)
            .map(open)
            .and_then(|file| file.map_err(|error| error.to_string()));
        file.map_err(|error| format!("{} cannot be written: {error}", shown_path(path)))
    };
    let mut file = options.output.as_ref().map(create).transpose()?;
    // Without a GPU no empty file stays.
    let is_new = |path: &&PathBuf| !whole_file::is_stream(path);
    let device = &open().inspect_err(|_| {
        drop(
            options
                .output
                .as_ref()
                .filter(is_new)
                .map(std::fs::remove_file),
        )
    })?;
    let (mut csv, mut written) = (HEADER.to_owned(), write(&mut file, HEADER));
    let gpu = Gpu::new(device).map_err(|error| error.to_string())?;
    let mut found = Found::default();
    for (n, layout) in layouts.iter().enumerate() {
        match timed(layout, device, &gpu, &mut found) {
            Ok(rows) => {
                csv += &rows;
                written = written.and_then(|()| write(&mut file, &rows));
            }
            Err(error) => {
                complain!(
                    "NOTE: layout {}, {}, is left out: {error}",
                    n + 1,
                    layout.columns().replace(',', " ")
                )
            }
        }
        if (n + 1) % STEP == 0 {
            let [copying, in_place] =
                MODES.map(|(mode, _)| found.losses.get(mode).map_or(0.0, |ratios| mean(ratios)));
            let losses = format!("loss {copying:.4} copying, {in_place:.4} in place");
            complain!("{} of {} layouts, {losses}", n + 1, layouts.len());
        }
    }
    say!("{device}: the time of the chosen kernel / the time of the fastest")?;
    say!(
        "{:28} {:>8} {:>8} {:>8} {:>9} {:>7}",
        "layouts",
        "count",
        "mean",
        "over 5 %",
        "over 25 %",
        "worst"
    )?;
    for (name, ratios) in found.losses {
        let over = |limit: f64| {
            mean(
                &ratios
                    .iter()
                    .map(|ratio| f64::from(*ratio > limit))
                    .collect::<Vec<_>>(),
            ) * 100.0
        };
        let (count, over_5, over_25) = (ratios.len(), over(1.05), over(1.25));
        let (mean, worst) = (mean(&ratios), ratios.iter().copied().fold(1.0, f64::max));
        say!("{name:28} {count:>8} {mean:>8.4} {over_5:>6.1} % {over_25:>7.1} % {worst:>7.2}")?;
    }
    say!("\nslower specialized: the specialized time / the generic time")?;
    say!(
        "{:36} {:>8} {:>8} {:>8} {:>7}",
        "kernel",
        "count",
        "mean",
        "slower",
        "worst"
    )?;
    for (kernel, ratios) in found.specialized {
        let worst = ratios.iter().copied().fold(1.0, f64::max);
        let slower = ratios.iter().filter(|ratio| **ratio > SLOWER).count();
        if slower > 0 {
            say!(
                "{kernel:36} {:>8} {:>8.4} {slower:>8} {worst:>7.2}",
                ratios.len(),
                mean(&ratios)
            )?;
        }
    }
    if let (Err(error), Some(path)) = (written, &options.output) {
        return Err(format!(
            "{}: {error}{}",
            shown_path(path),
            whole_file::save_elsewhere(path, csv.as_bytes())
        ));
    }
    match found.wrong {
        0 => Ok(ExitCode::SUCCESS),
        wrong => Err(format!("{wrong} results differ from the CPU's")),
    }
}

/// Writes whole lines at once, so that an interrupted run leaves a file that can be read.
fn write(file: &mut Option<File>, text: &str) -> Result<(), String> {
    let Some(file) = file else { return Ok(()) };
    file.write_all(text.as_bytes())
        .map_err(|error| format!("the times cannot be written: {error}"))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The rows of a layout.
fn timed(layout: &Layout, device: &Device, gpu: &Gpu, found: &mut Found) -> Result<String> {
    let operator = device.create_operator(layout.desc())?;
    let copy = copied(layout, device, gpu)?;
    let (cpu, mut random) = (Device::cpu(), Random(7));
    let sizes: Vec<usize> = operator
        .tensors()
        .map(|(_, desc)| desc.total_tensor_size_in_bytes as usize)
        .collect();
    let most = u64::from(layout.sizes[layout.axis]) + 1;
    let lengths: Vec<u32> = (0..sizes[1] / 4)
        .map(|_| (random.next() % most) as u32)
        .collect();
    // Byte by byte, the numbers of a large tensor would take longer than everything else.
    let numbers: Vec<u64> = (0..sizes[0].div_ceil(8)).map(|_| random.next()).collect();
    let input: &[u8] = &bytemuck::cast_slice(&numbers)[..sizes[0]];
    let output = vec![POISON; sizes[2]];
    let buffers = |device: &Device| -> Result<[Buffer; 3]> {
        let [input, output] = [input, &output].map(|bytes| device.create_buffer_from(bytes));
        Ok([input?, device.create_buffer_from(&lengths)?, output?])
    };
    let (on_cpu, on_gpu) = (buffers(&cpu)?, buffers(device)?);
    let operator_of_cpu = cpu.compile_operator(&cpu.create_operator(layout.desc())?)?;
    let mut rows = String::new();
    let [mut expected, mut result] = [(); 2].map(|()| vec![0; sizes[2]]);
    for (mode, in_place) in MODES {
        let kernels = device.measure_kernels(&operator, in_place)?;
        let Some(fastest) = kernels.iter().map(|kernel| kernel.time).min() else {
            continue;
        };
        let before = if in_place { input } else { &output };
        run(&operator_of_cpu, &on_cpu, before, in_place, &mut expected)?;
        for (n, measured) in kernels.iter().enumerate() {
            let MeasuredKernel {
                kernel,
                variant,
                alignment,
                estimate,
                time,
                specialized_time,
                operator,
                ..
            } = measured;
            run(operator, &on_gpu, before, in_place, &mut result)?;
            if result != expected {
                found.wrong += 1;
                complain!("WRONG: {}, {kernel} {variant}", layout.columns());
            }
            let microseconds = |time: Duration| format!("{:.3}", time.as_secs_f64() * 1e6);
            if let Some(specialized) = specialized_time {
                let ratio = specialized.as_secs_f64() / time.as_secs_f64();
                found
                    .specialized
                    .entry(kernel.clone())
                    .or_default()
                    .push(ratio);
            }
            let specialized = specialized_time.map(microseconds).unwrap_or_default();
            let (estimate, time) = (
                microseconds(estimate.unwrap_or_default()),
                microseconds(*time),
            );
            let (columns, chosen) = (layout.columns(), if n == 0 { "yes" } else { "no" });
            rows += &format!(
                "{columns},{mode},{kernel},{variant},{alignment},{estimate},{time},{specialized},{chosen},{copy:.3}\n"
            );
        }
        let ratio = kernels[0].time.as_secs_f64() / fastest.as_secs_f64();
        for name in [mode.to_owned(), format!("{mode}, {}", layout.kind)] {
            found.losses.entry(name).or_default().push(ratio);
        }
    }
    Ok(rows)
}

/// The microseconds of a copy of as many bytes, from and to memory that takes turns.
fn copied(layout: &Layout, device: &Device, gpu: &Gpu) -> Result<f64> {
    const CACHES: u64 = 150 << 20;
    let bytes = layout.elements() * u64::from(layout.width);
    let sets = CACHES.div_ceil(2 * bytes).clamp(1, 48) as u32;
    let buffers = || {
        (0..sets)
            .map(|_| device.create_buffer(bytes))
            .collect::<Result<Vec<_>, _>>()
    };
    let (from, to) = (buffers()?, buffers()?);
    let times = Repeated {
        iterations: 6,
        repeat: sets,
        adapter: None,
    };
    let samples = gpu.fastest(
        &Memory {
            from: &from,
            to: &to,
            bytes,
        },
        &[Kind::Copy],
        &[Way::InGraph],
        &times,
    )?;
    Ok(median(&samples.gpu) * 1e3)
}

/// Runs an operator whose output has these bytes before, and reads the output.
fn run(
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
