# lib.sh - what the tests of the redlock store share, on top of those of the Redis store: five servers
# and the URL over them. Sourced by bash after `set -u`.
# shellcheck shell=bash
. "$(dirname "${BASH_SOURCE[0]}")/../redis/lib.sh"

# nodes [COUNT [MAX_TTL_MS]] : servers n1, n2, ...; they count as met long ago
nodes() {
    local i
    for i in $(seq "${1-5}"); do
        redis_start "n$i"
        calm "n$i" "${2-60000}"
    done
}

# redlock [OPTIONS [NAME...]] : the URL over the named servers; over all five without names
redlock() {
    local options=${1-} list=
    [ $# -eq 0 ] || shift
    [ $# -gt 0 ] || set -- n1 n2 n3 n4 n5
    while [ $# -gt 0 ]; do
        list="$list,127.0.0.1:$(port "$1")"
        shift
    done
    echo "redlock://${list#,}$options"
}

# away NAME NUMBER [MAX_TTL_MS] : a server at the end of a cable (cables.sh), added to $url
away() {
    far_redis "$@" || return 1
    url="${url:+$url,}10.9.$2.2:$(port "$1")"
}
