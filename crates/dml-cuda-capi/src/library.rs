//! The version and the counters of the library.
#![allow(clippy::missing_safety_doc)] // as in `device`

use std::ffi::{c_char, CStr};

use crate::output::{run, write};
use crate::status::{DML_CUDA_ERROR, DML_CUDA_STATUS};
use crate::types::DML_CUDA_ONNXRUNTIME_COUNTERS;

/// The library's version, such as `0.2.0`. The text is valid until the process ends.
#[no_mangle]
pub extern "C" fn dml_cuda_version() -> *const c_char {
    const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("a version has no NUL"),
    };
    VERSION.as_ptr()
}

/// Counts what this library did for the ONNX Runtime sessions of this process. Shows whether it is in use.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_onnxruntime_counters(
    counters: *mut DML_CUDA_ONNXRUNTIME_COUNTERS,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    #[cfg(feature = "onnxruntime")]
    let counts = {
        use crate::onnxruntime::{IN_PLACE_RUNS, KERNELS, RUNS};
        [&KERNELS, &RUNS, &IN_PLACE_RUNS].map(|count| count.load(std::sync::atomic::Ordering::Relaxed))
    };
    #[cfg(not(feature = "onnxruntime"))]
    let counts = [0; 3];
    let [nodes, runs, in_place_runs] = counts;
    let counts = DML_CUDA_ONNXRUNTIME_COUNTERS { Nodes: nodes, Runs: runs, InPlaceRuns: in_place_runs };
    // SAFETY: the header's contract.
    unsafe { run(error, || write(counters, "counters", counts)) }
}
