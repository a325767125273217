//! The C library of dml-cuda: DirectML's descriptors, with which a C program validates, compiles and dispatches the two
//! operators. `include/dml_cuda.h` is made from these files; its words are the doc comments here.
//!
//! | file | |
//! | --- | --- |
//! | types | structures and constants, laid out as in DirectML.h |
//! | status | status codes and error objects |
//! | input | descriptors of C as those of the crate |
//! | api | the functions |
//! | arrays | operators of other libraries' arrays |
//! | onnxruntime | ONNX Runtime's door: `RegisterCustomOps` |
//!
//! Every function catches panics, takes enumerations as `uint32_t`, and says what it owns.

pub mod api;
pub mod arrays;
mod input;
#[cfg(feature = "onnxruntime")]
mod onnxruntime;

pub mod status;
pub mod types;
