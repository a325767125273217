//! Work that is timed several times in a row: queued one after another, or as one CUDA graph.

use std::time::Instant;

use dml_cuda::{BindingTable, Device, DispatchError, Graph, PlainWork, Stream};

use super::statistics::Quartiles;
use crate::run::samples::Samples;

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// How work reaches the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Queued,
    InGraph,
}

pub trait Repeated {
    /// Queues all of it, one after another; on the CPU it is done when this returns.
    fn queue(&self, stream: &Stream) -> std::result::Result<(), DispatchError>;

    /// Launches all of it as a graph: the milliseconds that it took on the GPU. `None` on the CPU.
    fn launch(&mut self, stream: &Stream) -> Result<Option<f64>>;
}

impl Repeated for PlainWork {
    fn queue(&self, stream: &Stream) -> std::result::Result<(), DispatchError> {
        PlainWork::queue(self, stream)
    }

    fn launch(&mut self, stream: &Stream) -> Result<Option<f64>> {
        Ok(self.launch_graph(stream)?)
    }
}

/// Dispatches on sets of buffers in turn.
pub struct Dispatches {
    graph: Graph,
    pub tables: Vec<BindingTable>,
    repeat: usize,
}

impl Dispatches {
    pub fn new(device: &Device, tables: Vec<BindingTable>, repeat: u32) -> Result<Self> {
        let repeat = repeat as usize;
        Ok(Self { graph: device.record_graph(tables.iter().cycle().take(repeat))?, tables, repeat })
    }
}

impl Repeated for Dispatches {
    fn queue(&self, stream: &Stream) -> std::result::Result<(), DispatchError> {
        self.tables.iter().cycle().take(self.repeat).try_for_each(|table| table.dispatch(stream))
    }

    fn launch(&mut self, stream: &Stream) -> Result<Option<f64>> {
        self.graph.launch(stream)?;
        Ok(Some(self.graph.milliseconds()?))
    }
}

/// A sample for each iteration, in milliseconds of one of `repeat` times. On the CPU all work is queued.
pub fn sample(work: &mut dyn Repeated, way: Way, stream: &Stream, iterations: u32, repeat: u32) -> Result<Samples> {
    let on_gpu = stream.device().ordinal().is_some();
    let each = |milliseconds: f64| milliseconds / f64::from(repeat);
    let mut samples = Samples::default();
    for _ in 0..iterations {
        let before = Instant::now();
        let gpu = match way {
            Way::InGraph if on_gpu => work.launch(stream)?,
            _ => queued(work, stream, on_gpu)?,
        };
        samples.cpu.push(each(before.elapsed().as_secs_f64() * 1e3));
        samples.gpu.extend(gpu.map(each));
    }
    Ok(samples)
}

fn queued(work: &dyn Repeated, stream: &Stream, on_gpu: bool) -> Result<Option<f64>> {
    let event = || on_gpu.then(|| stream.record_event()).transpose();
    let first = event()?;
    work.queue(stream)?;
    let last = event()?;
    stream.synchronize()?;
    Ok(first.zip(last).map(|(first, last)| last.milliseconds_since(&first)).transpose()?)
}

/// The samples with the least median, on the GPU where there are such.
pub fn fastest(all: impl IntoIterator<Item = Result<Samples>>) -> Result<Samples> {
    let all = all.into_iter().collect::<Result<Vec<Samples>>>()?;
    let median =
        |samples: &Samples| Quartiles::of(if samples.gpu.is_empty() { &samples.cpu } else { &samples.gpu }).median;
    let fastest = all.into_iter().min_by(|a, b| median(a).total_cmp(&median(b)));
    Ok(fastest.unwrap_or_default())
}
