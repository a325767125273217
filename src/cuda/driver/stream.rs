//! Streams.

use std::sync::{Arc, PoisonError};

use cudarc::driver::result;

use super::context::Context;
use super::event::Event;
use super::handle::{new_stream, wait, StreamHandle};
use super::live_streams::STREAMS;
use crate::error::CudaError;

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
