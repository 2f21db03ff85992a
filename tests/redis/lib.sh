# lib.sh - what the tests of the Redis store share. Sourced by bash after `set -u`.
#
# The programs under test are those of $BUILD (build). A client is a process of tool_client
# that holds its stores and leases open: `ask NAME COMMAND...` sends it a line and leaves the line it
# answers in $answer; `tell` and `hear` do one half each.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$root/${BUILD:-build}
export HOLDFAST_STORE_PATH=$build/stores
unset HOLDFAST_STORE HOLDFAST_REDIS_PASSWORD HOLDFAST_TRACE
dir=$(mktemp -d)
. "$root/tests/support/servers.sh"

tests=0
failed=0
declare -A client_in client_out client_pid
answer=

if [ ! -e "$build/stores/redis.so" ] || ! command -v redis-server >/dev/null; then
    echo '1..0 # SKIP the plugin is not built, or redis-server is not installed'
    exit 0
fi

finish() {
    local name
    for name in "${!client_pid[@]}"; do
        kill -KILL "${client_pid[$name]}" 2>/dev/null
    done
    servers_stop
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

client() { # NAME [URL]
    local in out
    mkfifo "$dir/client.$1.in" "$dir/client.$1.out"
    "$build/tests/redis/tool_client" <"$dir/client.$1.in" >"$dir/client.$1.out" 2>"$dir/client.$1.err" &
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
    IFS= read -r -t "${2-30}" answer <&"${client_out[$1]}" || {
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

# Marks the server as met long ago, so that it grants at once. What guard.t is about must not cost
# every other test a minute.
calm() { # SERVER [MAX_TTL_MS]
    local id
    id=$(rcli "$1" info replication | tr -d '\r' | sed -n 's/^master_replid://p')
    rcli "$1" set holdfast:inc "$id 1 1 ${2-60000}" >/dev/null
}

# The token in an answer "ok TOKEN ...".
token() { echo "$answer" | sed -n 's/^ok \([0-9]*\).*/\1/p'; }
url() { echo "redis://127.0.0.1:$(port "$1")${2-}"; }
