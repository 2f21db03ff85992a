# sql_servers.sh - real SQL servers for the tests: in a temporary folder, on a Unix socket, started and
# stopped by process id. Source it, then call sql_begin, and what you need of the rest.
#
#   sql_begin               a folder in $SQL_DIR; everything is stopped and removed at exit
#   pg_start, pg_stop [how] PostgreSQL; how: fast (default) or immediate (as if it crashed)
#   pg [psql argument...]   psql as the owner, quiet, SQL on stdin; one line per row
#   maria_start, maria_stop [signal]
#   maria [argument...]     the client as root, SQL on stdin
#   new_words               a new pipe $SQL_DIR/words for a client whose answers go to $SQL_DIR/answer
# shellcheck shell=bash
. "$(dirname "${BASH_SOURCE[0]}")/made.sh"

# In memory if there is room: databases sync a lot, and these tests are not about the disk.
sql_begin() {
    local folder=${TMPDIR:-/tmp} room
    room=$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }')
    [ "${room:-0}" -gt 1000000 ] && [ -z "${SQL_ON_DISK:-}" ] && folder=/dev/shm
    SQL_DIR=$(mktemp -d "$folder/holdfast-sql-XXXXXX") || exit 1
    chmod 711 "$SQL_DIR"
    SQL_MARIA_PID=
    trap sql_end EXIT
}

sql_end() {
    [ -n "${SQL_PG_DATA:-}" ] && pg_stop immediate
    [ -n "${SQL_MARIA_PID:-}" ] && maria_stop KILL
    rm -rf "$SQL_DIR"
}

# Whoever looks into the answer must not find that of an earlier client.
new_words() {
    rm -f "$SQL_DIR/words" "$SQL_DIR/answer"
    mkfifo "$SQL_DIR/words"
}

# The servers refuse to run as root.
as_server() {
    if [ "$(id -u)" = 0 ]; then
        (cd "$SQL_DIR" && exec setpriv --reuid=nobody --regid=nogroup --clear-groups \
            env -i PATH="$PATH" HOME="$SQL_DIR" LC_ALL=C.UTF-8 "$@")
    else
        (cd "$SQL_DIR" && exec env LC_ALL=C.UTF-8 "$@")
    fi
}

own_by_server() {
    mkdir -p "$@" && if [ "$(id -u)" = 0 ]; then chown nobody:nogroup "$@"; fi
}

pg_bin() {
    local bin
    for bin in ${TEST_POSTGRES_BIN:-/usr/lib/postgresql/*/bin}; do :; done
    [ -x "$bin/initdb" ] && printf '%s\n' "$bin"
}

# pg_start [setting=value...]: the first time makes a new cluster.
pg_start() {
    local options="-c listen_addresses= -c unix_socket_directories=$SQL_DIR/pg" setting
    SQL_PG_BIN=$(pg_bin) || return 1
    if [ -z "${SQL_PG_DATA:-}" ]; then
        own_by_server "$SQL_DIR/pg"
        chmod 755 "$SQL_DIR/pg"
        made_once "fenced${SQL_PG_BIN//\//-}" "$SQL_DIR/pg/data" \
            as_server "$SQL_PG_BIN/initdb" -D "$SQL_DIR/pg/data" -U owner -A trust -E UTF8 \
            --no-sync --locale=C.UTF-8 >"$SQL_DIR/pg.log" 2>&1 || { cat "$SQL_DIR/pg.log" >&2; return 1; }
        SQL_PG_DATA=$SQL_DIR/pg/data
    fi
    for setting in "${SQL_PG_FSYNC:-fsync=off}" "$@"; do options="$options -c $setting"; done
    as_server "$SQL_PG_BIN/pg_ctl" -D "$SQL_PG_DATA" -l "$SQL_DIR/pg/log" -w -t 60 \
        -o "$options" start >"$SQL_DIR/pg.log" 2>&1 ||
        { cat "$SQL_DIR/pg.log" "$SQL_DIR/pg/log" >&2; return 1; }
}

pg_stop() {
    as_server "$SQL_PG_BIN/pg_ctl" -D "$SQL_PG_DATA" -m "${1:-fast}" -w stop >/dev/null 2>&1
}

pg() {
    PGOPTIONS="-c client_min_messages=warning" psql -h "$SQL_DIR/pg" -U "${PG_ROLE:-owner}" \
        -d postgres -X -q -At -v ON_ERROR_STOP=1 -v VERBOSITY=verbose "$@"
}

maria_start() {
    own_by_server "$SQL_DIR/maria"
    chmod 755 "$SQL_DIR/maria"
    if [ ! -d "$SQL_DIR/maria/data" ]; then
        made_once mariadb "$SQL_DIR/maria/data" \
            as_server mariadb-install-db --no-defaults --datadir="$SQL_DIR/maria/data" --skip-test-db \
            --auth-root-authentication-method=normal --skip-name-resolve >"$SQL_DIR/maria.log" 2>&1 ||
            { cat "$SQL_DIR/maria.log" >&2; return 1; }
    fi
    as_server mariadbd --no-defaults --datadir="$SQL_DIR/maria/data" \
        --socket="$SQL_DIR/maria/sock" --pid-file="$SQL_DIR/maria/pid" --skip-networking \
        --skip-name-resolve --innodb-buffer-pool-size=64M --innodb-log-file-size=16M \
        --innodb-flush-log-at-trx-commit=2 --local-infile=1 --secure-file-priv= \
        --max-connections=200 >"$SQL_DIR/maria/log" 2>&1 &
    SQL_MARIA_PID=$!
    for _ in $(seq 600); do
        maria -e 'DO 1' >/dev/null 2>&1 && return 0
        kill -0 "$SQL_MARIA_PID" 2>/dev/null || break
        sleep 0.1
    done
    cat "$SQL_DIR/maria/log" >&2
    return 1
}

# The background job is the shell that became setpriv that became the server: one process.
maria_stop() {
    local pid
    pid=$(cat "$SQL_DIR/maria/pid" 2>/dev/null) || pid=$SQL_MARIA_PID
    kill -s "${1:-TERM}" "$pid" 2>/dev/null
    wait "$SQL_MARIA_PID" 2>/dev/null
    rm -f "$SQL_DIR/maria/pid"
    SQL_MARIA_PID=
}

maria() {
    mariadb --no-defaults --socket="$SQL_DIR/maria/sock" -u "${MARIA_USER:-root}" -N -B \
        --local-infile=1 "$@"
}
