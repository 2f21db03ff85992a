# cables.sh - servers at the end of cables: network namespaces of their own, as far as the network
# knows other machines. Sourced by bash before the lib.sh of a store.
#
#   cables_enter "$0" "$@"        the test goes on in a network of its own, or is skipped
#   cable NAME NUMBER             a namespace at the end of a cable: there it is 10.9.NUMBER.2, here
#                                 we are 10.9.NUMBER.1. $far: what runs a command there
#   far_redis NAME NUMBER [MAX_TTL_MS]
#                                 a Redis server there that counts as met long ago; needs redis/lib.sh
#   unplug NAME, plug NAME        the cable is pulled, and plugged in again
#   black_hole NUMBER             10.9.NUMBER.3 swallows what is sent to it
#   name_addresses NAME ADDRESS.. what a name is resolved to, here and until the test ends
#   half_open NUMBER              connections that stand are dead and nobody is told, new ones work:
#                                 our address is another one from now on
# shellcheck shell=bash disable=SC2034,SC2154 # shared with those who source it

cables_enter() {
    if [ -z "${HOLDFAST_NETNS-}" ]; then
        if ! command -v nsenter >/dev/null || ! unshare -n ip link set lo up 2>/dev/null; then
            echo '1..0 # SKIP no network namespaces here'
            exit 0
        fi
        HOLDFAST_NETNS=1 exec unshare -n -m "$@"
    fi
    ip link set lo up
}

cable() {
    unshare -n sleep 600 &
    client_pid[far.$1]=$!
    disown $!
    eventually 10 eval '[ "$(readlink /proc/self/ns/net)" != "$(readlink "/proc/${client_pid[far.'"$1"']}/ns/net")" ]'
    far="nsenter -t ${client_pid[far.$1]} -n"
    ip link add "v$2" type veth peer name eth0 netns "${client_pid[far.$1]}" || return 1
    echo 1 >"/proc/sys/net/ipv4/conf/v$2/promote_secondaries"
    ip addr add "10.9.$2.1/24" dev "v$2"
    ip link set "v$2" up
    $far ip link set lo up
    $far ip addr add "10.9.$2.2/24" dev eth0
    $far ip link set eth0 up
}
far_redis() {
    local id
    cable "$1" "$2" || return 1
    server_wrap=$far
    server_cli="-h 10.9.$2.2"
    redis_start "$1" --bind "10.9.$2.2" --protected-mode no
    server_wrap=
    server_cli=
    id=$(rcli "$1" -h "10.9.$2.2" info replication | tr -d '\r' | sed -n 's/^master_replid://p')
    rcli "$1" -h "10.9.$2.2" set holdfast:inc "$id 1 1 ${3-60000}" >/dev/null
}
unplug() { nsenter -t "${client_pid[far.$1]}" -n ip link set eth0 down; }
plug() { nsenter -t "${client_pid[far.$1]}" -n ip link set eth0 up; }

black_hole() { ip neigh add "10.9.$1.3" lladdr 02:00:00:00:00:03 dev "v$1" nud permanent; }
name_addresses() {
    local name=$1
    shift
    if [ ! -e "$dir/hosts" ]; then
        cp /etc/hosts "$dir/hosts"
        mount --bind "$dir/hosts" /etc/hosts
    fi
    printf "%s $name\\n" "$@" >>"$dir/hosts"
}

declare -A cable_address
half_open() {
    local old=${cable_address[$1]-1}
    cable_address[$1]=$((old + 10))
    ip addr add "10.9.$1.$((old + 10))/24" dev "v$1"
    ip addr del "10.9.$1.$old/24" dev "v$1"
}
