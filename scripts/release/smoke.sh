#!/usr/bin/env bash
# Tries each file of a release once: symbol versions, sizes, the wheels' tags, a model in every runner. smoke.sh OUT
set -euo pipefail
root=$(cd "$(dirname "$(realpath "$0")")/../.." && pwd)
source "$root/scripts/release/tools.sh"
out=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "$*" >&2; exit 1; }
at_most() { [ "$(stat -c %s "$2")" -le "$1" ] || fail "$2 has $(stat -c %s "$2") bytes, but must have at most $1"; }

(cd "$out" && sha256sum --quiet --check SHA256SUMS)
at_most 1200000 "$(ls "$out"/dml-cuda-[0-9]*.crate)"
for wheel in "$out"/*.whl; do
  at_most 6000000 "$wheel"
  tag=${wheel##*manylinux_2_17_}
  tag=manylinux_2_17_${tag%.whl}
  [[ $(basename "$wheel") == dml_cuda-*-py3-none-*$tag.whl ]] || fail "$wheel is not named after a py3-none wheel for $tag"
  auditwheel show "$wheel" | tr '\n' ' ' | grep -q "consistent with the following platform tag: \"$tag\"" || fail "$wheel is no $tag"
  python3 -m zipfile -l "$wheel" > list
  for file in sboms/dml-cuda-capi.cdx.json LICENSE-THIRD-PARTY.txt; do grep -q "$file" list || fail "$wheel has no $file"; done
  echo "$(basename "$wheel"): $tag"
done
python3 -m venv --without-pip venv
"$tools/bin/pip" --python venv install --quiet --disable-pip-version-check "$out"/*x86_64.whl
env -i venv/bin/python -c '
import dml_cuda, numpy
found = dml_cuda.reverse_subsequences(numpy.array([[1, 2, 3, 4], [5, 6, 7, 8]]), [[3], [2]], axis=1)
assert found.tolist() == [[3, 2, 1, 4], [6, 5, 7, 8]], found'
env -i venv/bin/python -m dml_cuda | grep '^dml-cuda: .*, commit '

# Runs every model with a command, and compares the outputs with the first command's.
run() { # the folder of the models, and the command
  local model found=
  for model in "$1"/*.json; do
    found+=$("${@:2}" -a cpu "$model" | tr -d '\r' | { grep '^Resource' | grep -v ' written to ' || true; })
  done
  [[ $found == *"'Out': 2, 1, 3, 4, 8, 7, 6, 5, 11, 10, 9, 12"* ]] || fail "$*: $found"
  [ "$found" = "${first:=$found}" ] || fail "$*: $found, but must be $first"
  echo "all models run: ${*:2}"
}
for archive in "$out"/*.tar.xz; do
  tar -xf "$archive"
  folder=$(basename "$archive" .tar.xz)
  for file in "$folder"/bin/dml-cuda "$folder"/lib/*.so; do
    newest=$(readelf -VW "$file" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
    [ "$(printf '%s\nGLIBC_2.17\n' "$newest" | sort -V | tail -n 1)" = GLIBC_2.17 ] || fail "$file needs $newest, but must need GLIBC_2.17 at most"
  done
  # shellcheck disable=SC2013
  for page in "$folder"/README.md "$folder"/share/dml-cuda/docs/*.md; do
    for link in $(grep -o '](\([^):]*\))' "$page" | tr -d '()]'); do
      [ -e "$(dirname "$page")/${link%%#*}" ] || fail "$page leads to $link, which is not there"
    done
  done
  ! grep -rlE "$HOME|$root|/tmp/|index\.crates\.io" "$folder" || fail "these files name folders of this machine"
  case $archive in
    *aarch64*) run "$folder/share/dml-cuda/models" qemu-aarch64 "$folder/bin/dml-cuda" ;;
    *) run "$folder/share/dml-cuda/models" "$folder/bin/dml-cuda" ;;
  esac
done
# The page's lines that install below a prefix, and uninstall, in a shell that is not bash: folders keep their modes.
mkdir -m 750 local local/lib
sed -n '/^name=/,/^tar -tf/p' "$root/RELEASING.md" | sed "s|^ldconfig.*|find local -name libdml_cuda.so \\| wc -l|; s|/usr/local|local|g; s|\$name\.tar|$out/&|" > install
[ "$(dash -e install)" = 1 ] && [ "$(find local -not -type d | wc -l) $(stat -c %a local/lib)" = "0 750" ] || fail "the page's lines leave: $(find local -ls)"
# A program in C, after the folder was moved.
mv dml-cuda-*-x86_64-linux moved
example=$PWD/moved/share/dml-cuda/examples/reverse.c
# shellcheck disable=SC2046
cc "$example" -o reverse $(PKG_CONFIG_PATH=moved/lib/pkgconfig pkg-config --cflags --libs dml-cuda)
[ "$(LD_LIBRARY_PATH=moved/lib ./reverse)" = "3 2 1 4 6 5 7 8 " ] || fail "the program built with pkg-config is wrong"
mkdir source && cp "$root/crates/dml-cuda-capi/tests/outside/CMakeLists.txt" source/
cmake -S source -B build -DCMAKE_PREFIX_PATH="$PWD/moved" -DEXAMPLE="$example" > /dev/null && cmake --build build > /dev/null
[ "$(build/reverse)" = "3 2 1 4 6 5 7 8 " ] || fail "the program built with CMake is wrong"
echo "programs in C build with pkg-config and with CMake"

python3 -m zipfile -e "$out"/*-windows.zip .
folder=$(basename "$out"/*-windows.zip .zip)
source "$root/scripts/release/wine.sh" "$folder"
run "$folder/models" wine "$folder/dml-cuda.exe"
x86_64-w64-mingw32-gcc "$example" -I"$folder" "$folder/dml_cuda.lib" -o "$folder/reverse.exe"
[ "$(wine "$folder/reverse.exe" | tr -d '\r')" = "3 2 1 4 6 5 7 8 " ] || fail "the program that uses dml_cuda.dll is wrong"
wineserver -k || true # before its folder goes
