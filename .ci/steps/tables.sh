#!/usr/bin/env bash
# tables are what the records say, and minimum versions are the same everywhere
source .ci/setup.sh

scripts/tables.py --check
