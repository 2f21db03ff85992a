#!/bin/bash
# several.t - several locks at once in Redis: one connection for all queues, one round trip for all tries.
# run: also long
# shellcheck disable=SC2317 # functions that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/several.sh"

redis_start a
calm a
several "$(url a)" 2000 500
no_queue() { [ "$(rcli a keys 'holdfast:*:[qwp]*' | grep -c .)" = 0 ]; }
eventually 10 no_queue # what the killed ones left has a ttl
ok $? 'no queue is left'

# Two are free at once, and the first who waits is frozen with one of them in its hands: the other is for the next.
in_line() { [ "$(rcli a zcard 'holdfast:{seat#1}:q')" = "$1" ]; }
client h "$(url a)"
ask h acquire 1 seat#0 20000 0
ask h acquire 2 seat#1 20000 0
for i in 1 2; do
    client "w$i" "$(url a)"
    tell "w$i" any 1 20000 seat#0 seat#1
    eventually 10 in_line "$i"
done
kill -STOP "${client_pid[w1]}"
ask h release 1
ask h release 2
hear w2
like "$answer" 'ok * seat#1' 'who was handed one is not handed another: the next has that'
is "$(rcli a get seat#0 | wc -c)" 33 'and the first has its own'
kill -CONT "${client_pid[w1]}"
hear w1
like "$answer" 'ok * seat#*' 'when it thaws'
ask w1 release 1
ask w2 release 1
gone h
gone w1
gone w2
no_queue
ok $? 'nothing of those who waited is left'

# Many who wait and die while the holder stays: those who come after them see to it that the queue does not grow.
client h "$(url a)"
ask h acquire 1 bed#0 30000 0
ask h acquire 2 bed#1 30000 0
for i in 1 2 3; do
    client "w$i" "$(url a)"
    tell "w$i" any 1 30000 bed#0 bed#1
    eventually 10 eval '[ "$(rcli a zcard "holdfast:{bed#1}:q")" = $i ]'
done
for i in 1 2; do kill -9 "${client_pid[w$i]}"; done
eventually 15 eval '[ "$(rcli a zcard "holdfast:{bed#0}:q") $(rcli a zcard "holdfast:{bed#1}:q")" = "1 1" ]'
ok $? 'who died in the queues does not stay there, though nobody comes to the head'
ask h status bed#1
like "$answer" '*waiters=1*' 'and does not count'
ask h release 2
hear w3
like "$answer" 'ok * bed#1' 'who lives is next'
is "$(rcli a zcard 'holdfast:{bed#0}:q')" 0 'and stands in no other queue any more'
gone w3
gone h

# A user that may not have the last of them: it is said, and nothing is kept.
mapfile -t rules < <(sed -n 's/^    ACL SETUSER locker //p' "$root/docs/redis.md")
# shellcheck disable=SC2086 # rules are words
rcli a acl setuser locker on '>s3' ${rules[0]} >/dev/null
client h "$(url a)"
client u "redis://locker:s3@127.0.0.1:$(port a)"
ask h acquire 1 app:x#0 20000 0
for wait in 0 20000; do
    ask u any 1 "$wait" app:x#0 app:x#1 sofa
    like "$answer" 'HF_DENIED*lacks the ACL rule*' 'a lock that its user may not have is refused'
    like "$answer" 'HF_DENIED*"sofa"*' 'and it is the one that the refusal names'
done
ask h acquire 2 app:x#1 20000 0
rcli a acl setuser locker resetkeys '~app:*' '%R~sofa' '~holdfast:*' >/dev/null
ask u any 1 0 app:x#0 app:x#1 sofa
like "$answer" 'HF_DENIED*"sofa"*' 'so is one that may be read, but not written'
ask h release 2
is "$(rcli a exists app:x#1 sofa)" 0 'nothing is kept of the others'
no_queue
ok $? 'and it stands in no queue'
gone h
gone u

# One of 8 with 7 held: one request takes it.
for i in 0 1 2 3 4 5 6; do
    "$hf" --store "$(url a)" acquire --ttl 1m --slots 8 --slot "$i" gpu >/dev/null
done
requests() { rcli a info commandstats | tr -d '\r' | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\),.*/\1/p'; }
client c "$(url a)"
before=$(requests)
ask c any 1 0 gpu#0 gpu#1 gpu#2 gpu#3 gpu#4 gpu#5 gpu#6 gpu#7
like "$answer" 'ok * gpu#7' 'the one that is free'
is "$(($(requests) - before))" 1 'takes one request'
ask c any 2 0 gpu#0 gpu#1 gpu#2 gpu#3 gpu#4 gpu#5 gpu#6 gpu#7
like "$answer" 'HF_BUSY*' 'none is free any more'
is "$(($(requests) - before))" 2 'and one more to find that out'

# Fifty who wait in 8 queues each.
connections() { rcli a info clients | tr -d '\r' | sed -n 's/^connected_clients://p'; }
waiting() { [ "$(rcli a zcard 'holdfast:{gpu#0}:q')" -ge "$1" ]; }
waiters=()
for i in $(seq 50); do
    "$hf" --store "$(url a)" run --slots 8 gpu -- true >/dev/null 2>"$dir/told.$i" &
    waiters+=($!)
done
eventually 30 waiting 50
ok $? '50 processes wait in 8 queues each'
all_told() { [ "$(cat "$dir"/told.* | grep -c 'held .* by ')" = 50 ]; }
few() { [ "$(connections)" -le 60 ]; }
eventually 30 all_told
ok $? 'each has told for whom it waits'
eventually 10 few
ok $? "they have 60 connections at the most ($(connections))"
for i in "${waiters[@]}"; do
    kill "$i"
done
wait "${waiters[@]}"
is "$(rcli a zcard 'holdfast:{gpu#3}:q')" 0 'told to end, they leave every queue'
done_testing
