#!/bin/bash
# The migration of the idempotency keys in each database: who may do what then, a second run, a tool's transaction, down.
# (run: once)
set -u
# shellcheck source=tests/idem/idem.sh
. "$(dirname "$0")/idem.sh"
start_databases || { echo "Bail out! no databases"; exit 1; }
run_python migration.py
