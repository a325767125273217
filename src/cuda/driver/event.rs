//! Timed events.

use std::sync::Arc;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;

use super::context::Context;
use super::failure::cuda_error;
use super::handle::StreamHandle;
use super::library;
use crate::error::CudaError;

/// A timed event.
#[derive(Debug)]
pub(crate) struct Event {
    context: Arc<Context>,
    raw: sys::CUevent,
}

// SAFETY: a CUevent is a handle that any thread may use.
unsafe impl Send for Event {}
// SAFETY: the driver orders concurrent calls on one event.
unsafe impl Sync for Event {}

impl Event {
    /// A new event, not recorded yet.
    pub(super) fn new(context: &Arc<Context>) -> Result<Self, CudaError> {
        let _current = context.enter()?;
        let raw = result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT)
            .map_err(cuda_error("creating an event"))?;
        Ok(Self {
            context: context.clone(),
            raw,
        })
    }

    /// An event after all work queued so far on a stream of the context.
    pub(super) fn record(context: &Arc<Context>, stream: StreamHandle) -> Result<Self, CudaError> {
        let event = Self::new(context)?;
        let _current = context.enter_to_queue()?;
        // SAFETY: both handles are live and of one context.
        unsafe { result::event::record(event.raw, stream.raw()) }
            .map_err(cuda_error("recording an event"))?;
        Ok(event)
    }

    /// Makes the work that is queued on a stream from now on wait for what another stream has so far. While the stream
    /// is being captured into a graph, it waits only for another captured stream: a replay reads its memory later.
    pub fn order(
        context: &Arc<Context>,
        stream: StreamHandle,
        awaited: StreamHandle,
    ) -> Result<(), CudaError> {
        let _current = context.enter_to_queue()?;
        if stream.is_capturing() && !awaited.is_capturing() {
            return Ok(());
        }
        Self::record(context, awaited)?.make_wait(stream)
    }

    /// While the stream is being captured into a graph: makes every launch of that graph record the event.
    pub(super) fn record_in_graph(&self, stream: StreamHandle) -> Result<(), CudaError> {
        let _current = self.context.enter_to_queue()?;
        let external = sys::CUevent_record_flags::CU_EVENT_RECORD_EXTERNAL as u32;
        // SAFETY: both handles are live and of one context.
        unsafe { sys::cuEventRecordWithFlags(self.raw, stream.raw(), external) }
            .result()
            .map_err(cuda_error("recording an event in a graph"))
    }

    /// Makes the work that is queued on a stream of the same GPU from now on wait for the event.
    pub fn make_wait(&self, stream: StreamHandle) -> Result<(), CudaError> {
        let _current = self.context.enter_to_queue()?;
        let plain = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: both handles are live, and the caller has checked that they belong to one GPU.
        unsafe { result::stream::wait_event(stream.raw(), self.raw, plain) }
            .map_err(cuda_error("waiting for an event"))
    }

    /// The GPU's milliseconds from the earlier event to this one. Both must have happened.
    pub fn milliseconds_since(&self, earlier: &Event) -> Result<f64, CudaError> {
        let _current = self.context.enter()?;
        let failed = cuda_error("timing two events");
        for event in [earlier, self] {
            // SAFETY: both events were created by `new` and live as long as `self`.
            unsafe { result::event::synchronize(event.raw) }.map_err(&failed)?;
        }
        elapsed(earlier.raw, self.raw).map_err(failed)
    }
}

/// Calls `cuEventElapsedTime`, which it looks up by name: cudarc's bindings for CUDA 13 have only its second version,
/// which drivers before 12.8 lack.
fn elapsed(start: sys::CUevent, end: sys::CUevent) -> Result<f64, DriverError> {
    type ElapsedTime = unsafe extern "C" fn(*mut f32, sys::CUevent, sys::CUevent) -> sys::CUresult;
    // SAFETY: the driver documents this signature for the function of this name.
    let function: Option<ElapsedTime> = unsafe { library::function("cuEventElapsedTime") };
    let function = function.ok_or(DriverError(sys::CUresult::CUDA_ERROR_NOT_FOUND))?;
    let mut milliseconds = 0f32;
    // SAFETY: the events are live and have been waited for, and the result is a live f32. Events that were never
    // recorded give an error.
    unsafe { function(&mut milliseconds, start, end) }.result()?;
    Ok(f64::from(milliseconds))
}

impl Drop for Event {
    fn drop(&mut self) {
        if let Ok(_current) = self.context.enter() {
            // SAFETY: `raw` was created by `new` and is destroyed here only.
            let _ = unsafe { result::event::destroy(self.raw) };
        }
    }
}
