#!/usr/bin/env bash
# kernels spill no registers where they were measured, and less than 100 bytes elsewhere
source .ci/setup.sh

scripts/check-ptxas.sh
