#!/usr/bin/env bash
# candle, on its CPU device
source .ci/setup.sh

cargo clippy --locked --manifest-path crates/dml-cuda-candle/Cargo.toml --all-targets -- -D warnings
cargo test --locked --manifest-path crates/dml-cuda-candle/Cargo.toml
cargo run --locked --quiet --manifest-path crates/dml-cuda-candle/Cargo.toml --example bidirectional_gru
