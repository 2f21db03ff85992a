#!/bin/bash
# cases_redis.t - the same cases in every language on redis:, and tokens that rise from language to language.
# run: once, run: first
set -u
# shellcheck source=tests/bindings/lib.sh
. "$(dirname "$0")/lib.sh"
prepare
two_stores
export STORES="redis=${store_url[redis]}"
timeout 280 python3 "$here/cases.py" cases
