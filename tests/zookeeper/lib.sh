# lib.sh - what the tests of the ZooKeeper store share. Sourced by bash after `set -u`.
#
# Real servers on free ports of the loopback, in a temporary folder, ended by their process id:
#   zk_start NAME [LINE...]      one server by itself; LINEs go into its configuration
#   zk_ensemble NAME [LINE...]   three of them: NAME1 NAME2 NAME3
#   zk_launch NAME               once more, same port, same data; $server_wrap is put in front
#   zk_stop NAME [SIGNAL]        TERM by default; waits until it is gone
#   zk_ready NAME                waits until it serves clients
#   zk_mode NAME                 standalone, leader, follower, or nothing
#   hosts NAME...                "127.0.0.1:PORT,..."
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$root/${BUILD:-build}
# shellcheck disable=SC2034 # the tests use it
holdfast=$build/holdfast
export HOLDFAST_STORE_PATH=$build/stores
unset HOLDFAST_STORE HOLDFAST_ZOOKEEPER_PASSWORD HOLDFAST_TRACE
# The client library loses a few bytes of its own at exit; ours are looked for all the same.
export LSAN_OPTIONS="suppressions=$root/tests/zookeeper/lsan.supp:print_suppressions=0"
dir=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-zk.XXXXXX") || exit 1

tests=0
failed=0
declare -A server_port server_pid

if [ ! -e "$build/stores/zookeeper.so" ] || [ ! -e /usr/share/java/zookeeper.jar ]; then
    echo '1..0 # SKIP the plugin is not built, or zookeeper is not installed'
    rm -rf "$dir"
    exit 0
fi

finish() {
    local name
    for name in "${!server_pid[@]}"; do
        zk_stop "$name" KILL
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

free_ports() { # COUNT
    python3 -c 'import socket, sys
s = [socket.socket() for _ in range(int(sys.argv[1]))]
for x in s: x.bind(("127.0.0.1", 0))
print(*[x.getsockname()[1] for x in s])' "$1"
}

hosts() {
    local name list=
    for name in "$@"; do
        list=$list${list:+,}127.0.0.1:${server_port[$name]}
    done
    echo "$list"
}

pid() { echo "${server_pid[$1]}"; }

zk_mode() {
    { exec 3<>"/dev/tcp/127.0.0.1/${server_port[$1]}" && printf srvr >&3 &&
        timeout 2 sed -n 's/^Mode: //p' <&3; } 2>/dev/null
}

zk_serves() { [ -n "$(zk_mode "$1")" ]; }

zk_ready() {
    eventually 60 zk_serves "$1" && return 0
    echo "Bail out! ZooKeeper $1 does not serve: $(tail -n 3 "$dir/$1/log")"
    exit 1
}

# zk_config NAME PORT LINE...
zk_config() {
    local name=$1
    server_port[$name]=$2
    shift 2
    mkdir -p "$dir/$name/data"
    printf '%s\n' "dataDir=$dir/$name/data" "clientPort=${server_port[$name]}" \
        clientPortAddress=127.0.0.1 tickTime=200 admin.enableServer=false maxClientCnxns=0 \
        '4lw.commands.whitelist=srvr' "$@" >"$dir/$name/conf"
}

zk_launch() {
    # shellcheck disable=SC2086 # a list of words
    ${server_wrap-} java -Xmx128m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp '/usr/share/java/*' \
        ${java_options--Dzookeeper.forceSync=no} \
        org.apache.zookeeper.server.quorum.QuorumPeerMain "$dir/$1/conf" >"$dir/$1/log" 2>&1 &
    server_pid[$1]=$!
    disown $!
}

zk_start() {
    local name=$1
    shift
    zk_config "$name" "$(free_ports 1)" "$@"
    zk_launch "$name"
    zk_ready "$name"
}

zk_ensemble() {
    local name=$1 i members=() ports
    shift
    read -r -a ports <<<"$(free_ports 9)"
    for i in 1 2 3; do
        members+=("server.$i=127.0.0.1:${ports[i + 2]}:${ports[i + 5]}")
    done
    for i in 1 2 3; do
        zk_config "$name$i" "${ports[i - 1]}" initLimit=50 syncLimit=10 "${members[@]}" "$@"
        echo $i >"$dir/$name$i/data/myid"
        zk_launch "$name$i"
    done
    for i in 1 2 3; do
        zk_ready "$name$i"
    done
}

zk_stop() {
    local id=${server_pid[$1]-}
    [ -n "$id" ] || return 0
    kill -CONT "$id" 2>/dev/null
    kill -"${2-TERM}" "$id" 2>/dev/null
    while kill -0 "$id" 2>/dev/null; do sleep 0.05; done
    unset "server_pid[$1]"
}
