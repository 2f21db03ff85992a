#!/bin/bash
# Idempotency keys under fire, in each database and at each isolation level: 8 clients want 300 keys done and
# are killed, cut, roll back and forget to finish. There are as many effects as keys. Without the keys there are
# more, or this shows nothing.
# (run: once)
set -u
# shellcheck source=tests/idem/idem.sh
. "$(dirname "$0")/idem.sh"
start_databases || { echo "Bail out! no databases"; exit 1; }
run_python storm.py
