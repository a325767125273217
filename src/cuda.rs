//! The CUDA backend. `select` chooses kernels (`kernels`) for a plan as launches (`launch`), by an `estimate` of their
//! time, and a `launcher` queues them. `driver` wraps the CUDA driver, and is the only module here that imports cudarc.

#[rustfmt::skip]
#[allow(clippy::approx_constant)] // fitted numbers may be near a constant
mod costs;
mod driver;
mod estimate;
mod kernels;
mod launch;
mod launcher;
#[allow(unused_imports)] // not every module of it needs those outside
mod parameters;
pub(crate) mod select;
mod specialize;
mod target;
mod tuning;

#[cfg(all(test, in_repository))]
mod kernel_tests;

pub use driver::Properties;
pub(crate) use driver::{
    current_ordinal, describe, device_count, Context, Event, Graph, LoadedKernel, Memory, Stream,
    StreamHandle,
};
pub(crate) use launch::{Addresses, Launch};
pub(crate) use launcher::{load, load_briefly, Launcher, Loaded};
pub use target::{GpuTarget, ParseGpuTargetError};

pub(crate) use crate::placement::Placement;
