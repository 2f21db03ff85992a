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

# Marks the server as met long ago, so that it grants at once. What incarnation.t is about must not cost
# every other test a minute.
calm() { # SERVER [MAX_TTL_MS]
    local id
    id=$(rcli "$1" info replication | tr -d '\r' | sed -n 's/^master_replid://p')
    rcli "$1" set holdfast:inc "$id 1 1 ${2-60000}" >/dev/null
}

url() { echo "redis://127.0.0.1:$(port "$1")${2-}"; }

# cluster_start NAME... : a cluster. $cluster_shares says which slots each of them has, as in "0-99,200 -",
# "-" for none; by default the first three share them.
cluster_start() {
    local name n=0 share range shares
    read -r -a shares <<<"${cluster_shares:-0-5461 5462-10922 10923-16383}"
    cluster=("$@")
    for name in "$@"; do
        redis_start "$name" --cluster-enabled yes --cluster-config-file nodes.conf --cluster-node-timeout 2000 \
            --cluster-port "$(free_port)" --cluster-require-full-coverage no --repl-diskless-sync-delay 0 \
            --cluster-allow-replica-migration no
        share=${shares[n]:--}
        n=$((n + 1))
        rcli "$name" cluster set-config-epoch "$n" >/dev/null
        [ "$share" != - ] || continue
        for range in ${share//,/ }; do
            rcli "$name" cluster addslotsrange "${range%-*}" "${range#*-}" >/dev/null
        done
    done
    for name in "${@:2}"; do
        rcli "$1" cluster meet 127.0.0.1 "$(port "$name")" "$(bus_port "$name")" >/dev/null
    done
    eventually 30 cluster_agrees
}
bus_port() { sed -n 's/.*--cluster-port \([0-9]*\) .*/\1/p' <<<"${server_options[$1]} "; }
cluster_agrees() {
    local name
    for name in "${cluster[@]}"; do
        rcli "$name" cluster info | grep -q cluster_state:ok || return 1
        [ "$(rcli "$name" cluster nodes | grep -c connected)" = "${#cluster[@]}" ] || return 1
    done
}

# has_slot SERVER SLOT : whether the server says that it is its own
has_slot() {
    rcli "$1" cluster nodes 2>/dev/null | awk -v slot="$2" '/myself,master/ { for (i = 9; i <= NF; i++) {
        split($i, r, "-"); if ($i !~ /\[/ && slot >= r[1] && slot <= (r[2] == "" ? r[1] : r[2])) found = 1 } }
        END { exit !found }'
}

# holder_of_slot LOCK : the server that has its slot
holder_of_slot() {
    local name slot
    for name in "${cluster[@]}"; do
        slot=${slot:-$(rcli "$name" cluster keyslot "$1" 2>/dev/null)}
        [ -z "$slot" ] || ! has_slot "$name" "$slot" || { echo "$name" && return; }
    done
}

# move_slot SLOT FROM TO : with its data, as redis-cli --cluster reshard does it
move_slot() {
    local key id name
    id=$(rcli "$3" cluster myid)
    rcli "$3" cluster setslot "$1" importing "$(rcli "$2" cluster myid)" >/dev/null
    rcli "$2" cluster setslot "$1" migrating "$id" >/dev/null
    while key=$(rcli "$2" cluster getkeysinslot "$1" 1) && [ -n "$key" ]; do
        rcli "$2" migrate 127.0.0.1 "$(port "$3")" "$key" 0 5000 >/dev/null
    done
    for name in "$3" "$2" "${cluster[@]}"; do
        rcli "$name" cluster setslot "$1" node "$id" >/dev/null 2>&1
    done
    eventually 10 has_slot "$3" "$1"
}

# name_in SERVER N : the N-th name whose slot the server has
name_in() {
    local i=0 found=0 slot own
    own=$(rcli "$1" cluster nodes | grep myself)
    # shellcheck disable=SC2086 # a list
    for slot in $(rcli "$1" eval "local r = {} for i = 1, 300 do
        r[i] = redis.call('CLUSTER', 'KEYSLOT', 'new' .. i) end return r" 0); do
        i=$((i + 1))
        awk -v slot="$slot" '{ for (i = 9; i <= NF; i++) { split($i, r, "-")
            if ($i !~ /\[/ && slot >= r[1] && slot <= (r[2] == "" ? r[1] : r[2])) found = 1 } exit !found }' <<<"$own" || continue
        found=$((found + 1))
        [ "$found" -lt "$2" ] || { echo "new$i" && return; }
    done
}
