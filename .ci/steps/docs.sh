#!/usr/bin/env bash
# the documentation builds without a warning
source .ci/setup.sh

RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --quiet
