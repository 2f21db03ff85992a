# fence.sh - what the tests of the fence share: TAP, servers, ways to ask the three databases.
# shellcheck shell=bash disable=SC2119
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
# shellcheck source=tests/support/sql_servers.sh
. "$(dirname "$0")/../support/sql_servers.sh"
# shellcheck disable=SC2034 # for the tests
root=$(cd "$(dirname "$0")/../.." && pwd)
unset HOLDFAST_STORE
sql_begin
trap 'sql_end; cleanup' EXIT

fence() { "$hf" fence "$@"; }

# sql DIALECT: runs SQL from stdin in the dialect's database; rows as lines, columns apart by |
# Stops at the first error, unless on_error=go_on.
sql() {
    case $1-${on_error:-stop} in
    sqlite-go_on) sqlite3 -cmd '.timeout 20000' "$SQL_DIR/app.db" ;;
    mariadb-go_on) maria -f app ;;
    esac
    [ "${on_error:-stop}" = go_on ] && [ "$1" != postgres ] && return
    case $1 in
    postgres) pg ;;
    sqlite) sqlite3 -bail -cmd '.timeout 20000' "$SQL_DIR/app.db" ;;
    mariadb) (set -o pipefail; maria -n app | sed -u 's/\t/|/g') ;;
    esac
}

# shellcheck disable=SC2034 # for the tests
ask() { # DIALECT SQL : the answer in $out, errors in $err
    sql "$1" <<<"$2" >"$SQL_DIR/out" 2>"$SQL_DIR/err"
    rc=$?
    out=$(cat "$SQL_DIR/out") err=$(cat "$SQL_DIR/err")
}

# The statements before the first write of a fenced transaction, and those that end it.
enter_sql() { # DIALECT RESOURCE TOKEN
    case $1 in
    postgres) echo "BEGIN; CALL holdfast_fence.enter('$2', $3);" ;;
    sqlite) echo "PRAGMA foreign_keys = ON; BEGIN IMMEDIATE;
        INSERT INTO holdfast_enter (resource, token) VALUES ('$2', $3);" ;;
    mariadb) echo "START TRANSACTION; CALL holdfast_enter('$2', $3);" ;;
    esac
}

leave_sql() { # DIALECT
    case $1 in
    sqlite) echo "DELETE FROM holdfast_entered; COMMIT;" ;;
    *) echo "COMMIT;" ;;
    esac
}

# A server that does not come up says why on stderr, and gets another chance in an empty folder.
start_databases() {
    local try
    for try in 1 2 3; do
        pg_start && maria_start && maria -e 'CREATE DATABASE app' && return 0
        diag "the databases did not start, try $try"
        [ -z "${SQL_PG_DATA:-}" ] || pg_stop immediate
        [ -z "$SQL_MARIA_PID" ] || maria_stop KILL
        rm -rf "$SQL_DIR/pg" "$SQL_DIR/maria"
        SQL_PG_DATA=
    done
    return 1
}

# ---- the tables of docs/fencing.md, whose cells are executed ----

contents() { # DIALECT : what is in t; "gone" if there is no such table
    sql "$1" <<<"SELECT id, v FROM t ORDER BY id;" 2>/dev/null || echo gone
}

answer() { # ERROR BEFORE AFTER : the word that describes what happened
    if [ "$2" != "$3" ]; then
        echo 'not covered'
    elif grep -Eq 'ZHF0|holdfast (stale|not entered|invalid)|FOREIGN KEY constraint failed' "$1"; then
        echo refused
    else
        echo 'no effect and no error'
    fi
}

rows_of() { # TABLE
    sed -n "/^<!-- table: $1 -->/,/^\$/p" "$root/docs/fencing.md" | sed -n 's/^| *\(.*\) *|$/\1/p' | sed '1,2d; s/ *| */|/g; s/ *$//'
}
