#!/bin/bash
# incarnation.t - nodes that are new or have restarted, and a person who knows that nobody holds anything.
# run: once
# shellcheck disable=SC2317 # functions that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

for n in n1 n2 n3 n4 n5; do redis_start "$n"; done
url=$(redlock '?node_timeout=1s')
answer=$("$hf" --store "$url" status x 2>&1)
like "$answer" 'x: free*quarantine for another * 5 of 5 nodes*' 'status tells of new nodes'
is "$(for n in n1 n2 n3 n4 n5; do rcli $n dbsize; done | sort -u)" 0 'and leaves no trace'
client c "$url"
client d "$url"
is "$answer" ok 'five new nodes open'
ask c acquire 1 x 10000 0
like "$answer" 'HF_QUARANTINE*' 'and grant nothing yet'
id=$(rcli n1 get holdfast:inc)
ask c end 'nobody_has_come_yet'
like "$answer" "ok *5 of 5 nodes*127.0.0.1:$(port n1), *" 'an operator ends the quarantine, and hears where'
ask c acquire 1 x 10000 0
like "$answer" 'ok *' 'then they grant'
ask d acquire 1 y 10000 5000
like "$answer" 'ok *' 'to others too'
ask d release 1
like "$(rcli n3 get holdfast:inc:opened)" "* *: nobody_has_come_yet*" 'who, when and why is on record at the nodes'
is "$(rcli n1 get holdfast:inc | awk '{ print $1, $4 }')" "$(awk '{ print $1, $4 }' <<<"$id")" 'the incarnation and max_ttl are as before'
ask c end again
like "$answer" 'HF_INVALID*quarantine*' 'there is nothing more to end'

like "$("$hf" --store "$url" status --json 2>&1)" '*"quarantine": null*' 'status tells of none'

# It is that incarnation's quarantine: another one has its own. Two restarted, and one is away.
redis_stop n1 KILL
redis_again n1
redis_stop n2 KILL
redis_again n2
redis_stop n3 KILL
quarantined() { ask d acquire 1 z 10000 0 && [[ $answer == HF_QUARANTINE* ]]; }
eventually 10 quarantined
ok $? 'two restarted, one away: no majority'
like "$("$hf" --store "$url" status --json 2>&1)" '*"remaining_ms": [1-6]*2 of 5 nodes*' 'status says how many'
ended() { ask c end 'they_were_rebooted' && [[ $answer == ok* ]]; }
eventually 10 ended
like "$answer" "ok *: 127.0.0.1:$(port n1), 127.0.0.1:$(port n2)" 'it ends at those that were in one'
ask c release 1
ask c acquire 1 x 10000 5000
like "$answer" 'ok *' 'and the lock can be had'
ask c release 1

# Without a majority nothing is certain.
redis_stop n4 KILL
redis_stop n5 KILL
redis_stop n1 KILL
redis_again n1
ask c end 'too_few'
like "$answer" 'HF_UNKNOWN*of 5 nodes answered*' 'two of five are too few to say that it is over'

# A ttl that nobody gave is not above max_ttl.
for n in n3 n4 n5; do redis_again "$n"; calm "$n" 2000; done
client f "$(redlock '?max_ttl=2s&node_timeout=1s' n3 n4 n5)"
ask f acquire 1 w 0 0
like "$answer" 'ok *' 'without a ttl it is max_ttl'
ask f acquire 2 v 30000 0
like "$answer" 'HF_INVALID*a ttl of 30s is above the store?s max_ttl of 2s' 'a longer one is refused'

# The store says at once that nobody votes, and leaves the waiting to the library.
for n in n3 n4 n5; do
    redis_stop "$n" KILL
    redis_again "$n"
done
HOLDFAST_TRACE=1 "$hf" --store "$(redlock '?max_ttl=4s&node_timeout=1s' n3 n4 n5)" run -w 60s --ttl 1s q -- true 2>"$dir/trace"
is "$?" 0 'a wait covers a quarantine'
[ "$(grep -c 'acquire .*HF_QUARANTINE' "$dir/trace")" -ge 2 ]
ok $? 'during which it asks now and then'
done_testing
