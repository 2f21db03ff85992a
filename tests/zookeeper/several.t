#!/bin/bash
# One of several locks: one session, whatever the number of queues; numbered slots in one line, in which the
# dead hold up nobody.
# run: also long
# shellcheck disable=SC2034,SC2154,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/several.sh"

zk_start a minSessionTimeout=400 maxSessionTimeout=30000 maxClientCnxns=100
url="zookeeper://$(hosts a)/several?tick=200ms"

# any of some locks that are no slots: in every queue, and out of all of them
client h "$url"
client look "$url"
client w "$url"
waits_for() { # LOCK COUNT
    ask look status "$1"
    case $answer in *" waiters=$2 "*) ;; *) return 1 ;; esac
}
for i in a b c; do ask h acquire 1 "$i" 8000 0 kept; done
tell w any 1 8000 60000 a b c
eventually 20 waits_for a 1 && eventually 20 waits_for c 1
ok $? 'it waits in every queue'
ask h release 1 # c
hear w
like "$answer" 'ok *which=c' 'and has the first that is free'
eventually 10 waits_for a 0 && eventually 10 waits_for b 0
ok $? 'and has left the other queues'
ask w release 1
for c in w h; do gone "$c"; done

# slots: one line
client h "$url"
for i in 0 1 2 3; do ask h acquire $i "s#$i" 8000 0 kept; done
client w "$url"
tell w any 1 8000 60000 s#0 s#1 s#2 s#3
eventually 20 in_line "$url" s 1
ok $? 'who waits for any of the slots is shown with each of them'
client v "$url"
tell v acquire 1 s#2 8000 60000
eventually 20 waits_for s#2 2
ask h release 2
hear w
like "$answer" 'ok *which=s#2' 'who waits for a certain slot does not overtake who came before it'
silent v
ok $? 'and waits on'
ask w release 1
hear v
like "$answer" 'ok *' 'until it is free'
ask look list s
is "$(echo "$answer" | tr ' ' '\n' | grep -c '^\[')" 4 'the line itself is no lock'
for c in w v h look; do gone "$c"; done

order "$url"
killed "$url" dead 20000 3000
if [ -n "${HOLDFAST_LONG-}" ]; then
    STORM_KILL_ODDS=120 referee 60 3000 30 "$url"
else
    STORM_KILL_ODDS=400 referee 8 1500 12 "$url"
fi
done_testing
