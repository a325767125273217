//! Streams and events.

use std::ffi::c_void;
use std::sync::{Arc, PoisonError, RwLock};

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;

use super::{explain, Context};
use crate::error::CudaError;

/// The live streams of this crate, with the ordinals of their GPUs: what reading, writing and freeing memory waits
/// for. Waiting for the whole context would also wait for strangers, is forbidden while any thread captures a
/// stream, and crashes in drivers (seen with 580.159) while another thread instantiates a graph.
static STREAMS: RwLock<Vec<(usize, StreamHandle)>> = RwLock::new(Vec::new());

/// Waits for all work queued on this crate's streams of a GPU, whose context is current.
pub(super) fn settle(ordinal: usize) -> Result<(), CudaError> {
    let streams = STREAMS.read().unwrap_or_else(PoisonError::into_inner);
    streams.iter().filter(|(of, _)| *of == ordinal).try_for_each(|(_, stream)| wait(*stream))
}

pub(super) fn wait(stream: StreamHandle) -> Result<(), CudaError> {
    // SAFETY: a handle is of a live stream: `STREAMS` holds those not yet dropped, and is locked while one is used.
    unsafe { result::stream::synchronize(stream.0) }.map_err(explain("waiting for a stream"))
}

/// A stream of a context.
#[derive(Debug)]
pub(crate) struct Stream {
    context: Arc<Context>,
    handle: StreamHandle,
}

impl Stream {
    pub fn new(context: &Arc<Context>) -> Result<Self, CudaError> {
        context.make_current()?;
        let handle = new_stream()?;
        STREAMS.write().unwrap_or_else(PoisonError::into_inner).push((context.ordinal, handle));
        Ok(Self { context: context.clone(), handle })
    }

    pub fn raw(&self) -> sys::CUstream {
        self.handle.0
    }

    pub fn handle(&self) -> StreamHandle {
        self.handle
    }

    pub fn synchronize(&self) -> Result<(), CudaError> {
        self.context.make_current()?;
        wait(self.handle)
    }

    pub fn record_event(&self) -> Result<Event, CudaError> {
        self.context.make_current()?;
        let raw = result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).map_err(explain("creating an event"))?;
        let event = Event { context: self.context.clone(), raw };
        // SAFETY: both handles are live and of one context.
        unsafe { result::event::record(raw, self.raw()) }.map_err(explain("recording an event"))?;
        Ok(event)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // Memory may be freed once its streams are gone from the list, so their work must be done. Where waiting
        // fails, as while the stream is being captured, it stays in the list and is leaked, with the context that
        // keeps its handle live.
        if self.synchronize().is_err() {
            std::mem::forget(self.context.clone());
        } else {
            let mut streams = STREAMS.write().unwrap_or_else(PoisonError::into_inner);
            streams.retain(|(_, stream)| stream.0 != self.handle.0);
            // SAFETY: the stream was created by `new`, is destroyed here only, and is in the list no more.
            let _ = unsafe { result::stream::destroy(self.handle.0) };
        }
    }
}

/// A live stream of the context that a launch is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamHandle(sys::CUstream);

// SAFETY: a CUstream is a handle that the driver lets any thread use; calls on it are made with its context
// current.
unsafe impl Send for StreamHandle {}
// SAFETY: as for Send; the driver orders concurrent calls on one stream.
unsafe impl Sync for StreamHandle {}

impl StreamHandle {
    pub fn raw(self) -> sys::CUstream {
        self.0
    }

    /// # Safety
    ///
    /// `raw` is null, or a live stream of the context it is used with, until the handle is last used.
    pub unsafe fn borrow(raw: sys::CUstream) -> Self {
        Self(raw)
    }
}

/// A timed event, recorded.
#[derive(Debug)]
pub(crate) struct Event {
    context: Arc<Context>,
    raw: sys::CUevent,
}

// SAFETY: a CUevent is a handle that the driver lets any thread use.
unsafe impl Send for Event {}
// SAFETY: as for Send; nothing changes after it is recorded.
unsafe impl Sync for Event {}

impl Event {
    pub fn milliseconds_since(&self, earlier: &Event) -> Result<f64, CudaError> {
        self.context.make_current()?;
        let failed = explain("timing two events");
        for event in [earlier, self] {
            // SAFETY: both events were created and recorded by `record_event` and live as long as `self`.
            unsafe { result::event::synchronize(event.raw) }.map_err(&failed)?;
        }
        elapsed(earlier.raw, self.raw).map_err(failed)
    }
}

/// `cuEventElapsedTime`, asked of the driver by name: the bindings of CUDA 13 know only its second version,
/// which drivers before 12.8 do not have.
fn elapsed(start: sys::CUevent, end: sys::CUevent) -> Result<f64, DriverError> {
    type ElapsedTime = unsafe extern "C" fn(*mut f32, sys::CUevent, sys::CUevent) -> sys::CUresult;
    let mut function: *mut c_void = std::ptr::null_mut();
    let mut found = sys::CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    // SAFETY: the name ends in a NUL; the driver writes one pointer and one status to live variables.
    unsafe { sys::cuGetProcAddress_v2(c"cuEventElapsedTime".as_ptr(), &mut function, 12000, 0, &mut found) }
        .result()?;
    if function.is_null() {
        return Err(DriverError(sys::CUresult::CUDA_ERROR_NOT_FOUND));
    }
    // SAFETY: for CUDA 12.0 the driver gives the function of this name the signature its documentation states.
    let function: ElapsedTime = unsafe { std::mem::transmute::<*mut c_void, ElapsedTime>(function) };
    let mut milliseconds = 0f32;
    // SAFETY: the events are live and recorded (the caller has waited for them), the result is a live f32.
    unsafe { function(&mut milliseconds, start, end) }.result()?;
    Ok(f64::from(milliseconds))
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.context.make_current().is_ok() {
            // SAFETY: `raw` was created by `record_event` and is destroyed here only.
            let _ = unsafe { result::event::destroy(self.raw) };
        }
    }
}

/// A stream that waits for no other, of the current context.
pub(super) fn new_stream() -> Result<StreamHandle, CudaError> {
    result::stream::create(result::stream::StreamKind::NonBlocking)
        .map(StreamHandle)
        .map_err(explain("creating a stream"))
}
