#!/usr/bin/env bash
# cases, timed and reported, in a browser
source .ci/setup.sh

release
for run in a b; do
  target/release/dml-cuda bench --tier quick --only f32 --samples 5 -o "$work/$run.json"
done
target/release/dml-cuda report "$work/a.json" "$work/b.json" -o "$work/report.html"
crates/dml-cuda-cli/tests/browser/check-report.sh "$work/report.html"
