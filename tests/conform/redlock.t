#!/bin/bash
# redlock.t - the conformance suite over five masters.
# run: threads
set -u
. "$(dirname "$0")/../redlock/lib.sh"

nodes 5
CONFORM_TTL_MS=1500 "$build/tests/conform/conform" "$(redlock '?node_timeout=1s')"
