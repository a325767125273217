//! The CUDA backend. `select` chooses kernels (`kernels`) for a plan as launches (`launch`), and a `launcher` queues
//! them. `driver` wraps the CUDA driver. It is the only module here that imports cudarc or contains `unsafe` code.

mod driver;
mod kernels;
mod launch;
mod launcher;
pub(crate) mod select;
mod specialize;
mod target;
mod tuning;

#[cfg(all(test, in_repository))]
mod kernel_tests;

pub use driver::Properties;
pub(crate) use driver::{current_ordinal, describe, device_count, Context, Event, Graph, Memory, Stream, StreamHandle};
pub(crate) use launch::{Addresses, Launch};
pub(crate) use launcher::Launcher;
pub use target::{GpuTarget, ParseGpuTargetError};

pub(crate) use crate::mode::Mode;
