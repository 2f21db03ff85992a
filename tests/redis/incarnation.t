#!/bin/bash
# Incarnations: a server that may have forgotten a grant grants nothing until nobody can hold one any more. max_ttl is
# 5 s here, so that the tests do not take long.
# run: first
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

opt='?max_ttl=5s'
uptime_is_above() { [ "$(rcli "$1" info server | tr -d '\r' | sed -n 's/^uptime_in_seconds://p')" -gt "$2" ]; }
now_ms() { echo $(($(date +%s%N) / 1000000)); }

# one that just started, then a calm one
redis_start a
client one "$(url a "$opt")"
is "$answer" ok 'a server in quarantine can be opened'
ask one acquire 1 x 2000 0
like "$answer" 'HF_QUARANTINE retry=[1-9]*' 'but grants nothing, and says for how long'
ask one acquire 1 x 2000 1000
like "$answer" 'HF_QUARANTINE*' 'nor does a wait that is too short'
start=$(now_ms)
ask one acquire 1 x 3000 20000
like "$answer" 'ok *' 'a wait covers it'
took=$(($(now_ms) - start))
[ "$took" -lt 9000 ]
ok $? "and ends with it ($took ms)"
t1=$(token)
redis_start calm
eventually 10 uptime_is_above calm 6
client c "$(url calm "$opt")"
ask c acquire 1 x 2000 0
like "$answer" 'ok *' 'a server that was up for longer than max_ttl is not delayed'

# restart without persistence, seen by a surviving client and a new one
ask one acquire 1 x 5000 0
redis_stop a KILL
redis_again a
client two "$(url a "$opt")"
ask two acquire 1 x 2000 0
like "$answer" 'HF_QUARANTINE*' 'after a restart without data nobody else gets the lock'
ask one acquire 2 x 2000 0
like "$answer" 'HF_QUARANTINE*' 'nor does a client that was there before'
ask one renew 1 3000
like "$answer" 'HF_LOST*no longer knows*' 'the holder is told that the server forgot it'
ask one acquire 2 brandnew 2000 0
like "$answer" 'HF_QUARANTINE*' 'it holds for every name: the server cannot know which'
start=$(now_ms)
tell two acquire 1 x 2000 20000
tell one acquire 2 x 2000 20000
client three "$(url a "$opt")"
ask three acquire 1 x 2000 20000
like "$answer" 'ok *' 'three clients recover at once'
took=$(($(now_ms) - start))
[ "$took" -lt 20000 ]
ok $? "max_ttl later at the latest, and one after the other ($took ms)"
above "$(token)" "$t1" 'with a token above what was forgotten'
for c in one two; do
    hear $c
    like "$answer" 'ok *' "$c had it too"
done

# restart from an old snapshot
ask one acquire 3 y 3000 9000
t2=$(token)
ask one release 3
rcli a save >/dev/null
ask one acquire 3 y 3000 0
t3=$(token)
above "$t3" "$t2" 'a grant after the snapshot'
redis_stop a KILL
redis_again a
is "$(rcli a exists y)" 0 'the snapshot knows nothing of it'
ask two acquire 2 y 2000 0
like "$answer" 'HF_QUARANTINE*' 'after a restart from an old snapshot: quarantine'
ask two acquire 2 y 2000 20000
above "$(token)" "$t3" 'and tokens do not go back'
ask two release 2

# a key that came back from the snapshot belongs to its owner
ask two acquire 2 z 4000 0
rcli a save >/dev/null
redis_stop a KILL
redis_again a
ask two renew 2 4000
is "$answer" ok 'in quarantine the recorded owner may renew'
tell one acquire 4 z 2000 30000
ask three acquire 2 z 2000 0
like "$answer" 'HF_QUARANTINE*' 'others wait'
ask two release 2
is "$answer" ok 'and may release'
is "$(rcli a exists z)" 0 'which deletes, and hands over to nobody'
hear one
like "$answer" 'ok *' 'the waiter gets it when the quarantine is over'

# promotion of a replica that never received the grant
redis_start m
redis_start r --replicaof 127.0.0.1 "$(port m)" --repl-diskless-sync-delay 0
eventually 20 eval 'rcli r info replication | grep -q master_link_status:up'
calm m 5000
client pm "$(url m "$opt")"
is "$answer" ok 'a master with a replica'
client pr "$(url r "$opt")"
like "$answer" 'HF_UNREACHABLE*replica*' 'the replica itself is refused'
rcli r replicaof 127.0.0.1 1 >/dev/null
ask pm acquire 1 p 3000 0
t4=$(token)
like "$answer" 'ok *' 'granted by the master, with replication cut'
rcli r replicaof no one >/dev/null
is "$(rcli r exists p)" 0 'the promoted replica does not know of it'
client pr2 "$(url r "$opt")"
ask pr2 acquire 1 p 2000 0
like "$answer" 'HF_QUARANTINE*' 'and does not grant it'
ask pr2 acquire 1 p 2000 20000
above "$(token)" "$t4" 'until nobody can hold it, with a larger token'
ask pr2 acquire 2 other 2000 0
like "$answer" 'ok *' 'a new name on a server promoted long ago is not delayed'
client pr3 "$(url r "$opt")"
ask pr3 acquire 3 third 2000 0
like "$answer" 'ok *' 'nor for a client that comes now'

# fail-back A -> B -> A: the client's connection to A survives it all, replication never works
ask pm acquire 2 fb 2000 0
like "$answer" 'ok *' 'A grants'
ask pm release 2
rcli m replicaof 127.0.0.1 1 >/dev/null
ask pm acquire 2 fb 2000 0
like "$answer" 'HF_UNREACHABLE*replica*' 'A is demoted: the same connection is refused'
ask pr2 acquire 5 fb 3000 0
like "$answer" 'ok *' 'B grants'
t5=$(token)
rcli m replicaof no one >/dev/null
ask pm acquire 2 fb 2000 0
like "$answer" 'HF_QUARANTINE*' 'A is promoted again: it does not grant what B may have granted'
ask pm acquire 2 fb 2000 20000
above "$(token)" "$t5" 'and later with a larger token'

# clients that disagree about max_ttl
client d "$(url m '?max_ttl=9s')"
like "$answer" 'HF_INVALID*max_ttl*' 'another max_ttl than the one agreed on is refused'
client d2 "$(url m '?max_ttl=2s')"
like "$answer" 'HF_INVALID*max_ttl*' 'a smaller one too'
redis_stop m KILL
redis_again m
client e1 "$(url m '?max_ttl=4s')"
is "$answer" ok 'after the loss of all data, one who says 4 s comes first'
client e2 "$(url m '?max_ttl=8s')"
like "$answer" 'HF_INVALID*max_ttl=4s*8s*' 'one who says 8 s is refused, also during the quarantine'
ask e1 acquire 1 q 1000 20000
like "$answer" 'ok *' 'and keeps nobody else out'

# what is said of it, and what a person may do about it
redis_start fresh
answer=$("$hf" --store "$(url fresh '?max_ttl=50s')" status x 2>&1)
like "$answer" 'x: free*quarantine for another [45][0-9]s: *it is probably new*' 'status tells of it'
is "$(rcli fresh dbsize)" 0 'and leaves no trace'
client f "$(url fresh '?max_ttl=50s')"
ask f acquire 1 x 2000 0
like "$answer" 'HF_QUARANTINE*is empty and has been up for *it is probably new*grants in [45][0-9]s*max_ttl=2s*repair --open*' 'a new server is told from one that restarted'
client f2 "$(url fresh '?max_ttl=50s')"
ask f2 acquire 1 x 2000 0
like "$answer" 'HF_QUARANTINE*it is probably new*' 'also by the second who comes'
answer=$("$hf" --store "$(url fresh '?max_ttl=2s')" status --json 2>&1)
like "$answer" '*"quarantine": {"remaining_ms": [45][0-9][0-9][0-9][0-9], "reason": "*it is probably new*' 'who only looks goes by the max_ttl on record'
tell f2 acquire 1 x 20000 60000
start=$(now_ms)
ask f end nobody-was-here
like "$answer" 'ok *grants again*[45][0-9]s left*' 'who knows that nobody holds anything ends the quarantine'
hear f2
like "$answer" 'ok *' 'and whoever waits goes on'
took=$(($(now_ms) - start))
[ "$took" -lt 10000 ]
ok $? "soon ($took ms)"
like "$(rcli fresh get holdfast:inc:opened)" '1[0-9]* * */tool_client: nobody-was-here' 'it is on record: when, who and why'
ask f end again
like "$answer" 'HF_INVALID*no quarantine*' 'an open server has nothing to end'
like "$("$hf" --store "$(url fresh)" status --json 2>&1)" '*"quarantine": null*' 'and status tells of none'
redis_stop fresh KILL
redis_again fresh
rcli fresh set other thing >/dev/null
ask f2 acquire 2 y 2000 0
like "$answer" 'HF_QUARANTINE*has been up for *may have forgotten a lock; it grants again in [45][0-9]s' 'the next life has a quarantine of its own'
script_of() { sed -n "s/.*\[RD_SCRIPT_$1\] = {\"[a-z_]*\", \"\([0-9a-f]*\)\",/\1/p" "$build/gen/redis.c"; }
is "$(rcli fresh evalsha "$(script_of END_QUARANTINE)" 1 holdfast:inc "master_replid:$(printf '%040d' 1)" '' me why)" new 'it is ended for the life that was meant and for no other'

# a client that does not know the incarnation is not granted anything
is "$(rcli fresh evalsha "$(script_of ACQUIRE)" 2 z 'holdfast:{z}:t' 0123456789abcdef0123456789abcdef 2000 '' 0 \
    '2000 - 0123456789abcdef0123456789abcdef me' '')" new 'an empty incarnation is none'
is "$(rcli fresh exists z)" 0 'and takes nothing'
done_testing
