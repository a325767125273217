//! CUDA graphs: work that is captured once and then launched as a whole.

use std::sync::Arc;

use cudarc::driver::{result, sys};

use super::context::Context;
use super::event::Event;
use super::failure::cuda_error;
use super::handle::{wait, OwnStream, StreamHandle};
use super::stream::wait_for_streams;
use crate::error::{CudaError, DispatchError};

/// An executable graph: an event, the captured work in order, an event.
#[derive(Debug)]
pub(crate) struct Graph {
    context: Arc<Context>,
    executable: sys::CUgraphExec,
    first: Event,
    last: Event,
}

// SAFETY: any thread may use a CUgraphExec, but only one at a time: methods that use it take `&mut self`.
unsafe impl Send for Graph {}
// SAFETY: a shared reference gives access to the events only, which are Sync.
unsafe impl Sync for Graph {}

impl Graph {
    /// Captures what `work` queues on the given stream of the context. The caller keeps alive what the graph uses.
    ///
    /// The capture has its own stream, so that it does not disturb other threads that wait for the crate's streams.
    pub fn record(
        context: &Arc<Context>,
        work: impl FnOnce(StreamHandle) -> Result<(), DispatchError>,
    ) -> Result<Self, DispatchError> {
        let _current = context.enter()?;
        let (first, last) = (Event::new(context)?, Event::new(context)?);
        let own = OwnStream::new(&context.primary)?;
        let stream = own.handle;
        let failed = cuda_error("capturing a graph");
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is live, and nothing else uses it.
        unsafe { result::stream::begin_capture(stream.raw(), mode) }.map_err(&failed)?;
        let queued = first
            .record_in_graph(stream)
            .map_err(DispatchError::from)
            .and_then(|()| work(stream));
        let queued = queued.and_then(|()| Ok(last.record_in_graph(stream)?));
        // SAFETY: the stream is live, and this thread began its capture.
        let ended = unsafe { result::stream::end_capture(stream.raw()) }.map(Captured);
        queued?;
        let captured = ended.map_err(failed)?;
        let mut executable = std::ptr::null_mut();
        // SAFETY: the graph is live, and the driver writes one handle to a live variable.
        unsafe { sys::cuGraphInstantiateWithFlags(&mut executable, captured.0, 0) }
            .result()
            .map_err(cuda_error("instantiating a graph"))?;
        Ok(Self {
            context: context.clone(),
            executable,
            first,
            last,
        })
    }

    /// Queues the graph on a stream that the crate made on the context, after the previous launch.
    pub fn launch(&mut self, stream: StreamHandle) -> Result<(), CudaError> {
        let _current = self.context.enter_to_queue()?;
        // SAFETY: both handles are live and of one context, and no other thread uses the graph. Whoever recorded the
        // graph keeps alive what its work uses; the code that queued the work says why its accesses are valid.
        unsafe { result::graph::launch(self.executable, stream.raw()) }
            .map_err(cuda_error("launching a graph"))
    }

    /// Waits for the last launch and returns its duration in milliseconds. Waiting for the event alone is not enough:
    /// the launch that will record it may not have started.
    pub fn milliseconds(&self) -> Result<f64, CudaError> {
        let _current = wait_for_streams(&self.context)?;
        self.last.milliseconds_since(&self.first)
    }

    /// Waits for the last launch alone and returns its duration in milliseconds. Other work of the crate goes on. Only
    /// for a graph that has one launch in its queue.
    pub fn milliseconds_alone(&self, stream: StreamHandle) -> Result<f64, CudaError> {
        let _current = self.context.enter()?;
        wait(stream)?;
        self.last.milliseconds_since(&self.first)
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if let Ok(_current) = self.context.enter() {
            // SAFETY: it was instantiated by `record` and is destroyed only here. The driver lets a running launch
            // finish.
            let _ = unsafe { result::graph::exec_destroy(self.executable) };
        }
    }
}

/// A graph that is not yet executable.
struct Captured(sys::CUgraph);

impl Drop for Captured {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: the end of a capture made it, and it is destroyed only here.
            let _ = unsafe { result::graph::destroy(self.0) };
        }
    }
}
