//! The structures that kernels take, and the numbers that both sides know. kernels/parameters.cuh has them with
//! comments. `scripts/prebuilt.sh` writes the Rust side, with a module for each namespace.

include!("../../kernels/prebuilt/parameters.rs");

const _: () = assert!(MAX_DIMS as usize == crate::desc::MAX_DIMENSIONS);
