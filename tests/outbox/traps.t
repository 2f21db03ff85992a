#!/bin/bash
# The traps of an outbox: each is shown snapping without the rule that the pack keeps, and not snapping with it.
# (run: once)
set -u
# shellcheck source=tests/outbox/outbox.sh
. "$(dirname "$0")/outbox.sh"
start_databases || { echo "Bail out! no databases"; exit 1; }
run_python traps.py
