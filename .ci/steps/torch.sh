#!/usr/bin/env bash
# PyTorch, the oldest that is served and the newest: nothing may be skipped but what needs a GPU
source .ci/setup.sh

wheel
# The pages' examples run the tool and the C library.
release
cd python/tests
tests=(test_torch{,_gpu,_private,_functions,_import,_onnx,_transforms,_sharding} test_torch_compiled)
tests+=(test_rnn{,_clients,_distributed,_choice,_errors,_gpu,_packing,_conversion,_programs})
for version in 2.8.0 2.15.0; do
  # No version of PyTorch changes what these test.
  [ "$version" = 2.8.0 ] || tests+=(test_onnx_gain test_pages)
  # One at a time: each takes 6 GB.
  rm -rf ../../.venv/torch
  (cd ../.. && venv torch "torch==$version" numpy onnx onnxscript onnxruntime "$work"/wheel/*.whl)
  ../../.venv/torch/bin/python -W ignore -m unittest --verbose "${tests[@]}" 2>&1 | tee "$work/log"
  if grep "skipped" "$work/log" | grep -v "skipped 'no PyTorch with a GPU'" | grep -v "^OK (skipped="; then exit 1; fi
done
../../.venv/torch/bin/python -W ignore ../../benches/torch_calls.py small
../../.venv/torch/bin/python -W ignore ../../benches/rnn_forms.py small
../../.venv/torch/bin/python -W ignore ../../benches/rnn.py small
../../.venv/torch/bin/python -W ignore ../../benches/compiled.py torch small twice
../../.venv/torch/bin/python -W ignore ../../benches/random_layouts.py "$work/layouts.csv" 1 --small --count 2 --workers 1
(cd ../.. && venv torch jax==0.10.2)
../../.venv/torch/bin/python -W ignore ../../benches/rnn_jax.py small
