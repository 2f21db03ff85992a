#!/bin/bash
# basic.t - the redlock store over real servers: what it refuses, what it costs, who votes.
# shellcheck disable=SC2317 # functions that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

nodes 5
for n in n1 n2 n3 n4 n5; do rcli "$n" flushall >/dev/null; done
answer=$("$hf" --store "$(redlock '')" list --json 2>&1)
is "$?$answer" '0[]' 'new nodes can be looked at'
is "$(for n in n1 n2 n3 n4 n5; do rcli $n dbsize; done | sort -u)" 0 'looking makes no key'
for n in n1 n2 n3 n4 n5; do calm "$n"; done

client c
ask c open "redlock://127.0.0.1:$(port n1)"
like "$answer" 'HF_INVALID*odd number of nodes*' 'one node is no redlock'
ask c open "$(redlock '' n1 n2 n3 n4)"
like "$answer" 'HF_INVALID*odd number of nodes*' 'an even number of nodes is refused'
ask c open "$(redlock '' n1 n2 n1)"
like "$answer" 'HF_INVALID*listed twice*' 'an address listed twice is refused'
ask c open "redlock://127.0.0.1:$(port n1),127.0.0.1:$(port n2),localhost:$(port n1)?node_timeout=5s" # a name takes its time
like "$answer" 'HF_INVALID*are one server*' 'one server behind two names is refused'
ask c open "redlock://127.0.0.1:$(port n1),127.0.0.1:1,127.0.0.1:2"
like "$answer" 'HF_UNREACHABLE*fewer than 2 of 3*' 'without a majority it does not open'
ask c open "$(redlock '?node_timeout=0s')"
like "$answer" 'HF_INVALID*' 'a timeout of nothing is refused'

calls() { # how often scripts ran, over all nodes
    local n sum=0
    for n in n1 n2 n3 n4 n5; do
        sum=$((sum + $(rcli "$n" info commandstats | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\).*/\1/p' | grep . || echo 0)))
    done
    echo "$sum"
}
ask c open "$(redlock '?node_timeout=5s')"
is "$answer" ok 'five nodes open'
ask c acquire 1 first 10000 0
first=$(token)
ask c release 1
sleep 0.1 # the slower nodes
before=$(calls)
ask c acquire 1 trips 10000 0
sleep 0.1
is "$(($(calls) - before))" 5 'an acquire is one request to each of five nodes'
second=$(token)
above "$second" "$first" 'tokens rise, from one lock to the next'
client d "$(redlock '?node_timeout=5s')"
ask d acquire 1 trips 10000 0
like "$answer" 'HF_BUSY*' 'a second client is refused'
ask c renew 1 20000
like "$answer" 'ok*' 'it is renewed'
ask d status trips
like "$answer" "*held=1 token=$second*" 'anyone can see who holds it, and with which token'
ask d list -
like "$answer" "*trips held=1*" 'and lists it'
before=$(calls)
ask c release 1
sleep 0.1
is "$(($(calls) - before))" 5 'a release is one request to each'
ask d acquire 1 trips 10000 0
above "$(token)" "$second" 'then the other one gets it, with a larger token'
third=$(token)
ask d release 1

# A counter that is ahead of every clock: two rounds, and still in order.
sleep 0.1
for n in n1 n2 n3; do
    rcli "$n" set 'holdfast:{trips}:t' "$((third + 60000000000)) 1000 - 00 ahead" >/dev/null
done
before=$(calls)
ask c acquire 1 trips 10000 0
sleep 0.1
[ "$(($(calls) - before))" -le 10 ]
ok $? 'with counters ahead of the clock an acquire is two requests at most to each'
is "$(token)" "$((third + 60000000001))" 'and its token is above them'
ask c release 1

# One whose counter is above the token holds the key all the same, and knows the token by nobody.
rcli n5 set 'holdfast:{late}:t' "$(($(date +%s%6N) + 60000000000)) 1000 - 00 ahead" >/dev/null
ask c acquire 1 late 10000 0
fourth=$(token)
all_have() { for n in n1 n2 n3 n4 n5; do [ "$(rcli "$n" exists late)" = 1 ] || return 1; done; }
eventually 10 all_have
ok $? 'it is granted at all five'
rcli n5 pexpire late 5000 >/dev/null
ask c renew 1 20000
longer() { [ "$(rcli n5 pttl late)" -gt 10000 ]; }
eventually 10 longer
ok $? 'and renewed there'
ask d status late
like "$answer" "*held=1 token=$fourth*" 'its token is the one that was agreed on'
ask c owner 1
owner=${answer#ok }
for wrong in $((fourth - 1)) $((fourth + 1)); do
    ask d adopt 2 late "$owner" "$wrong"
    like "$answer" 'HF_LOST*' 'the owner with another token holds nothing'
done
ask d adopt 2 late "$owner" "$fourth"
like "$answer" "ok $fourth *" 'with its own it does'
ask d leave 2
ask c release 1

# Two of five gone: still there. A restarted node has no vote.
redis_stop n1 KILL
redis_stop n2 KILL
ask c acquire 1 two-down 10000 5000
like "$answer" 'ok*' 'with two of five down it is granted'
ask c release 1
is "$answer" ok 'and released'
redis_again n1
redis_again n2
redis_stop n3 KILL
sleep 3 # its connections are tried again after 2 s at the latest
ask c acquire 1 three-down 10000 0
like "$answer" 'HF_QUARANTINE*' 'nodes that forgot everything do not vote'
ask c acquire 1 two-down 10000 0
like "$answer" 'HF_QUARANTINE*' 'not for another lock either'
done_testing
