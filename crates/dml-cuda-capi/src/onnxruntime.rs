//! ONNX Runtime's door: `RegisterCustomOps`, by which a session loads this library.
//!
//! | file | |
//! | --- | --- |
//! | api | ONNX Runtime's functions, with results in place of statuses |
//! | kernel | what nodes have in common: a device, and a dispatch on the run's stream |
//! | reverse, sequence | what the two kinds of nodes do in a run |
//! | op | the tables of callbacks that describe an operator to ONNX Runtime; its nodes |
//! | register | which operators there are, in which domains |

mod api;
mod kernel;
mod op;
mod register;
mod reverse;
mod sequence;

pub(crate) use kernel::{IN_PLACE_RUNS, KERNELS, RUNS};
