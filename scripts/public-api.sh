#!/usr/bin/env bash
# Writes tests/golden/public-api.txt, the public API of the crate dml-cuda; with --check it only compares.
set -euo pipefail
cd "$(dirname "$0")/.."
golden=tests/golden/public-api.txt
[ "$(cargo public-api --version 2> /dev/null)" = "cargo-public-api 0.52.0" ] ||
  cargo install --quiet --locked --debug --force cargo-public-api@0.52.0
found=$(mktemp)
trap 'rm -f "$found"' EXIT
# -ss: without the implementations that every type has.
RUSTC_BOOTSTRAP=1 cargo public-api --package dml-cuda --features cudarc-0_19 -ss > "$found" 2> "$found.log" || { cat "$found.log" >&2; exit 1; }
rm "$found.log"
if [ "${1:-}" = --check ]; then
  diff "$golden" "$found" || { echo "$golden differs; CONTRIBUTING.md says which changes make which version" >&2; exit 1; }
else
  cp "$found" "$golden"
fi
