#!/usr/bin/env bash
# the packaged crates pass the tests that are in them
source .ci/setup.sh

cargo package --locked --quiet --no-verify -p dml-cuda -p dml-cuda-model -p dml-cuda-cli
for crate in target/package/dml-cuda-{,model-,cli-}[0-9]*.crate; do tar -xzf "$crate" -C "$work"; done
export CARGO_TARGET_DIR="$shared"
(cd "$work"/dml-cuda-[0-9]*/ && cargo test --locked --quiet)
patch=(--config "patch.crates-io.dml-cuda.path='$(echo "$work"/dml-cuda-[0-9]*)'")
(cd "$work"/dml-cuda-model-*/ && cargo test --quiet "${patch[@]}")
cd "$work"/dml-cuda-cli-*/
cargo test --quiet "${patch[@]}" --config "patch.crates-io.dml-cuda-model.path='$(echo "$work"/dml-cuda-model-*)'"
