#!/bin/bash
# A store that stops answering: the server does, at once where it need not ask.
set -u
. "$(dirname "$0")/../redis/lib.sh"
. "$(dirname "$0")/http.sh"
command -v jq >/dev/null || skip_all 'jq is not installed'

redis_start r
calm r
serve_start --store "$(url r)"
o=$(new_owner)
token=$(post acquire "{\"name\": \"job\", \"owner\": \"$o\", \"ttl_ms\": 60000}" | jq -r .token)
above "$token" 0 'a lock is held'
is "$(get readyz | jq -c .ready)" true 'the store answers'
sleep 1.1 # longer than an answer is good
kill -STOP "$(pid r)"

curl -sS -m 20 -o "$dir/ready" -w '%{http_code}' --unix-socket "$sock" http://localhost/readyz >"$dir/ready.code" &
ready=$!
curl -sS -m 20 -o "$dir/renewed" -w '%{http_code}' --unix-socket "$sock" -H 'Content-Type: application/json' \
    --data "{\"name\": \"job\", \"owner\": \"$o\", \"token\": \"$token\", \"ttl_ms\": 60000}" http://localhost/v1/renew >"$dir/renew.code" &
renew=$!
curl -sS -m 20 -o "$dir/listed" -w '%{http_code}' --unix-socket "$sock" http://localhost/v1/locks >"$dir/list.code" &
list=$!
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$root/tests/serve python3 - "$sock" >"$dir/times" <<'END'
import sys
import time
from wire import connect, read_answer, request
for path in ("/healthz", "/metrics", "/"):
    best = 1000
    for _ in range(20):
        began = time.monotonic()
        s = connect(sys.argv[1])
        s.sendall(request("GET", path))
        assert read_answer(s)[0] == 200
        best = min(best, (time.monotonic() - began) * 1000)
    print(path, "yes" if best < 50 else "no", f"{best:.1f}ms")
END
for path in /healthz /metrics /; do
    like "$(grep "^$path " "$dir/times")" "$path yes *" "$path answers within 50ms meanwhile"
done
wait "$ready" "$renew" "$list"
is "$(cat "$dir/ready.code")" 503 'readyz says that the store does not answer'
like "$(cat "$dir/renew.code") $(jq -r .status "$dir/renewed")" '50[34] HF_UN*' 'a renewal is not known, or did not get there'
is "$(cat "$dir/list.code")" 503 'a listing fails'
began=$(date +%s%N)
kill -TERM "${server_pid[serve]}"
wait "${server_pid[serve]}"
is $? 0 'a server without its store ends well'
unset 'server_pid[serve]'
[ $((($(date +%s%N) - began) / 1000000)) -lt 5000 ]
ok $? 'within 5s'
kill -CONT "$(pid r)"
serve_start --store "$(url r)"
is "$(post renew "{\"name\": \"job\", \"owner\": \"$o\", \"token\": \"$token\", \"ttl_ms\": 60000}" | jq .ttl_ms)" 60000 \
    'the holder renews at a new server'
redis_stop r
like "$(post renew "{\"name\": \"job\", \"owner\": \"$o\", \"token\": \"$token\", \"ttl_ms\": 60000}")" '*HF_UN*' 'a store that is gone'
curl -sS -m 20 -o /dev/null -D - --unix-socket "$sock" http://localhost/readyz >"$dir/head"
like "$(tr -d '\r' <"$dir/head" | tr '\n' ' ')" '*503*Retry-After: 1*' 'says when to ask again'
is "$(grep -c "$o" "$dir/serve.err")" 0 'no owner is in what the server said'
done_testing
