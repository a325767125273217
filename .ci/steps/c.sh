#!/usr/bin/env bash
# the C library: its header, programs in C and C++, pkg-config and CMake, and a stub of libtorch
source .ci/setup.sh

venv cmake cmake==3.31.*
PATH="$PWD/.venv/cmake/bin:$PATH" cargo test --locked -p dml-cuda-capi -- --nocapture
