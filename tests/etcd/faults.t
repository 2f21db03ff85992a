#!/bin/bash
# Bad days of a server and of the way to it.
# run: first
set -u
. "$(dirname "$0")/lib.sh"

etcd_start a --quota-backend-bytes 16777216
client k "$(url a)" # a client with a good connection, to look on
proxy_start p a
client c "$(url p)"
is "$answer" ok 'a client behind the proxy'
free() { # LOCK
    ask k status "$1"
    [ "$answer" = ok ]
}

# the answer to the acquire never comes, but the server can be asked again: it was granted
# The ttl is long, so that the client does not listen for its locks yet: what it hears would be taken for the answer.
for mode in kill cut garbage nonsense bare; do
    ask c acquire 2 warm 60000 0 kept
    ask c release 2
    proxy p mode $mode
    proxy p once
    ask c acquire 1 "settled-$mode" 60000 0 kept
    like "$answer" 'ok *' "$mode, once: settled by reading"
    t=$(token)
    ask k status "settled-$mode"
    like "$answer" "*held=1 token=$t *waiters=0*" "$mode: held once, with that token"
    proxy p mode $mode
    proxy p once
    ask c release 1
    is "$answer" ok "$mode: so is a release"
    free "settled-$mode"
    ok $? "$mode: it is free"
done

# the request was never forwarded: nothing is sent twice
ask c acquire 2 warm 60000 0 kept
ask c release 2
proxy p mode drop kv/txn # and not what is said of a lease
proxy p once
proxy p requests
ask c acquire 1 dropped 60000 0 kept
like "$answer" 'HF_UNKNOWN*' 'a connection that was cut before the server heard: unknown'
free dropped
ok $? 'not taken'
ask c acquire 1 dropped 60000 0 kept
like "$answer" 'ok *' 'the next attempt is a new one'
ask c release 1

# no answer at all
for mode in mute endless; do
    ask c acquire 2 warm 9000 0 kept
    ask c release 2
    proxy p mode $mode
    ask c acquire 1 "lost-$mode" 3000 0 kept
    like "$answer" 'HF_UN*' "$mode: unknown or unreachable, not busy"
    proxy p mode pass
    eventually 15 free "lost-$mode"
    ok $? "$mode: free after its ttl at the latest"
done

# an unknown renewal leaves the lease as it was
ask c acquire 1 keep 20000 0
proxy p mode kill
ask c renew 1 20000
like "$answer" 'HF_UN*' 'a renewal without an answer is no loss'
proxy p mode pass
ask c renew 1 20000
is "$answer" ok 'the next one finds the lock still held'
proxy p mode mute
ask c release 1
like "$answer" 'HF_UN*' 'a release without an answer: unknown'
proxy p mode pass

# an undo that is cut is sent again: nobody has to wait for the end of a lease
ask k acquire 1 u 30000 0
tell c acquire 1 u 9000 1000 kept
eventually 10 eval 'ask k status u; [[ $answer == *waiters=1* ]]'
sleep 0.3
proxy p mode drop
proxy p once
hear c
like "$answer" 'HF_BUSY*' 'the wait is over'
ask k status u
like "$answer" '*waiters=0*' 'out of the queue, though the connection was cut'
ask k release 1

# so is the place in the queue that was asked for: what becomes of it is seen, and the wait goes on
ask k acquire 1 v 30000 0
proxy p mode drop '(?s)^(?!.*range_end).*request_put'
proxy p once
tell c acquire 1 v 9000 30000 kept
eventually 10 eval 'ask k status v; [[ $answer == *waiters=1* ]]'
ok $? 'it is in the queue, though the connection was cut'
ask k release 1
hear c
like "$answer" 'ok *' 'and has its turn'
ask c release 1

# the watch of a waiter is broken, again and again
ask k acquire 1 w 30000 0
tell c acquire 1 w 9000 40000 kept
eventually 10 eval 'ask k status w; [[ $answer == *waiters=1* ]]'
for mode in kill cut garbage wrong; do
    proxy p mode $mode
    sleep 0.7
done
proxy p mode pass
ask k status w
like "$answer" '*waiters=1*' 'a waiter keeps its place through bad connections'
# compaction under a watch
for i in 1 2 3 4 5; do ctl a put junk $i >/dev/null; done
revision=$(ctl a get junk -w json | grep -o '"revision":[0-9]*' | grep -o '[0-9]*$')
ctl a compact "$revision" >/dev/null
ask k release 1
is "$answer" ok 'the holder releases'
hear c
like "$answer" 'ok *' 'and is served, though history was compacted'
ask c release 1
is "$answer" ok 'released'

# a full database
ask k acquire 1 held 20000 0
head -c 1000000 /dev/zero | tr '\0' x >"$dir/big"
eventually 20 eval 'ctl a put "big$RANDOM" <"$dir/big" 2>&1 | grep -q "space exceeded"'
ask c acquire 2 full 5000 0 kept
like "$answer" 'HF_UNREACHABLE*full*' 'a full database is said'
ask k renew 1 20000
is "$answer" ok 'renewal works'
ask k release 1
is "$answer" ok 'release too'
etcd_stop a KILL
rm -rf "$dir/a/data"
etcd_again a

# killed and restarted while a client waits
ask k close
ask k open "$(url a)"
client d "$(url a)"
ask d acquire 1 r 6000 0 kept
tell k acquire 1 r 6000 50000 kept
eventually 10 eval '[ "$(keys a)" = 2 ]'
etcd_stop a KILL
silent k
etcd_again a
ask d lost 1
is "$answer" 'ok 0 not lost' 'a holder survives the restart of its server'
ask d release 1
is "$answer" ok 'to the end'
hear k
like "$answer" 'ok *' 'a waiter too'
ask k release 1

# the end of a lease that nothing is on is told to etcd, and nobody waits for the answer: not the next request either
best=9999
for i in 1 2 3 4 5; do
    ask c acquire 1 "ended-$i" 20000 0
    proxy p mode hold lease/revoke
    ask c release 1
    start=$(date +%s%N)
    ask c acquire 1 "next-$i" 20000 0
    took=$((($(date +%s%N) - start) / 1000000))
    [ "$took" -ge "$best" ] || best=$took
    proxy p mode pass
    proxy p let
    ask c release 1
done
[ "$best" -lt 150 ]
ok $? "what nobody waits for keeps nobody waiting ($best ms)"

# frozen: nothing is known, and nobody waits longer than a request may take
kill -STOP "$(pid a)"
start=$SECONDS
ask k acquire 1 x 3000 0 kept
like "$answer" 'HF_UN*' 'a frozen server: unknown or unreachable'
[ $((SECONDS - start)) -le 15 ]
ok $? 'within the time of a request'
kill -CONT "$(pid a)"
eventually 15 eval '[ "$(keys a)" = 0 ]'
ok $? 'thawed, nothing stays behind'
etcd_stop a KILL
ask k acquire 1 x 5000 0
like "$answer" 'HF_UNREACHABLE*' 'no server: unreachable'
done_testing
