#!/usr/bin/env bash
# tests without nvcc: the README's command, cargo test, with every launch of the kernels on the host
source .ci/setup.sh

path=$(printf '%s' "$PATH" | tr : '\n' | while read -r part; do [ -x "$part/nvcc" ] || printf '%s:' "$part"; done)
export PATH="${path%:}"
unset CUDA_HOME CUDA_PATH
cargo run --locked --release --quiet -- models/reverse_subsequences.json
EMULATE=all REQUIRE_EMULATOR=1 cargo test --locked
cargo test --locked --lib bytes_in_place -- --ignored
