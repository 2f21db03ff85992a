#!/bin/bash
# Three servers on their worst days, and a fenced counter that goes on through all of them.
set -u
. "$(dirname "$0")/lib.sh"
zk_ensemble e minSessionTimeout=400 maxSessionTimeout=4000
url=zookeeper://$(hosts e1 e2 e3)/faults

value() { # of the counter; 0 before it is there
    local count
    count=$(sed 's/.* 0*//' "$dir/counter" 2>/dev/null)
    echo "${count:-0}"
}
counts_on() { # DESCRIPTION : the counter moves
    local before
    before=$(value)
    eventually 40 eval "[ \"\$(value)\" -gt $before ]"
    ok $? "$1"
}
leader() {
    local i
    for i in 1 2 3; do
        [ "$(zk_mode e$i)" != leader ] || echo e$i
    done
}
others() { echo e1 e2 e3 | tr ' ' '\n' | grep -v "^$1\$"; }

workers=()
for i in 1 2 3 4; do
    "$build/tests/zookeeper/tool_counter" "$url" counter "$dir/counter" 40 2000 >"$dir/worker$i" 2>&1 &
    workers+=($!)
done
end=$((SECONDS + 40))
counts_on 'it counts'

l=$(leader)
zk_stop "$l" KILL
counts_on "the leader ($l) is killed: it counts on"
zk_launch "$l"
zk_ready "$l"

# The session of a stopped client ends behind its back.
kill -STOP "${workers[0]}"
sleep 5
counts_on 'a client is stopped for longer than its session: the others count on'
kill -CONT "${workers[0]}"

# One that is no leader freezes for longer than the ttl.
l=$(leader)
frozen=$(others "${l:-e1}" | head -n 1)
kill -STOP "$(pid "$frozen")"
sleep 4
counts_on "a follower ($frozen) is frozen: it counts on"
kill -CONT "$(pid "$frozen")"

# No majority: nothing is granted; with it, all goes on.
l=$(leader)
for name in $(others "${l:-e1}"); do
    zk_stop "$name" KILL
done
sleep 4
stood=$(value)
sleep 2
is "$(value)" "$stood" 'without a majority nothing is granted'
for name in $(others "${l:-e1}"); do
    zk_launch "$name"
done
zk_ready "${l:-e1}"
counts_on 'the majority is back: it counts on'

sum=0
for i in 1 2 3 4; do
    wait "${workers[i - 1]}"
    ok $? "worker $i saw no token twice and was never overtaken: $(tail -n 1 "$dir/worker$i")"
    sum=$((sum + $(sed -n 's/^counted \([0-9]*\) .*/\1/p' "$dir/worker$i")))
done
is "$sum" "$(value)" 'no increment was lost'
[ "$SECONDS" -le $((end + 30)) ]
ok $? 'nobody hung'
done_testing
