#!/bin/bash
# What the idempotency keys say, in each database: verdicts, mistakes, savepoints, attempts, bad input.
# (run: once)
set -u
# shellcheck source=tests/idem/idem.sh
. "$(dirname "$0")/idem.sh"
start_databases || { echo "Bail out! no databases"; exit 1; }
run_python verdicts.py
