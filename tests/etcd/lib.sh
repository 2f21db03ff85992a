# lib.sh - what the tests of the etcd store share, on top of stage.sh. Sourced by bash after `set -u`.
#
#   etcd_start NAME [OPTION...]    starts a server, a cluster of its own, and waits until it serves
#   cluster_start A B C            three servers, one cluster
#   etcd_again NAME                the same server once more, same ports, same folder
#   etcd_stop NAME [SIGNAL]        TERM by default; waits until it is gone
#   url NAME... [?QUERY]           of those servers (or proxies)
#   ctl NAME ARG...                etcdctl to that server
# shellcheck shell=bash
. "$(dirname "${BASH_SOURCE[0]}")/../support/stage.sh"
unset HOLDFAST_ETCD_PASSWORD
export ETCDCTL_API=3
declare -A server_peer server_line
[ -e "$build/stores/etcd.so" ] || skip_all 'the plugin is not built'
if ! command -v etcd >/dev/null || ! command -v etcdctl >/dev/null; then
    skip_all 'etcd is not installed'
fi

url() {
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
    read -r "server_port[$1]" "server_peer[$1]" <<<"$(free_ports 2)"
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
}

etcd_again() {
    local waited=0
    etcd_run "$1"
    until serves "$1"; do
        kill -0 "${server_pid[$1]}" 2>/dev/null || return 1
        [ $((waited += 1)) -lt 300 ] || return 1
        sleep 0.05
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
        tail -n 3 "$dir/$name/log" >"$dir/log"
        rm -rf "${dir:?}/$name"
    done
    echo "Bail out! etcd $name did not start ($try tries): $(cat "$dir/log")"
    exit 1
}

cluster_start() {
    local name cluster='' ports at=0
    read -ra ports <<<"$(free_ports $((2 * $#)))" # at once: no two of them are the same
    for name in "$@"; do
        server_port[$name]=${ports[at]}
        server_peer[$name]=${ports[at + 1]}
        at=$((at + 2))
        mkdir -p "$dir/$name"
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
    wait "$id" 2>/dev/null
    unset "server_pid[$1]"
}
server_stop() { etcd_stop "$@"; }

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
