#!/bin/bash
# holdfast explain on PostgreSQL: what it tells, and what it does not.
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/explain.sh"

pg_start a
export HOLDFAST_STORE
HOLDFAST_STORE=$(url a)
"$hf" acquire -n --ttl 1m --label one job >/dev/null
"$hf" run -w 60s job -- true 2>/dev/null &
waiter=$!
seen() { "$hf" explain job --json >"$dir/out" && jq -e "$1" "$dir/out" >/dev/null; }
eventually 20 seen '.waiters == 1'
fits_schema "$dir/out"
ok $? 'as the schema says'
seen '.holder.label == "one" and .holder.token_time != null and .holder.remaining_ms > 50000 and .queue == null'
ok $? 'what PostgreSQL tells'
"$hf" explain job >"$dir/out"
like "$(cat "$dir/out")" '*renewed    this store does not tell*' 'and what it does not'
kill -TERM "$waiter"
done_testing
