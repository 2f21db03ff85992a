#!/bin/bash
# Idempotency keys of transactions that are open at the same time: nobody waits, nobody deadlocks, and a client
# that dies or freezes frees its key; with the fence, and behind PgBouncer.
# (run: once)
set -u
# shellcheck source=tests/idem/idem.sh
. "$(dirname "$0")/idem.sh"
start_databases || { echo "Bail out! no databases"; exit 1; }
run_python open.py
