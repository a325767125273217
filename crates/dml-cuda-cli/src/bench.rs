//! A folder of models: writing and timing it, reading other tools' times, and comparing runs.

pub mod baseline;
mod check;
pub mod compare;
pub mod import;
pub mod kernel;
mod process;
pub mod record;
mod repeated;
pub mod report;
mod statistics;
pub mod suite;
pub mod timing;
