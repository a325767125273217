#!/usr/bin/env bash
# the models fit the JSON Schema of models, and wrong ones do not
source .ci/setup.sh

venv schema check-jsonschema==0.39.*
fits() { .venv/schema/bin/python -m check_jsonschema --schemafile crates/dml-cuda-model/src/schema.json "$@"; }
fits models/*.json
# A misspelt member, an unknown operator, type and command, and no descriptor: members with a $ are comments.
for wrong in 's/"Axis"/"Stride": [1], "Axis"/' s/REVERSE_SUBSEQUENCES/RELU/ s/FLOAT32/FLOAT33/ s/print/prnt/ \
  "s/desc/\$desc/"; do
  sed "$wrong" models/reverse_subsequences.json > "$work/wrong.json"
  if fits "$work/wrong.json" > "$work/log"; then
    echo "the schema accepts a model after $wrong"
    exit 1
  fi
done
