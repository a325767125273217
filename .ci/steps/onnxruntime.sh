#!/usr/bin/env bash
# ONNX Runtime, the oldest and a new one
source .ci/setup.sh

release
export DML_CUDA_LIBRARY="$PWD/target/release/libdml_cuda.so"
time_onnx() { target/release/dml-cuda bench --runner onnxruntime --python "$python" --tier quick -o "$work/$1.json" "${@:2}"; }
for version in 1.18.1 1.32.0; do
  python=.venv/onnxruntime-$version/bin/python
  numpy=$([ "$version" = 1.18.1 ] && echo 'numpy<2' || echo numpy)
  venv "onnxruntime-$version" "onnxruntime==$version" onnx==1.23.2 "$numpy"
  "$python" -m unittest discover crates/dml-cuda-capi/tests/onnxruntime
  "$python" crates/dml-cuda-capi/tests/onnxruntime/test_models.py --cpu
  "$python" crates/dml-cuda-capi/examples/bidirectional_rnn.py "$DML_CUDA_LIBRARY"
  time_onnx "$version" --provider cpu --only check.onnx
  time_onnx "$version-library" --provider cpu --only check.onnx --library "$DML_CUDA_LIBRARY"
  time_onnx "$version-timed" --provider cpu --only tokens_256 --samples 3 --library "$DML_CUDA_LIBRARY"
  target/release/dml-cuda report "$work/$version.json" "$work/$version-library.json" | tee "$work/table"
  grep "29 outputs equal" "$work/table"
done
# A library without a provider, and a stand-in for one.
plugin=(plugin --provider-library "$DML_CUDA_LIBRARY" --only small)
if time_onnx "${plugin[@]}" 2> "$work/log"; then exit 1; fi
grep "symbol CreateEpFactories" "$work/log"
PYTHONPATH="$PWD/crates/dml-cuda-cli/tests/provider" time_onnx "${plugin[@]}"
grep "small_fill_of_65536_bytes.f32.fill: refused: CPUExecutionProvider does not take the node" "$work/plugin.json"
target/release/dml-cuda report "$work/plugin.json" | grep "small \[16, 256\], u8, copy"
# Rust's crate ort also runs a model.
ort=crates/dml-cuda-capi/examples/ort/Cargo.toml
cargo fmt --check --manifest-path "$ort"
cargo clippy --locked --manifest-path "$ort" --target-dir target/ort -- -D warnings
cargo run --locked --quiet --manifest-path "$ort" --target-dir target/ort -- \
  .venv/onnxruntime-1.32.0/lib/python3*/site-packages/onnxruntime/capi/libonnxruntime.so.1.* "$DML_CUDA_LIBRARY" | tee target/ort/out
grep -F '[3.0, 2.0, 1.0, 4.0, 6.0, 5.0, 7.0, 8.0]' target/ort/out
