#!/bin/sh
# Times the models of this folder with a runner that prints what DxDispatch prints, a log each into logs/. `dml-cuda import` reads them.
# RUNNER is the program, ADAPTER part of a device's name. Arguments of this script are further options of the runner.
# Plain copies are DirectML's alone, and fail elsewhere.
set -u
RUNNER="${RUNNER:-dml-cuda}"
program="$RUNNER"
case "$program" in
  */*) program="$(CDPATH= cd -- "$(dirname -- "$RUNNER")" 2> /dev/null && pwd)/$(basename -- "$RUNNER")" ;;
esac
if [ -d "$program" ] || ! command -v "$program" > /dev/null; then
  echo "ERROR: RUNNER is '$RUNNER', must be a program: a path, or a name on the PATH" >&2
  exit 1
fi
suite="$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)" && cd -- "$suite" && mkdir -p logs || exit 1
if [ -n "${ADAPTER:-}" ]; then
  set -- "$@" -a "$ADAPTER"
fi
# What runs here. DxDispatch exits with 1 where there is no model.
"$program" -S > logs/dependencies.new 2>&1 < /dev/null
status=$?
if ! grep -q '^-*DirectML' logs/dependencies.new; then
  rm -f logs/dependencies.new
  echo "ERROR: RUNNER '$RUNNER' does not start: with -S it prints no version of DirectML and exits with $status" >&2
  exit 1
fi
mv -f logs/dependencies.new logs/dependencies.log
"$program" -s > logs/adapters.log 2>&1 < /dev/null
failed=0
while read -r name dispatches; do
  echo "$name"
  # Every sample with four decimals, then medians with six, for short work.
  (for verbose in 2 0 0 0 0 0; do
    "$program" "$name.json" -i 31 -w 1 -r "$dispatches" -v "$verbose" "$@" || exit 1
  done) > "logs/$name.log" 2>&1 < /dev/null || failed=$((failed + 1))
done << 'END'
@TIMED@
END
# What these write is compared byte by byte.
while read -r name; do
  rm -f "logs/$name.bin"
  "$program" "$name.json" --output_path logs "$@" > "logs/$name.log" 2>&1 < /dev/null || failed=$((failed + 1))
done << 'END'
@OUTPUTS@
END
if [ "$failed" -gt 0 ]; then
  echo "$failed models failed. The next command keeps the causes."
fi
echo "Next: dml-cuda import \"$suite/logs\" --suite \"$suite\" -o run.json"
