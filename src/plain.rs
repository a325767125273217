//! Plain copies and fills of a device's memory: what the runner's bench compares the operators with.

use crate::buffer::{lock_to_read, lock_to_write, Buffer};
#[cfg(feature = "cuda")]
use crate::cuda;
use crate::device::Device;
use crate::error::{DispatchError, Error};
use crate::stream::Stream;

/// A copy of a buffer, or a fill with one byte, several times in a row; on a GPU by the driver's own functions.
#[derive(Debug)]
pub struct PlainWork {
    /// Destroyed before the memory that it uses.
    #[cfg(feature = "cuda")]
    graph: Option<cuda::Graph>,
    /// What is copied; nothing where the work is a fill.
    from: Option<Buffer>,
    to: Buffer,
    repeat: u32,
}

impl PlainWork {
    /// Copies so many bytes, `repeat` times.
    pub fn copy(device: &Device, bytes: u64, repeat: u32) -> Result<Self, Error> {
        let from = device.create_buffer(bytes)?;
        if let Some(memory) = from.host() {
            // Untouched pages are all one page of zeros.
            lock_to_write(memory).bytes_mut().fill(1);
        }
        Self::new(device, Some(from), bytes, repeat)
    }

    /// Fills so many bytes, `repeat` times.
    pub fn fill(device: &Device, bytes: u64, repeat: u32) -> Result<Self, Error> {
        Self::new(device, None, bytes, repeat)
    }

    fn new(device: &Device, from: Option<Buffer>, bytes: u64, repeat: u32) -> Result<Self, Error> {
        #[allow(unused_mut)]
        let mut work = Self {
            #[cfg(feature = "cuda")]
            graph: None,
            from,
            to: device.create_buffer(bytes)?,
            repeat,
        };
        #[cfg(feature = "cuda")]
        if let Some(context) = device.cuda_context() {
            let graph = cuda::Graph::record(context, |stream| work.queue_on_gpu(stream));
            work.graph = Some(graph.map_err(DispatchError::from)?);
        }
        Ok(work)
    }

    /// Queues the work on a stream of the device, one copy or fill after another; on the CPU it is done when this returns.
    #[cfg_attr(not(feature = "cuda"), allow(unused_variables))]
    pub fn queue(&self, stream: &Stream) -> Result<(), DispatchError> {
        #[cfg(feature = "cuda")]
        if let Some(stream) = stream.cuda() {
            return Ok(self.queue_on_gpu(stream.handle())?);
        }
        let Some(to) = self.to.host() else { return Ok(()) };
        for _ in 0..self.repeat {
            match self.from.as_ref().and_then(Buffer::host) {
                Some(from) => lock_to_write(to).bytes_mut().copy_from_slice(lock_to_read(from).bytes()),
                None => lock_to_write(to).bytes_mut().fill(1),
            }
        }
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn queue_on_gpu(&self, stream: cuda::StreamHandle) -> Result<(), crate::error::CudaError> {
        let Some(to) = self.to.cuda_memory() else { return Ok(()) };
        (0..self.repeat).try_for_each(|_| match self.from.as_ref().and_then(Buffer::cuda_memory) {
            Some(from) => to.queue_copy(from, self.to.size_in_bytes(), stream),
            None => to.queue_fill(1, self.to.size_in_bytes(), stream),
        })
    }

    /// The same as one CUDA graph: the milliseconds that it took on the GPU, after waiting for it. `None` on the CPU.
    #[cfg(feature = "cuda")]
    pub fn launch_graph(&mut self, stream: &Stream) -> Result<Option<f64>, DispatchError> {
        let Some((graph, stream)) = self.graph.as_mut().zip(stream.cuda()) else { return Ok(None) };
        graph.launch(stream.handle())?;
        Ok(Some(graph.milliseconds()?))
    }
}
