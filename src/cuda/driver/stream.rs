//! Streams of a context.

use std::sync::{Arc, PoisonError};

use super::context::Context;
use super::event::Event;
use super::handle::{wait, OwnStream, StreamHandle};
use super::primary::Entered;
use crate::error::CudaError;

/// Makes a context current, and waits for all work queued on this crate's streams of it. Holds no lock meanwhile.
///
/// Reading, writing and freeing memory waits for these streams, not for the whole context. Waiting for the context
/// would also wait for other users' streams, is forbidden while any thread captures a stream, and crashes in some
/// drivers (seen with 580.159) while another thread instantiates a graph.
pub(crate) fn wait_for_streams(context: &Context) -> Result<Entered, CudaError> {
    let current = context.enter()?;
    let streams = context
        .streams
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    streams.iter().try_for_each(|stream| wait(stream.handle))?;
    Ok(current)
}

/// A stream of a context.
#[derive(Debug)]
pub(crate) struct Stream {
    context: Arc<Context>,
    live: Arc<OwnStream>,
}

impl Stream {
    pub fn new(context: &Arc<Context>) -> Result<Self, CudaError> {
        let live = Arc::new(OwnStream::new(&context.primary)?);
        context
            .streams
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(live.clone());
        Ok(Self {
            context: context.clone(),
            live,
        })
    }

    pub fn handle(&self) -> StreamHandle {
        self.live.handle
    }

    pub fn synchronize(&self) -> Result<(), CudaError> {
        let _current = self.context.enter()?;
        wait(self.handle())
    }

    pub fn record_event(&self) -> Result<Event, CudaError> {
        Event::record(&self.context, self.handle())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // Memory may be freed once its streams are gone from the list, so their work must be done first. If waiting
        // fails (for example because the stream is being captured), the stream stays in the list and leaks, together
        // with the context that keeps its handle live.
        if self.synchronize().is_err() {
            return std::mem::forget(self.context.clone());
        }
        let mut streams = self
            .context
            .streams
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        streams.retain(|stream| !Arc::ptr_eq(stream, &self.live));
    }
}
