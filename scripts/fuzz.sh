#!/usr/bin/env bash
# Fuzzes all targets, or the named ones, for a number of seconds or of runs each: scripts/fuzz.sh 60 [model npy
# operators:100000 overlap]. Uses libFuzzer with a stable compiler, and coverage from LLVM's own pass.
# fuzz/corpus.tar.xz has useful inputs, fuzz/found new ones, and fuzz/ inputs that fail. scripts/fuzz.sh --keep adds the
# new inputs that increase the coverage to the corpus.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/../fuzz"
host=$(rustc -vV | sed -n 's/^host: //p')
if [ "$1" = --keep ]; then
  kept=$(mktemp -d)
  trap 'rm -rf "$kept"' EXIT
  for target in model npy operators overlap; do
    mkdir -p "$kept/corpus/$target"
    "target/$host/release/$target" -set_cover_merge=1 -max_len=4096 "$kept/corpus/$target" "found/$target" 2>/dev/null
  done
  tar -C "$kept" -cJf corpus.tar.xz corpus
  exit
fi
seconds=$1
shift
mkdir -p found
tar -xJf corpus.tar.xz --strip-components=1 -C found
targets=${*:-model npy operators overlap}
flags="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
flags="$flags -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"
# With a named target, cargo does not instrument build scripts and macros.
RUSTFLAGS="$flags" cargo build --locked --release --quiet --target "$host"
fuzz() {
  local runs=-1
  case "$1" in *:*) runs=${1#*:} ;; esac
  set -- "${1%%:*}"
  mkdir -p "found/$1"
  [ "$1" = model ] && cp ../models/*.json found/model/
  [ "$1" = npy ] && cp ../models/*.npy found/npy/
  # shellcheck disable=SC2086
  "target/$host/release/$1" -max_total_time="$seconds" -runs="$runs" -timeout=10 -rss_limit_mb=1024 -max_len=4096 -len_control=0 -print_final_stats=1 \
    -artifact_prefix="$1-" ${FUZZ_ARGS:-} "found/$1" 2>"found/$1.log" ||
    { echo "$1: a finding"; tail -n 40 "found/$1.log"; return 1; }
  echo "$1: $(sed -n 's/^stat::number_of_executed_units: *//p' "found/$1.log") runs without a finding in $seconds s at most"
}
# All targets run at once and share the cores.
running=()
for target in $targets; do fuzz "$target" & running+=($!); done
failed=0
for process in "${running[@]}"; do wait "$process" || failed=1; done
exit $failed
