#!/bin/bash
# Bad days of a server and of the way to it.
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

redis_start a
calm a
client k "$(url a)" # a client with a good line, to look on
proxy_start p a
client c "$(url p)"
is "$answer" ok 'a client behind the proxy'

# round trips, counted at the socket
ask c pairs 1 warm
proxy p trips
ask c acquire 1 trip 5000 0
proxy p trips
is "$proxied" 1 'acquire is one round trip'
ask c renew 1 5000
proxy p trips
is "$proxied" 1 'renew is one'
ask c release 1
proxy p trips
is "$proxied" 1 'release is one'

# the answer never comes
for mode in mute hole kill cut garbage http huge many deep; do
    proxy p mode $mode
    ask c acquire 1 "lost-$mode" 50000 0
    like "$answer" 'HF_UNKNOWN*may have taken effect*' "$mode: the outcome is unknown, not busy"
    proxy p mode pass
    eventually 10 eval "[ \"\$(rcli a exists lost-$mode)\" = 0 ]"
    ok $? "$mode: the lock is given back"
    ask c acquire 1 "lost-$mode" 5000 0
    like "$answer" 'ok *' "$mode: and free for the next"
    ask c release 1
done

# an unknown renewal leaves the lease as it was
ask c acquire 1 keep 20000 0
proxy p mode kill
ask c renew 1 20000
like "$answer" 'HF_UNKNOWN*' 'a renewal without an answer: unknown'
proxy p mode pass
ask c renew 1 20000
is "$answer" ok 'the next one finds the lock still held'
proxy p mode kill
ask c release 1
like "$answer" 'HF_UNKNOWN*' 'a release without an answer: unknown'
proxy p mode pass

# errors that prove that nothing happened
proxy p mode error LOADING Redis is loading the dataset in memory
ask c acquire 1 e 5000 0
like "$answer" 'ok *' 'LOADING once: asked again'
ask c release 1
proxy p mode error TRYAGAIN Multiple keys request during rehashing of slot
ask c acquire 1 e 5000 0
like "$answer" 'ok *' 'TRYAGAIN once: asked again'
ask c release 1
esc=$(printf '\033')
proxy p mode error "ERR ${esc}[2J is this a terminal?"
ask c acquire 1 e 5000 0
like "$answer" 'HF_UNSUPPORTED*is this a terminal*' "the server's own words are quoted"
[[ $answer != *$esc* ]]
ok $? 'without what a terminal would do'
rcli a set spoken 00aa px 60000 >/dev/null
rcli a set 'holdfast:{spoken}:t' "1 1000 - 00aa ${esc}[2Jlabel" >/dev/null
ask c acquire 1 spoken 5000 0
like "$answer" 'HF_BUSY*label*' "so is a holder's label"
[[ $answer != *$esc* ]]
ok $? 'likewise'
ask c status spoken
[[ $answer == *label* && $answer != *$esc* ]]
ok $? 'also by status'
rcli a set "holdfast:{odd${esc}name}:t" '1 1000 - 00aa label' >/dev/null
rcli a set "odd${esc}name" 00aa >/dev/null
ask c list odd
is "$answer" ok 'what cannot be a name is not listed'
rcli a del spoken "odd${esc}name" >/dev/null
rcli a script flush >/dev/null
ask c acquire 1 e 5000 0
like "$answer" 'ok *' 'NOSCRIPT: loaded and asked again'
rcli a script flush >/dev/null
ask c release 1
is "$answer" ok 'also for a release'
ask k acquire 1 e 5000 0
rcli a script flush >/dev/null
ask c list -
like "$answer" 'ok *[[]e held=1*' 'and for a listing'
ask k release 1

# a server that is busy with a script
rcli a config set lua-time-limit 50 busy-reply-threshold 50 >/dev/null
rcli a eval 'while true do end' 0 >/dev/null 2>&1 &
looping=$!
eventually 10 eval 'rcli a ping | grep -q BUSY'
ask c acquire 1 b 5000 0
like "$answer" 'HF_UNREACHABLE*busy with another script*' 'BUSY is said'
tell c acquire 1 b 5000 20000
silent c
ok $? 'and waited for'
rcli a script kill >/dev/null
hear c
like "$answer" 'ok *' 'until it is over'
ask c release 1
wait $looping

# a server that has no room for another client, or wants none from outside
proxy p mode error ERR max number of clients reached
ask c acquire 1 e 5000 0
like "$answer" 'HF_UNREACHABLE*maxclients*' 'no room for another client: unreachable, and why'
proxy p mode error ERR max number of clients reached
ask c acquire 1 e 5000 20000
like "$answer" 'ok *' 'which a waiting acquire outlasts'
ask c release 1
proxy p mode error DENIED Redis is running in protected mode because protected mode is enabled
ask c acquire 1 e 5000 0
like "$answer" 'HF_DENIED*protected mode*' 'protected mode: denied'

# no memory
ask c acquire 1 held 20000 0
tell k acquire 1 held 20000 30000
eventually 5 eval '[ "$(rcli a zcard "holdfast:{held}:q")" = 1 ]'
rcli a config set maxmemory 1 >/dev/null
ask c acquire 2 oom 5000 0
like "$answer" 'HF_UNREACHABLE*out of memory*' 'OOM is said'
is "$(rcli a exists oom)" 0 'and nothing is left of it'
ask c renew 1 20000
is "$answer" ok 'renewal works without memory'
ask c release 1
is "$answer" ok 'release too'
is "$(rcli a exists 'held')" 1 'and hands over'
rcli a config set maxmemory 0 >/dev/null
hear k
like "$answer" 'ok *' 'the waiter has it'
ask k release 1

# a server that evicts
rcli a config set maxmemory-policy allkeys-random >/dev/null
ask c acquire 1 evicted 20000 0
t=$(token)
rcli a config set maxmemory 1 >/dev/null
rcli a get evicted >/dev/null
eventually 5 eval 'rcli a set filler x >/dev/null; [ "$(rcli a exists evicted)" = 0 ]'
rcli a config set maxmemory 0 >/dev/null
ask c renew 1 20000
like "$answer" 'HF_LOST*' 'an evicted lock is lost, and not made again'
is "$(rcli a exists evicted)" 0 'really not'
ask c acquire 1 evicted 20000 0
above "$(token)" "$t" 'its token does not go back'
ask c release 1
rcli a config set maxmemory-policy noeviction >/dev/null
HOLDFAST_TRACE=1 client tr
rcli a config set maxmemory-policy allkeys-lru maxmemory 100mb >/dev/null
ask tr open "$(url a)"
grep -q 'allkeys-lru may evict locks' "$dir/client.tr.err"
ok $? 'the trace warns of a policy that evicts'
rcli a config set maxmemory-policy noeviction maxmemory 0 >/dev/null

# a server that cannot save
mkdir -p "$dir/a/dump.rdb/full"
rcli a config set save '1 1' >/dev/null
rcli a set dirty 1 >/dev/null
rcli a bgsave >/dev/null
eventually 10 eval 'rcli a set dirty 2 | grep -q MISCONF'
ask c acquire 1 m 5000 0
like "$answer" 'HF_UNREACHABLE*cannot save*' 'MISCONF is said'
rcli a config set save '' stop-writes-on-bgsave-error no >/dev/null
ask c acquire 1 m 5000 0
like "$answer" 'ok *' 'and over when it is over'
ask c release 1

# too few replicas
rcli a config set min-replicas-to-write 1 >/dev/null
ask c acquire 1 n 5000 0
like "$answer" 'HF_UNREACHABLE*min-replicas*' 'NOREPLICAS is said'
rcli a config set min-replicas-to-write 0 >/dev/null

# another type under the lock's name
rcli a hset hash a b >/dev/null
ask c acquire 1 hash 5000 0
like "$answer" 'HF_CORRUPT*not a lock*' 'a key that is no string'
ask c status hash
like "$answer" 'ok \[hash held=1 *foreign=1*' 'shows as foreign'
rcli a set 'holdfast:{bad}:t' rubbish >/dev/null
ask c acquire 1 bad 5000 0
like "$answer" 'HF_CORRUPT*does not hold a token*' 'a damaged token counter'
is "$(rcli a exists bad)" 0 'nothing is taken then'
rcli a set 'holdfast:{bad}:t' '9007199254740991 1 - 00 x' >/dev/null
ask c acquire 1 bad 5000 0
like "$answer" 'HF_CORRUPT*' 'a token at the end of what Lua can count'

# a lock that cannot be read does not hide the others from a listing
for i in 1 2 3 4 5 6 7 8 9; do
    ask c acquire "$i" "seen$i" 30000 0
    [ "$i" -gt 3 ] || rcli a del "holdfast:{seen$i}:t" >/dev/null
    [ "$i" -gt 3 ] || rcli a rpush "holdfast:{seen$i}:t" rubbish >/dev/null
done
ask c list seen
is "$(grep -o 'seen[0-9] held=1' <<<"$answer" | wc -l)" 6 'six of nine are listed'
like "$answer" '*HF_CORRUPT*seen[123]*' 'and that there are others'
for i in 1 2 3 4 5 6 7 8 9; do ask c release "$i"; done

# killed and restarted while a client waits: it goes on waiting, through the quarantine too
client r1 "$(url a '/1?max_ttl=4s')"
client r2 "$(url a '/1?max_ttl=4s')"
ask r1 acquire 1 r 4000 20000 kept
tell r2 acquire 1 r 4000 60000
eventually 5 eval '[ "$(rcli a -n 1 zcard "holdfast:{r}:q")" = 1 ]'
rm -rf "$dir/a/dump.rdb"
redis_stop a KILL
silent r2
ok $? 'a waiter does not give up when its server dies'
redis_again a
calm a
hear r2 60
like "$answer" 'ok *' 'it gets the lock from the server that comes back'
ask r2 release 1

# frozen: nothing is known, and nobody waits longer than a request may take
kill -STOP "$(pid a)"
start=$SECONDS
ask k acquire 1 x 50000 0
like "$answer" 'HF_UNKNOWN*' 'a frozen server: unknown'
[ $((SECONDS - start)) -le 15 ]
ok $? 'within the time of a request'
kill -CONT "$(pid a)"
eventually 10 eval '[ "$(rcli a exists x)" = 0 ]'
ok $? 'thawed, it takes back what it took'

# gone for good
redis_stop a KILL
ask k acquire 1 x 5000 0
like "$answer" 'HF_UNREACHABLE*' 'no server: unreachable'
done_testing
