#!/bin/bash
# answers.t - nodes that do answer, but not what one would like to hear.
# shellcheck disable=SC2317 # functions that eventually uses by name
# run: once
set -u
. "$(dirname "$0")/lib.sh"

nodes 3
proxy_start p1 n1
proxy_start p2 n2
proxy_start p3 n3
url=$(redlock '?node_timeout=5s' p1 p2 p3)
client c "$url"
is "$answer" ok 'three nodes open'
client d "$url"
flush() { for n in n1 n2 n3; do rcli "$n" script flush >/dev/null; done; }
at() { [ "$(rcli n1 exists "$1")$(rcli n2 exists "$1")$(rcli n3 exists "$1")" = "$2" ]; }

# The scripts are forgotten under a client that never acquires again.
ask c acquire 1 kept 20000 0
flush
ask c renew 1 30000
is "$answer" ok 'a renewal loads the scripts again and is asked again'
longer() { for n in n1 n2 n3; do [ "$(rcli "$n" pttl kept)" -gt 20000 ] || return 1; done; }
renewed() { ask c renew 1 30000 && longer; } # a node that answers last may need another one
eventually 10 renewed
ok $? 'it takes effect'
flush
ask d status kept
like "$answer" '*held=1*' 'so does a look'
flush
ask d list -
like "$answer" '*kept held=1*' 'and a listing'
flush
ask c release 1
is "$answer" ok 'and a release'
# One that answered after the majority is told with the next request.
ask_again() { ask c acquire 1 other 20000 0 && ask c release 1 && at "$@"; }
eventually 10 ask_again kept 000
ok $? 'which takes effect at every node'

# In the second round of an acquire: tokens ahead of all clocks make one.
sha=$(sed -n '/"redlock_raise"/,/"/s/.*"\([0-9a-f]\{40\}\)".*/\1/p' "$build/gen/redis.c")
for n in n1 n2 n3; do
    rcli "$n" set 'holdfast:{raised}:t' '4000000000000000 1000 - 00 ahead' >/dev/null
done
for p in p1 p2 p3; do
    proxy $p mode refuse "$sha" NOSCRIPT No matching script
done
ask c acquire 1 raised 20000 0
is "$(token)" 4000000000000001 'a raise that a node has no script for is asked again'
ask c release 1
for p in p1 p2 p3; do
    proxy $p mode pass
done

# A release that nobody waits for: what a failed acquire left at one node.
sha=$(sed -n '/"redlock_release"/,/"/s/.*"\([0-9a-f]\{40\}\)".*/\1/p' "$build/gen/redis.c")
rcli n2 set split stranger >/dev/null
rcli n3 set split stranger >/dev/null
proxy p1 mode refuse "$sha" NOSCRIPT No matching script
kill -STOP "$(pid n2)" "$(pid n3)" # so that the first one's grant is not in one packet with the release
tell c acquire 1 split 60000 0
granted() { [ "$(rcli n1 exists split)" = 1 ]; }
eventually 10 granted
kill -CONT "$(pid n2)" "$(pid n3)"
hear c
like "$answer" 'HF_BUSY*' 'held at two of three'
is "$(rcli n1 exists split)" 1 'the first one granted, and did not know how to release'
eventually 10 ask_again split 011
ok $? 'it is told again'

# One of three is away. Whether the lock is held is for the other two to say.
redis_stop n3 KILL
ask c acquire 1 busy 20000 0
like "$answer" 'ok *' 'two of three grant'
for i in 1 2 3; do
    ask d acquire 1 busy 20000 0
    like "$answer" 'HF_BUSY*' 'it is held, not out of reach'
done
rcli n1 del busy >/dev/null
rcli n2 del busy >/dev/null
ask c renew 1 20000
like "$answer" 'HF_LOST*' 'and lost, not out of reach'
redis_again n3
calm n3

# A node that does not answer is not waited for once for every lock of a listing.
client f "$(redlock '?node_timeout=500ms' n1 n2 n3)"
for i in $(seq 30); do ask f acquire "$i" "many$i" 60000 5000; done
kill -STOP "$(pid n3)"
started=$SECONDS
ask f list many
is "$(grep -o 'held=1' <<<"$answer" | wc -l)" 30 'with one of three frozen all locks are listed'
[ $((SECONDS - started)) -lt 8 ]
ok $? "in $((SECONDS - started)) s"
kill -CONT "$(pid n3)"
for i in $(seq 30); do ask f release "$i"; done

# The third node is left alone for a moment after it was away.
joined() {
    ask c acquire 1 join 20000 0
    eventually 1 at join 111
    local all=$?
    ask c release 1
    return "$all"
}
eventually 20 joined
ok $? 'all three take part again'

# What is no token, at two of three.
rcli n1 set 'holdfast:{bad}:t' rubbish >/dev/null
rcli n2 set 'holdfast:{bad}:t' '9007199254740991 1 - 00 x' >/dev/null
ask c acquire 1 bad 20000 0
like "$answer" 'HF_CORRUPT*does not hold a token*' 'damaged records are told'
eventually 10 at bad 000
ok $? 'and nothing is taken'
is "$(rcli n1 get 'holdfast:{bad}:t')" rubbish 'nor written over'

# At one of three, with another one away: that is the one to wait for.
rcli n1 set 'holdfast:{wait}:t' rubbish >/dev/null
proxy p3 mode drop
tell c acquire 1 wait 20000 20000
silent c
ok $? 'a damaged record at one node ends no wait'
proxy p3 mode pass
hear c
like "$answer" 'ok *' 'two others are enough'
ask c release 1

# A lock that cannot be read does not hide the others from a listing.
for i in 1 2 3; do ask c acquire "$i" "seen$i" 30000 5000; done
for n in n1 n2 n3; do
    rcli "$n" del 'holdfast:{seen1}:t' >/dev/null
    rcli "$n" rpush 'holdfast:{seen1}:t' rubbish >/dev/null
done
ask c list seen
is "$(grep -o 'seen[0-9] held=1' <<<"$answer" | tr -d '\n')" 'seen2 held=1seen3 held=1' 'two of three are listed'
like "$answer" '*HF_CORRUPT*seen1*' 'and the other one is told'
done_testing
