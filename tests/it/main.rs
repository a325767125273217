//! Tests of what the library promises, a module per promise; tests/README.md lists them. Tests that need a process of
//! their own are in the files next to this folder.

use dml_cuda_testing as common;

mod architecture;
mod binding;
mod case_table;
#[cfg(feature = "cudarc-0_19")]
mod cudarc_slices;
mod directml_outputs;
mod directml_verdicts;
mod feature_levels;
mod float_fill;
mod graph;
mod host_pointers;
mod messages;
mod microsoft_examples;
mod properties;
#[cfg(feature = "cuda")]
mod raw_dispatch;
#[cfg(feature = "tracing")]
mod tracing;
