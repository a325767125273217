# shellcheck shell=bash
# Tools of release.sh and check-release.sh, sourced by them: $root is the repository. Installs what is missing.
source "${root:?}/scripts/release/compiler.sh"
export PATH="$tools/bin:$PATH"
for program in x86_64-w64-mingw32-gcc wine qemu-aarch64; do
  command -v "$program" > /dev/null ||
    { echo "there is no $program; Debian has it in gcc-mingw-w64-x86-64, wine and qemu-user" >&2; exit 1; }
done
if [ ! -x "$tools/bin/cargo-zigbuild" ]; then
  python3 -m venv "$tools"
  "$tools/bin/pip" install --quiet --disable-pip-version-check cargo-zigbuild==0.24.0 ziglang==0.14.1 maturin==1.16.0 cffi==2.* \
    auditwheel==6.8.2 cmake==3.31.* "cyclonedx-python-lib[json-validation]==11.12.0"
fi
if [ ! -x "$tools/bin/cargo-cyclonedx" ]; then
  CARGO_TARGET_DIR=$tools/target CARGO_PROFILE_DEV_DEBUG=0 \
    cargo install --quiet --locked --debug --root "$tools" cargo-cyclonedx@0.5.9
  rm -rf "$tools/target"
fi
# A Python for aarch64, which starts its workers in qemu too.
printf '#!/bin/sh\nPYTHONHOME=%s exec qemu-aarch64 -0 %s %s "$@"\n' "$debian/arm64/usr" "$tools/bin/python-aarch64" \
  "$debian/arm64/usr/bin/python3.11" > "$tools/bin/python-aarch64"
chmod +x "$tools/bin/python-aarch64"
# Programs for aarch64 find their libraries here.
export QEMU_LD_PREFIX=$debian/arm64
ln -sf "$(command -v strip)" "$tools/bin/debian-x86_64-linux-gnu-strip"
