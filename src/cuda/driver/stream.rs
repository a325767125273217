//! Streams, and the list of those that are live.

use std::sync::{Arc, PoisonError, RwLock};

use cudarc::driver::result;

use super::context::Context;
use super::event::Event;
use super::handle::{new_stream, wait, StreamHandle};
use crate::error::CudaError;

/// The live streams of this crate, with the ordinals of their GPUs. Reading, writing and freeing memory waits for
/// these, not for the whole context. Waiting for the context would also wait for other users' streams, is forbidden
/// while any thread captures a stream, and crashes in some drivers (seen with 580.159) while another thread
/// instantiates a graph.
static STREAMS: RwLock<Vec<(usize, StreamHandle)>> = RwLock::new(Vec::new());

/// Waits for all work queued on this crate's streams of a GPU. The GPU's context must be current.
pub(super) fn settle(ordinal: usize) -> Result<(), CudaError> {
    let streams = STREAMS.read().unwrap_or_else(PoisonError::into_inner);
    streams.iter().filter(|(of, _)| *of == ordinal).try_for_each(|(_, stream)| wait(*stream))
}

/// Waits for all work queued on this crate's streams of a context.
pub(crate) fn wait_for_streams(context: &Context) -> Result<(), CudaError> {
    let _current = context.enter()?;
    settle(context.ordinal)
}

/// A stream of a context.
#[derive(Debug)]
pub(crate) struct Stream {
    context: Arc<Context>,
    handle: StreamHandle,
}

impl Stream {
    pub fn new(context: &Arc<Context>) -> Result<Self, CudaError> {
        let _current = context.enter()?;
        let handle = new_stream()?;
        STREAMS.write().unwrap_or_else(PoisonError::into_inner).push((context.ordinal, handle));
        Ok(Self { context: context.clone(), handle })
    }

    pub fn handle(&self) -> StreamHandle {
        self.handle
    }

    pub fn synchronize(&self) -> Result<(), CudaError> {
        let _current = self.context.enter()?;
        wait(self.handle)
    }

    pub fn record_event(&self) -> Result<Event, CudaError> {
        Event::record(&self.context, self.handle)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // Memory may be freed once its streams are gone from the list, so their work must be done first. If waiting
        // fails (for example because the stream is being captured), the stream stays in the list and leaks, together
        // with the context that keeps its handle live.
        let (Ok(_current), Ok(())) = (self.context.enter(), self.synchronize()) else {
            std::mem::forget(self.context.clone());
            return;
        };
        let mut streams = STREAMS.write().unwrap_or_else(PoisonError::into_inner);
        streams.retain(|(_, stream)| stream.raw() != self.handle.raw());
        // SAFETY: the stream was created by `new`, is destroyed only here, and is no longer in the list.
        let _ = unsafe { result::stream::destroy(self.handle.raw()) };
    }
}
