#!/bin/bash
# twice.t - a claim that somebody on the way repeats reaches etcd by two servers with the same owner. One of them does not
# get its answers: whatever it makes of that, it ends nothing of the other's.
# shellcheck disable=SC2317 # conditions are called by eventually
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/serve/http.sh"
command -v jq >/dev/null || skip_all 'jq is not installed'
[ -e "$build/stores/holdfast-serve" ] || skip_all 'holdfast-serve is not built'

etcd_start a
proxy_start p a
server_on() { # NAME URL
    sock=$dir/$1.sock
    serve_start --store "$2"
    server_pid[serve_$1]=${server_pid[serve]}
    unset 'server_pid[serve]'
}
server_on far "$(url p)"
server_on near "$(url a)"
far() { sock=$dir/far.sock post "$@"; }
body() { echo "{\"name\": \"$1\", \"owner\": \"$2\", \"ttl_ms\": 20000, \"wait_ms\": ${3-0}}"; }
token_of() { jq -r .token "$dir/$1"; }
renews() { # NAME OWNER TOKEN
    post renew "{\"name\": \"$1\", \"owner\": \"$2\", \"token\": \"$3\", \"ttl_ms\": 20000}" | jq -c .ttl_ms
}
places() { [ "$(get "v1/lock?name=$1" | jq '.locks[0].waiters')" = "$2" ]; }

# What is dropped: all transactions, those that put a key where nobody is, those that enter a queue or read it.
all=kv/txn
free="range_end.*request_put"
queue='(?s)^(?!.*range_end.*request_put)(?=.*(request_put|request_range))'

for lost in "$free" "$all"; do
    owner=$(new_owner)
    post acquire "$(body "held $lost" "$owner")" >"$dir/first"
    proxy p mode drop "$lost"
    said=$(far acquire "$(body "held $lost" "$owner")" | jq -r .status)
    proxy p mode pass
    like "$said" 'HF_UNKNOWN' "$lost is lost: what became of the second claim is not known"
    is "$(renews "held $lost" "$owner" "$(token_of first)")" 20000 'the first one holds the lock'
done

# In the queue, and on with the lock; the other one does not know whether it has a place there, and goes away.
holder=$(new_owner) owner=$(new_owner)
post acquire "$(body queue "$holder")" >"$dir/holder"
post acquire "$(body queue "$owner" 60000)" >"$dir/waiter" &
waiter=$!
eventually 20 places queue 1
ok $? 'one waits'
proxy p mode drop "$queue"
proxy p requests >/dev/null
curl -sS -m 60 --unix-socket "$dir/far.sock" -H 'Content-Type: application/json' --data @- http://localhost/v1/acquire \
    <<<"$(body queue "$owner" 60000)" >"$dir/copy" 2>/dev/null &
copy=$!
tries() { # that the copy makes to enter the queue
    proxy p requests
    seen=$((seen + proxied))
    [ "$seen" -ge 6 ]
}
seen=0
eventually 20 tries
post release "{\"name\": \"queue\", \"owner\": \"$holder\"}" >"$dir/released"
wait "$waiter"
like "$(token_of waiter)" '[1-9]*' 'who waited has the lock'
kill "$copy" 2>/dev/null
wait "$copy" 2>/dev/null
proxy p mode pass
eventually 20 eval '[ "$(sock=$dir/far.sock get metrics | sed -n "s/^holdfast_waiters //p")" = 0 ]'
ok $? 'the copy of its claim has gone'
is "$(renews queue "$owner" "$(token_of waiter)")" 20000 'and it holds the lock on'

# The copy's place is told from that of the first by what it reads, too.
holder=$owner owner=$(new_owner)
post acquire "$(body queue "$owner" 60000)" >"$dir/waiter" &
waiter=$!
eventually 20 places queue 1
proxy p mode drop '(?s)^(?!.*range_end).*request_put'
said=$(far acquire "$(body queue "$owner" 3000)" | jq -r .status)
proxy p mode pass
like "$said" 'HF_BUSY' 'a copy that finds the place of the first is busy'
places queue 1
ok $? 'which stays'
post release "{\"name\": \"queue\", \"owner\": \"$holder\"}" >"$dir/released"
wait "$waiter"
is "$(renews queue "$owner" "$(token_of waiter)")" 20000 'and leads to the lock'
done_testing
