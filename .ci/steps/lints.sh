#!/usr/bin/env bash
# Clippy
source .ci/setup.sh

# Clippy's `incompatible_msrv` is what holds the declared Rust versions: no older compiler runs.
cargo clippy --locked --all-targets --features cudarc-0_19,tracing -- -D warnings
cargo clippy --locked -p dml-cuda-benches -p dml-cuda-capi -p dml-cuda-torch --all-targets -- -D warnings
cargo clippy --locked -p dml-cuda-capi --no-default-features --lib -- -D warnings
