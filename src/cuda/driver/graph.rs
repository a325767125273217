//! Work that is captured once and launched as a whole.

use std::sync::Arc;

use cudarc::driver::{result, sys};

use super::context::Context;
use super::event::Event;
use super::failure::explain;
use super::handle::{new_stream, StreamHandle};
use super::stream::settle;
use crate::error::CudaError;

/// An executable graph: an event, the captured work in order, an event.
#[derive(Debug)]
pub(crate) struct Graph {
    context: Arc<Context>,
    executable: sys::CUgraphExec,
    first: Event,
    last: Event,
}

// SAFETY: a CUgraphExec is a handle that the driver lets any thread use, one at a time: what uses it takes `&mut self`.
unsafe impl Send for Graph {}
// SAFETY: as for Send; a shared reference reaches the events alone.
unsafe impl Sync for Graph {}

impl Graph {
    /// Captures what `work` queues on the stream that it is given, of the context; the caller keeps alive what the graph uses.
    ///
    /// The stream is the capture's own, so that other threads wait for the crate's streams without meeting it.
    pub fn record(
        context: &Arc<Context>,
        work: impl FnOnce(StreamHandle) -> Result<(), CudaError>,
    ) -> Result<Self, CudaError> {
        let _current = context.enter()?;
        let (first, last) = (Event::new(context)?, Event::new(context)?);
        let stream = OwnStream(new_stream()?);
        let captured = stream.capture(|handle| {
            first.record_in_graph(handle)?;
            work(handle)?;
            last.record_in_graph(handle)
        })?;
        let mut executable = std::ptr::null_mut();
        // SAFETY: the graph is live, and the driver writes one handle to a live variable.
        unsafe { sys::cuGraphInstantiateWithFlags(&mut executable, captured.0, 0) }
            .result()
            .map_err(explain("instantiating a graph"))?;
        Ok(Self { context: context.clone(), executable, first, last })
    }

    /// Queues it on a stream that the crate made on the context, behind its launch before.
    pub fn launch(&mut self, stream: StreamHandle) -> Result<(), CudaError> {
        let _current = self.context.enter()?;
        // SAFETY: both handles are live and of one context; no other thread uses the graph. What the captured work may touch
        // was argued where it was queued, and is kept alive by who recorded it.
        unsafe { result::graph::launch(self.executable, stream.raw()) }.map_err(explain("launching a graph"))
    }

    /// Milliseconds that the work of the last launch took, after waiting for it: waiting for an event is no wait for the launch
    /// that will record it.
    pub fn milliseconds(&self) -> Result<f64, CudaError> {
        let _current = self.context.enter()?;
        settle(self.context.ordinal())?;
        self.last.milliseconds_since(&self.first)
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if let Ok(_current) = self.context.enter() {
            // SAFETY: it was instantiated by `record` and is destroyed here only; the driver lets a launch that runs end.
            let _ = unsafe { result::graph::exec_destroy(self.executable) };
        }
    }
}

/// A stream for one capture.
struct OwnStream(StreamHandle);

impl OwnStream {
    fn capture(&self, work: impl FnOnce(StreamHandle) -> Result<(), CudaError>) -> Result<Captured, CudaError> {
        let failed = explain("capturing a graph");
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is live, and nothing else uses it.
        unsafe { result::stream::begin_capture(self.0.raw(), mode) }.map_err(&failed)?;
        let queued = work(self.0);
        // SAFETY: as above; the capture was begun by this thread.
        let ended = unsafe { result::stream::end_capture(self.0.raw()) }.map(Captured);
        queued?;
        ended.map_err(failed)
    }
}

impl Drop for OwnStream {
    fn drop(&mut self) {
        // SAFETY: the stream was created for this, is destroyed here only, and nothing was queued on it but into a capture.
        let _ = unsafe { result::stream::destroy(self.0.raw()) };
    }
}

/// A graph that is not yet executable.
struct Captured(sys::CUgraph);

impl Drop for Captured {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: it was made by the end of a capture, and is destroyed here only.
            let _ = unsafe { result::graph::destroy(self.0) };
        }
    }
}
