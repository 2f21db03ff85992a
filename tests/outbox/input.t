#!/bin/bash
# What nobody meant: odd keys and payloads, tables of others, commands that misbehave, databases that go away.
# Each gets a clear error, and nothing is lost.
set -u
# shellcheck source=tests/outbox/outbox.sh
. "$(dirname "$0")/outbox.sh"
start_databases || { echo "Bail out! no databases"; exit 1; }
run_python input.py
