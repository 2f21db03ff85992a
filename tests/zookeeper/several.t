#!/bin/bash
# One of several locks: one session, whatever the number of queues; numbered slots in one line, in which the dead
# hold up nobody; and what is asked of every store.
# run: also long
# shellcheck disable=SC2034,SC2086,SC2154,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/several.sh"

in_line() { # LOCK COUNT
    ask look status "$1"
    case $answer in *" waiters=$2 "*) ;; *) return 1 ;; esac
}
zk_start a minSessionTimeout=400 maxSessionTimeout=30000 maxClientCnxns=100
url="zookeeper://$(hosts a)/several?tick=200ms"
for c in h look w v; do client "$c" "$url"; done

# any of some locks that are no slots: in every queue, and out of all of them
for i in 1 2 3; do ask h acquire "$i" "lock$i" 8000 0 kept; done
tell w any 1 60000 lock1 lock2 lock3
eventually 20 in_line lock1 1 && eventually 20 in_line lock3 1
ok $? 'it waits in every queue'
ask h release 3
hear w
like "$answer" 'ok * lock3' 'and has the first that is free'
eventually 10 in_line lock1 0 && eventually 10 in_line lock2 0
ok $? 'and has left the other queues'
ask w release 1

# slots: one line
for i in 0 1 2 3; do ask h acquire $((10 + i)) "s#$i" 8000 0 kept; done
tell w any 1 60000 s#0 s#1 s#2 s#3
eventually 20 in_line s#0 1 && eventually 20 in_line s#3 1
ok $? 'who waits for any of the slots is shown with each of them'
tell v acquire 1 s#2 8000 60000
eventually 20 in_line s#2 2
ask h release 12
hear w
like "$answer" 'ok * s#2' 'who waits for a certain slot does not overtake who came before it'
silent v
ok $? 'and waits on'
ask w release 1
hear v
like "$answer" 'ok *' 'until it is free'
ask look list s
is "$(echo "$answer" | tr ' ' '\n' | grep -c '^\[')" 4 'the line itself is no lock'

# Overtaken in the one moment between the look at a slot and the step out of the line into it.
proxy_start p a
client slow "zookeeper://127.0.0.1:$(port p)/several?tick=200ms"
for i in 0 1; do ask h acquire $((20 + i)) "t#$i" 8000 0 kept; done
tell slow any 1 60000 t#0 t#1
eventually 20 in_line t#0 1
tell w any 1 60000 t#0 t#1
eventually 20 in_line t#0 2
proxy p mode hold lock-
ask h release 20
on_its_way() {
    proxy p held
    [ "$proxied" -gt 0 ]
}
eventually 10 on_its_way
ask v acquire 2 t#0 8000 0
like "$answer" 'ok *' 'another takes what is free, past the line'
proxy p mode pass
proxy p let
eventually 10 in_line t#0 2
silent w
ok $? 'who was overtaken waits on, and so do those behind it'
ask h release 21
hear slow
like "$answer" 'ok * t#1' 'and still comes before them'
ask v release 2
hear w
like "$answer" 'ok * t#0' 'who are next'
ask w release 1
ask slow release 1
ask look list t
is "$(echo "$answer" | grep -c 'held=1\|waiters=[1-9]')" 0 'nothing is left'
for c in w v h look slow; do gone "$c"; done

several "$url" 3000 1500 1500 30000
done_testing
