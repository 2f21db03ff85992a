#!/bin/bash
# Waiting for a lock: in order, each woken by its predecessor only, whatever happens to the others.
# run: once
# shellcheck disable=SC2317 # called by eventually
set -u
. "$(dirname "$0")/lib.sh"

etcd_start a
waiting() { # COUNT
    ask look status x
    [[ $answer == *"waiters=$1 "* ]]
}
events() { # deletes that etcd told to watchers, so far
    curl -s "http://127.0.0.1:$(port a)/metrics" | sed -n 's/^etcd_debugging_mvcc_events_total //p'
}
watchers() {
    curl -s "http://127.0.0.1:$(port a)/metrics" | sed -n 's/^etcd_debugging_mvcc_watcher_total //p'
}

client look "$(url a)"
client h "$(url a)"
for c in 1 2 3; do client "w$c" "$(url a)"; done

# first come, first served
ask h acquire 1 x 20000 0
last=$(token)
for c in 1 2 3; do
    tell "w$c" acquire 1 x 20000 60000 kept
    eventually 10 waiting "$c"
done
ok $? 'three wait, and status counts them'
eventually 10 eval '[ "$(watchers)" = 3 ]'
ok $? 'each watches one key'
holder=h
for c in 1 2 3; do
    before=$(events)
    ask "$holder" release 1
    is "$answer" ok "$holder releases"
    hear "w$c"
    like "$answer" 'ok *' "w$c has it"
    above "$(token)" "$last" 'its token is above the last'
    # A holder that is kept for a while hears of the end of its own key too.
    above 3 $(($(events) - before)) 'the next one was woken, and none of the others'
    last=$(token)
    holder=w$c
done
ask w3 left 1
above "${answer#ok }" 18000 'the deadline counts from the confirmation, not from the first request'
ask w3 release 1
is "$(keys a)" 0 'nothing stays of the queue'

# the wait ends
ask h acquire 1 x 20000 0
ask w1 acquire 1 x 20000 400
like "$answer" 'HF_BUSY*held by*' 'a wait that ends without the lock: busy, and by whom'
is "$(keys a)" 1 'it has left the queue'

# killed waiters: the first and one in the middle
for c in 1 2 3; do
    tell "w$c" acquire 1 x 20000 60000
    eventually 10 waiting "$c"
done
gone w1
gone w2
ask h release 1
hear w3
like "$answer" 'ok *' 'killed waiters do not block the queue'
ask w3 release 1

# a killed holder
client h2 "$(url a)"
ask h2 acquire 1 x 2000 0 kept
tell w3 acquire 1 x 20000 60000
eventually 10 waiting 1
gone h2
hear w3
like "$answer" 'ok *' "a crashed holder's lock goes on when its ttl ends"
ask w3 release 1

# a waiter that is stopped for longer than its place in the queue lasts
ask h acquire 1 x 60000 0
tell w3 acquire 1 x 20000 60000
eventually 10 waiting 1
kill -STOP "${client_pid[w3]}"
eventually 20 waiting 0
ok $? 'a stopped waiter loses its place'
client w4 "$(url a)"
tell w4 acquire 1 x 20000 60000
eventually 10 waiting 1
kill -CONT "${client_pid[w3]}"
eventually 20 waiting 2
ok $? 'and is in the queue again, at its end'
ask h release 1
hear w4
like "$answer" 'ok *' 'the other is first'
ask w4 release 1
hear w3
like "$answer" 'ok *' 'then the one that was stopped'
ask w3 release 1

# the lease of the waiters is revoked behind their back
ask h acquire 1 x 60000 0
tell w3 acquire 1 x 20000 60000
tell w4 acquire 1 x 20000 60000
eventually 10 waiting 2
ctl a lease list | sed 1d | while read -r id; do
    ctl a lease timetolive "$id" | grep -q 'granted with TTL(5s)' && ctl a lease revoke "$id" >/dev/null
done
eventually 20 waiting 2
ok $? 'waiters whose lease was revoked come again'
ask h release 1
served=0
for _ in $(seq 40); do
    for c in w3 w4; do
        [ "$served" -lt 2 ] || break 2
        hear $c 0.5 || continue
        [[ $answer != ok* ]] || served=$((served + 1))
        ask $c release 1
    done
done
is "$served" 2 'and are both served'
done_testing
