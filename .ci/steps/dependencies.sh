#!/usr/bin/env bash
# licenses, sources, and declared Rust versions of the dependencies
source .ci/setup.sh

scripts/check-dependencies.py
