//! Cases are timed by a runner's process into a run. A report shows one run or several.

pub mod baseline;
pub mod cases;
mod checks;
mod compare;
mod job;
pub mod kernel;
mod machine;
mod models;
mod numbers;
mod onnx;
pub mod plain;
pub mod process;
pub mod report;
mod run;
mod runner;
pub mod statistics;
pub mod suite;
pub mod timing;
mod work;
