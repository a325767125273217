//! The version and the counters of the library.
#![allow(clippy::missing_safety_doc)] // `device` says why

use std::ffi::c_char;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::output::enter;
use crate::status::{DML_CUDA_ERROR, DML_CUDA_STATUS};
use crate::types::DML_CUDA_ONNXRUNTIME_COUNTERS;

/// The nodes that ONNX Runtime's sessions of this process created, their runs, and the runs in place.
pub(crate) static NODES: AtomicU64 = AtomicU64::new(0);
pub(crate) static RUNS: AtomicU64 = AtomicU64::new(0);
pub(crate) static IN_PLACE_RUNS: AtomicU64 = AtomicU64::new(0);

/// The library's version, such as `0.3.0`. The text is valid until the process ends.
#[no_mangle]
pub extern "C" fn dml_cuda_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Counts what this library did for the ONNX Runtime sessions of this process. Shows whether it is in use.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_onnxruntime_counters(
    counters: *mut DML_CUDA_ONNXRUNTIME_COUNTERS,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    let [nodes, runs, in_place_runs] =
        [&NODES, &RUNS, &IN_PLACE_RUNS].map(|count| count.load(Ordering::Relaxed));
    let counts = DML_CUDA_ONNXRUNTIME_COUNTERS {
        Nodes: nodes,
        Runs: runs,
        InPlaceRuns: in_place_runs,
    };
    enter!(error, [], write(counters), counts)
}
