#!/usr/bin/env bash
# Builds for Windows (x86_64-pc-windows-gnu), and runs the models and the tests under Wine, on the CPU device. Needs MinGW's gcc, Wine, and
# Rust with this target: `rustup target add x86_64-pc-windows-gnu`. With BUILD_STD=1 a toolchain with the standard library's sources is
# enough (RUSTC names another compiler). Does not test a GPU.
set -euo pipefail
cd "$(dirname "$0")/.."
for program in x86_64-w64-mingw32-gcc wine; do
  command -v "$program" > /dev/null || { echo "there is no $program; Debian has it in gcc-mingw-w64-x86-64 and wine" >&2; exit 1; }
done
target=x86_64-pc-windows-gnu
export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=x86_64-w64-mingw32-gcc CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=wine
export WINEDEBUG=-all DML_CUDA_PREBUILT=1
options=(--locked --target "$target")
if [ "${BUILD_STD:-}" = 1 ]; then
  export RUSTC_BOOTSTRAP=1
  options+=(-Zbuild-std)
fi
cargo build "${options[@]}"
cargo test "${options[@]}" --tests --no-run

# Wine before 9 lacks the library from which Rust gets random numbers.
built=target/$target/debug
if ! wine "$built/dml-cuda.exe" --version > /dev/null 2>&1; then
  printf '%s\n' '#include <windows.h>' '#include <ntsecapi.h>' \
    'BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T count) { return RtlGenRandom(bytes, (ULONG)count); }' |
    x86_64-w64-mingw32-gcc -shared -x c - -o "$built/bcryptprimitives.dll" -ladvapi32
  cp "$built/bcryptprimitives.dll" "$built/deps/"
  export WINEDLLOVERRIDES="bcryptprimitives=n"
fi
for model in models/*.json; do
  here=$(cargo run --locked --quiet -- -a cpu "$model" | grep '^Resource' | grep -v ' written to ')
  there=$(wine "$built/dml-cuda.exe" -a cpu "$model" | tr -d '\r' | grep '^Resource' | grep -v ' written to ')
  [ "$here" = "$there" ] || { printf '%s: %s, must be %s\n' "$model" "$there" "$here" >&2; exit 1; }
done
cargo test "${options[@]}" --tests --no-fail-fast
