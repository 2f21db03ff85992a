#!/bin/bash
# secrets.t - owners, secrets of clients and the store's password are nowhere but where they belong: not on stderr, not in an
# error, not in the metrics, the listing, the page, or the command line.
# shellcheck disable=SC2317 # conditions are called by eventually
set -u
# shellcheck source=tests/redis/lib.sh
. "$(dirname "$0")/../redis/lib.sh"
# shellcheck source=tests/serve/http.sh
. "$(dirname "$0")/http.sh"
password=correct-horse-battery-staple
port=$(free_port)
redis_start db --requirepass "$password"
REDISCLI_AUTH=$password calm db
serve_credential reader look metrics
serve_credential writer lock:app/ look:app/
store=$(url db)
(umask 077 && echo "${store/\/\////:$password@}" >"$dir/url")
HOLDFAST_STORE=$(cat "$dir/url")
export HOLDFAST_STORE
serve_start --listen "tcp:127.0.0.1:$port" --tokens "$dir/tokens" --watch app/a

# Everything that must not be seen, and everything that is.
words=$dir/words seen=$dir/seen
cat "$dir/reader.secret" <(echo) "$dir/writer.secret" <(echo) <(echo "$password") >"$words"
owner() { # sets $owner
    owner=$(new_owner)
    echo "$owner" >>"$words"
}
# send SECRET_FILE WHAT BODY : over TCP, from files, so that nothing of it is an argument
send() {
    { printf 'header = "Authorization: Bearer '; cat "$1"; printf '"\n'; } >"$dir/config"
    curl -sS -m 30 -K "$dir/config" -H 'Content-Type: application/json' -w '\n%{http_code}\n' --data @- "http://127.0.0.1:$port/$2" <<<"$3"
}
# refused CODE SECRET_FILE WHAT BODY : its answer is kept
refused() {
    answer=$(send "${@:2}")
    echo "$answer" >>"$seen"
    is "${answer##*$'\n'}" "$1" "${3:0:10} is $1"
}

owner
held=$owner
said=$(send "$dir/writer.secret" v1/acquire "{\"name\": \"app/a\", \"owner\": \"$held\", \"ttl_ms\": 60000, \"label\": \"job\"}")
is "${said##*$'\n'}" 200 'a lock is held'
refused 409 "$dir/writer.secret" v1/acquire "{\"name\": \"app/b\", \"owner\": \"$held\", \"ttl_ms\": 60000}"
owner
refused 423 "$dir/writer.secret" v1/acquire "{\"name\": \"app/a\", \"owner\": \"$owner\", \"ttl_ms\": 60000}"
owner
refused 400 "$dir/writer.secret" v1/acquire "{\"name\": \"app/a\", \"owner\": \"${owner}x\", \"ttl_ms\": 60000}"
refused 400 "$dir/writer.secret" v1/acquire "{\"owner\": \"$owner\", \"owner\": \"$owner\", \"name\": \"app/a\", \"ttl_ms\": 1}"
refused 400 "$dir/writer.secret" v1/acquire "{\"name\": \"app/a\", \"$owner\": "
refused 400 "$dir/writer.secret" v1/renew "{\"name\": \"app/a\", \"owner\": \"$owner\", \"token\": \"$owner\", \"ttl_ms\": 60000}"
refused 410 "$dir/writer.secret" v1/renew "{\"name\": \"app/a\", \"owner\": \"$owner\", \"token\": \"7\", \"ttl_ms\": 60000}"
refused 410 "$dir/writer.secret" v1/release "{\"name\": \"app/a\", \"owner\": \"$owner\"}"
refused 403 "$dir/writer.secret" v1/acquire "{\"name\": \"other\", \"owner\": \"$owner\", \"ttl_ms\": 60000}"
refused 403 "$dir/reader.secret" v1/release "{\"name\": \"app/a\", \"owner\": \"$held\"}"
refused 404 "$dir/reader.secret" "v1/$owner" '{}'
printf %s "$owner" >"$dir/wrong.secret"
refused 401 "$dir/wrong.secret" v1/release "{\"name\": \"app/a\", \"owner\": \"$held\"}"

# Somebody waits, is asked about, and is sent away; the file of credentials is broken; the store goes.
owner
send "$dir/writer.secret" v1/acquire "{\"name\": \"app/a\", \"owner\": \"$owner\", \"ttl_ms\": 60000, \"wait_ms\": 60000}" >"$dir/waiter" &
waiter=$!
waits() { [ "$(get 'v1/lock?name=app/a' | jq '.locks[0].waiters')" = 1 ]; }
eventually 20 waits
ok $? 'a client waits'
for path in '' metrics healthz readyz v1/locks 'v1/lock?name=app/a' v1/store; do get "$path"; done >>"$seen"
grep -q '"holder": "writer/job"' "$seen" && grep -q 'holdfast_lock_held{lock="app/a"} 1' "$seen"
ok $? 'what may be seen is seen'
tr '\0' '\n' <"/proc/$(pid serve)/cmdline" >>"$seen"
owner
printf 'somebody %s%s look\n' "$owner" "$owner-" >>"$dir/tokens"
kill -HUP "$(pid serve)"
bad() { grep -q 'stay as they were' "$dir/serve.err"; }
eventually 20 bad
ok $? 'a bad file of credentials is told of'
redis_stop db KILL
owner
is "$(post acquire "{\"name\": \"app/c\", \"owner\": \"$owner\", \"ttl_ms\": 60000}" | tee -a "$seen" | jq -r .status)" HF_UNREACHABLE 'a store that is gone is told of'
for path in readyz v1/locks metrics; do get "$path"; done >>"$seen"
grep -q '"status": "HF_UNREACHABLE"' "$seen"
ok $? 'also to those who look'
server_stop serve
wait "$waiter"
cat "$dir/waiter" "$dir/serve.err" >>"$seen"

strings -n 4 "$seen" | grep -Ff "$words" >"$dir/found"
is "$(wc -l <"$dir/found")" 0 'no owner, no secret and no password in any of it'
sed 's/^/#   /; s/[0-9a-f]\{24\}/.../g' "$dir/found" | head -n 5
[ "$(wc -l <"$words")" -ge 9 ] && [ "$(wc -c <"$seen")" -gt 20000 ]
ok $? 'and there was something to look for, and at'
done_testing
