#!/bin/sh
# Times the models of this folder with a runner that prints what DxDispatch prints, a log each into logs/; `dml-cuda import logs --suite .`
# reads them. RUNNER is the program, ADAPTER part of a device's name. Plain copies are DirectML's alone, and fail elsewhere.
set -u
cd "$(dirname "$0")" || exit 1
RUNNER="${RUNNER:-dml-cuda}"
mkdir -p logs
while read -r name dispatches; do
  [ -n "$name" ] || continue
  echo "$name"
  { "$RUNNER" "$name.json" -i 31 -w 1 -r "$dispatches" -v 2 ${ADAPTER:+-a "$ADAPTER"} &&
    for _ in 1 2 3 4 5; do
      "$RUNNER" "$name.json" -i 31 -w 1 -r "$dispatches" -v 0 ${ADAPTER:+-a "$ADAPTER"} || break
    done; } > "logs/$name.log" 2>&1
done << 'END'
@TIMED@
END
# What these write is compared byte by byte.
while read -r name; do
  [ -n "$name" ] || continue
  (cd logs && "$RUNNER" "../$name.json" ${ADAPTER:+-a "$ADAPTER"}) > "logs/$name.log" 2>&1
done << 'END'
@CHECKS@
END
