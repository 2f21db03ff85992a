#!/bin/bash
# redis.t - the conformance suite over Redis.
# run: threads
set -u
. "$(dirname "$0")/../redis/lib.sh"

redis_start a
calm a
# Addresses in digits, here and in redlock.t: TSan cannot follow the thread in which glibc looks names up.
"$build/tests/conform/conform" "$(url a)"
