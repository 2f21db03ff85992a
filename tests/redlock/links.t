#!/bin/bash
# links.t - connections that break or are late: a node that is away delays nothing, and what it may have
# granted is released.
# shellcheck disable=SC2317 # functions that eventually uses by name
# run: once
set -u
. "$(dirname "$0")/lib.sh"

nodes 5
proxy_start p3 n3
proxy_start p4 n4
proxy_start p5 n5

# The connection that carried a GRANT breaks before the answer: with n2 taken the vote needs n3.
client c "$(redlock '?node_timeout=5s' n1 n2 p3)"
is "$answer" ok 'three nodes open'
ask c acquire 1 warm 60000 0
ask c release 1
rcli n2 set left stranger >/dev/null
proxy p3 mode kill
proxy p3 once
ask c acquire 1 left 60000 0
like "$answer" 'HF_UNKNOWN*' 'held at one, no answer from another, which may have made a majority: unknown'
is "$(rcli n3 exists left)" 1 'the third node had granted'
at() { [ "$(rcli "$1" exists left)" = "$2" ]; }
eventually 20 at n1 0
ok $? 'the first is released behind its grant'
# The node is left alone for a moment; any request after that may pay.
ask_again() { ask c acquire 1 other 60000 0 && ask c release 1 && at n3 0; }
eventually 20 ask_again
ok $? 'the third one over its next connection'

# A release that could not be sent follows.
rcli n2 del left >/dev/null
ask c acquire 1 left 60000 0
like "$answer" 'ok *' 'acquired'
eventually 20 at n3 1 # which need not be the case before the majority's answer
proxy p3 mode drop
ask c release 1
is "$answer" ok 'released at two'
is "$(rcli n3 exists left)" 1 'the third one has it still'
proxy p3 mode pass
eventually 20 ask_again
ok $? 'and is told once it can be reached'

# And at the end of the store at the latest.
ask c acquire 1 left 60000 0
eventually 20 at n3 1
proxy p3 mode drop
ask c release 1
is "$(rcli n3 exists left)" 1 'not released there'
proxy p3 mode pass
sleep 1 # the pause after the failure
ask c close
eventually 20 at n3 0
ok $? 'the end of the store releases it'

# No answer again, and the majority says that it is held: nothing that the third did can matter.
rcli n1 set sure stranger >/dev/null
rcli n2 set sure stranger >/dev/null
client e "$(redlock '?node_timeout=5s' n1 n2 p3)"
for mode in kill mute; do
    proxy p3 mode $mode
    ask e acquire 1 sure 60000 0
    like "$answer" 'HF_BUSY*' "held at two, and no answer from the third ($mode): not acquired"
    proxy p3 mode pass
    settled() { ask e acquire 1 other 60000 0 && ask e release 1 && [ "$(rcli n3 exists sure)" = 0 ]; }
    eventually 20 settled
    ok $? 'what it granted is released'
done
# Whether the connection breaks first or the answers come first.
proxy p3 mode drop
kill -STOP "$(pid n1)" "$(pid n2)"
tell e acquire 1 sure 60000 0
silent e
ok $? 'a connection that broke decides nothing while the others may answer'
kill -CONT "$(pid n1)" "$(pid n2)"
hear e
like "$answer" 'HF_BUSY*' 'held at two: not acquired'
ask e close
proxy p3 mode pass

# Two nodes that take connections and say nothing. A second each would be too long for what three
# others can answer.
client d "$(redlock '?node_timeout=10s' n1 n2 n3 p4 p5)"
is "$answer" ok 'five nodes open'
ask d pairs 20 warm
proxy p4 mode drop
proxy p5 mode drop
ask d pairs 1 drop
proxy p4 mode deaf
proxy p5 mode deaf
sleep 0.2
started=$SECONDS
for i in 1 2 3 4 5; do
    ask d pairs 20 deaf
    sleep 0.3
done
[ $((SECONDS - started)) -lt 9 ]
ok $? "a hundred pairs with two silent nodes took $((SECONDS - started)) s, and a timeout is 10 s"
like "$answer" 'ok*' 'and were granted'
proxy p4 mode pass
proxy p5 mode pass
redis_stop n1 KILL
redis_stop n2 KILL
back() { ask d acquire 1 back 5000 0 && [[ $answer == ok* ]]; }
eventually 40 back
ok $? 'they join again, and are a majority with the third'
done_testing
