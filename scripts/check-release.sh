#!/usr/bin/env bash
# The long checks of a folder that scripts/release.sh made: scripts/check-release.sh OUT [CHECK...]. Without names it
# runs all checks. A check that fails does not stop the others. The chroots need root.
set -uo pipefail
unset CDPATH
root=$(cd "$(dirname "$(realpath "$0")")/.." && pwd)
if ! { [ $# -gt 0 ] && out=$(cd "$1" && pwd) && ls "$out"/*.whl > /dev/null; }; then
  echo "usage: scripts/check-release.sh OUT [CHECK...]; OUT has the files of scripts/release.sh" >&2
  exit 2
fi
shift
[ $# -gt 0 ] || set -- chroots wheels crates windows aarch64
for check in "$@"; do
  [[ " chroots wheels crates windows aarch64 " == *" $check "* ]] || { echo "there is no check $check" >&2; exit 2; }
done
mkdir -p "$root/target"
exec 9> "$root/target/publish.lock"
flock --nonblock 9 || { echo "another run uses $root/target/publish" >&2; exit 1; }
source "$root/scripts/release/tools.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CARGO_TARGET_DIR="$root/target/publish"
cd "$root" || exit 1
for archive in "$out"/*.tar.xz; do tar -C "$work" -xf "$archive"; done
linux=$(echo "$work"/dml-cuda-*-x86_64-linux)

# Every model on Debian 11 and 13, and a C program that needs no newer glibc than the library.
chroots() {
  "$tools/bin/python" -m ziglang cc -target x86_64-linux-gnu.2.17 "$root/crates/dml-cuda-capi/examples/reverse.c" -o "$work/reverse" \
    -I"$linux/include" -L"$linux/lib" -ldml_cuda || return 1
  local suite failed=0
  for suite in bullseye trixie; do
    debootstrap --variant=minbase --include=libgcc-s1 "$suite" "$work/$suite" > "$work/$suite.log" || { cat "$work/$suite.log"; return 1; }
    cp -r "$linux" "$work/$suite/opt/dml-cuda" && cp "$work/reverse" "$work/$suite/opt/"
    # shellcheck disable=SC2016 # the shell of the chroot expands it
    chroot "$work/$suite" /bin/sh -ec '
      cd /tmp
      for model in /opt/dml-cuda/share/dml-cuda/models/*.json; do
        /opt/dml-cuda/bin/dml-cuda -a cpu "$model" > /dev/null || { echo "$model failed"; exit 1; }
      done
      test "$(LD_LIBRARY_PATH=/opt/dml-cuda/lib /opt/reverse)" = "3 2 1 4 6 5 7 8 "
      echo "$(. /etc/os-release && echo "$PRETTY_NAME"), $(ldd --version | head -n 1): all models and a C program"' || failed=1
    rm -rf "${work:?}/$suite"
  done
  return "$failed"
}

# The tests of the Python package, on a Python without Rust.
wheels() {
  python3 -m venv "$work/venv" && "$work/venv/bin/pip" install --quiet --disable-pip-version-check "$out"/*x86_64.whl || return 1
  env -i HOME="$work" "$work/venv/bin/python" -m unittest discover python/tests || return 1
  local site=$work/site
  mkdir "$site"
  # NumPy for the Python of the aarch64 packages.
  "$tools/bin/pip" install --quiet --disable-pip-version-check --target "$site" --only-binary=:all: --python-version 3.11 \
    --platform manylinux_2_17_aarch64 --platform manylinux_2_28_aarch64 --platform manylinux2014_aarch64 \
    "$out"/*aarch64.whl || return 1
  PYTHONPATH=$site python-aarch64 -m unittest discover python/tests
}

# The tests in an aarch64 build, for an hour at most. Not those that start a program or a compiler: the kernels on the
# host, the mock of a driver and its faults, the command line tool.
aarch64() {
  RUSTC=$tools/bin/debian-rustc CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=qemu-aarch64 timeout 3600 \
    cargo-zigbuild test --locked --target aarch64-unknown-linux-gnu --no-fail-fast -p dml-cuda --lib --test it \
      --test dispatch_cost -- \
    --skip on_the_host --skip with_the_double
}

# The library's and the command line tool's tests in a Windows build.
windows() {
  local options=(--locked --target x86_64-pc-windows-gnu -Zbuild-std)
  export RUSTC_BOOTSTRAP=1 RUSTC=$tools/bin/debian-rustc
  export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=x86_64-w64-mingw32-gcc CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=wine
  cargo test --quiet "${options[@]}" --tests --no-run || return 1
  local built=$CARGO_TARGET_DIR/x86_64-pc-windows-gnu/debug
  source "$root/scripts/release/wine.sh" "$built"
  cp "$built/bcryptprimitives.dll" "$built/deps/"
  export DML_CUDA_STAND_IN=$work/stand_in.exe
  x86_64-w64-mingw32-gcc crates/dml-cuda-cli/tests/cli/side_by_side/stand_in.c -o "$DML_CUDA_STAND_IN" || return 1
  cargo test "${options[@]}" --tests --no-fail-fast
  local status=$?
  wineserver -k
  return "$status"
}

# Each crate's own tests, with the others patched in.
crates() {
  local crate name dependency patch
  for crate in "$out"/*.crate; do tar -C "$work" -xf "$crate"; done
  for crate in "$out"/*.crate; do
    name=$(basename "$crate" .crate) patch=()
    for dependency in dml-cuda dml-cuda-model; do
      [[ $name == dml-cuda-[0-9]* || $name == $dependency-[0-9]* ]] ||
        patch+=(--config "patch.crates-io.$dependency.path='$(echo "$work/$dependency"-[0-9]*[0-9])'")
    done
    (cd "$work/$name" && cargo test --quiet "${patch[@]}") || return 1
  done
}

failed=()
for check in "$@"; do
  printf '\n== %s (at %d s)\n' "$check" "$SECONDS"
  if ("$check"); then echo "$check: ok"; else echo "$check: FAILED"; failed+=("$check"); fi
done
printf '\n%d s, failed: %s\n' "$SECONDS" "${failed[*]:-none}"
[ ${#failed[@]} = 0 ]
