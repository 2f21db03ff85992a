#!/bin/bash
# The server's wall clock jumps by an hour, forward and back. etcd's leases do not follow it: nothing
# is lost and nothing ends early, and tokens never depend on it.
# run: once
set -u
. "$(dirname "$0")/lib.sh"

[ "$(uname -m)" = x86_64 ] || skip_all "the clock of a server written in Go is moved on x86-64 only"
# What the server takes the time for, from the Date of an answer.
server_time() {
    date -d "$(curl -si "http://127.0.0.1:$(port a)/version" | tr -d '\r' | sed -n 's/^Date: //p')" +%s
}

stepping_clock
etcd_start a
client c "$(url a)"
client d "$(url a)"
ask c acquire 1 held 4000 0 kept
ask c acquire 2 x 8000 0
last=$(token)
tell d acquire 1 x 8000 60000 kept
eventually 10 eval 'ask c status x; [[ $answer == *waiters=1* ]]'
counters_start 3 "$(url a)" 60 3000 kept
sleep 1
kill -STOP "${counter_pids[0]}"
for hours in 1 -1 0; do
    clock_step $((hours * 3600))
    off=$(($(server_time) - $(date +%s)))
    [ $((off - hours * 3600)) -lt 10 ] && [ $((hours * 3600 - off)) -lt 10 ]
    ok $? "the server's clock is off by $hours hours ($off s)"
    sleep 1.5
    ask c renew 2 8000
    is "$answer" ok 'a hold is still a hold'
    ask c lost 1
    is "$answer" 'ok 0 not lost' 'so is one that the keeper keeps'
    silent d
    ok $? 'who waits, waits'
    ask c acquire 3 "y$hours" 5000 0
    above "$(token)" "$last" 'the token rises'
    last=$(token)
    ask c release 3
    is "$answer" ok 'released'
done
kill -CONT "${counter_pids[0]}"
sleep 1
counters_stop
counters_end 'clock steps, and one stopped for longer than its ttl'
ask c release 2
is "$answer" ok 'the lock is handed over'
hear d
like "$answer" 'ok *' 'to the one who waited'
# etcd 3.4 ends a lease late when its clock goes back (never early), until the clock is right again.
ask d release 1
ask c acquire 2 left 2000 0
taken=$(date +%s%N)
clock_step -7200
tell d acquire 1 left 5000 60000
sleep 3
clock_step 0
hear d
like "$answer" 'ok *' 'a hold that nobody renews ends'
[ $((($(date +%s%N) - taken) / 1000000)) -ge 1950 ]
ok $? 'and not before its ttl'
done_testing
