//! The C library of dml-cuda: a C program validates, compiles and dispatches the two operators with DirectML's
//! descriptors. `include/dml_cuda.h` is made from these files. Its comments are the doc comments here.
//!
//! | file | |
//! | --- | --- |
//! | types | structures and constants, laid out as in DirectML.h |
//! | status | status codes, and why a call failed |
//! | input | reads what C callers pass: pointers, enumerations, descriptors |
//! | output | writes results and errors through the caller's pointers, and destroys objects |
//! | error | error objects |
//! | library | the version and the counters of the library |
//! | device | devices |
//! | operator | validate, create, compile, dispatch, explain |
//! | arrays | operators on the arrays of other libraries |
//! | frameworks | what the operators for ONNX Runtime, PyTorch and JAX share |
//! | onnxruntime | custom operators for ONNX Runtime: `RegisterCustomOps` |
//! | torch | operators for PyTorch: `dml_cuda_register_torch` |
//! | xla | handlers for XLA's foreign function interface, for JAX |
//!
//! Every function catches panics, takes enumerations as `uint32_t`, and documents what it owns.

pub mod arrays;
pub mod device;
pub mod error;
mod frameworks;
mod input;
pub mod library;
#[cfg(feature = "onnxruntime")]
mod onnxruntime;
pub mod operator;
mod output;
pub mod status;
#[cfg(unix)]
pub mod torch;
pub mod types;
mod xla;
