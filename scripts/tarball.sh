#!/usr/bin/env bash
# Makes target/dml-cuda-VERSION-x86_64-linux.tar.xz: the runner and the C library, with header, completions, manual page and license. They run on
# any Linux with glibc 2.17 or later (RHEL 7, Ubuntu 14.04), whatever glibc this machine has. The linker is Zig from PyPI.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=.venv/zig
if [ ! -x "$venv/bin/cargo-zigbuild" ]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check "cargo-zigbuild==0.20.*" "ziglang==0.14.*"
fi
export PATH="$PWD/$venv/bin:$PATH"
target=x86_64-unknown-linux-gnu
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
for package in dml-cuda-cli dml-cuda-capi dml-cuda-torch; do
  DML_CUDA_COMMIT=$(git rev-parse --short HEAD) cargo zigbuild --locked --release --quiet --target "$target.2.17" -p "$package"
done
name=dml-cuda-$version-x86_64-linux
out=target/$name
rm -rf "$out" && mkdir -p "$out"/{bin,lib,include,share/man/man1,share/bash-completion/completions,share/zsh/site-functions,share/fish/vendor_completions.d}
built=target/$target/release
cp "$built/dml-cuda" "$out/bin/"
cp "$built/libdml_cuda.so" "$built/libdml_cuda_torch.so" "$out/lib/"
strip "$out/bin/dml-cuda" "$out"/lib/*
cp crates/dml-cuda-capi/include/dml_cuda.h "$out/include/"
cp LICENSE README.md "$out/"
cp -r models "$out/share/models"
"$out/bin/dml-cuda" man > "$out/share/man/man1/dml-cuda.1"
"$out/bin/dml-cuda" completions bash > "$out/share/bash-completion/completions/dml-cuda"
"$out/bin/dml-cuda" completions zsh > "$out/share/zsh/site-functions/_dml-cuda"
"$out/bin/dml-cuda" completions fish > "$out/share/fish/vendor_completions.d/dml-cuda.fish"
newest() { objdump -T "$@" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1; }
for file in "$out/bin/dml-cuda" "$out"/lib/*; do
  needs=$(newest "$file")
  echo "$file needs $needs"
  [ "$(printf '%s\nGLIBC_2.17\n' "$needs" | sort -V | tail -n 1)" = GLIBC_2.17 ] || { echo "that is newer than GLIBC_2.17" >&2; exit 1; }
done
tar -C target -cJf "target/$name.tar.xz" "$name"
ls -lh "target/$name.tar.xz"
