# lib.sh - what the tests of the Redis store share, on top of stage.sh. Sourced by bash after `set -u`.
#
#   redis_start NAME [OPTION...]   starts redis-server with the options, waits until it answers
#   redis_stop NAME [SIGNAL]       TERM by default; waits until it is gone
#   redis_again NAME               the same server once more, same port, same folder
#   rcli NAME ARG...               redis-cli to that server
# shellcheck shell=bash
. "$(dirname "${BASH_SOURCE[0]}")/../support/stage.sh"
unset HOLDFAST_REDIS_PASSWORD
declare -A server_options
[ -e "$build/stores/redis.so" ] || skip_all 'the plugin is not built'
command -v redis-server >/dev/null || skip_all 'redis-server is not installed'

rcli() {
    local name=$1
    shift
    redis-cli -h 127.0.0.1 -p "${server_port[$name]}" "$@"
}

redis_start() {
    local name=$1 try
    shift
    for try in 1 2 3 4 5; do
        server_port[$name]=$(free_port)
        server_options[$name]=
        [ $# -eq 0 ] || server_options[$name]=$(printf '%q ' "$@")
        redis_again "$name" && return 0
    done
    echo "Bail out! redis-server $name did not start ($try tries): $(tail -n 3 "$dir/$name/log")"
    exit 1
}

# redis_again NAME : $server_wrap, if set, is a command put in front (faketime, for one)
redis_again() {
    local name=$1 waited=0
    mkdir -p "$dir/$name"
    # shellcheck disable=SC2086 # options and wrapper are lists of quoted words
    eval "exec ${server_wrap-} redis-server --port ${server_port[$name]} --bind 127.0.0.1 \
        --dir '$dir/$name' --logfile '$dir/$name/log' --save \"''\" --daemonize no \
        --enable-debug-command yes ${server_options[$name]}" >/dev/null 2>&1 &
    server_pid[$name]=$!
    while ! answers "$name"; do
        kill -0 "${server_pid[$name]}" 2>/dev/null || return 1
        [ $((waited += 1)) -lt 300 ] || return 1
        sleep 0.05
    done
}

# Anything but silence will do: a password may be wanted, data may be loading.
# shellcheck disable=SC2086 # options
answers() { [ -n "$(rcli "$1" ${server_cli-} ping 2>/dev/null)" ]; }

redis_stop() {
    local id=${server_pid[$1]-}
    [ -n "$id" ] || return 0
    kill -CONT "$id" 2>/dev/null
    kill -"${2-TERM}" "$id" 2>/dev/null
    wait "$id" 2>/dev/null
    unset "server_pid[$1]"
}
server_stop() { redis_stop "$@"; }

# Marks the server as met long ago, so that it grants at once. What guard.t is about must not cost
# every other test a minute.
calm() { # SERVER [MAX_TTL_MS]
    local id
    id=$(rcli "$1" info replication | tr -d '\r' | sed -n 's/^master_replid://p')
    rcli "$1" set holdfast:inc "$id 1 1 ${2-60000}" >/dev/null
}

url() { echo "redis://127.0.0.1:$(port "$1")${2-}"; }
