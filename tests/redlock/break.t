#!/bin/bash
# break.t - a hold of a redlock is broken: alive, frozen, cut off; and only a majority counts.
# shellcheck disable=SC2317 # functions that break_cut uses by name
set -u
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/../support/break.sh"

nodes 5
for i in 1 2 3 4 5; do proxy_start "p$i" "n$i"; done
url=$(redlock)
near=$(redlock '' p1 p2 p3 p4 p5)
all() { for i in 1 2 3 4 5; do proxy "p$i" mode "$1"; done; }
cut() { all deaf; }
mend() { all pass; }

break_alive "$url" 3000
break_frozen "$url" 1500
break_cut "$url" 2000 "$near" cut mend
break_run "$url" 6s
break_twice "$url" 20000

# Two nodes are away: three can be told, and are a majority.
client c "$url"
client b "$near"
ask c acquire 0 most 20000 0 free
token=$(token)
proxy p1 mode drop
proxy p2 mode drop
ask b break most "$token"
like "$answer" 'ok *again=0' 'three of five have broken it: it is broken'
ask c renew 0 20000
like "$answer" 'HF_LOST*was broken by breaker: a test' 'and is not renewed, whatever the other two say'
mend
ask b break most "$token"
like "$answer" 'ok *again=1' 'to break it again does no harm'
ask c release 0

# Three are away: too few can be told.
ask c acquire 0 few 20000 0 free
token=$(token)
for i in 1 2 3; do proxy "p$i" mode drop; done
eventually 10 eval 'ask b break few "$token"; [[ $answer == HF_UNREACHABLE* ]]'
ok $? 'who cannot see a majority breaks nothing'
mend

# They go away once they were asked who holds it: some nodes break it, and nobody can know whether it is broken.
for i in 1 2 3; do proxy "p$i" mode drop 'a test'; done
eventually 10 eval 'ask b break few "$token"; [[ $answer == HF_UNKNOWN* ]]'
ok $? 'two of five: unknown'
ask c renew 0 20000
is "$answer" ok 'the holder goes on, with a majority of its own'
mend
eventually 10 eval 'ask b break few "$token"; [[ $answer == ok* ]]'
ok $? 'the next try breaks the rest'
ask c renew 0 20000
like "$answer" 'HF_LOST*was broken by breaker: a test' 'and now it is'
ask c release 0
for i in 1 2 3 4 5; do is "$(rcli "n$i" exists few)" 0 "its release takes it away at node $i"; done

# With --now, and a client that is not holdfast.
ask c acquire 0 quick 20000 0 kept
token=$(token)
eventually 10 eval 'ask b break quick "$token" now; [[ $answer == "ok left=0"* ]]'
ok $? 'now: it is over'
ask b acquire 0 quick 20000 0 free
above "$(token)" "$token" 'and free'
eventually 15 broken c
ok $? 'whose it was hears that it was broken'
ask b renew 0 20000
is "$answer" ok 'the new one is renewed'
ask b release 0
for i in 1 2 3 4; do rcli "n$i" set theirs 0123456789abcdef0123456789abcdef px 30000 >/dev/null; done
eventually 10 eval 'ask b break theirs 0 now; [[ $answer == "ok "*foreign=1* ]]'
ok $? 'a foreign holder is ended'
is "$(for i in 1 2 3 4 5; do rcli "n$i" exists theirs; done | tr -d '\n')" 00000 'everywhere'
done_testing
