# shellcheck shell=bash
# Sourced with a folder of programs for Windows: makes them run under a Wine before 9, which lacks the library from
# which Rust gets random numbers. $work is a temporary folder.
export WINEDEBUG=-all WINEPREFIX="${work:?}/wine"
printf '%s\n' '#include <windows.h>' '#include <ntsecapi.h>' \
  'BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T count) { return RtlGenRandom(bytes, (ULONG)count); }' |
  x86_64-w64-mingw32-gcc -shared -x c - -o "$1/bcryptprimitives.dll" -ladvapi32
export WINEDLLOVERRIDES="bcryptprimitives=n"
