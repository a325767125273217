#!/usr/bin/env bash
# the public APIs are what the golden files record
source .ci/setup.sh

scripts/public-api.sh --check
