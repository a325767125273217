#!/usr/bin/env bash
# Installs the pinned CUDA compilers from PyPI into .venv and prints the path of nvcc:
#   nvcc 13.0, which makes kernels/prebuilt/*.ptx, and ptxas 12.0, the oldest that must read them.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
venv=.venv
if [ ! -e "$venv/complete" ]; then
  python3 -m venv "$venv/nvcc" >&2
  "$venv/nvcc/bin/pip" install --quiet --disable-pip-version-check \
    "cuda-toolkit[nvcc,nvvm,crt,cudart,cccl]==13.0.2" >&2
  python3 -m venv "$venv/ptxas" >&2
  "$venv/ptxas/bin/pip" install --quiet --disable-pip-version-check "nvidia-cuda-nvcc-cu12==12.0.*" >&2
  touch "$venv/complete"
fi
ls "$PWD/$venv"/nvcc/lib/python3*/site-packages/nvidia/cu13/bin/nvcc
