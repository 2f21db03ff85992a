#!/bin/bash
# What `holdfast doctor` makes of a Redlock and each of its nodes.
# shellcheck disable=SC2317 # functions that eventually uses by name
set -u
. "$(dirname "$0")/../support/cables.sh"
cables_enter "$0" "$@"
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/../support/doctor.sh"

stepping_clock
nodes 3
server_wrap=
all=$(redlock '' n1 n2 n3)
examine "$all"
is "$rc" 0 'three nodes carry a lock'
finds redlock.one-host
spares redlock.clocks redlock.missing redlock.refuse redlock.refuses redis.eviction redis.replica redis.rights redis.max-ttl redis.waits
holds '[.facts[] | select(.key == "redis.role") | .where] | unique | length == 3' 'each node is told of'
holds '[.verdicts[] | select(.level == "unchecked")] == []' 'nothing is left unchecked'
fits_schema 'the answer is as its schema says'
"$hf" --store "$all" run -n job -- "$hf" fence write "$dir/report" -- echo one
run_require() {
    answer=$("$hf" --store "$all" run -n --require correctness --fence "$dir/report" job -- true 2>&1)
    rc=$?
}
run_require
is "$rc" 0 '--require correctness is met'

# Nodes that refuse writes: one does no harm, two do.
rcli n1 config set min-replicas-to-write 1 >/dev/null
examine "$all"
is "$rc" 0 'one node that refuses writes'
finds redlock.refuses
spares redlock.refuse redis.refuses
rcli n2 config set min-replicas-to-write 1 >/dev/null
examine "$all"
is "$rc" 1 'two of three'
finds redlock.refuse
rcli n1 config set min-replicas-to-write 0 >/dev/null
rcli n2 config set min-replicas-to-write 0 >/dev/null

# One node of three.
rcli n2 config set maxmemory 100mb >/dev/null
rcli n2 config set maxmemory-policy volatile-lru >/dev/null
run_require
is "$rc" 78 '--require refuses eviction at one node'
calm n3 2000
redis_stop n1
examine "$all"
is "$rc" 1 'nodes that disagree about max_ttl'
finds redlock.missing redis.eviction redis.max-ttl
holds '.verdicts[] | select(.rule == "redis.eviction") | .where | endswith($p)' 'the node is named' --arg p ":$(port n2)"
redis_stop n3
examine "$all"
is "$rc" 69 'without a majority it cannot be reached'
redis_again n1
redis_again n3
calm n3
examine "$all"
finds redis.waits
calm n1
rcli n2 config set maxmemory 0 >/dev/null

# Clocks that are apart; nodes on machines of their own.
rcli n3 shutdown nosave >/dev/null 2>&1
server_wrap="env LD_PRELOAD=$dir/clock_step.so CLOCK_STEP_FILE=$dir/clock"
clock_step 30
redis_again n3
server_wrap=
calm n3
examine "$all" --for correctness
finds redlock.clocks
spares redlock.missing
clock_step 0
url=
away f1 1 && away f2 2 && away f3 3
ok $? 'three nodes at the end of cables'
examine "redlock://$url"
is "$rc" 0 'they carry a lock'
spares redlock.one-host redlock.clocks redlock.missing
finds redis.plain

# Nodes that hang share the time.
kill -STOP "$(pid n1)" "$(pid n2)"
begin=$SECONDS
examine "$all"
is "$rc" 69 'nodes that hang'
[ $((SECONDS - begin)) -le 8 ]
ok $? 'it ends all the same'
kill -CONT "$(pid n1)" "$(pid n2)"

done_testing
