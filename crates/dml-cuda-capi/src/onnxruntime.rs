//! Custom operators for ONNX Runtime. Sessions load this library through `RegisterCustomOps`.
//!
//! | file | |
//! | --- | --- |
//! | api | ONNX Runtime's functions, wrapped to return `Result` |
//! | kernel | what all nodes share: a device, and a dispatch on the run's stream |
//! | reverse, sequence | a run of each kind of node |
//! | op | the callbacks that describe an operator to ONNX Runtime, and its nodes |
//! | register | the list of operators and their domains |

mod api;
mod kernel;
mod op;
mod register;
mod reverse;
mod sequence;

pub(crate) use kernel::{IN_PLACE_RUNS, KERNELS, RUNS};
