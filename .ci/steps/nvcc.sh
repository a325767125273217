#!/usr/bin/env bash
# no nvcc on PATH matters, a changed kernel needs one, and the kernels' tests pass on what it compiles
source .ci/setup.sh

nvcc=$(scripts/install-nvcc.sh)
for version in 11.8 13.9; do
  mkdir "$work/$version"
  printf '#!/bin/sh\nprintf "nvcc\\nCopyright\\nBuilt\\nCuda compilation tools, release %s, V%s.0\\n"\n' "$version" "$version" \
    > "$work/$version/nvcc"
  chmod +x "$work/$version/nvcc"
done
git clone --quiet . "$work/elsewhere"
cd "$work/elsewhere"
unset NVCC CUDA_HOME CUDA_PATH
check() { CARGO_TARGET_DIR="$work/target" cargo check --locked --quiet "$@"; }
PATH="$work/11.8:$PATH" check -p dml-cuda-cli -p dml-cuda-capi
CUDARC_CUDA_VERSION=11040 check -p dml-cuda --lib --features cudarc-0_19
# A crate that is built elsewhere names its bindings itself.
rm -r .cargo
CARGO_TARGET_DIR="$work/target" cargo clean --quiet -p cudarc
PATH="$work/13.9:$PATH" check -p dml-cuda-cli -p dml-cuda-capi
echo "// changed" >> kernels/reverse.cuh
if [ ! -e /usr/local/cuda/bin/nvcc ]; then
  if PATH="$work/13.9:$PATH" check -p dml-cuda-cli 2> "$work/log"; then exit 1; fi
  grep "(reverse.cuh changed), but there is no nvcc to compile it" "$work/log"
fi
NVCC="$nvcc" CARGO_TARGET_DIR="$shared" cargo test --locked -p dml-cuda --lib -- kernels:: specialize::
