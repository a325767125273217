#!/usr/bin/env bash
# Makes kernels/prebuilt: *.ptx from kernels/*.cu with the pinned nvcc; parameters.rs, the Rust side of
# kernels/parameters.cuh; and SOURCES, the flags and checksums by which build.rs knows that these were made from the
# files in kernels/. With --check only compares them.
#
# nvcc 13.0 writes PTX ISA 9.0, which only drivers from 580 on load. The instructions used here are far older. So each
# file declares the lowest of build.rs's versions that two assemblers accept: the ptxas of CUDA 12.0 for the file's
# targets among sm_75, sm_80 and sm_90, so that drivers from CUDA 12.0 on can load it, and the pinned ptxas, because
# newer assemblers check more. The pragma used_bytes_mask is removed: it is only a hint, and needs ISA 8.3.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
nvcc=$(scripts/install-nvcc.sh)
ptxas=$(ls "$PWD"/.venv/ptxas/lib/python3*/site-packages/nvidia/cuda_nvcc/bin/ptxas)
flags=$(sed -n 's/^const NVCC_FLAGS.*= \[\(.*\)\];/\1/p' build.rs | tr -d '",')
lowest=$(sed -n 's/^const TARGET.*"\(.*\)";/\1/p' build.rs)
versions=$(sed -n 's/^const VERSIONS.*"\(.*\)";/\1/p' build.rs)
[ -n "$flags" ] && [ -n "$lowest" ] && [ -n "$versions" ] || {
  echo "prebuilt: no NVCC_FLAGS, no TARGET or no VERSIONS in build.rs" >&2
  exit 1
}

out=kernels/prebuilt
if [ "${1:-}" = --check ]; then out=$(mktemp -d); trap 'rm -rf "$out"' EXIT; fi

# The targets for ptxas 12.0, by a file's lowest target.
targets() { if [ "$1" = compute_90 ]; then echo sm_90; else echo sm_75 sm_80 sm_90; fi; }

assembles() {
  local target
  for target in $2; do
    "$ptxas" -arch="$target" -o /dev/null "$1" 2>/dev/null || return 1
  done
  "$(dirname "$nvcc")/ptxas" -arch=sm_90 -o /dev/null "$1" 2>/dev/null
}

# Writes the PTX of a source.
make() {
  local name newer target isa
  name=$(basename "$1" .cu)
  newer=$(sed -n "s|^// Target: ||p" "$1")
  target=${newer:-$lowest}
  # shellcheck disable=SC2086
  "$nvcc" $flags -arch="$target" -o "$out/$name.ptx" "$1"
  sed -i '/\.pragma "used_bytes_mask/d' "$out/$name.ptx"
  for isa in $versions; do
    sed -i "s/^\.version .*/.version $isa/" "$out/$name.ptx"
    if assembles "$out/$name.ptx" "$(targets "$target")"; then break; fi
    if [ "$isa" = "${versions##* }" ]; then echo "prebuilt: $name.ptx needs more than PTX ISA $isa" >&2; exit 1; fi
  done
  echo "$name.ptx: PTX ISA $isa, assembled by ptxas 12.0 for $(targets "$target")"
}
jobs=()
for source in kernels/*.cu; do make "$source" & jobs+=($!); done
for job in "${jobs[@]}"; do wait "$job"; done

libclang=.venv/libclang
if [ ! -e $libclang/complete ]; then
  python3 -m venv $libclang
  $libclang/bin/pip install --quiet --disable-pip-version-check libclang==18.1.1
  touch $libclang/complete
fi
$libclang/bin/python scripts/parameters.py > "$out/parameters.rs"

python3 - "flags $flags $lowest" > "$out/SOURCES" << 'EOF'
import pathlib
import sys
print(" ".join(sys.argv[1].split()))
for path in sorted(path for path in pathlib.Path("kernels").iterdir() if path.is_file()):
    checksum = 0xCBF29CE484222325  # FNV-1a, as in build.rs
    for byte in path.read_bytes():
        checksum = (checksum ^ byte) * 0x100000001B3 % 2**64
    print(f"{checksum:016x} {path.name}")
EOF

if [ "${1:-}" = --check ]; then
  diff -r "$out" kernels/prebuilt >/dev/null || {
    echo "prebuilt: kernels/prebuilt is stale; run scripts/prebuilt.sh and commit the result" >&2
    exit 1
  }
fi
