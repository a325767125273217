//! The list of the streams that are live, and waiting for them.

use std::sync::{PoisonError, RwLock};

use super::handle::{wait, StreamHandle};
use crate::error::CudaError;

/// The live streams of this crate, with the ordinals of their GPUs. Reading, writing and freeing memory waits for
/// these, not for the whole context. Waiting for the context would also wait for other users' streams, is forbidden
/// while any thread captures a stream, and crashes in some drivers (seen with 580.159) while another thread
/// instantiates a graph.
pub(super) static STREAMS: RwLock<Vec<(usize, StreamHandle)>> = RwLock::new(Vec::new());

/// Waits for all work queued on this crate's streams of a GPU. The GPU's context must be current.
pub(super) fn settle(ordinal: usize) -> Result<(), CudaError> {
    let streams = STREAMS.read().unwrap_or_else(PoisonError::into_inner);
    streams.iter().filter(|(of, _)| *of == ordinal).try_for_each(|(_, stream)| wait(*stream))
}
