//! What a device can do, and what its operators can do. Each method is short, or calls the function that does the work.
#![allow(unsafe_code)]

mod device;
mod operator;
