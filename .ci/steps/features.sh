#!/usr/bin/env bash
# the library's tests with its features, and with the declared minimum versions of its dependencies
source .ci/setup.sh

# The unit tests do not depend on a feature.
git clone --quiet . "$work/minimum"
cd "$work/minimum"
RUSTC_BOOTSTRAP=1 cargo -Z direct-minimal-versions update --quiet
CARGO_TARGET_DIR="$shared" cargo test --locked -p dml-cuda --features cudarc-0_19,tracing --test it --test driver_faults
