//! Tests of what the library promises, a module per promise. Tests that need a process of
//! their own are in the files next to this folder.

mod architecture;
mod binding;
mod case_table;
mod compile_options;
mod directml_outputs;
mod directml_verdicts;
mod examples;
mod feature_levels;
mod float_fill;
mod foreign_streams;
mod graph;
mod messages;
mod outside;
mod properties;
mod raw_dispatch;
mod slices;
#[cfg(feature = "tracing")]
mod tracing;
mod traits;
