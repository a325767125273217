#!/usr/bin/env bash
# kernels/prebuilt is what kernels/ compiles to, and drivers from CUDA 12.0 on can load it
source .ci/setup.sh

scripts/prebuilt.sh --check
