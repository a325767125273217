//! Cases are timed by a runner's process into a run. A report shows one run or several.

mod compare;
pub mod gpu;
pub mod kernel;
mod machine;
mod numbers;
pub mod process;
pub mod report;
mod run;
mod runner;
pub mod statistics;
pub mod suite;
pub mod timing;
mod work;
