#!/usr/bin/env bash
# Installs what cargo has built: scripts/install.sh PREFIX BUILT. BUILT is the folder of a profile, such as target/dist.
# Takes libdml_cuda.so with header, pkg-config and CMake files, and libdml_cuda_torch.so and the tool dml-cuda if they
# are there. PREFIX can be moved afterwards. TOOL names a dml-cuda that this machine can start, if BUILT has that of
# another one.
set -euo pipefail
unset CDPATH
[ $# = 2 ] || { echo "usage: scripts/install.sh PREFIX BUILT" >&2; exit 2; }
root=$(cd "$(dirname "$(realpath "$0")")/.." && pwd)
prefix=$1 built=$2
capi=$root/crates/dml-cuda-capi
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$capi/Cargo.toml" | head -n 1)
# What programs must be linked again for: 0.N, later the first number. build.rs gives the library the same name.
case $version in 0.*) compatible=${version%.*} ;; *) compatible=${version%%.*} ;; esac

lib=$prefix/lib
install -D "$built/libdml_cuda.so" "$lib/libdml_cuda.so.$version"
ln -sfn "libdml_cuda.so.$version" "$lib/libdml_cuda.so.$compatible"
ln -sfn "libdml_cuda.so.$compatible" "$lib/libdml_cuda.so"
install -D -m 644 "$capi/include/dml_cuda.h" "$prefix/include/dml_cuda.h"
configure() {
  mkdir -p "$2"
  sed "s/@VERSION@/$version/; s/@COMPATIBLE@/$compatible/" "$capi/$1.in" > "$2/$(basename "$1")"
}
configure dml-cuda.pc "$lib/pkgconfig"
configure cmake/dml-cuda-config.cmake "$lib/cmake/dml-cuda"
configure cmake/dml-cuda-config-version.cmake "$lib/cmake/dml-cuda"
if [ -f "$built/libdml_cuda_torch.so" ]; then
  install -D "$built/libdml_cuda_torch.so" "$lib/libdml_cuda_torch.so"
fi
[ -f "$built/dml-cuda" ] || exit 0
install -D "$built/dml-cuda" "$prefix/bin/dml-cuda"
share=$prefix/share
mkdir -p "$share"/{man/man1,bash-completion/completions,zsh/site-functions,fish/vendor_completions.d}
tool=${TOOL:-$built/dml-cuda}
"$tool" man > "$share/man/man1/dml-cuda.1"
sed -n 's/^dml.-cuda.-\(.*\)(1)$/\1/p' "$share/man/man1/dml-cuda.1" | while read -r command; do
  "$tool" man "$command" > "$share/man/man1/dml-cuda-$command.1"
done
"$tool" completions bash > "$share/bash-completion/completions/dml-cuda"
"$tool" completions zsh > "$share/zsh/site-functions/_dml-cuda"
"$tool" completions fish > "$share/fish/vendor_completions.d/dml-cuda.fish"
