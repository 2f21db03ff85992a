#!/bin/bash
# redis.t - the conformance suite over Redis.
# run: threads
set -u
. "$(dirname "$0")/../redis/lib.sh"

redis_start a
calm a
"$build/tests/conform/conform" "$(url a)"
