#!/bin/bash
# Waiting for a lock: in order, without polling, and whatever happens to the others.
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

redis_start a
calm a
queue='holdfast:{x}:q'
waiting() { [ "$(rcli a zcard "$queue")" = "$1" ]; }

client h "$(url a)"
for c in 1 2 3; do client "w$c" "$(url a)"; done

# first come, first served
ask h acquire 1 x 20000 0
last=$(token)
for c in 1 2 3; do
    tell "w$c" acquire 1 x 20000 30000
    eventually 5 waiting "$c"
done
ok $? 'three wait'
ask h status x
like "$answer" '*waiters=3*' 'status counts them'
holder=h
before=$(rcli a info commandstats | tr -d '\r' | sed -n 's/^cmdstat_rpush:calls=\([0-9]*\),.*/\1/p')
for c in 1 2 3; do
    ask "$holder" release 1
    is "$answer" ok "$holder releases"
    hear "w$c"
    like "$answer" 'ok *' "w$c has it"
    above "$(token)" "$last" 'its token is above the last'
    last=$(token)
    holder=w$c
done
after=$(rcli a info commandstats | tr -d '\r' | sed -n 's/^cmdstat_rpush:calls=\([0-9]*\),.*/\1/p')
is "$((after - ${before:-0}))" 3 'one wake-up per release'
ask w3 left 1
above "${answer#ok }" 19000 'the deadline counts from the confirmation, not from the first request'
ask w3 release 1
is "$(rcli a --scan --pattern 'holdfast:{x}*')" 'holdfast:{x}:t' 'nothing stays of the queue'

# a claim that does not wait does not jump the queue
ask h acquire 1 x 20000 0
tell w1 acquire 1 x 20000 30000
eventually 5 waiting 1
rcli a del x >/dev/null
ask w2 acquire 1 x 20000 0
like "$answer" 'HF_BUSY*' 'a free lock with somebody waiting is not for a newcomer'
hear w1
like "$answer" 'ok *' 'but for the one who waits'
ask w1 release 1

# the wait ends
ask h acquire 1 x 20000 0
ask w1 acquire 1 x 20000 400
like "$answer" 'HF_BUSY*held by*' 'a wait that ends without the lock: busy, and by whom'
is "$(rcli a exists "$queue")" 0 'it has left the queue'

# a waiter is killed
for c in 1 2; do
    tell "w$c" acquire 1 x 20000 30000
    eventually 5 waiting "$c"
done
gone w1
ask h release 1
start=$(date +%s%N)
hear w2
like "$answer" 'ok *' 'a waiter killed just before the release does not block the queue'
took=$((($(date +%s%N) - start) / 1000000))
[ "$took" -lt 2500 ]
ok $? "it costs the claim window at most ($took ms)"
ask w2 release 1

# the holder is killed
client h2 "$(url a)"
ask h2 acquire 1 x 1500 0
for c in 2 3; do
    tell "w$c" acquire 1 x 20000 30000
    eventually 5 waiting $((c - 1))
done
gone h2
hear w2
like "$answer" 'ok *' "a crashed holder's lock goes to the queue when its ttl ends"
gone w2
gone w3

# the releaser dies before it could hand over: here, the key just vanishes
client w4 "$(url a)"
rcli a del x "$queue" 'holdfast:{x}:w' >/dev/null
rcli a set x somebody >/dev/null
tell w4 acquire 1 x 20000 30000
eventually 5 waiting 1
rcli a del x >/dev/null
hear w4
like "$answer" 'ok *' 'the slow poll finds what no notification told'
ask w4 release 1

# nothing of a dead queue stays
rcli a set x somebody >/dev/null
tell w4 acquire 1 x 20000 30000
eventually 5 waiting 1
gone w4
eventually 15 eval '[ -z "$(rcli a --scan --pattern "holdfast:{x}:[qw]*")" ]'
ok $? 'the keys of a queue expire with its last waiter'
done_testing
