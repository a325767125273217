#!/usr/bin/env bash
# the command line tool and the C library compile for aarch64, and everything for Windows, without a warning
source .ci/setup.sh

root=$PWD # compiler.sh uses it
# Debian's compiler, as in scripts/release.sh: rustup's needs a standard library for each target.
source scripts/release/compiler.sh
export RUSTC=$tools/bin/debian-rustc RUSTC_BOOTSTRAP=1 RUSTFLAGS="-D warnings"
cargo check --locked --target aarch64-unknown-linux-gnu -p dml-cuda-cli -p dml-cuda-capi
cargo check --locked --target x86_64-pc-windows-gnu -Zbuild-std --workspace --tests
