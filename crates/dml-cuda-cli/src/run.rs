//! Runs a model, or only checks it.

pub mod events;
pub mod execute;
pub mod samples;
pub mod validate;
