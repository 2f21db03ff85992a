#!/bin/bash
# Three thousand holds of one process: renewed in few statements, none of them late, even when somebody
# sits on the row of one. And listings among many locks.
# run: first
# run: once
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

pg_start a
proxy_start p a
"$build/tests/postgres/tool_many" "$(url p)" 3000 10000 20 >"$dir/many.out" 2>"$dir/many.err" &
many=$!
client_pid[many]=$many
eventually 90 grep -q ready "$dir/many.out"
ok $? 'three thousand holds of 10s'

# somebody's open transaction sits on one row for as long as the hold lasts
mkfifo "$dir/psql.in"
psql -XAtq -h 127.0.0.1 -p "$(port a)" -U postgres -d postgres <"$dir/psql.in" >"$dir/psql.out" 2>&1 &
sitter=$!
exec 9>"$dir/psql.in"
echo "BEGIN; SELECT 'locked' FROM holdfast.lock WHERE name = 'many-1500' FOR UPDATE;" >&9
eventually 10 grep -q locked "$dir/psql.out"
proxy p trips
wait $many
unset "client_pid[many]"
echo 'COMMIT; \q' >&9
exec 9>&-
wait $sitter
read -r _ held _ lost _ least < <(tail -n 1 "$dir/many.out")
sed 's/^/# /' "$dir/many.out" "$dir/many.err"
is "$held $lost" '2999 1' 'all are held but the one whose row was locked'
above "$least" 3000 'none of them had less left (ms)'
proxy p trips
[ "$proxied" -lt 3000 ]
ok $? "they were renewed in few round trips ($proxied)"

# a listing among many locks that are free costs little, and comes whole
sql a "INSERT INTO holdfast.lock SELECT ('free-' || n)::bytea, n, NULL, false, false, false, 1000,
    now(), now(), '' FROM generate_series(1, 300000) AS n" \
    "INSERT INTO holdfast.lock SELECT ('held-' || n)::bytea, n, '\\x00', false, false, false, 86400000,
    now(), now() + interval '1 day', '' FROM generate_series(1, 3000) AS n"
client l "$(url a)"
ask l list free-
is "$answer" ok 'a listing passes over 300,000 free locks in time'
ask l list held-
is "$(grep -o 'held=1' <<<"$answer" | wc -l)" 3000 'and has all of 3,000 held ones, more than a page'
ask l list held-77
is "$(grep -o 'held=1' <<<"$answer" | wc -l)" 11 'or those of a prefix'
done_testing
