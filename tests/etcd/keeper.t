#!/bin/bash
# Leases kept alive together: renewed with a few requests, each lost on its own.
# shellcheck disable=SC2317 # functions that eventually calls by name
set -u
. "$(dirname "$0")/lib.sh"

etcd_start a
etcd_start b --max-txn-ops 8
proxy_start p a
client c "$(url a)"
client d "$(url p)"
client e "$(url b)"
ask c acquire 50 k1 3000 0
tell d acquire 1 k1 3000 20000 kept
eventually 10 eval 'ask c status k1; [[ $answer == *waiters=1* ]]'
ask c release 50
hear d
like "$answer" 'ok *' 'one that had to wait'
for i in $(seq 2 40); do ask d acquire "$i" "k$i" 3000 0 kept; done
like "$answer" 'ok *' 'and thirty-nine that had not'
for i in $(seq 1 40); do ask e acquire "$i" "k$i" 3000 0 kept; done
like "$answer" 'ok *' 'forty in a server that takes small transactions only'
proxy p requests
sleep 5
proxy p requests
[ "$proxied" -gt 0 ] && [ "$proxied" -lt 100 ]
ok $? "forty leases, renewed five times each: far fewer requests ($proxied)"
lost=0
for i in $(seq 1 40); do
    for name in d e; do
        ask $name lost "$i"
        [[ $answer == 'ok 0 '* ]] || lost=$((lost + 1))
    done
done
is "$lost" 0 'none was lost after more than a ttl'

is_lost() { ask d lost "$1"; [[ $answer != 'ok 0 '* ]]; }
ctl a del --prefix $'holdfast/k7\x1f' >/dev/null
ctl a del --prefix $'holdfast/k9\x1f' >/dev/null
ask c acquire 9 k9 20000 0
eventually 10 is_lost 7
like "$answer" '*operator broke*' 'one whose key was deleted is lost, and why'
eventually 10 is_lost 9
case $answer in # whichever came first: the news that it is gone, or the new owner
*'another owner'* | *'operator broke'*) ok 0 'one that was taken is lost, and why' ;;
*) ok 1 'one that was taken is lost, and why' ;;
esac
for i in 1 8; do
    ask d lost $i
    like "$answer" 'ok 0 *' 'its neighbours are not'
done

# the lease of all is revoked: all are lost, and told so
ctl a lease list | sed 1d | while read -r id; do ctl a lease revoke "$id" >/dev/null; done
eventually 10 is_lost 8
like "$answer" '*expired*' 'a lease that was revoked takes its holds along'
etcd_stop b KILL
is_lost() { ask e lost "$1"; [[ $answer != 'ok 0 '* ]]; }
eventually 15 is_lost 8
like "$answer" '*could not be reached*' 'without a server all are lost at their deadline'
done_testing
