//! What a device can do, and what its operators can do. Each method is short, or calls the function that does the work.
//! That function is elsewhere, so that the modules below this one import each other in one direction.
#![allow(unsafe_code)]

mod device;
mod operator;
