#!/bin/bash
# Connections that are there and lead nowhere, as when a firewall has lost its state, and a host that swallows
# whatever is sent to it.
# run: once
# shellcheck disable=SC2317 # what eventually calls by name
set -u
. "$(dirname "$0")/lib.sh"
zk_start a minSessionTimeout=400 maxSessionTimeout=40000
proxy_start p1 a
proxy_start p2 a

# A port whose backlog is full: whoever asks for a connection hears nothing.
python3 -c 'import socket, time
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(0)
asking = []
for _ in range(4):
    s = socket.socket()
    s.setblocking(False)
    s.connect_ex(listener.getsockname())
    asking.append(s)
print(listener.getsockname()[1], flush=True)
time.sleep(300)' >"$dir/hole" &
client_pid[hole]=$!
disown $!
eventually 10 test -s "$dir/hole"
hole=127.0.0.1:$(cat "$dir/hole")

# A session begins at any host; the one we want is at p1.
at_first() { # NAME URL
    client "$1" "$2"
    proxy p1 trips
    [ "$proxied" -gt 0 ] && return
    gone "$1"
    return 1
}
eventually 60 at_first c "zookeeper://$(hosts p1),$hole,$(hosts p2)?tick=200ms"
ok $? 'a client begins at the first host'
ask c acquire 1 kept 10000 0 kept
tell c acquire 2 other 10000 0
hear c
like "$answer" 'ok *' 'it holds two locks'
proxy p1 mode deaf
sleep 14
ask c left 1
above "${answer#ok }" 0 'its connection leads nowhere: the lease is kept over another host, past one that swallows all'
ask c release 1
is "$answer" ok 'and held to the end'
proxy p2 trips
above "$proxied" 0 'over the third host'
proxy p1 mode pass
done_testing
