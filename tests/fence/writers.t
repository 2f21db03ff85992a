#!/bin/bash
# 64 concurrent writers with random tokens on each database, all databases at once, for a minute: of the
# accepted history the tokens never decrease, and no update is lost. The same without the fence must lose
# some, or this shows nothing.
# run: long
set -u
# shellcheck source=tests/fence/fence.sh
. "$(dirname "$0")/fence.sh"
# shellcheck source=tests/fence/redis.sh
. "$root/tests/fence/redis.sh"
start_databases || { echo "Bail out! no databases"; exit 1; }
redis_begin --appendonly yes || { echo 'Bail out! no redis-server'; exit 1; }
trap 'redis_end; sql_end; cleanup' EXIT
seconds=60
SHA=$(fence script | redis-cli -s "$REDIS_SOCKET" -x script load)
export SHA

make_tables() { # DIALECT
    local serial='SERIAL PRIMARY KEY' engine=''
    case $1 in
    sqlite) serial='INTEGER PRIMARY KEY AUTOINCREMENT' ;;
    mariadb) engine='ENGINE = InnoDB' ;;
    esac
    echo "DROP TABLE IF EXISTS history; DROP TABLE IF EXISTS counter;
        CREATE TABLE counter (v BIGINT) $engine; INSERT INTO counter VALUES (0);
        CREATE TABLE history (n $serial, token BIGINT, writer INT) $engine;" | sql "$1"
}

run_writers() { # DIALECT fenced|plain SECONDS : with clients that go on after an error
    local client
    case $1 in
    postgres) client=(psql -h "$SQL_DIR/pg" -U owner -d postgres -X -q -At) ;;
    sqlite) client=(sqlite3 -cmd '.timeout 60000' "$SQL_DIR/app.db") ;;
    mariadb) client=(mariadb --no-defaults "--socket=$SQL_DIR/maria/sock" -u root -f -N -B app) ;;
    redis) client=(redis-cli -s "$REDIS_SOCKET") ;;
    esac
    mkdir "$SQL_DIR/$1-$2"
    (cd "$SQL_DIR/$1-$2" && exec perl "$root/tests/fence/writers.pl" "$1" "$2" "$3" "${client[@]}")
}

at_once() { # fenced|plain SECONDS
    local d pids=
    for d in postgres sqlite mariadb redis; do
        run_writers "$d" "$1" "$2" &
        pids="$pids $!"
    done
    # shellcheck disable=SC2086 # they are words
    wait $pids
}

said() { # DIALECT fenced|plain PATTERN : how often
    cat "$SQL_DIR/$1-$2"/* | grep -Ec "$3"
}

# The number of the row is drawn while the fence is held, so it is the order of admission.
falls="SELECT count(*) FROM history a JOIN history b ON b.n = (SELECT min(n) FROM history WHERE n > a.n)
    WHERE b.token < a.token;"

# Redis: the server's own log of what it did is the history; the value is the token itself.
redis_history() { # KEY
    cat "$REDIS_DIR"/appendonlydir/*.aof | tr -d '\r' | awk -v key="$1" '
        /^(SET|set)$/ { want = 2 } want && $0 == key { want = 1; next } want == 1 && !/^\$/ { print; want = 0 }'
}

for d in postgres sqlite mariadb; do
    make_tables "$d"
    fence sql --dialect "$d" --table counter --resource counter | sql "$d"
    fence sql --dialect "$d" --table history --resource counter | sql "$d"
done
at_once fenced "$seconds"
for d in postgres sqlite mariadb redis; do
    if [ "$d" = redis ]; then
        admitted=$(said redis fenced '^OK')
        redis_history fenced >"$SQL_DIR/history"
        is "$(wc -l <"$SQL_DIR/history")" "$admitted" "redis: no update is lost"
        sort -n -c "$SQL_DIR/history"
        ok $? "redis: the tokens never decrease"
    else
        admitted=$(sql "$d" <<<"SELECT count(*) FROM history;")
        is "$(sql "$d" <<<"SELECT v FROM counter;")" "$admitted" "$d: no update is lost"
        is "$(sql "$d" <<<"$falls")" 0 "$d: the tokens never decrease"
        is "$(sql "$d" <<<"SELECT count(DISTINCT writer) > 3 FROM history;" | sed 's/^t$/1/')" 1 "$d: of many writers"
    fi
    refused=$(said "$d" fenced 'is stale|holdfast stale|STALE')
    diag "$d: $admitted admitted, $refused refused"
    [ "$admitted" -gt 20 ] && [ "$refused" -gt 100 ]
    ok $? "$d: writers were admitted and refused"
done

for d in postgres sqlite mariadb; do
    fence sql --dialect "$d" --table history --resource counter --down | sql "$d"
    fence sql --dialect "$d" --table counter --down --last | sql "$d"
    make_tables "$d"
done
at_once plain 10
for d in postgres sqlite mariadb; do
    admitted=$(sql "$d" <<<"SELECT count(*) FROM history;")
    lost=$((admitted - $(sql "$d" <<<"SELECT v FROM counter;")))
    diag "$d, without the fence: $lost of $admitted updates lost"
    [ "$lost" -gt 0 ]
    ok $? "$d: without the fence updates are lost"
    [ "$(sql "$d" <<<"$falls")" -gt 0 ]
    ok $? "$d: and tokens fall"
done
redis_history plain >"$SQL_DIR/history"
[ "$(wc -l <"$SQL_DIR/history")" -gt 100 ] && ! sort -n -c "$SQL_DIR/history" 2>/dev/null
ok $? 'redis: without the fence tokens fall'
done_testing
