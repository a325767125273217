#!/usr/bin/env bash
# Makes everything that is published in the folder OUT, from a clone of HEAD, and tries each file once:
# scripts/release.sh [--without-address] OUT. scripts/check-release.sh OUT has the longer checks. Needs Debian's
# packages for amd64, and Rust. Uploads nothing.
set -euo pipefail
unset CDPATH
umask 022 # archives keep the modes of files
addressed=true
[ "${1-}" != --without-address ] || { addressed=false; shift; }
[ $# = 1 ] || { echo "usage: scripts/release.sh [--without-address] OUT" >&2; exit 2; }
root=$(cd "$(dirname "$(realpath "$0")")/.." && pwd)
mkdir -p "$1"
published=$(cd "$1" && pwd)
[ -z "$(ls -A "$published")" ] || { echo "$published has files, but must be empty" >&2; exit 1; }
mkdir -p "$root/target"
exec 9> "$root/target/publish.lock"
flock --nonblock 9 || { echo "another run uses $root/target/publish" >&2; exit 1; }
[ -z "$(git -C "$root" status --porcelain)" ] || echo "warning: what is not committed is not released" >&2
# What every archive has: document TOP FOLDER SYSTEM LIBRARY... The licenses and how to install it are at its top,
# the rest is in TOP/FOLDER.
document() {
  local library share=$1/$2
  mkdir -p "$share"/{examples,sbom}
  cp -r models docs CHANGELOG.md "$share/"
  rm -r "$share/docs/design" # for who has the source
  cp -r crates/dml-cuda-capi/examples/* crates/dml-cuda-torch/examples/* python/examples/* "$share/examples/"
  for library in "${@:4}"; do cp "$work/$3/$library.cdx.json" "$share/sbom/"; done
  # Links to what only the source has become text.
  sed -i -E 's/\[([^]]*)\]\((\.\.|design)\/[^)]*\)/\1/g' "$share"/docs/*.md
  sed -n '/^## Install the archive/,$p' RELEASING.md | sed -E "1s/.*/# dml-cuda/; s|\]\(docs/|]($2/docs/|g" > "$1/README.md"
  cp LICENSE "$work/$3/LICENSE-THIRD-PARTY.txt" "$1/"
}
step() { printf '\n== %s (at %d s)\n' "$*" "$SECONDS"; }

repository=$(git -C "$root" show HEAD:Cargo.toml | sed -n 's/^repository = "\(..*\)"/\1/p')
[ "$repository" ] || ! $addressed ||
  { echo "repository in Cargo.toml is empty, but must be the address of the project's repository, or use --without-address" >&2; exit 1; }

step "tools"
source "$root/scripts/release/tools.sh"

step "a clone of HEAD"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=$work/out # OUT stays empty until all files are tried
mkdir "$out"
source=$root/target/publish-source
rm -rf "$source" && git clone --quiet "$root" "$source"
cd "$source"
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
DML_CUDA_COMMIT=$(git rev-parse --short HEAD)
echo "commit $DML_CUDA_COMMIT" > python/src/dml_cuda/COMMIT
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
if [ "$repository" ]; then
  sed -i "s|^license = .*|&\nrepository = \"$repository\"|" crates/dml-cuda-candle/Cargo.toml
  printf '\n[project.urls]\nRepository = "%s"\nIssues = "%s/issues"\n' "$repository" "$repository" >> python/pyproject.toml
fi
# No file names the machine's folders.
CARGO_ENCODED_RUSTFLAGS=
remap() { CARGO_ENCODED_RUSTFLAGS+=${CARGO_ENCODED_RUSTFLAGS:+$'\037'}--remap-path-prefix=$1=$2; }
cargo fetch --quiet --locked
for folder in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*; do remap "$folder" crates; done
remap "$source" dml-cuda
remap "$tools" tools
export DML_CUDA_COMMIT SOURCE_DATE_EPOCH CARGO_ENCODED_RUSTFLAGS CARGO_TARGET_DIR="$root/target/publish"

step "licenses of the dependencies, and bills of materials, of each system"
linux=x86_64-unknown-linux-gnu # aarch64 has the same dependencies
windows=x86_64-pc-windows-gnu
for target in "$linux" "$windows"; do
  notices=("$debian/amd64/usr/share/doc/rust-web-src/copyright")
  case $target in
    "$linux") notices+=("$tools"/lib/python3*/site-packages/ziglang/lib/libunwind/LICENSE.TXT) ;;
    "$windows") notices+=(/usr/share/doc/{mingw-w64-common,gcc-mingw-w64-base}/copyright) ;;
  esac
  mkdir "$work/$target"
  cargo metadata --locked --format-version 1 --filter-platform "$target" > "$work/metadata.json"
  python3 scripts/release/licenses.py "$work/metadata.json" "${notices[@]}" > "$work/$target/LICENSE-THIRD-PARTY.txt"
  cargo cyclonedx --quiet --format json --spec-version 1.5 --target "$target"
  "$tools/bin/python" scripts/release/bills.py "$source" "$work/$target" crates/dml-cuda-{cli,capi,torch}/*.cdx.json
  git clean --quiet --force -- '*.cdx.json'
done
cp "$work/$linux/LICENSE-THIRD-PARTY.txt" python/

export RUSTC=$tools/bin/debian-rustc
for machine in x86_64 aarch64; do
  target=$machine-unknown-linux-gnu
  step "wheel for $machine"
  (cd python && maturin build --quiet --zig --profile dist --locked --target "$target" --compatibility manylinux_2_17 \
    --sbom-include "$work/$linux/dml-cuda-capi.cdx.json" --out "$out")

  step "archive for $machine"
  cargo zigbuild --quiet --locked --profile dist --target "$target.2.17" -p dml-cuda-cli -p dml-cuda-capi -p dml-cuda-torch
  name=dml-cuda-$version-$machine-linux
  TOOL=$CARGO_TARGET_DIR/x86_64-unknown-linux-gnu/dist/dml-cuda scripts/install.sh "$work/$name" "$CARGO_TARGET_DIR/$target/dist"
  # What Zig adds has debug information, with the machine's folders.
  "debian-$machine-linux-gnu-strip" "$work/$name/bin/dml-cuda" "$work/$name/lib/libdml_cuda.so.$version" "$work/$name/lib/libdml_cuda_torch.so"
  document "$work/$name" share/dml-cuda "$linux" dml-cuda-{cli,capi,torch}
  tar -C "$work" --sort=name --owner=0 --group=0 --mtime="@$SOURCE_DATE_EPOCH" -cJf "$out/$name.tar.xz" "$name"
done

step "archive for Windows"
target=$windows
RUSTC_BOOTSTRAP=1 CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=x86_64-w64-mingw32-gcc \
  cargo build --quiet --locked --profile dist --target "$target" -Zbuild-std -p dml-cuda-cli -p dml-cuda-capi
name=dml-cuda-$version-x86_64-windows
mkdir "$work/$name"
cp "$CARGO_TARGET_DIR/$target/dist"/{dml-cuda.exe,dml_cuda.dll} crates/dml-cuda-capi/include/dml_cuda.h "$work/$name/"
x86_64-w64-mingw32-strip "$work/$name"/*.{exe,dll} # MinGW's parts
# An import library that Microsoft's linker and MinGW's read.
{ echo EXPORTS; x86_64-w64-mingw32-nm "$CARGO_TARGET_DIR/$target/dist/libdml_cuda.dll.a" | sed -n 's/.* T //p'; } > "$work/dml_cuda.def"
"$tools/bin/python" -m ziglang dlltool -m i386:x86-64 -D dml_cuda.dll -d "$work/dml_cuda.def" -l "$work/$name/dml_cuda.lib"
document "$work/$name" . "$windows" dml-cuda-{cli,capi}
find "$work/$name" -exec touch --date="@$SOURCE_DATE_EPOCH" {} +
(cd "$work" && python3 -m zipfile -c "$out/$name.zip" "$name")
unset RUSTC CARGO_ENCODED_RUSTFLAGS

step "crates: each builds from what is published"
cargo package --quiet --locked -p dml-cuda -p dml-cuda-model -p dml-cuda-cli
cargo package --quiet --manifest-path crates/dml-cuda-candle/Cargo.toml --allow-dirty \
  --config "patch.crates-io.dml-cuda.path='$source'"
cp "$CARGO_TARGET_DIR"/package/dml-cuda{,-model,-cli,-candle}-"$version".crate "$out/"
(cd "$out" && sha256sum -- * > SHA256SUMS)

step "each file, tried once"
"$root/scripts/release/smoke.sh" "$out"
mv "$out"/* "$published/"
step "done"
ls -l "$published"
