# lib.sh - what the tests of the etcd store share. Sourced by bash after `set -u`.
#
# Real servers, on free ports of the loopback, in a temporary folder, ended by their process id:
#   etcd_start NAME [OPTION...]    one server, a cluster of its own
#   cluster_start A B C            three servers, one cluster
#   etcd_again NAME, etcd_stop NAME [SIGNAL], port NAME, pid NAME, url NAME... [QUERY]
#   ctl NAME ARG...                etcdctl to that server
#   proxy_start NAME SERVER, proxy NAME COMMAND... (answer in $proxied): see proxy.py
#
# A client is a process of tests/redis/tool_client that holds its store and leases open: `ask NAME COMMAND...`
# sends it a line and leaves the line it answers in $answer; `tell` and `hear` do one half each.
# shellcheck shell=bash
# shellcheck disable=SC2034 # hf and proxied are for those who source this

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=${BUILD:-build}
case $build in /*) ;; *) build=$root/$build ;; esac
export HOLDFAST_STORE_PATH=$build/stores ETCDCTL_API=3
unset HOLDFAST_STORE HOLDFAST_ETCD_PASSWORD HOLDFAST_TRACE
dir=$(mktemp -d)
declare -A server_port server_peer server_pid server_line proxy_in proxy_out
declare -A client_in client_out client_pid
tests=0
failed=0
answer=
proxied=
hf=$build/holdfast

if [ ! -e "$build/stores/etcd.so" ] || ! command -v etcd >/dev/null || ! command -v etcdctl >/dev/null; then
    echo '1..0 # SKIP the plugin is not built, or etcd is not installed'
    exit 0
fi

finish() {
    local name
    for name in "${!client_pid[@]}"; do
        kill -KILL "${client_pid[$name]}" 2>/dev/null
    done
    for name in "${!server_pid[@]}"; do
        etcd_stop "$name" KILL
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
        sleep 0.1
    done
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

port() { echo "${server_port[$1]}"; }
pid() { echo "${server_pid[$1]}"; }

url() { # NAME... [?QUERY]
    local list='' name
    for name in "$@"; do
        case $name in
        \?*) list=$list$name ;;
        *) list=${list:+$list,}127.0.0.1:${server_port[$name]} ;;
        esac
    done
    echo "etcd://$list"
}

scheme=http
ctl() {
    local name=$1
    shift
    # shellcheck disable=SC2086 # a list of words
    etcdctl --endpoints "$scheme://127.0.0.1:${server_port[$name]}" ${ctl_options-} "$@"
}

# prepare NAME : ports and folder
prepare() {
    server_port[$1]=$(free_port)
    server_peer[$1]=$(free_port)
    mkdir -p "$dir/$1"
}

# line NAME CLUSTER [OPTION...] : how to start it
line() {
    local name=$1 cluster=$2
    shift 2
    server_line[$name]="$(printf '%q ' etcd --name "$name" --data-dir "$dir/$name/data" \
        --log-level error --logger zap \
        --listen-client-urls "$scheme://127.0.0.1:${server_port[$name]}" \
        --advertise-client-urls "$scheme://127.0.0.1:${server_port[$name]}" \
        --listen-peer-urls "http://127.0.0.1:${server_peer[$name]}" \
        --initial-advertise-peer-urls "http://127.0.0.1:${server_peer[$name]}" \
        --initial-cluster "$cluster" "$@")"
}

# etcd_run NAME : starts it; $server_wrap, if set, is a command put in front
etcd_run() {
    eval "exec ${server_wrap-} ${server_line[$1]}" >>"$dir/$1/log" 2>&1 &
    server_pid[$1]=$!
    disown $!
}

# etcd_again NAME : and waits until it serves
etcd_again() {
    local waited=0
    etcd_run "$1"
    until serves "$1"; do
        kill -0 "${server_pid[$1]}" 2>/dev/null || return 1
        [ $((waited += 1)) -lt 300 ] || return 1
        sleep 0.1
    done
}

# Anything but a closed port will do: a user may be wanted.
serves() {
    ctl "$1" --command-timeout 2s --dial-timeout 2s get x >"$dir/$1/serves" 2>&1 ||
        grep -q 'user name is empty\|permission denied' "$dir/$1/serves"
}

etcd_start() {
    local name=$1 try
    shift
    for try in 1 2 3 4 5; do
        prepare "$name"
        line "$name" "$name=http://127.0.0.1:${server_peer[$name]}" "$@"
        etcd_again "$name" && return 0
        etcd_stop "$name" KILL
        rm -rf "${dir:?}/$name"
    done
    echo "Bail out! etcd $name did not start ($try tries): $(tail -n 3 "$dir/$name/log")"
    exit 1
}

cluster_start() {
    local name cluster=''
    for name in "$@"; do
        prepare "$name"
        cluster=${cluster:+$cluster,}$name=http://127.0.0.1:${server_peer[$name]}
    done
    for name in "$@"; do
        line "$name" "$cluster"
        etcd_run "$name"
    done
    for name in "$@"; do
        eventually 60 serves "$name" || {
            echo "Bail out! the cluster did not start: $(tail -n 3 "$dir/$name/log")"
            exit 1
        }
    done
}

etcd_stop() {
    local id=${server_pid[$1]-}
    [ -n "$id" ] || return 0
    kill -CONT "$id" 2>/dev/null
    kill -"${2-TERM}" "$id" 2>/dev/null
    while kill -0 "$id" 2>/dev/null; do sleep 0.05; done
    unset "server_pid[$1]"
}

# leader NAME... : which of them
leader() {
    local name
    for name in "$@"; do
        ctl "$name" --command-timeout 2s endpoint status -w json 2>/dev/null |
            grep -Eq '"member_id":([0-9]+),.*"leader":\1[,}]' && echo "$name" && return
    done
    return 1
}

# keys NAME [PREFIX] : how many keys there are under the prefix
keys() { ctl "$1" get --prefix "${2-holdfast/}" --keys-only | grep -ac . || true; }
leases() { ctl "$1" lease list | sed 1d | grep -c .; }

proxy_start() {
    local in out
    mkfifo "$dir/$1.in" "$dir/$1.out"
    python3 "$root/tests/etcd/proxy.py" "$(port "$2")" <"$dir/$1.in" >"$dir/$1.out" &
    server_pid[$1]=$!
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
    read -r -t 10 proxied <&"${proxy_out[$name]}"
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

# workers COUNT URL SECONDS LOCK : as many processes that count under the lock; see tool_worker.c
workers() {
    local i
    : >"$dir/$4.fence"
    worker_pids=
    for i in $(seq "$1"); do
        "$build/tests/etcd/tool_worker" "$2" "$4" "$dir/$4.fence" "$3" \
            >"$dir/$4.out.$i" 2>"$dir/$4.err.$i" &
        worker_pids="$worker_pids $!"
    done
}

# workers_end LOCK DESCRIPTION : waits for them and judges
workers_end() {
    local id bad=0 committed counter last
    for id in $worker_pids; do
        wait "$id" || bad=1
    done
    is "$bad" 0 "$2: no worker saw anything wrong"
    cat "$dir/$1".out.* | sed 's/^/# /'
    committed=$(cat "$dir/$1".out.* | awk '{ sum += $2 } END { print sum + 0 }')
    read -r last counter _ <"$dir/$1.fence"
    is $((10#$counter)) "$committed" "$2: nothing was lost (last token $((10#$last)))"
    above "$committed" 3 "$2: there was progress"
    cat "$dir/$1".err.* | sort | uniq -c | sort -rn | head -n 5 | sed 's/^/# /'
}
