#!/bin/bash
# The way to the servers: names that are looked up slowly, proxies in the environment, redirections.
# run: once
set -u
. "$(dirname "$0")/lib.sh"

etcd_start a
cc -shared -fPIC -O1 -D_GNU_SOURCE -o "$dir/slow.so" "$root/tests/tools/slow_lookup.c" ||
    skip_all 'there is no compiler'
took() { # SECONDS DESCRIPTION : since $start
    [ $((SECONDS - start)) -le "$1" ]
    ok $? "$2 ($((SECONDS - start)) s)"
}

LD_PRELOAD=$dir/slow.so client c
start=$SECONDS
ask c open etcd://one.slow:2379
like "$answer" 'HF_UNREACHABLE*' 'a name that nobody can look up: unreachable'
took 12 'within the time of a request'
start=$SECONDS
ask c open "etcd://one.slow:2379,127.0.0.1:$(port a)"
is "$answer" ok 'the second server answers'
took 4 'without waiting for the name of the first'
ask c acquire 1 x 20000 0 kept
like "$answer" 'ok *' 'and grants'
ask c release 1
is "$answer" ok 'released'
ask c close
like "$(ask c open etcd://alert.invalid:2379; echo "$answer")" 'HF_UNREACHABLE*' \
    'a host that is called alert is just a host'

# a password must not go through a proxy by surprise
python3 - >"$dir/proxy.port" 2>/dev/null <<'EOF' &
import socket
s = socket.create_server(('127.0.0.1', 0))
print(s.getsockname()[1], flush=True)
while True:
    c, _ = s.accept()
    c.recv(65536)
    print('asked', flush=True)
    c.sendall(b'HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/\r\n'
              b'Content-Length: 0\r\nConnection: close\r\n\r\n')
    c.close()
EOF
client_pid[listener]=$!
disown $!
eventually 10 test -s "$dir/proxy.port"
p=127.0.0.1:$(head -n 1 "$dir/proxy.port")
export http_proxy=http://$p HTTP_PROXY=http://$p ALL_PROXY=http://$p all_proxy=http://$p
client d "etcd://job:secret@127.0.0.1:$(port a)"
is "$answer" ok 'proxies in the environment are not for us'
is "$(grep -c asked "$dir/proxy.port")" 0 'none was asked'
unset http_proxy HTTP_PROXY ALL_PROXY all_proxy
ask d close
ask d open "etcd://job:secret@$p"
like "$answer" 'HF_UNSUPPORTED*' 'a redirection is not followed'
done_testing
