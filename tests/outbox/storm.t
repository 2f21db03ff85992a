#!/bin/bash
# The outbox under fire, in each database: 4 writers, three relays that are frozen and killed at random, a receiver
# that fails before and after its effect. Nothing is lost, first deliveries are in order, doubles are of one uid.
# Then the same with a lock store for each relay and a fence that admits everybody, which is no lock: only marks
# may differ.
# (run: first)
# (run: also long)
set -u
# shellcheck source=tests/outbox/outbox.sh
. "$(dirname "$0")/outbox.sh"
start_databases || { echo "Bail out! no databases"; exit 1; }
run_python storm.py
