#!/usr/bin/env bash
# fuzzing: at most half a minute per target, with a fixed seed; longer runs find new inputs
source .ci/setup.sh

FUZZ_ARGS=-seed=1 scripts/fuzz.sh 30 model:900000 npy:300000 operators:60000 overlap:150000
