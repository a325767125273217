#!/usr/bin/env bash
# the Python package: a wheel from the source distribution, types, tests with NumPy alone and with JAX
source .ci/setup.sh

release
wheel
venv python --reinstall-package dml-cuda "$work"/wheel/*.whl pyinstaller==6.*
echo 'import dml_cuda; print(dml_cuda.fill_value_sequence(2, 0, 1, "int8"))' > "$work/frozen.py"
(cd "$work" && "$OLDPWD/.venv/python/bin/python" -m PyInstaller --log-level ERROR frozen.py && dist/frozen/frozen | grep -F "[0 1]")
.venv/python/bin/python -m unittest discover python/tests
# The oldest JAX that is served, and the newest for Python 3.11, each with a flax that takes it. flatbuffers is for
# jax.export, which before 0.7 also needs absl-py.
for versions in 0.6.0:0.10.7 0.10.2:0.12.8; do
  venv python "jax==${versions%:*}" "flax==${versions#*:}" flatbuffers absl-py
  .venv/python/bin/python -m unittest discover python/tests 'test_[fj]*.py'
done
.venv/python/bin/python benches/compiled.py jax small
.venv/python/bin/python -m unittest discover python/tests test_pages.py
venv mypy mypy==1.* numpy
(cd python && ../.venv/mypy/bin/python -m mypy)
