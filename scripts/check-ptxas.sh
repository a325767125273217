#!/usr/bin/env bash
# Assembles kernels/prebuilt and crates/dml-cuda-cli/src/bench/plain.ptx for every GPU generation, and fails if a kernel
# spills registers or uses a stack.
set -euo pipefail
cd "$(dirname "$0")/.."
ptxas=$(dirname "$(scripts/install-nvcc.sh)")/ptxas
for target in sm_75 sm_80 sm_90 sm_100; do
  for ptx in kernels/prebuilt/*.ptx crates/dml-cuda-cli/src/bench/plain.ptx; do
    if [ "${target#sm_}" -lt "$(sed -n 's/^\.target sm_//p' "$ptx")" ]; then continue; fi
    report=$("$ptxas" -v -arch="$target" -o /dev/null "$ptx" 2>&1)
    if grep -E 'stack frame|spill' <<<"$report" | grep -qvE '^ +0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads'; then
      echo "$ptx for $target:" >&2
      echo "$report" >&2
      exit 1
    fi
    registers=$(grep -oE 'Used [0-9]+ registers' <<<"$report" | grep -oE '[0-9]+' | sort -n | tail -n 1)
    echo "$(basename "$ptx") for $target: no spills, at most $registers registers"
  done
done
