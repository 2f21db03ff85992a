#!/bin/bash
# One of several locks: one transaction, one lease, one watch, whatever the number of queues; and what is asked of
# every store.
# run: also long
# shellcheck disable=SC2034,SC2086,SC2154,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/several.sh"

eight='s#0 s#1 s#2 s#3 s#4 s#5 s#6 s#7'
in_line() { # LOCK COUNT
    ask look status "$1"
    case $answer in *" waiters=$2 "*) ;; *) return 1 ;; esac
}
etcd_start a
client h "$(url a)"
client look "$(url a)"
for i in 0 1 2 3 4 5 6; do ask h acquire $i "s#$i" 60000 0 kept; done
client w "$(url a)"
ask w any 1 0 $eight
like "$answer" 'ok * s#7' 'the only one that is free is found'
ask w release 1
# What the attempt at s#0 had got ready is thrown away meanwhile, and is nothing that s#7 lives on.
again() {
    for _ in $(seq 100); do
        ask w any 1 0 $eight
        case $answer in ok\ *\ s#7) ask w release 1 ;; esac
        [ "$answer" = ok ] || return 1
    done
}
again
ok $? 'a hundred times over, and it stays held until it is released'
ask h acquire 7 s#7 60000 0 kept

# a waiter in eight queues
# Of those who wait: how many keys there are, and on how many leases.
waiters() {
    ctl a get --prefix holdfast/ -w json | python3 -c '
import base64, json, sys
keys = [k for k in json.load(sys.stdin)["kvs"] if b" 1 w " in base64.b64decode(k["value"])]
print(len(keys), len({k["lease"] for k in keys}))'
}
sockets() { find "/proc/${client_pid[$1]}/fd" -lname 'socket:*' | wc -l; }
client one "$(url a)"
tell one acquire 1 s#0 30000 60000
eventually 20 in_line s#0 1
tell w any 1 60000 $eight
eventually 20 in_line s#0 2
ok $? 'it waits'
is "$(waiters)" '9 2' 'with eight keys on one lease, beside one who waits for one lock'
same_sockets() { [ "$(sockets w)" -le "$(sockets one)" ]; }
eventually 5 same_sockets
ok $? 'with as many connections as one who waits for one lock'
gone one

# begins anew if it was robbed
key=$(ctl a get --prefix holdfast/ --keys-only | grep -a "s#3$(printf '\037').")
is "$(ctl a del "$key")" 1 'its key in one queue is deleted'
ask h release 3
hear w 20
like "$answer" 'ok * s#3' 'it still gets what is free'
eventually 10 in_line s#1 0
ok $? 'and stands in no other line any more'
for c in w h look; do gone "$c"; done

several "$(url a)" 6000 1000 2500 30000
done_testing
