#!/bin/bash
# Receivers that answer as no receiver should: halves, drips, floods, redirections, nonsense. None of it is a success,
# none of it stops other keys, and nothing is lost.
set -u
# shellcheck source=tests/outbox/outbox.sh
. "$(dirname "$0")/outbox.sh"
start_databases || { echo "Bail out! no databases"; exit 1; }
run_python answers.py
