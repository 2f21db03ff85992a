#!/bin/bash
# holdfast explain on PostgreSQL: who waits, in order; what it tells, and what it does not.
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/explain_queue.sh"

pg_start a
explain_queue "$(url a)" '.holder.token_time != null and .holder.remaining_ms > 10000'
"$hf" acquire -n --ttl 1m --label one job >"$dir/env"
"$hf" explain job >"$dir/out"
like "$(cat "$dir/out")" '*renewed    this store does not tell*' 'what PostgreSQL does not tell'

# Who only looks leaves an older schema as it is, and hears less.
sql a 'DROP FUNCTION holdfast.waiters' 'UPDATE holdfast.version SET version = 15' >"$dir/sql"
seen job '.held and .queue == null'
ok $? 'an older schema does not tell who waits'
is "$(sql a 'SELECT version FROM holdfast.version')" 15 'and is left as it is'
done_testing
