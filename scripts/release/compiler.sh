# shellcheck shell=bash
# Debian's compiler, which has the standard library for aarch64 and its sources for Windows:
# $tools/bin/debian-rustc. Sourced, with the repository in $root. Installs what is missing outside of the repository,
# because cargo walks through all that is in it. rustup's compiler needs downloads of its own. Needs Debian 12's
# apt-get.
tools=${XDG_CACHE_HOME:-$HOME/.cache}/dml-cuda-release
debian=$tools/debian
if [ ! -d "$debian/arm64" ]; then
  "${root:?}/scripts/release/debian-packages.sh" "$debian/amd64" amd64 rustc-web rust-web-src binutils-aarch64-linux-gnu
  "$root/scripts/release/debian-packages.sh" "$debian/new" arm64 libstd-rust-web-dev python3-minimal libpython3-stdlib
  cp -r "$debian/new/usr/lib/rustlib/aarch64-unknown-linux-gnu" "$debian/amd64/usr/lib/rustlib/"
  mv "$debian/new" "$debian/arm64"
fi
# Not for sh, which loses variables such as CARGO_BIN_EXE_dml-cuda.
wrapper() {
  local usr=$debian/amd64/usr
  printf '#!/bin/bash\nLD_LIBRARY_PATH=%s exec %s "$@"\n' "$usr/lib/x86_64-linux-gnu" "$usr/bin/$1" > "$tools/bin/$2"
  chmod +x "$tools/bin/$2"
}
mkdir -p "$tools/bin"
for program in rustc aarch64-linux-gnu-strip; do wrapper "$program" "debian-$program"; done
# The standard library for Windows is compiled with MinGW's dlltool.
dlltool=x86_64-w64-mingw32-dlltool
if ! command -v $dlltool > /dev/null; then
  [ -e "$debian/amd64/usr/bin/$dlltool" ] ||
    "$root/scripts/release/debian-packages.sh" "$debian/amd64" amd64 binutils-mingw-w64-x86-64
  wrapper $dlltool $dlltool
  PATH=$PATH:$tools/bin
fi
