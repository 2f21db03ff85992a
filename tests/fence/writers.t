#!/bin/bash
# 64 concurrent writers with random tokens on each database: of the accepted history the tokens never
# decrease, and no update is lost. The same without the fence must lose some, or this shows nothing.
# 8 s for each; a minute with HOLDFAST_LONG=1. (run: once)
set -u
# shellcheck source=tests/fence/fence.sh
. "$(dirname "$0")/fence.sh"
start_databases || { echo "Bail out! no databases"; exit 1; }
seconds=8
[ -n "${HOLDFAST_LONG:-}" ] && seconds=60

client() { # DIALECT : one that goes on after an error
    case $1 in
    postgres) echo psql -h "$SQL_DIR/pg" -U owner -d postgres -X -q -At ;;
    sqlite) echo sqlite3 -cmd '.timeout 60000' "$SQL_DIR/app.db" ;;
    mariadb) echo mariadb --no-defaults "--socket=$SQL_DIR/maria/sock" -u root -f -N -B app ;;
    esac
}

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

run_writers() { # DIALECT fenced|plain SECONDS
    rm -rf "$SQL_DIR/w"
    mkdir "$SQL_DIR/w"
    # shellcheck disable=SC2046 # words
    if [ "$1" = sqlite ]; then
        (cd "$SQL_DIR/w" && perl "$root/tests/fence/writers.pl" "$1" "$2" "$3" \
            sqlite3 -cmd '.timeout 60000' "$SQL_DIR/app.db")
    else
        (cd "$SQL_DIR/w" && perl "$root/tests/fence/writers.pl" "$1" "$2" "$3" $(client "$1"))
    fi
}

# The number of the row is drawn while the fence is held, so it is the order of admission.
falls="SELECT count(*) FROM history a JOIN history b ON b.n = (SELECT min(n) FROM history WHERE n > a.n)
    WHERE b.token < a.token;"

for d in postgres sqlite mariadb; do
    make_tables "$d"
    fence sql --dialect "$d" --table counter | sql "$d"
    fence sql --dialect "$d" --table history --resource counter | sql "$d"
    run_writers "$d" fenced "$seconds"
    admitted=$(sql "$d" <<<"SELECT count(*) FROM history;")
    refused=$(cat "$SQL_DIR"/w/errors.* | grep -Ec 'is stale|holdfast stale')
    diag "$d: $admitted admitted, $refused refused"
    [ "$admitted" -gt 20 ] && [ "$refused" -gt 100 ]
    ok $? "$d: writers were admitted and refused"
    is "$(sql "$d" <<<"$falls")" 0 "$d: the tokens never decrease"
    is "$(sql "$d" <<<"SELECT v FROM counter;")" "$admitted" "$d: no update is lost"
    is "$(sql "$d" <<<"SELECT count(DISTINCT writer) > 3 FROM history;" | sed 's/^t$/1/')" 1 "$d: of many writers"
    fence sql --dialect "$d" --table history --resource counter --down | sql "$d"
    fence sql --dialect "$d" --table counter --down --last | sql "$d"

    make_tables "$d"
    run_writers "$d" plain 3
    admitted=$(sql "$d" <<<"SELECT count(*) FROM history;")
    lost=$((admitted - $(sql "$d" <<<"SELECT v FROM counter;")))
    diag "$d, without the fence: $lost of $admitted updates lost"
    [ "$lost" -gt 0 ]
    ok $? "$d: without the fence updates are lost"
    [ "$(sql "$d" <<<"$falls")" -gt 0 ]
    ok $? "$d: and tokens fall"
done
done_testing
