#!/usr/bin/env bash
# pages and comments: style, links, cells of tables, records of figures, and names of the code
source .ci/setup.sh

scripts/check-pages.py
