# lib.sh - what the tests of the PostgreSQL store share. Sourced by bash after `set -u`.
#
# Servers are real ones, on free ports of the loopback, in a temporary folder, ended by their process
# id; as root they run as nobody. A client is a process of tool_pg that holds its store and leases
# open: `ask NAME COMMAND...` sends it a line and leaves the line it answers in $answer; `tell` and
# `hear` do one half each.
# shellcheck shell=bash disable=SC2034

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$root/${BUILD:-build}
holdfast=${HOLDFAST:-$build/holdfast}
export HOLDFAST_STORE_PATH=$build/stores
unset HOLDFAST_STORE HOLDFAST_TRACE "${!PG@}"
export PGPASSFILE=/nonexistent PGCONNECT_TIMEOUT=20
pg_bin=$(find /usr/lib/postgresql/*/bin -maxdepth 0 2>/dev/null | sort -V | tail -n 1)

tests=0
failed=0
answer=
proxied=
as=
declare -A server_port server_pid server_options client_in client_out client_pid proxy_in proxy_out

if [ ! -e "$build/stores/postgres.so" ] || [ ! -x "$pg_bin/postgres" ]; then
    echo '1..0 # SKIP the plugin is not built, or PostgreSQL is not installed'
    exit 0
fi

dir=$(mktemp -d)
chmod 711 "$dir"
if [ "$(id -u)" -eq 0 ]; then
    as='setpriv --reuid=nobody --regid=nogroup --clear-groups'
    mkdir "$dir/pg"
    chown nobody "$dir/pg"
else
    mkdir "$dir/pg"
fi
# $dir is nobody's business but the server's own folder must be its.
cd / || exit 1

finish() {
    local name
    for name in "${!client_pid[@]}"; do
        kill -KILL "${client_pid[$name]}" 2>/dev/null
    done
    for name in "${!server_pid[@]}"; do
        pg_stop "$name" QUIT
    done
    rm -rf "$dir"
}
trap finish EXIT

ok() { # STATUS DESCRIPTION
    tests=$((tests + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $tests - $2"
    else
        failed=$((failed + 1))
        echo "not ok $tests - $2"
        echo "#   answer: $answer" | head -c 600
        echo
    fi
}

is() { # GOT WANTED DESCRIPTION
    [ "$1" = "$2" ]
    ok $? "$3"
    [ "$1" = "$2" ] || printf '#   got:    %s\n#   wanted: %s\n' "$1" "$2"
}

like() { # GOT PATTERN DESCRIPTION : a shell pattern
    # shellcheck disable=SC2053 # it is a pattern
    [[ $1 == $2 ]]
    ok $? "$3"
    # shellcheck disable=SC2053
    [[ $1 == $2 ]] || printf '#   got:    %s\n#   wanted: %s\n' "$1" "$2"
}

above() { # A B DESCRIPTION : numbers
    [ "${1:-0}" -gt "${2:-0}" ] 2>/dev/null
    ok $? "$3 ($1 > $2)"
}

done_testing() {
    echo "1..$tests"
    [ "$failed" -eq 0 ]
    exit $?
}

# eventually SECONDS COMMAND... : until it succeeds
eventually() {
    local end=$((SECONDS + $1 + 1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.05
    done
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# pg_init NAME : an empty cluster. pg_start NAME [OPTION...] : the same, started with -c OPTION each.
pg_init() {
    $as "$pg_bin/initdb" -D "$dir/pg/$1" -U postgres -A trust -N -E UTF8 --locale=C \
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

# pg_again NAME : once more, same port. $server_wrap, if set, is put in front (faketime, for one).
pg_again() {
    local name=$1 waited=0
    # shellcheck disable=SC2086 # options and wrapper are lists of quoted words
    eval "exec $as ${server_wrap-} '$pg_bin/postgres' -D '$dir/pg/$name' -p ${server_port[$name]} \
        -k '' -c listen_addresses=127.0.0.1 -c shared_buffers=16MB -c fsync=off \
        -c max_wal_senders=4 ${server_options[$name]}" >>"$dir/$name.log" 2>&1 </dev/null &
    server_pid[$name]=$!
    until "$pg_bin/pg_isready" -q -h 127.0.0.1 -p "${server_port[$name]}"; do
        kill -0 "${server_pid[$name]}" 2>/dev/null || return 1
        [ $((waited += 1)) -lt 600 ] || return 1
        sleep 0.05
    done
}

# pg_stop NAME [SIGNAL] : QUIT is what a crash looks like, KILL leaves it to its children
pg_stop() {
    local id=${server_pid[$1]-}
    [ -n "$id" ] || return 0
    pg_signal "$1" CONT
    kill -"${2-INT}" "$id" 2>/dev/null
    wait "$id" 2>/dev/null
    unset "server_pid[$1]"
}

# pg_signal NAME SIGNAL : to the server and all its children
pg_signal() {
    local id=${server_pid[$1]}
    # shellcheck disable=SC2046 # a list of numbers
    kill -"$2" "$id" $(pgrep -P "$id") 2>/dev/null
}

sql() { # NAME SQL... : one value per line
    local name=$1 statement
    shift
    for statement in "$@"; do
        psql -XAtq -h 127.0.0.1 -p "${server_port[$name]}" -U postgres \
            -d "${database-postgres}" -c "$statement"
    done
}

# pg_standby NAME PRIMARY : a streaming standby, not started yet
pg_standby() {
    $as "$pg_bin/pg_basebackup" -D "$dir/pg/$1" -h 127.0.0.1 -p "${server_port[$2]}" -U postgres \
        -c fast -N -R -X stream >"$dir/$1.backup" 2>&1
}

# proxy_start NAME SERVER : a proxy in front of that server. proxy NAME COMMAND... : see proxy.py; the
# answer is in $proxied
proxy_start() {
    local in out
    mkfifo "$dir/$1.in" "$dir/$1.out"
    python3 "$root/tests/postgres/proxy.py" "${server_port[$2]}" <"$dir/$1.in" >"$dir/$1.out" &
    client_pid[$1]=$!
    disown $!
    exec {in}>"$dir/$1.in" {out}<"$dir/$1.out"
    proxy_in[$1]=$in
    proxy_out[$1]=$out
    read -r "server_port[$1]" <&"$out"
}

proxy() {
    local name=$1
    shift
    echo "$*" >&"${proxy_in[$name]}"
    read -r -t 20 proxied <&"${proxy_out[$name]}"
}

client() { # NAME [URL]
    local in out
    mkfifo "$dir/client.$1.in" "$dir/client.$1.out"
    "$build/tests/postgres/tool_pg" <"$dir/client.$1.in" >"$dir/client.$1.out" \
        2>"$dir/client.$1.err" &
    client_pid[$1]=$!
    disown $!
    exec {in}>"$dir/client.$1.in" {out}<"$dir/client.$1.out"
    client_in[$1]=$in
    client_out[$1]=$out
    rm "$dir/client.$1.in" "$dir/client.$1.out"
    [ $# -lt 2 ] || ask "$1" open "$2"
}

tell() {
    local name=$1
    shift
    echo "$*" >&"${client_in[$name]}"
}

hear() { # NAME [SECONDS]
    answer=
    IFS= read -r -t "${2-40}" answer <&"${client_out[$1]}" || {
        answer='(no answer)'
        return 1
    }
}

ask() {
    tell "$@"
    hear "$1"
}

silent() { # NAME : it has not answered yet
    ! IFS= read -r -t 0.3 answer <&"${client_out[$1]}"
}

gone() { # NAME
    kill -KILL "${client_pid[$1]}" 2>/dev/null
    unset "client_pid[$1]"
}

# The token in an answer "ok TOKEN ...".
token() { echo "$answer" | sed -n 's/^ok \([0-9]*\).*/\1/p'; }
url() { echo "postgres://postgres@127.0.0.1:${server_port[$1]}/${database-postgres}${2-}"; }

# Waiters of a lock as the table has them.
waiting() { # SERVER LOCK COUNT
    [ "$(sql "$1" "SELECT count(*) FROM holdfast.waiter WHERE lock = '$2' AND alive_until > clock_timestamp()")" = "$3" ]
}
# The lock has no owner, or none that lives.
is_free() { # SERVER LOCK
    [ "$(sql "$1" "SELECT count(*) FROM holdfast.lock WHERE name = '$2' AND owner IS NOT NULL AND expires > clock_timestamp()")" = 0 ]
}
conforms() { # URL DESCRIPTION
    CMOCKA_MESSAGE_OUTPUT=TAP "$build/tests/conform/conform" "$1" >"$dir/conform" 2>&1
    ok $? "$2"
    grep -v '^ok' "$dir/conform" | sed 's/^/#   /' | head -n 20
}
