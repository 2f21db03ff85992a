#!/bin/bash
# The relay, in each database: order, failures, dead messages and what people do about them, the lock, the fence,
# HTTP, and a database that goes away.
set -u
# shellcheck source=tests/outbox/outbox.sh
. "$(dirname "$0")/outbox.sh"
start_databases || { echo "Bail out! no databases"; exit 1; }
run_python relay.py
