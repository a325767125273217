//! The CUDA backend. From a plan, `select` chooses kernels of `kernels` as launches (`launch`), which a `launcher` queues.
//! `driver` is the only importer of cudarc, and the only place that says `unsafe`, but for
//! [`CompiledOperator::dispatch_raw`](crate::CompiledOperator::dispatch_raw), whose caller signs its contract.

mod driver;
mod kernels;
mod launch;
mod launcher;
pub(crate) mod select;
mod target;
mod tuning;

#[cfg(test)]
mod kernel_tests;

pub use driver::Properties;
pub(crate) use driver::{describe, device_count, Context, Event, Graph, Memory, Stream, StreamHandle};
pub(crate) use kernels::PLAIN;
pub(crate) use launch::{Addresses, Launch, Parameters};
pub(crate) use launcher::Launcher;
pub use target::{GpuTarget, ParseGpuTargetError};
