//! Plain work on a device's memory: the baselines that the runner's bench compares the operators with.

#[cfg(feature = "cuda")]
use crate::cuda;
use crate::device::buffer::{lock_to_read, lock_to_write, Buffer};
use crate::device::stream::Stream;
use crate::device::Device;
use crate::error::{BufferError, DispatchError, Error};

/// What [`PlainWork`] does with a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainKind {
    /// A copy of another buffer, by the driver.
    Copy,
    /// A fill with one byte, by the driver.
    Fill,
    /// A fill by a kernel that stores 16 bytes a thread.
    Store,
    /// Two halves that change places, by a kernel.
    Swap,
    /// A kernel that does nothing.
    Empty,
}

/// Plain work, several times in a row, each time on the next of its buffers.
#[derive(Debug)]
pub struct PlainWork {
    /// Destroyed before the memory that it uses.
    #[cfg(feature = "cuda")]
    graph: Option<cuda::Graph>,
    #[cfg(feature = "cuda")]
    kernel: Option<cuda::Launcher>,
    kind: PlainKind,
    /// What is copied.
    from: Vec<Buffer>,
    to: Vec<Buffer>,
    bytes: u64,
    repeat: u32,
}

impl PlainKind {
    /// The entry point of its kernel, and how many bytes a thread block moves at least; `None` for the driver's own
    /// work.
    fn kernel(self) -> Option<(&'static str, u64)> {
        match self {
            Self::Copy | Self::Fill => None,
            Self::Store => Some(("store", 256 * 16)),
            Self::Swap => Some(("swap", 256 * 16 * 4)),
            Self::Empty => Some(("empty", 0)),
        }
    }
}

/// The parameters of the kernels in plain.ptx.
#[cfg(feature = "cuda")]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Params {
    out: u64,
    word: u64,
}

impl PlainWork {
    /// Work on the first `bytes` of each buffer, `repeat` times. Kernels move whole thread blocks' shares, at least one.
    ///
    /// # Errors
    ///
    /// [`BufferError::OutOfRange`] for a buffer of fewer bytes, or no buffer; an error of the driver.
    #[cfg_attr(not(feature = "cuda"), allow(unused_variables))]
    pub fn new(
        kind: PlainKind,
        device: &Device,
        from: &[Buffer],
        to: &[Buffer],
        bytes: u64,
        repeat: u32,
    ) -> Result<Self, Error> {
        let least = |buffers: &[Buffer]| buffers.iter().map(Buffer::size_in_bytes).min().unwrap_or(0);
        let size_in_bytes = if kind == PlainKind::Copy { least(from).min(least(to)) } else { least(to) };
        let length = bytes.max(kind.kernel().map_or(0, |(_, share)| share));
        if size_in_bytes < length {
            return Err(BufferError::OutOfRange { offset: 0, length, size_in_bytes }.into());
        }
        #[allow(unused_mut)]
        let mut work = Self {
            #[cfg(feature = "cuda")]
            graph: None,
            #[cfg(feature = "cuda")]
            kernel: None,
            kind,
            from: from.to_vec(),
            to: to.to_vec(),
            bytes,
            repeat,
        };
        #[cfg(feature = "cuda")]
        if let Some(context) = &device.context {
            work.kernel = kernel(kind, bytes)
                .map(|launch| {
                    cuda::Launcher::new(context, [vec![launch], vec![]], crate::specialize::Specialize::Never)
                })
                .transpose()?;
            let graph = cuda::Graph::record(context, |stream| work.queue_on_gpu(stream));
            work.graph = Some(graph.map_err(DispatchError::from)?);
        }
        Ok(work)
    }

    /// Queues the work on a stream of the device; on the CPU it is done when this returns.
    #[cfg_attr(not(feature = "cuda"), allow(unused_variables))]
    pub fn queue(&self, stream: &Stream) -> Result<(), DispatchError> {
        #[cfg(feature = "cuda")]
        if let Some(stream) = &stream.queue {
            return Ok(self.queue_on_gpu(stream.handle())?);
        }
        for n in 0..self.repeat as usize {
            self.run_on_cpu(n);
        }
        Ok(())
    }

    fn run_on_cpu(&self, n: usize) {
        let Some(mut to) = nth(&self.to, n).and_then(Buffer::host).map(lock_to_write) else { return };
        let to = &mut to.bytes_mut()[..self.bytes as usize];
        match self.kind {
            PlainKind::Copy => {
                let Some(from) = nth(&self.from, n).and_then(Buffer::host) else { return };
                to.copy_from_slice(&lock_to_read(from).bytes()[..self.bytes as usize]);
            }
            PlainKind::Fill | PlainKind::Store => to.fill(1),
            PlainKind::Swap => {
                let (lower, upper) = to.split_at_mut(self.bytes as usize / 2);
                lower.swap_with_slice(&mut upper[..self.bytes as usize / 2]);
            }
            PlainKind::Empty => {}
        }
    }

    #[cfg(feature = "cuda")]
    fn queue_on_gpu(&self, stream: cuda::StreamHandle) -> Result<(), crate::error::CudaError> {
        (0..self.repeat as usize).try_for_each(|n| {
            let memory = |buffers| nth(buffers, n).and_then(Buffer::cuda_memory);
            let Some(to) = memory(&self.to) else { return Ok(()) };
            match (self.kind, &self.kernel) {
                (_, Some(kernel)) => {
                    kernel.launch(&cuda::Addresses { inputs: &[], output: to.address() }, cuda::Mode::Copying, stream)
                }
                (PlainKind::Copy, None) => {
                    memory(&self.from).map_or(Ok(()), |from| to.queue_copy(from, self.bytes, stream))
                }
                _ => to.queue_fill(1, self.bytes, stream),
            }
        })
    }

    /// The same as one CUDA graph: the milliseconds that it took on the GPU, after waiting for it. `None` on the CPU.
    #[cfg(feature = "cuda")]
    pub fn launch_graph(&mut self, stream: &Stream) -> Result<Option<f64>, DispatchError> {
        let Some((graph, stream)) = self.graph.as_mut().zip(stream.queue.as_ref()) else { return Ok(None) };
        graph.launch(stream.handle())?;
        Ok(Some(graph.milliseconds()?))
    }
}

/// The buffer of the n-th time.
fn nth(buffers: &[Buffer], n: usize) -> Option<&Buffer> {
    buffers.get(n % buffers.len().max(1))
}

/// The launch of a kernel, which stays within buffers that `new` accepts; `None` for the driver's own work.
#[cfg(feature = "cuda")]
fn kernel(kind: PlainKind, bytes: u64) -> Option<cuda::Launch> {
    let (entry, share) = kind.kernel()?;
    let blocks = u32::try_from(bytes.checked_div(share).unwrap_or(1).max(1)).unwrap_or(u32::MAX);
    let word = if kind == PlainKind::Swap { u64::from(blocks) * share / 2 } else { 1 };
    Some(cuda::Launch::new(cuda::PLAIN.entry(cuda::Mode::Copying, entry), blocks, 16, Params { out: 0, word }))
}
