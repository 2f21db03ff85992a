#!/bin/bash
# Keys of others under the same prefix, longer than any of ours: they break neither listings nor waits.
# run: once
# shellcheck disable=SC2317 # called by eventually
set -u
. "$(dirname "$0")/lib.sh"

etcd_start a
put() { # KEY... : keys of others, in transactions of 100
    printf '%s\n' "$@" | python3 -c '
import base64, http.client, json, sys
c = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
keys = [line.rstrip(b"\n") for line in sys.stdin.buffer]
b = lambda s: base64.b64encode(s).decode()
for i in range(0, len(keys), 100):
    ops = [{"request_put": {"key": b(k), "value": b(b"v")}} for k in keys[i:i + 100]]
    c.request("POST", "/v3/kv/txn", json.dumps({"success": ops}))
    assert c.getresponse().read().startswith(b"{")
' "$(port a)"
}
long() { printf "%$1s" '' | tr ' ' "${2-x}"; }

client c "$(url a)"
client d "$(url a)"
# a page of a listing ends with a long key: 500 of them, then locks
for n in 400 5000 20000; do
    # shellcheck disable=SC2046 # words
    put $(for i in $(seq 1000 1497); do printf 'holdfast/b%s ' "$i"; done) "holdfast/b1498$(long $n)"
    ask c acquire 1 a 9000 0
    ask c acquire 2 c 9000 0
    ask d list -
    like "$answer" 'ok \[a held=1 *\] \[c held=1 *\]' "a page that ends with a key of $n bytes"
    ask c release 1
    ask c release 2
    ctl a del --prefix holdfast/ >/dev/null
done

# values of others that are too much for one answer
head -c 700000 /dev/zero | tr '\0' v >"$dir/big"
for i in $(seq 14); do ctl a put "holdfast/big$i" <"$dir/big" >/dev/null; done
ask c acquire 1 a 9000 0
ask c acquire 2 c 9000 0
ask d list -
like "$answer" 'ok \[a held=1 *\] \[c held=1 *\]' 'a listing among ten megabytes of others'
ask c release 1
ask c release 2
ctl a del --prefix holdfast/big >/dev/null

# a long key in the queue of a lock, first
name=$'holdfast/x\x1f'
put "$name$(long 5000 o)"
ask c acquire 1 x 9000 0
like "$answer" 'HF_BUSY*not holdfast*' 'a long key in a queue is respected'
ask c acquire 1 x 9000 700
like "$answer" 'HF_BUSY*not holdfast*' 'who waits for it is told busy in the end'
tell c acquire 1 x 9000 30000
eventually 10 eval 'ask d status x; [[ $answer == *waiters=1* ]]'
like "$answer" 'ok \[x held=1*foreign=1*' 'who waits shows, and the stranger as the holder'
put "$name$(long 5000 o)p"
start=$(date +%s%N)
ctl a del "$name$(long 5000 o)" >/dev/null
hear c 20
like "$answer" 'ok *' 'and has it when the stranger is gone'
took=$((($(date +%s%N) - start) / 1000000))
[ $took -lt 4000 ]
ok $? "by the watch, not by the next look ($took ms)"
tell d acquire 1 x 9000 30000
eventually 10 eval 'ask c list -; [[ $answer == *waiters=2* ]]'
ok $? 'a second one stands behind another stranger'
ask c release 1
silent d
ok $? 'and waits for that one, too'
ctl a del "$name$(long 5000 o)p" >/dev/null
hear d 20
like "$answer" 'ok *' 'to the end'
ask d release 1
is "$answer" ok 'released'
done_testing
