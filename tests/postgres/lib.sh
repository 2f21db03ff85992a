# lib.sh - what the tests of the PostgreSQL store share, on top of stage.sh. Sourced by bash after
# `set -u`. As root, servers run as nobody.
#
#   pg_init NAME                   an empty cluster
#   pg_start NAME [SETTING...]     the same, started with -c SETTING each, waits until it answers
#   pg_again NAME                  once more, same port, same folder
#   pg_stop NAME [SIGNAL]          INT by default; QUIT is what a crash looks like
#   pg_signal NAME SIGNAL          to the server and all its children
#   pg_standby NAME PRIMARY        a streaming standby, not started yet
#   pg_bouncer NAME SERVER         PgBouncer in transaction mode in front of that server
#   sql NAME SQL...                one value per line
# shellcheck shell=bash disable=SC2034 # some of it is for those who source it
. "$(dirname "${BASH_SOURCE[0]}")/../support/stage.sh"
. "$root/tests/support/made.sh"
unset "${!PG@}"
export PGPASSFILE=$dir/no-pgpass PGCONNECT_TIMEOUT=20
declare -A server_options
pg_bin=${TEST_POSTGRES_BIN:-$(find /usr/lib/postgresql/*/bin -maxdepth 0 2>/dev/null | sort -V | tail -n 1)}
[ -e "$build/stores/postgres.so" ] || skip_all 'the plugin is not built'
[ -x "$pg_bin/postgres" ] || skip_all 'PostgreSQL is not installed'

as=
mkdir "$dir/pg"
chmod 711 "$dir"
if [ "$(id -u)" -eq 0 ]; then
    as='setpriv --reuid=nobody --regid=nogroup --clear-groups'
    chown nobody "$dir/pg"
fi
cd / || exit 1 # where nobody may be, too

pg_init() {
    local make=(made_once "postgres${pg_bin//\//-}" "$dir/pg/$1")
    [ -z "$(ls "$dir/pg")" ] || make=()
    # shellcheck disable=SC2086 # a list of words
    "${make[@]}" $as "$pg_bin/initdb" -D "$dir/pg/$1" -U postgres -A trust -N -E UTF8 --locale=C \
        >"$dir/$1.initdb" 2>&1 || {
        echo "Bail out! initdb: $(tail -n 3 "$dir/$1.initdb")"
        exit 1
    }
}

pg_start() {
    local name=$1 try option
    shift
    [ -e "$dir/pg/$name" ] || pg_init "$name"
    server_options[$name]=
    for option in "$@"; do
        server_options[$name]+=" -c $(printf '%q' "$option")"
    done
    for try in 1 2 3 4 5; do
        server_port[$name]=$(free_port)
        pg_again "$name" && return 0
    done
    echo "Bail out! postgres $name did not start ($try tries): $(tail -n 3 "$dir/$name.log")"
    exit 1
}

# pg_again NAME : $server_wrap, if set, is a command put in front (faketime, for one)
pg_again() {
    local name=$1 waited=0
    # shellcheck disable=SC2086 # options and wrapper are lists of quoted words
    eval "exec $as ${server_wrap-} '$pg_bin/postgres' -D '$dir/pg/$name' -p ${server_port[$name]} \
        -k '' -c listen_addresses=127.0.0.1 -c shared_buffers=16MB -c fsync=${pg_fsync-off} \
        -c max_wal_senders=4 ${server_options[$name]}" >>"$dir/$name.log" 2>&1 </dev/null &
    server_pid[$name]=$!
    until "$pg_bin/pg_isready" -q -h 127.0.0.1 -p "${server_port[$name]}"; do
        kill -0 "${server_pid[$name]}" 2>/dev/null || return 1
        [ $((waited += 1)) -lt 600 ] || return 1
        sleep 0.05
    done
}

pg_stop() {
    local id=${server_pid[$1]-}
    [ -n "$id" ] || return 0
    pg_signal "$1" CONT
    kill -"${2-INT}" "$id" 2>/dev/null
    wait "$id" 2>/dev/null
    unset "server_pid[$1]"
}
# KILL would leave the children alone; QUIT has the server end them at once.
server_stop() { pg_stop "$1" "${2/KILL/QUIT}"; }

pg_signal() {
    local id=${server_pid[$1]}
    # shellcheck disable=SC2046 # a list of numbers
    kill -"$2" "$id" $(pgrep -P "$id") 2>/dev/null
}

pg_standby() {
    $as "$pg_bin/pg_basebackup" -D "$dir/pg/$1" -h 127.0.0.1 -p "$(port "$2")" -U postgres \
        -c fast -N -R -X stream >"$dir/$1.backup" 2>&1
}

pg_bouncer() {
    server_port[$1]=$(free_port)
    bouncer_config "$1" "$2"
    $as pgbouncer -q "$dir/$1.ini" >"$dir/$1.log" 2>&1 </dev/null &
    client_pid[$1]=$!
    eventually 20 "$pg_bin/pg_isready" -q -h 127.0.0.1 -p "$(port "$1")"
}

# bouncer_to NAME SERVER : from now on it leads there; its clients are not told
bouncer_to() {
    bouncer_config "$@"
    kill -HUP "${client_pid[$1]}"
}

bouncer_config() {
    cat >"$dir/$1.ini" <<END
[databases]
postgres = host=127.0.0.1 port=$(port "$2") user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $(port "$1")
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 5
server_login_retry = 1
END
    chmod 644 "$dir/$1.ini"
}

sql() { # NAME SQL...
    local name=$1 statement
    shift
    for statement in "$@"; do
        psql -XAtq -h 127.0.0.1 -p "$(port "$name")" -U postgres -d "${database-postgres}" \
            -c "$statement"
    done
}

url() { echo "postgres://postgres@127.0.0.1:$(port "$1")/${database-postgres}${2-}"; }

# The first row of an answer is that value.
says() { # VALUE SERVER SQL
    [ "$(sql "$2" "$3")" = "$1" ]
}
# Waiters of a lock as the table has them.
waiting() { # SERVER LOCK COUNT
    says "$3" "$1" "SELECT count(*) FROM holdfast.waiter WHERE lock = '$2' AND alive_until > clock_timestamp()"
}
# The lock has no owner, or none that lives.
is_free() { # SERVER LOCK
    says 0 "$1" "SELECT count(*) FROM holdfast.lock WHERE name = '$2' AND owner IS NOT NULL AND expires > clock_timestamp()"
}
# A standby that is synchronous.
pg_sync_standby() { # NAME PRIMARY
    pg_standby "$1" "$2"
    pg_start "$1"
    sql "$2" "ALTER SYSTEM SET synchronous_standby_names = '*'" 'SELECT pg_reload_conf()' >/dev/null
    eventually 30 says sync "$2" 'SELECT sync_state FROM pg_stat_replication'
}
