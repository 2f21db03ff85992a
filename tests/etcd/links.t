#!/bin/bash
# Connections that are dead without anybody having said so, addresses behind which nobody is, servers
# that take a connection and say nothing.
# run: first
# run: once
# shellcheck disable=SC2034,SC2154,SC2317 # functions and variables that eventually uses
set -u
. "$(dirname "$0")/lib.sh"

etcd_start a
proxy_start p a

# State is lost on the way: every connection that is open is dead, new ones are fine.
client c "$(url p)"
for i in 1 2 3 4 5 6 7 8; do ask c acquire $i "kept$i" 6000 0 kept; done
client d "$(url p)"
for i in 1 2 3 4 5 6 7 8; do ask d acquire $i "own$i" 30000 0; done
for round in 1 2 3; do
    proxy p strand
    sleep 3
done
lost=0
for i in 1 2 3 4 5 6 7 8; do
    ask c lost $i
    [[ $answer == 'ok 0 '* ]] || lost=$((lost + 1))
done
is "$lost" 0 'half-open connections cost no lock that is kept'
ask d renew 1 30000
ask d renew 1 30000
is "$answer" ok 'nor one that its owner renews: once, and then the others are not trusted either'

# a name whose first address is a black hole: a socket that takes no more connections
cc -shared -fPIC -O1 -D_GNU_SOURCE -o "$dir/two.so" "$root/tests/tools/two_addresses.c" ||
    skip_all 'there is no compiler'
python3 - "$(port a)" >"$dir/hole" <<'PY' &
import socket, sys, time
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(('127.0.0.2', int(sys.argv[1])))
s.listen(0)
full = []
for _ in range(4):
    c = socket.socket()
    c.setblocking(False)
    c.connect_ex(('127.0.0.2', int(sys.argv[1])))
    full.append(c)
time.sleep(0.3)
print('ready', flush=True)
time.sleep(120)
PY
client_pid[hole]=$!
disown $!
eventually 10 test -s "$dir/hole"
LD_PRELOAD=$dir/two.so client e
start=$SECONDS
ask e open "etcd://host.two:$(port a)"
is "$answer" ok 'a name whose first address is a black hole'
ask e acquire 1 hole 9000 0 kept
like "$answer" 'ok *' 'grants'
sleep 12
ask e lost 1
is "$answer" 'ok 0 not lost' 'and renews'
gone hole
gone e

# a server that is frozen, first in the URL
cluster_start x y z
eventually 20 eval 'first=$(leader x y z)'
# shellcheck disable=SC2046 # two names
set -- $(printf '%s\n' x y z | grep -v "$first")
kill -STOP "$(pid "$1")"
best=9999
for i in 1 2 3; do
    began=$(date +%s%N)
    "$hf" --store "$(url "$1" "$2" "$first")" run quick -- true
    is $? 0 'a start with a frozen server first'
    took=$((($(date +%s%N) - began) / 1000000))
    [ "$took" -ge "$best" ] || best=$took
done
[ "$best" -lt 1200 ]
ok $? "does not wait for it long ($best ms)"

# every server is frozen for longer than a request may take: whoever waits goes on waiting
client h "$(url "$2" "$first")"
ask h acquire 1 shared 60000 0
"$hf" --store "$(url "$2" "$first")" run -w 60s shared -- sh -c 'echo done' >"$dir/waited" \
    2>"$dir/waited.err" &
waiter=$!
eventually 10 eval 'ask h status shared; [[ $answer == *waiters=1* ]]'
for name in "$2" "$first"; do kill -STOP "$(pid "$name")"; done
sleep 12
kill -0 $waiter
ok $? 'a waiter outlives a freeze of all servers'
for name in "$1" "$2" "$first"; do kill -CONT "$(pid "$name")"; done
eventually 30 eval 'ask h release 1; [[ $answer == ok* || $answer == "no such"* ]]'
wait $waiter
is "$? $(cat "$dir/waited")" '0 done' 'and has its turn'

# down at the start, and the caller has time
for name in x y z; do etcd_stop $name KILL; done
"$hf" --store "$(url x y z)" run -w 60s later -- sh -c 'echo done' >"$dir/later" 2>"$dir/later.err" &
waiter=$!
sleep 3
for name in x y z; do etcd_run $name; done
wait $waiter
is "$? $(cat "$dir/later")" '0 done' 'a wait begins though the store is down'
done_testing
