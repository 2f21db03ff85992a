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
[ "$(grep -c earlier "$dir/out")" -eq 0 ]
ok $? 'and nothing of a break that there was not'
"$hf" break job --token "$("$hf" status job --json | jq .token)" --reason 'too long' --now >"$dir/broke"
seen job '.held == false and .broken == null and .last_break.reason == "too long"'
ok $? 'a break that is over'
"$hf" acquire -n --ttl 1m --label two job >"$dir/env"
seen job '.holder.label == "two" and .broken == null and .last_break.reason == "too long"'
ok $? 'and that the next hold is another'

# Who only looks leaves an older schema as it is, and hears less.
sql a 'DROP FUNCTION holdfast.waiters, holdfast.last_break' 'UPDATE holdfast.version SET version = 15' >"$dir/sql"
seen job '.held and .queue == null and .last_break == null'
ok $? 'an older schema does not tell who waits'
is "$(sql a 'SELECT version FROM holdfast.version')" 15 'and is left as it is'
done_testing
