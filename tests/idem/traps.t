#!/bin/bash
# Rules of the idempotency keys that look odd: without each of them something breaks, and here it is seen to.
# (run: once)
set -u
# shellcheck source=tests/idem/idem.sh
. "$(dirname "$0")/idem.sh"
start_databases || { echo "Bail out! no databases"; exit 1; }
run_python traps.py
