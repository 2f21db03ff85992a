#!/bin/bash
# several.t - slots over five servers, and each client cut off from another minority of them. The same is done
# with a count per server, which lets too many in: that is what the test would see.
# run: also long
# shellcheck disable=SC2119,SC2317 # nodes without words; functions that are called by name
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/several.sh"

nodes
several "$(redlock)" - - 1000 15000

# away_from NAME NAME : the URL of a client that does not reach these two
nobody=$(free_port)
away_from() {
    local list=
    for node in n1 n2 n3 n4 n5; do
        case $node in "$1" | "$2") list="$list,127.0.0.1:$nobody" ;; *) list="$list,127.0.0.1:$(port $node)" ;; esac
        nobody=$((nobody + 1))
    done
    echo "redlock://${list#,}"
}
# Three clients, and whom each does not reach. Any two of them share a server at least.
cut=('n4 n5' 'n1 n2' 'n2 n3')

# by_slots URL CUT, by_count URL CUT : one client takes what it can get of two
by_slots() { "$hf" --store "$1" acquire -n --ttl 1m --slots 2 pool >/dev/null 2>&1; }
by_count() {
    local got=0 node
    for node in n1 n2 n3 n4 n5; do
        [[ " $2 " != *" $node "* ]] || continue
        if [ "$(rcli "$node" incr permits)" -le 2 ]; then
            got=$((got + 1))
        fi
    done
    [ "$got" -ge 3 ]
}
holders() { # HOW : how many of the three have got in
    local in=0 apart
    for apart in "${cut[@]}"; do
        # shellcheck disable=SC2086 # two words
        "$1" "$(away_from $apart)" "$apart" && in=$((in + 1))
    done
    echo "$in"
}
is "$(holders by_slots)" 2 'each cut off from another minority: two slots have two holders'
is "$(holders by_count)" 3 'a count per server and a majority of servers lets a third one in'

# The same in a storm.
seconds=3
[ -z "${HOLDFAST_LONG-}" ] || seconds=30
urls=()
for apart in "${cut[@]}" 'n5 n1' 'n3 n4'; do
    # shellcheck disable=SC2086 # two words
    urls+=("$(away_from $apart)")
done
slots_storm "$seconds" 1000 20000 "${urls[@]}"
done_testing
