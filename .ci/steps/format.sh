#!/usr/bin/env bash
# Rust is formatted, comments stand alone, and lines have at most 120 columns
source .ci/setup.sh

cargo fmt --all --check
cargo fmt --check --manifest-path fuzz/Cargo.toml
cargo fmt --check --manifest-path crates/dml-cuda-candle/Cargo.toml
# rustfmt breaks the lines of Rust where it can. Strings do not count. cbindgen writes include/.
git ls-files .ci/run '*.rs' '*.c' '*.cpp' '*.h' '*.hpp' '*.py' '*.sh' ':!kernels' ':!*/include/*' > "$work/sources"
# shellcheck disable=SC2016
xargs perl -CSD -ne '
  $comment = m{^\s*(//|/?\*|#( |!/|$))};
  $stands = $comment && $before || !m{(//[/!]?|/\*+|# |""")\s*(The same|As of|As for|Of|Those|Nor)\b};
  $fits = $ARGV =~ /\.rs$/ && !$comment || length(s/"(\\.|[^"\\])*"/""/gr) <= 121;
  print "$ARGV:$.: the comment does not stand alone: $_" unless $stands;
  print "$ARGV:$.: longer than 120 columns: $_" unless $fits;
  $failed ||= !$stands || !$fits;
  $before = $comment && !eof;
  close ARGV if eof;
  END { exit !!$failed }' < "$work/sources"
