#!/usr/bin/env bash
# it compiles with candle, which turns on cudarc's dynamic-linking
source .ci/setup.sh

cargo check --locked -p dml-cuda --lib --features cudarc/dynamic-linking
