//! Dispatch: runs compiled operators on memory. A file for each way to hand memory over.

mod bound;
#[cfg(feature = "cudarc-0_19")]
pub(crate) mod cudarc_slices;
pub(crate) mod dispatch_error;
pub(crate) mod host;
pub(crate) mod raw;
