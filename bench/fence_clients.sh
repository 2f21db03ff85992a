#!/bin/bash
# fence_clients.sh PORT - how many transactions a second 1, 8 and 32 clients of a PostgreSQL get done: plain, on one
# fenced key, and each on a key of its own. Rows as bench/run.sh wants them.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=bench/rows.sh
. bench/rows.sh
port=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
sql() { psql -h 127.0.0.1 -p "$port" -U owner -d postgres -X -q -At -v ON_ERROR_STOP=1; }

sql <<'SQL'
CREATE TABLE own_plain (id INT PRIMARY KEY, v INT, k INT) WITH (fillfactor = 50);
INSERT INTO own_plain SELECT n, 0, n FROM generate_series(1, 64) AS n;
CREATE TABLE own_keyed (id INT PRIMARY KEY, v INT, k INT) WITH (fillfactor = 50);
INSERT INTO own_keyed SELECT n, 0, n FROM generate_series(1, 64) AS n;
SQL
build/holdfast fence sql --dialect postgres --table own_keyed --key-column k | PGOPTIONS='-c client_min_messages=warning' sql
# BEGIN and enter go out together: one round trip.
printf '%s\n' '\set id :client_id + 1' 'BEGIN;' 'UPDATE own_plain SET v = v + 1 WHERE id = :id;' 'COMMIT;' >"$dir/plain"
printf '%s\n' '\set id :client_id + 1' "BEGIN \\; CALL holdfast_fence.enter('public.own_keyed', :id::text, 34);" \
    'UPDATE own_keyed SET v = v + 1 WHERE id = :id;' 'COMMIT;' >"$dir/own"
printf '%s\n' "BEGIN \\; CALL holdfast_fence.enter('public.own_keyed', '1', 34);" \
    'UPDATE own_keyed SET v = v + 1 WHERE id = 1;' 'COMMIT;' >"$dir/one"

tps() { # SCRIPT CLIENTS
    pgbench -h 127.0.0.1 -p "$port" -U owner -n -f "$dir/$1" -c "$2" -j 2 -T "${SECONDS_EACH:-3}" postgres |
        sed -n 's/^tps = \([0-9]*\).*/\1/p'
}
# In turns, because the machine is not the same from one minute to the next; the middle one of several counts.
middle() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
for clients in 1 8 32; do
    for _ in $(seq "${ROUNDS:-3}"); do
        echo "$(tps plain $clients) $(tps own $clients) $(tps one $clients)"
    done >"$dir/turns"
    plain=$(cut -d' ' -f1 "$dir/turns" | middle)
    own=$(cut -d' ' -f2 "$dir/turns" | middle)
    one=$(cut -d' ' -f3 "$dir/turns" | middle)
    share=$(awk '{ printf "%.2f\n", $2 / $1 }' "$dir/turns" | middle)
    row "PostgreSQL, $clients clients, plain" "$plain" - /s
    row "PostgreSQL, $clients clients, fenced, one key" "$one" - /s
    row "PostgreSQL, $clients clients, fenced, keys of their own" "$own" - /s
    bound=-
    [ $clients != 32 ] || bound='>=0.80'
    row "PostgreSQL, $clients clients on keys of their own: fenced / plain" "$share" "$bound" x
done
