# lib.sh - what the tests of the ZooKeeper store share, on top of stage.sh. Sourced by bash after `set -u`.
#
#   zk_start NAME [LINE...]      one server by itself; LINEs go into its configuration
#   zk_ensemble NAME [LINE...]   three of them: NAME1 NAME2 NAME3; or as many as $zk_servers says
#   zk_launch NAME               once more, same port, same data; $server_wrap is put in front
#   zk_stop NAME [SIGNAL]        TERM by default; waits until it is gone
#   zk_ready NAME                waits until it serves clients
#   zk_mode NAME                 standalone, leader, follower, or nothing
#   hosts NAME...                "127.0.0.1:PORT,..."
#   kazoo NAME SNIPPET           Python with k, a connected client of kazoo
# shellcheck shell=bash
. "$(dirname "${BASH_SOURCE[0]}")/../support/stage.sh"
unset HOLDFAST_ZOOKEEPER_PASSWORD
# Leaks and races of the client library itself are left out; ours are looked for all the same.
export LSAN_OPTIONS="suppressions=$root/tests/zookeeper/lsan.supp:print_suppressions=0"
export TSAN_OPTIONS="${TSAN_OPTIONS-}:suppressions=$root/tests/zookeeper/tsan.supp"
[ -e "$build/stores/zookeeper.so" ] || skip_all 'the plugin is not built'
[ -e /usr/share/java/zookeeper.jar ] || skip_all 'zookeeper is not installed'

hosts() {
    local name list=
    for name in "$@"; do
        list=$list${list:+,}127.0.0.1:${server_port[$name]}
    done
    echo "$list"
}

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
        '4lw.commands.whitelist=srvr,mntr' "$@" >"$dir/$name/conf"
}

# $java_options and $java_compiler: for measurements.
zk_launch() {
    # shellcheck disable=SC2086 # lists of words
    ${server_wrap-} java -Xmx128m ${java_compiler--XX:TieredStopAtLevel=1} -XX:+UseSerialGC \
        ${java_options--Dzookeeper.forceSync=no} -cp "${TEST_ZOOKEEPER_JARS:-/usr/share/java/*}" \
        org.apache.zookeeper.server.quorum.QuorumPeerMain "$dir/$1/conf" >"$dir/$1/log" 2>&1 &
    server_pid[$1]=$!
    disown $!
}

zk_start() {
    local name=$1
    shift
    zk_config "$name" "$(free_port)" "$@"
    zk_launch "$name"
    zk_ready "$name"
}

zk_ensemble() {
    local name=$1 i n=${zk_servers:-3} members=() ports
    shift
    read -r -a ports <<<"$(free_ports $((3 * n)))"
    for ((i = 1; i <= n; i++)); do
        members+=("server.$i=127.0.0.1:${ports[i + n - 1]}:${ports[i + 2 * n - 1]}")
    done
    for ((i = 1; i <= n; i++)); do
        zk_config "$name$i" "${ports[i - 1]}" initLimit=50 syncLimit=10 "${members[@]}" "$@"
        echo $i >"$dir/$name$i/data/myid"
        zk_launch "$name$i"
    done
    for ((i = 1; i <= n; i++)); do
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
server_stop() { zk_stop "$@"; }

# Debian's own python has Debian's python3-kazoo.
kazoo() {
    /usr/bin/python3 -c "
from kazoo.client import KazooClient
from kazoo.security import make_acl
k = KazooClient('$(hosts "$1")')
k.start()
$2
k.stop()"
}
