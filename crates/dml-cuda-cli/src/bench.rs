//! A folder of models: writing and timing it, reading other tools' times, and holding runs side by side.

pub mod compare;
pub mod import;
pub mod record;
pub mod report;
pub mod roof;
mod statistics;
pub mod suite;
pub mod timing;
