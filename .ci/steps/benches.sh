#!/usr/bin/env bash
# the benches, once each
source .ci/setup.sh

cargo bench --locked -p dml-cuda-benches -- --test
