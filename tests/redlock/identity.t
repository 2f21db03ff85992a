#!/bin/bash
# Who a redlock is: what a majority of its nodes says, in whatever order they are listed and whichever of
# them were replaced; without the data of most of them it is another.
set -u
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/support/identity.sh
. "$root/tests/support/identity.sh"

nodes 5
first=$(redlock '' n1 n2 n3)
same_store redlock 'three nodes' "$first" "$(redlock '' n3 n1 n2)" "redlock://localhost:$(port n1),localhost:$(port n2),127.0.0.1:$(port n3)" \
    "$(redlock '?max_ttl=5s' n2 n3 n1)"
old_mark "$first" "$(redlock '' n2 n1 n3)"
name=$(issuer)
is "$(for n in n1 n2 n3; do rcli $n get holdfast:redlock; done | sort -u)" "${name#id:redlock:}" 'every node knows the name'

# One after the other is replaced, until none of the first is left.
token=100
step() { # URL TEXT
    write_by "$1" $((++token))
    is "$?$(cat "$dir/issued")" "0by $token" "$2"
}
step "$(redlock '' n1 n2 n4)" 'a replaced member: the same store'
is "$(rcli n4 get holdfast:redlock)" "${name#id:redlock:}" 'and the new one was told the name'
step "$(redlock '' n1 n4 n5)" 'and another'
rcli n1 flushall >/dev/null
step "$(redlock '' n1 n4 n5)" 'a member that lost its data'
is "$(rcli n1 get holdfast:redlock)" "${name#id:redlock:}" 'is told again'
redis_stop n1
step "$(redlock '' n1 n4 n5)" 'with a member that is down'

# Not by fewer than a majority, and not by another's nodes.
redis_start n6
redis_start n7
redis_start n8
for n in n6 n7 n8; do calm $n 60000; done
redis_stop n8
rm -f "$dir/issued" "$dir/.issued.fence"
write_by "$(redlock '' n6 n7 n8)" 5
is "$?$(issuer)" 0 'a new redlock with a member down has no name yet'
is "$(rcli n6 exists holdfast:redlock)" 0 'and gets none'
redis_start n8
calm n8 60000
write_by "$(redlock '' n6 n7 n8)" 6
like "$(issuer)" 'id:redlock:*' 'with all of them it has'
other_store "$(redlock '' n4 n5 n6)" 'a majority of another redlock'
rcli n6 flushall >/dev/null
rcli n7 flushall >/dev/null
for n in n6 n7; do calm $n 60000; done
other_store "$(redlock '' n6 n7 n8)" 'a redlock of which most lost their data'

# A member that was another redlock's becomes one of this, and counts.
rm -f "$dir/issued" "$dir/.issued.fence"
step "$(redlock '' n2 n4 n5)" 'the first redlock'
rcli n6 set holdfast:redlock "$(printf '%032d' 7)" >/dev/null
step "$(redlock '' n4 n5 n6)" 'with a member of another'
step "$(redlock '' n5 n6 n3)" 'which counts from then on'

# Whoever comes first: everybody finds the same name.
for n in n6 n7 n8; do rcli $n del holdfast:redlock holdfast:identity >/dev/null; done
crowd=
for i in $(seq 8); do
    (cd "$dir" && HOLDFAST_STORE=$(redlock '' n6 n7 n8) "$hf" fence write "crowd$i" --token 5 </dev/null) &
    crowd="$crowd $!"
done
# shellcheck disable=SC2086 # they are words
wait $crowd
is "$(for i in $(seq 8); do (cd "$dir" && "$hf" fence show "crowd$i" --json | jq -r .issuer); done | sort -u | wc -l)" 1 \
    'eight that come first agree'
done_testing
