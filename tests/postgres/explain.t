#!/bin/bash
# holdfast explain on PostgreSQL: who waits, in order; what it tells, and what it does not.
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/explain_queue.sh"

pg_start a
explain_queue "$(url a)" '.holder.token_time != null and .holder.remaining_ms > 10000 and
    .holder.seems == "alive" and .holder.renewed != null and .holder.ttl_ms == 30000'
"$hf" acquire -n --ttl 50s --label one job >"$dir/env"
"$hf" explain job >"$dir/out"
like "$(golden <"$dir/out")" '*renewed    TIME, SPAN ago
  time left  SPAN of SPAN*' 'the last renewal'
[ "$(grep -c earlier "$dir/out")" -eq 0 ]
ok $? 'and nothing of a break that there was not'
"$hf" break job --token "$("$hf" status job --json | jq .token)" --reason 'too long' --now >"$dir/broke"
seen job '.held == false and .broken == null and .last_break.reason == "too long"'
ok $? 'a break that is over'
"$hf" acquire -n --ttl 1m --label two job >"$dir/env"
seen job '.holder.label == "two" and .broken == null and .last_break.reason == "too long"'
ok $? 'and that the next hold is another'

# A holder that stands still has missed its renewal; a break is none.
"$hf" run --ttl 6s --label frozen ice -- sleep 600 2>"$dir/ice.err" &
ice=$!
eventually 20 seen ice .held
kill -STOP "$ice"
eventually 20 seen ice '.holder.seems == "late" and .next.what == "end"'
ok $? 'a frozen holder is late'
"$hf" break ice --token "$(jq .holder.token "$dir/out")" >"$dir/broke"
seen ice '.broken != null and .holder.seems == "late"'
ok $? 'also when its hold was broken just now'
kill -KILL "$ice"

# A client that only looks leaves an older schema as it is, and hears less.
older() { # the schema of version 15: no ttl in a listing, nothing of who waits, nothing of breaks that are over
    sql a 'ALTER FUNCTION holdfast.list RENAME TO list24' \
        'CREATE FUNCTION holdfast.list(p_prefix bytea, p_exact boolean, p_after bytea, p_scan integer)
            RETURNS TABLE (name text, held boolean, token bigint, left_ms bigint, age_ms bigint, waiters bigint,
                detached boolean, label text, n bigint, broken_ms bigint, broken_by text, reason text)
            LANGUAGE sql SECURITY DEFINER AS $$
            SELECT name, held, token, left_ms, age_ms, waiters, detached, label, n, broken_ms, broken_by, reason
            FROM holdfast.list24(p_prefix, p_exact, p_after, p_scan) $$' \
        'DROP FUNCTION holdfast.waiters, holdfast.last_break' 'UPDATE holdfast.version SET version = 15' >"$dir/sql"
}
older
seen job '.held and .queue == null and .last_break == null'
ok $? 'an older schema does not tell who waits'
seen job '.holder.label == "two" and .holder.renewed == null and .holder.ttl_ms == null and .holder.remaining_ms > 0'
ok $? 'nor the last renewal'
like "$("$hf" explain job)" '*renewed    this store does not tell*' 'and that is said'
is "$(sql a 'SELECT version FROM holdfast.version')" 15 'and is left as it is'
"$hf" run other -- true
seen job '.holder.label == "two" and .holder.renewed != null and .holder.ttl_ms == 60000'
ok $? 'whoever takes locks brings it up to date, with the holds that are in it'
done_testing
