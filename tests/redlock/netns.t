#!/bin/bash
# netns.t - five servers, two of them on machines of their own as far as the network knows: the cable is
# pulled, nobody is told, and clients lock and count on.
# run: once
# shellcheck disable=SC2317 # functions that eventually uses by name
set -u
if [ -z "${HOLDFAST_NETNS-}" ]; then
    if ! command -v nsenter >/dev/null || ! unshare -n ip link set lo up 2>/dev/null; then
        echo '1..0 # SKIP no network namespaces here'
        exit 0
    fi
    HOLDFAST_NETNS=1 exec unshare -n "$0" "$@"
fi
ip link set lo up
. "$(dirname "$0")/lib.sh"

# away NAME NUMBER : the server in a namespace at the end of a cable, as 10.9.NUMBER.2
away() {
    local inside=10.9.$2.2 id
    unshare -n sleep 600 &
    client_pid[far.$1]=$!
    disown $!
    eventually 10 eval '[ "$(readlink /proc/self/ns/net)" != "$(readlink "/proc/${client_pid[far.'"$1"']}/ns/net")" ]'
    far="nsenter -t ${client_pid[far.$1]} -n"
    ip link add "v$2" type veth peer name eth0 netns "${client_pid[far.$1]}" || return 1
    ip addr add "10.9.$2.1/30" dev "v$2"
    ip link set "v$2" up
    $far ip link set lo up
    $far ip addr add "$inside/30" dev eth0
    $far ip link set eth0 up
    server_wrap=$far
    server_cli="-h $inside"
    redis_start "$1" --bind "$inside" --protected-mode no
    server_wrap=
    server_cli=
    id=$(rcli "$1" -h "$inside" info replication | tr -d '\r' | sed -n 's/^master_replid://p')
    rcli "$1" -h "$inside" set holdfast:inc "$id 1 1 3000" >/dev/null
    url="$url,$inside:$(port "$1")"
}
cable() { nsenter -t "${client_pid[far.$1]}" -n ip link set eth0 "$2"; }

nodes 3 3000
url=$(redlock '' n1 n2 n3)
away f4 4 && away f5 5
ok $? 'two servers at the end of cables'
counters_start 3 "$url?max_ttl=3s" 60 2000
value() { local value=0; read -r _ value _ <"$dir/counter"; echo "$((10#${value:-0}))"; }
more() { [ "$(value)" -gt "$1" ]; }
goes_on() {
    local before
    before=$(value)
    eventually 20 more "$((before + 20))"
    ok $? "$1"
}
goes_on 'the lock goes around'
cable f4 down
goes_on 'one cable pulled'
cable f5 down
goes_on 'both pulled'
sleep 2.5 # longer than a ttl
goes_on 'for longer than a ttl'
cable f4 up
cable f5 up
goes_on 'both plugged in again'
redis_stop n1 KILL
kill -STOP "$(pid n2)"
goes_on 'those two are needed for a majority now'
kill -CONT "$(pid n2)"
counters_stop
counters_end 'to the end'
is "$overlaps" 0 'there were never two valid leases'
done_testing
