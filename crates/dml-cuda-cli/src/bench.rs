//! `bench` times cases in a runner's processes and writes a results file. `report` shows one results file or several.

mod compare;
pub mod gpu;
pub mod kernel;
mod machine;
mod numbers;
pub mod process;
pub mod report;
mod results;
mod runner;
pub mod statistics;
pub mod suite;
pub mod timing;
mod work;
