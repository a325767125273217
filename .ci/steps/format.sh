#!/usr/bin/env bash
# Rust, Python, C, C++ and CUDA are formatted, and comments stand alone
source .ci/setup.sh

cargo fmt --all --check
for manifest in fuzz crates/dml-cuda-candle crates/dml-cuda-capi/examples/ort; do
  cargo fmt --check --manifest-path "$manifest/Cargo.toml"
done
venv style ruff==0.15.8 clang-format==22.1.1
git ls-files -z '*.py' | xargs -0 .venv/style/bin/ruff format --check
# cbindgen writes include/.
git ls-files -z '*.c' '*.cpp' '*.h' '*.hpp' '*.cu' '*.cuh' ':!*/include/*' |
  xargs -0 .venv/style/bin/clang-format --dry-run --Werror

git ls-files .ci/run '*.rs' '*.c' '*.cpp' '*.h' '*.hpp' '*.py' '*.sh' ':!kernels' ':!*/include/*' > "$work/sources"
# shellcheck disable=SC2016
xargs perl -CSD -ne '
  $comment = m{^\s*(//|/?\*|#( |!/|$))};
  $stands = $comment && $before || !m{(//[/!]?|/\*+|# |""")\s*(The same|As of|As for|Of|Those|Nor)\b};
  print "$ARGV:$.: the comment does not stand alone: $_" unless $stands;
  $failed ||= !$stands;
  $before = $comment && !eof;
  close ARGV if eof;
  END { exit !!$failed }' < "$work/sources"
