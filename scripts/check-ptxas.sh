#!/usr/bin/env bash
# Assembles kernels/prebuilt and crates/dml-cuda-cli/src/bench/plain.ptx for every GPU generation, and fails if a kernel
# spills registers or uses a stack. Spills below 100 bytes pass where no GPU was measured yet: up to 76 bytes for sm_75
# to sm_89, in reverse_strips_1 and _2, reverse_unaligned_strips_in_place_1 and reverse_transposed_scatter_1 and _2, and
# up to 36 from sm_100 on, in reverse_transposed_1, reverse_transposed_scatter_2, reverse_long_lanes_in_place_1 and
# strips.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
ptxas=$(dirname "$(scripts/install-nvcc.sh)")/ptxas
# Assembles all for a target.
check() {
  local target=$1 few ptx report registers
  if [ "$target" = sm_90 ]; then few=0; else few='[0-9]{1,2}'; fi
  for ptx in kernels/prebuilt/*.ptx crates/dml-cuda-cli/src/bench/plain.ptx; do
    if [ "${target#sm_}" -lt "$(sed -n 's/^\.target sm_//p' "$ptx")" ]; then continue; fi
    report=$("$ptxas" -v -arch="$target" -o /dev/null "$ptx" 2>&1)
    if grep -E 'stack frame|spill' <<<"$report" | grep -qvE "^ +$few bytes stack frame, $few bytes spill stores, $few bytes spill loads"; then
      printf '%s for %s:\n%s\n' "$ptx" "$target" "$report" >&2
      exit 1
    fi
    registers=$(grep -oE 'Used [0-9]+ registers' <<<"$report" | grep -oE '[0-9]+' | sort -n | tail -n 1)
    echo "$(basename "$ptx") for $target: at most $registers registers"
  done
}
jobs=()
for target in sm_75 sm_80 sm_86 sm_89 sm_90 sm_100 sm_103 sm_110 sm_120 sm_121; do check "$target" & jobs+=($!); done
for job in "${jobs[@]}"; do wait "$job"; done
