//! Running a model, or saying what of it would run.

pub mod events;
pub mod execute;
pub mod samples;
pub mod validate;
