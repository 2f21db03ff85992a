#!/bin/bash
# The connection to the database is cut at each statement of the relay, before the server has it and after: nothing
# is lost, nothing overtakes, nothing stays parked.
set -u
# shellcheck source=tests/outbox/outbox.sh
. "$(dirname "$0")/outbox.sh"
# shellcheck disable=SC2119
pg_start || { echo "Bail out! no database"; exit 1; }
run_python cuts.py
