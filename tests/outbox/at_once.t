#!/bin/bash
# What the relay says to PostgreSQL in one statement that is kept: fetches, and settlements in which nothing failed.
# A later relay, marks of others, a pooler and a table that changes are noticed all the same.
set -u
# shellcheck source=tests/outbox/outbox.sh
. "$(dirname "$0")/outbox.sh"
start_databases || { echo "Bail out! no databases"; exit 1; }
run_python at_once.py
