#!/bin/bash
# Limits of clients, waiters and waits; systemd's sockets; the end; a store without detached leases.
set -u
. "$(dirname "$0")/../support/stage.sh"
. "$(dirname "$0")/http.sh"
command -v jq >/dev/null || skip_all 'jq is not installed'

p=$(free_port)
serve_credential half lock look
serve_credential other lock look
serve_start --store "file:$dir/store" --max-waiters 4 --max-clients 8 --max-wait 3s --tokens "$dir/tokens" --listen "tcp:127.0.0.1:$p"
body() { echo "{\"name\": \"$1\", \"owner\": \"$(new_owner)\", \"ttl_ms\": 20000, \"wait_ms\": ${2-0}}"; }
# wait_as CREDENTIAL FILE : in the background
wait_as() {
    curl -sS -m 20 -w '\n%{http_code}\n' -H "Authorization: Bearer $(cat "$dir/$1.secret")" -H 'Content-Type: application/json' \
        --data "$(body job 60000)" "http://127.0.0.1:$p/v1/acquire" >"$dir/$2" 2>/dev/null &
    waiter=$!
}
# shellcheck disable=SC2317 # eventually calls it
waiting() { [ "$(get 'v1/lock?name=job' | jq '.locks[0].waiters')" = "$1" ]; }

post acquire "$(body job)" >/dev/null
began=$(date +%s%N)
wait_as half 1
first=$waiter
wait_as half 2
eventually 10 waiting 2
wait_as half 3
wait "$waiter"
is "$(tail -n 1 "$dir/3")" 429 'one credential has at most half of the waiters'
like "$(cat "$dir/3")" '*HF_UNREACHABLE*half*' 'which is told, and nothing was asked of the store'
wait_as other 4
wait_as other 5
eventually 10 waiting 4
like "$(post acquire "$(body job 1000)")" '*"HF_UNREACHABLE"*4 requests wait*' 'and all together no more than there may be'
like "$(post acquire "$(body elsewhere)")" '*"token"*' 'who does not wait is served meanwhile'
wait "$first"
took=$((($(date +%s%N) - began) / 1000000))
is "$(tail -n 1 "$dir/1")" 423 'a wait ends'
[ $took -ge 2900 ] && [ $took -lt 8000 ]
ok $? "with --max-wait, however long it was to be ($took ms)"
wait "$waiter"

PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$root/tests/serve python3 - "$sock" >"$dir/clients" <<'END'
import sys
import time
from wire import connect, ended, read_answer, request
where = sys.argv[1]
idle = []
for _ in range(8):
    s = connect(where)
    s.sendall(request("GET", "/healthz"))
    assert read_answer(s)[0] == 200
    idle.append(s)
s = connect(where)
s.sendall(request("GET", "/healthz"))
code, headers, body, _ = read_answer(s)
print(code, headers.get("retry-after"), ended(s))
idle[0].sendall(request("GET", "/healthz"))
print(read_answer(idle[0])[0])
idle[1].close()
for _ in range(100):
    s = connect(where)
    try:
        s.sendall(request("GET", "/healthz"))
        if read_answer(s)[0] == 200:
            print("again")
            break
    except OSError:  # refused before the request was sent
        pass
    time.sleep(0.05)
END
is "$(head -n 1 "$dir/clients")" '429 1 True' 'a client too many is told so'
is "$(sed -n 2p "$dir/clients")" 200 'and costs the others nothing'
is "$(sed -n 3p "$dir/clients")" again 'there is room again when one goes'
server_stop serve

# A request under way is finished, and then the server ends.
serve_start --store "file:$dir/store"
post acquire "$(body stop)" >/dev/null
post acquire "$(body stop 20000)" >"$dir/waited" &
eventually 10 sh -c "curl -sS --unix-socket '$sock' 'http://localhost/v1/lock?name=stop' | jq -e '.locks[0].waiters == 1' >/dev/null"
began=$(date +%s%N)
kill -TERM "${server_pid[serve]}"
wait "${server_pid[serve]}"
is $? 0 'TERM ends a server well'
unset 'server_pid[serve]'
took=$((($(date +%s%N) - began) / 1000000))
[ $took -lt 5000 ]
ok $? "within 5s ($took ms)"
eventually 5 test -s "$dir/waited"
like "$(cat "$dir/waited")" '*HF_CANCELLED*' 'who waited was told'
is "$("$hf" --store "file:$dir/store" status --json stop | jq -c '[.held, .waiters]')" '[true,0]' \
    'has left the queue, and the holder holds on'

# However it is told to: the waits are cancelled, and the socket's file is gone. (A shell starts what goes on in the
# background with INT and QUIT ignored.)
for signal in INT QUIT; do
    env --default-signal=INT,QUIT "$hf" serve --listen "unix:$sock" --store "file:$dir/store" 2>>"$dir/serve.err" &
    server_pid[serve]=$!
    eventually 20 get healthz >/dev/null
    kill -HUP "${server_pid[serve]}"
    post acquire "$(body $signal)" >/dev/null
    post acquire "$(body $signal 20000)" >"$dir/waited" &
    eventually 10 sh -c "curl -sS --unix-socket '$sock' 'http://localhost/v1/lock?name=$signal' | jq -e '.locks[0].waiters == 1' >/dev/null"
    ok $? "HUP ends no server"
    kill -$signal "${server_pid[serve]}"
    wait "${server_pid[serve]}"
    is $? 0 "$signal ends one well"
    unset 'server_pid[serve]'
    eventually 5 test -s "$dir/waited"
    like "$(cat "$dir/waited")" '*HF_CANCELLED*' 'who waited was told'
    [ ! -e "$sock" ]
    ok $? 'and its socket is gone'
done

if command -v systemd-socket-activate >/dev/null; then
    sock=$dir/activated
    systemd-socket-activate -l "$sock" "$hf" serve --store "file:$dir/store" 2>"$dir/activate.err" &
    server_pid[activate]=$!
    eventually 10 test -S "$sock"
    is "$(get healthz)" '{"alive": true}' 'systemd hands over a socket, and the first client starts the server'
    kill -TERM "${server_pid[activate]}"
    wait "${server_pid[activate]}"
    is $? 0 'which ends well'
    [ -S "$sock" ]
    ok $? "and leaves a file that is systemd's"
    unset 'server_pid[activate]'
    systemd-socket-activate -l "127.0.0.1:$p" "$hf" serve --store "file:$dir/store" 2>"$dir/activate.err" &
    server_pid[activate]=$!
    eventually 10 sh -c "curl -sS -m 2 http://127.0.0.1:$p/ >/dev/null 2>&1; grep -q -- --tokens '$dir/activate.err'"
    ok $? 'a tcp: socket of systemd needs credentials as any other'
    kill -TERM "${server_pid[activate]}" 2>/dev/null
    wait "${server_pid[activate]}" 2>/dev/null
    unset 'server_pid[activate]'
fi
mkdir "$dir/bin"
cp "$hf" "$dir/bin/holdfast"
HOLDFAST_STORE_PATH='' "$dir/bin/holdfast" serve 2>"$dir/missing"
like "$? $(cat "$dir/missing")" '127 *holdfast-serve is not installed*' 'without the program the text says what to install'
done_testing
