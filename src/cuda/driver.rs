//! A thin wrapper of the driver, with a file for each of its objects. Only this module calls the driver.
//!
//! Calls go through cudarc's `result` layer on raw handles. Its safe layer records an event for every buffer
//! and launch, which costs time and breaks graph capture.
#![allow(unsafe_code)]

mod capture;
mod context;
mod device;
mod event;
mod failure;
mod graph;
mod handle;
mod library;
mod loaded_kernel;
mod memory;
mod primary;
mod stream;

pub(crate) use context::Context;
pub use device::Properties;
pub(crate) use device::{current_ordinal, describe, device_count};
pub(crate) use event::Event;
pub(crate) use graph::Graph;
pub(crate) use handle::StreamHandle;
pub(crate) use loaded_kernel::LoadedKernel;
pub(crate) use memory::Memory;
pub(crate) use stream::Stream;
