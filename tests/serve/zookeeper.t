#!/bin/bash
# A store without detached leases is served for looking: ZooKeeper, whose locks end with their sessions.
# shellcheck disable=SC2317 # conditions are called by eventually
set -u
. "$(dirname "$0")/../zookeeper/lib.sh"
. "$(dirname "$0")/http.sh"
command -v jq >/dev/null || skip_all 'jq is not installed'
[ -e "$build/stores/holdfast-serve" ] || skip_all 'holdfast-serve is not built'

zk_start z
store=zookeeper://$(hosts z)
serve_start --store "$store" --watch job
like "$(cat "$dir/serve.err")" '*no detached leases: it is served for looking only, nothing can be acquired*' 'the start says what cannot be done'
"$hf" --store "$store" run --ttl 20s job -- sleep 1000 &
server_pid[holder]=$!
held() { [ "$(get 'v1/lock?name=job' | jq -c '.locks[0].held')" = true ]; }
eventually 20 held
ok $? 'a lock of a direct client is seen'
"$hf" --store "$store" run --wait 60s job -- true &
server_pid[waiter]=$!
waits() { [ "$(get 'v1/lock?name=job' | jq -c '.locks[0].waiters')" = 1 ]; }
eventually 20 waits
ok $? 'and who waits for it'
listed() { [ "$(get v1/locks | jq -c '[.totals.held, .totals.waiters, .locks[0].name]')" = '[1,1,"job"]' ]; }
eventually 10 listed
ok $? 'in the listing, too'
token=$(get 'v1/lock?name=job' | jq -r '.locks[0].token')
above "$token" 0 'with its token'
is "$(get v1/store | jq -c '[.scheme, (.features | index("detached")), (.identity != null)]')" '["zookeeper",null,true]' 'the store says who it is and what it has not'
is "$(get readyz | jq -c .ready)" true 'it is ready'
scraped() { get metrics | grep -q '^holdfast_lock_waiters{lock="job"} 1$'; }
eventually 20 scraped
ok $? 'the metrics know the lock'
is "$(get '' | grep -c '<title>')" 1 'and there is the page'

body() { echo "{\"name\": \"$1\", \"owner\": \"$(new_owner)\", \"ttl_ms\": 5000$2}"; }
code() { # WHAT JSON [HEADER]
    curl -sS -m 20 -o "$dir/body" -w '%{http_code}' --unix-socket "$sock" -H 'Content-Type: application/json' ${3+-H "$3"} \
        --data @- "http://localhost/v1/$1" <<<"$2"
}
is "$(code acquire "$(body free '')") $(jq -r .status "$dir/body")" '501 HF_UNSUPPORTED' 'acquire is 501'
is "$(code acquire "$(body job ', "wait_ms": 20000')") $(jq -r .status "$dir/body")" '501 HF_UNSUPPORTED' 'at once, also if it would wait'
is "$(code acquire "$(body free ', "wait_ms": 20000')" 'Accept: application/x-ndjson') $(jq -r .status "$dir/body")" \
    '501 HF_UNSUPPORTED' 'or wants a stream'
is "$(code renew "$(body job ", \"token\": \"$token\"")") $(jq -r .status "$dir/body")" '501 HF_UNSUPPORTED' 'so is renew'
is "$(code release "$(body job '')") $(jq -r .status "$dir/body")" '501 HF_UNSUPPORTED' 'and release'
"$hf" --store "http+unix://$sock" run -n free -- true 2>"$dir/run.err"
is "$?" 64 'a client of the server is told that it cannot'
like "$(cat "$dir/run.err")" '*it can be looked at*' 'and why'
is "$("$hf" --store "http+unix://$sock" status --json job | jq -r .token)" "$token" 'but sees the lock'
held
ok $? 'which the one who has it has kept'
kill "${server_pid[holder]}"
unset 'server_pid[holder]'
wait "${server_pid[waiter]}"
is $? 0 'and hands on'
unset 'server_pid[waiter]'
kill -TERM "${server_pid[serve]}"
wait "${server_pid[serve]}"
is $? 0 'the server ends well'
unset 'server_pid[serve]'
done_testing
