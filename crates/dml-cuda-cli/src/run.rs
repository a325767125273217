//! Runs a model, or only checks it.

pub mod events;
pub mod execute;
mod memory;
pub mod samples;
pub mod validate;
