# shellcheck shell=bash
# What every step begins with, in the root of the repository. The second line of a step is what .ci/run --list prints.
set -euo pipefail
# The steps of one run share a folder for files that nothing needs afterwards.
if [ ! "${CI_WORK-}" ]; then
  CI_WORK=$(mktemp -d)
  trap 'rm -rf "$CI_WORK"' EXIT
fi
work=$CI_WORK
# This folder also has the builds of what a step clones or unpacks, so that other crates are compiled once. Files that
# serve only a debugger or a second build of one tree are left out, because they would take most of the disk.
shared=$(realpath target)
# A path of the caller's would come before the wheels that are tested.
unset PYTHONPATH
# Users' CI sets CI, and PyTorch's compiler behaves differently with it.
export CI=true CI_WORK CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0

# uv installs PyTorch four times as fast as pip.
install_uv() {
  [ ! -x .venv/uv/bin/uv ] || return 0
  python3 -m venv .venv/uv
  .venv/uv/bin/pip install --quiet --disable-pip-version-check uv==0.13.*
}
# Installs Python packages in an environment in .venv: venv NAME PACKAGE...
venv() {
  install_uv
  .venv/uv/bin/uv venv --quiet --no-config --no-project --python "$(command -v python3)" --allow-existing ".venv/$1"
  .venv/uv/bin/uv pip install --quiet --no-config --no-cache --python ".venv/$1/bin/python" "${@:2}"
}
# Builds what several steps need: the C library and the command line tool, and the Python package's wheel in $work.
release() { cargo build --locked --release -p dml-cuda-capi -p dml-cuda-cli; }
wheel() {
  [ ! -e "$work/wheel" ] || return 0
  venv python numpy build==1.*
  # It makes the source distribution, and the wheel from that. The profile dist takes three times as long to compile.
  MATURIN_PEP517_ARGS="--profile release" CARGO_TARGET_DIR="$shared" UV_NO_CONFIG=1 PATH="$PWD/.venv/uv/bin:$PATH" \
    .venv/python/bin/python -m build --quiet --installer uv --outdir "$work/wheel" ./python
}
