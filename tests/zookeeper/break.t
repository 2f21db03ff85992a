#!/bin/bash
# break.t - a hold in ZooKeeper is broken. What is special are the versions of nodes, by which a mark outlives
# every renewal and confirmation that is on its way.
# shellcheck disable=SC2317 # functions that are called by name
# run: first
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/break.sh"
url() { echo "zookeeper://$(hosts "$1")/break?tick=200ms"; }

zk_start a minSessionTimeout=400 maxSessionTimeout=20000
proxy_start p a
proxy_start q a
url=$(url a)
cut() { proxy p mode deaf && proxy p strand; }
mend() { proxy p mode pass; }

break_alive "$url" 3000
break_frozen "$url" 2000
break_cut "$url" 3000 "$(url p)" cut mend
break_run "$url" 6s
break_idle "$url" 3000
break_now "$url" 3000
break_twice "$url" 15000
notices() { kazoo a "print([k.get_children('/break/holdfast/%notices/' + n) for n in ('hurry', 'twice')])"; }
no_notices() { [ "$(notices)" = '[[], []]' ]; }
eventually 5 no_notices
ok $? 'those who were told remove the notices'
gone first
gone second

client h "$(url p)"
client w "$url"
client b "$url"

# A renewal that was executed and not answered is no break.
again() { # LOCK : writes to its child what it says already
    kazoo a "
lock = '/break/holdfast/$1'
path = lock + '/' + k.get_children(lock)[0]
print(k.set(path, k.get(path)[0]).version)"
}
ask h acquire 1 unanswered 10000 0
t=$(token)
is "$(again unanswered)" 1 'a renewal is executed'
ask h renew 1 10000
is "$answer" ok 'a renewal finds the one before it, and goes on'
is "$(again unanswered)" 3 'another one'
ask b break unanswered "$t"
like "$answer" 'ok *' 'a hold whose last renewal was not answered is broken'
ask h renew 1 10000
like "$answer" 'HF_LOST*broken by breaker: a test' 'and the next renewal sees the mark'
ask h release 1

# A break that overtakes a renewal on its way.
ask h acquire 1 overtaken 10000 0
t=$(token)
proxy p mode hold '-lock-'
tell h renew 1 10000
eventually 10 eval 'proxy p held; [ "$proxied" -gt 0 ]'
ok $? 'a renewal is on its way'
ask b break overtaken "$t"
like "$answer" 'ok *' 'a break is faster'
proxy p mode pass
proxy p let
hear h
like "$answer" 'HF_LOST*broken by breaker: a test' 'the renewal does not erase the mark'
like "$("$hf" --store "$url" status overtaken)" '*broken *by breaker*' 'which is there'
ask h release 1

# A renewal that overtakes a break on its way.
client d "$(url q)"
ask h acquire 1 overtakes 10000 0
t=$(token)
proxy q mode hold breaker
tell d break overtakes "$t"
eventually 10 eval 'proxy q held; [ "$proxied" -gt 0 ]'
ok $? 'a break is on its way'
ask h renew 1 10000
is "$answer" ok 'a renewal is faster'
proxy q mode pass
proxy q let
hear d
like "$answer" 'ok *again=0' 'the break reads again, and is one'
ask h renew 1 10000
like "$answer" 'HF_LOST*broken by breaker: a test' 'which the next renewal hears'
ask h release 1

# One whose turn has come and who does not know it yet: it has no hold to lose, and asks for another.
ask h acquire 1 turn 10000 0
tell w acquire 1 turn 10000 30000
eventually 10 waiting_for turn "$url"
kill -STOP "${client_pid[w]}"
ask h release 1
ask b status turn
t=$(echo "$answer" | sed -n 's/.*token=\([0-9]*\).*/\1/p')
ask b break turn "$t"
like "$answer" 'ok *' 'the first in the queue is broken before it knows that it is'
kill -CONT "${client_pid[w]}"
hear w
above "$(token)" "$t" 'it does not take that hold for a good one'
ask w renew 1 10000
is "$answer" ok 'and has another'
ask w release 1

# A lock of another recipe.
kazoo a "k.create('/break/holdfast/curator/them__lock__', b'them', sequence=True, makepath=True)"
ask b status curator
like "$answer" '*label=them*foreign=1*' 'another recipe holds a lock'
ask b break curator 1
like "$answer" 'HF_LOST*not holdfast*' 'which has no token'
ask b break curator 0 now
like "$answer" 'ok left=0*foreign=1*' 'and is ended at once, or not at all'
ask b acquire 1 curator 3000 0
like "$answer" 'ok *' 'then it is free'
ask b release 1
done_testing
