//! Runs a model, or only checks it.

pub mod answers;
pub mod events;
pub mod execute;
mod memory;
mod prepare;
pub mod samples;
