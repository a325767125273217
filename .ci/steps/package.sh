#!/usr/bin/env bash
# the packaged crates pass the tests that are in them
source .ci/setup.sh

cargo package --locked --quiet --no-verify -p dml-cuda -p dml-cuda-cli
for crate in target/package/dml-cuda-{,cli-}[0-9]*.crate; do tar -xzf "$crate" -C "$work"; done
export CARGO_TARGET_DIR="$shared"
(cd "$work"/dml-cuda-[0-9]*/ && cargo test --locked --quiet)
cd "$work"/dml-cuda-cli-*/
cargo test --quiet --config "patch.crates-io.dml-cuda.path='$(echo "$work"/dml-cuda-[0-9]*)'"
