//! Custom operators for ONNX Runtime. Sessions load this library through `RegisterCustomOps`.
//!
//! | file | |
//! | --- | --- |
//! | ort | ONNX Runtime's functions, wrapped to return `Result` |
//! | element | ONNX Runtime's element types |
//! | node | what all nodes share: a device, and the run's stream |
//! | onnx_reversal, onnx_sequence | a run of each kind of node |
//! | op | the callbacks that describe an operator to ONNX Runtime, and its nodes |
//! | register | the list of operators and their domains |

mod element;
mod node;
mod onnx_reversal;
mod onnx_sequence;
mod op;
mod ort;
mod register;
