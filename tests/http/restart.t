#!/bin/bash
# A server that ends and comes back: whoever waits behind it goes on waiting, whoever holds goes on holding.
# shellcheck disable=SC2317 # functions that eventually calls by name
set -u
. "$(dirname "$0")/../redis/lib.sh"

sock=$dir/serve.sock
there="http+unix://$sock"
serve_on() {
    "$hf" serve --store "file:$dir/store" --listen "unix:$sock" 2>>"$dir/serve.err" &
    server_pid[serve]=$!
    eventually 20 curl -s -o "$dir/null" --unix-socket "$sock" http://localhost/healthz
}
waits() { [ "$("$hf" --store "file:$dir/store" status --json job | jq -r .waiters)" = 1 ]; }

serve_on
"$hf" --store "$there" run --ttl 30s job -- sh -c "touch '$dir/begun'; while [ ! -e '$dir/go' ]; do sleep 0.05; done" &
holder=$!
eventually 20 test -e "$dir/begun"
"$hf" --store "$there" run -w 60s job -- true 2>"$dir/words" &
waiter=$!
eventually 20 waits
ok $? 'one waits behind the server'
kill -TERM "${server_pid[serve]}"
wait "${server_pid[serve]}"
is $? 0 'the server ends'
serve_on
eventually 20 waits
ok $? 'it waits behind the next one'
touch "$dir/go"
wait "$holder"
is $? 0 'the holder has not noticed'
wait "$waiter"
is $? 0 'and then it has the lock'
sed 's/^/# /' "$dir/words"
done_testing
