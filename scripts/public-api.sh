#!/usr/bin/env bash
# Writes the public APIs of the crates dml-cuda and dml-cuda-candle to their tests/golden/public-api.txt; with --check
# it only compares.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
[ "$(cargo public-api --version 2> /dev/null)" = "cargo-public-api 0.52.0" ] ||
  cargo install --quiet --locked --debug --force cargo-public-api@0.52.0
found=$(mktemp)
trap 'rm -f "$found" "$found.log"' EXIT
api() { # the golden file, and where the crate is
  # -ss: without the implementations that every type has.
  RUSTC_BOOTSTRAP=1 cargo public-api "${@:2}" -ss > "$found" 2> "$found.log" || { cat "$found.log" >&2; exit 1; }
  if [ "$check" ]; then
    diff "$1" "$found" || { echo "$1 differs; CONTRIBUTING.md says which changes make which version" >&2; exit 1; }
  else
    cp "$found" "$1"
  fi
}
check=${1:+yes}
api tests/golden/public-api.txt --package dml-cuda --features cudarc-0_19
candle=crates/dml-cuda-candle
mkdir -p "$candle/tests/golden"
api "$candle/tests/golden/public-api.txt" --manifest-path "$candle/Cargo.toml"
