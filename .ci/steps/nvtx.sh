#!/usr/bin/env bash
# ranges for NVIDIA's profilers compile
source .ci/setup.sh

venv libclang libclang==18.1.1
LIBCLANG_PATH=$(echo "$PWD"/.venv/libclang/lib/python3*/site-packages/clang/native) \
  BINDGEN_EXTRA_CLANG_ARGS="-I$(cc -print-file-name=include)" \
  cargo clippy --locked -p dml-cuda --features nvtx,tracing --lib -- -D warnings
