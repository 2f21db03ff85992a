#!/bin/sh
# acquire, renew and release: the lease that belongs to no process.
. "$(dirname "$0")/tap.sh"

# forget: the variables of an earlier acquire.
forget() { unset HOLDFAST_NAME HOLDFAST_TOKEN HOLDFAST_OWNER; }

# the round trip
store=$HOLDFAST_STORE
eval "$(holdfast acquire --ttl 1m deploy)"
is "$?" 0 'eval of acquire succeeds'
is "${HOLDFAST_NAME-}" deploy 'HOLDFAST_NAME is set'
ok 'HOLDFAST_TOKEN is a number' expr "${HOLDFAST_TOKEN-}" : '[1-9][0-9]*$'
ok 'HOLDFAST_OWNER is 32 hex digits' expr "${HOLDFAST_OWNER-}" : '[0-9a-f]\{32\}$'
is "${HOLDFAST_STORE-}" "$store" 'HOLDFAST_STORE names the store'
ok 'they are exported' sh -c '[ -n "$HOLDFAST_OWNER" ] && [ -n "$HOLDFAST_NAME" ]'
first=$HOLDFAST_TOKEN
t holdfast status deploy --json
json '.held and .detached and (.foreign | not)' 'it is held, and detached'
json ".token == $first" 'with that token'
t holdfast renew
is "$code$out$err" 0 'renew needs no words and says nothing'
t holdfast renew --ttl 1h deploy
is "$code" 0 'renew with the name and another ttl'
t holdfast status deploy --json
json '.remaining_ms > 3000000' 'it lasts longer now'
t holdfast renew
t holdfast status deploy --json
json '.remaining_ms > 3000000' 'renew keeps the ttl it has'
t holdfast release
is "$code$out$err" 0 'release needs no words and says nothing'
t holdfast status deploy --json
json '.held | not' 'it is free'

# lost
t holdfast release
refused 123 deploy 'a second release finds it lost'
t holdfast renew
refused 123 deploy 'a renewal after release finds it lost'
mine=$HOLDFAST_OWNER
eval "$(holdfast acquire -n deploy)"
is "$?" 0 'another takes it'
ok 'tokens rise' [ "$HOLDFAST_TOKEN" -gt "$first" ]
ok 'owners are fresh' [ "$HOLDFAST_OWNER" != "$mine" ]
t env HOLDFAST_OWNER="$mine" HOLDFAST_TOKEN="$first" "$bin" release
refused 123 deploy 'the former owner cannot release it'
t env HOLDFAST_OWNER="$mine" "$bin" renew
refused 123 deploy 'nor renew it'
t holdfast renew
is "$code" 0 'it is untouched by that'
owner=$HOLDFAST_OWNER

# secrets
t holdfast status deploy
ok 'status does not show the owner' not contains "$out$err" "$owner"
t holdfast list --json
ok 'nor does list' not contains "$out$err" "$owner"
t holdfast acquire -n deploy
ok 'nor a refusal' not contains "$out$err" "$owner"
t env HOLDFAST_OWNER="not-$owner" "$bin" renew
refused 64 'HOLDFAST_OWNER is not an owner' 'a garbled owner'
ok 'is not repeated' not contains "$err" "$owner"

# busy: what is evaluated must fail, and change nothing
t holdfast acquire -n deploy
refused 75 deploy 'busy: exit 75'
before=$HOLDFAST_TOKEN
eval "$(holdfast acquire -n deploy 2>/dev/null)"
is "$?" 75 'eval of a refused acquire fails with that code'
is "$HOLDFAST_TOKEN$HOLDFAST_OWNER" "$before$owner" 'and leaves the variables alone'
eval "$(holdfast acquire -n -E 42 deploy 2>/dev/null)"
is "$?" 42 'with --busy-exit, with that one'
eval "$(holdfast acquire --ttl nonsense deploy 2>/dev/null)"
is "$?" 64 'also for wrong usage'
t holdfast acquire -w 150ms deploy
is "$code" 75 'a wait that ends is busy too'
t holdfast acquire -n --json deploy
is "$code$out" 75 'with --json nothing is printed on failure'

# the variables
t env -u HOLDFAST_OWNER "$bin" release
refused 64 "HOLDFAST_OWNER is not set" 'without the owner'
t env -u HOLDFAST_TOKEN "$bin" release
refused 64 'HOLDFAST_TOKEN is not set' 'without the token'
t env -u HOLDFAST_NAME "$bin" renew
refused 64 'HOLDFAST_NAME is not set' 'without the name'
t env HOLDFAST_TOKEN=0 "$bin" renew
refused 64 'HOLDFAST_TOKEN is not a token' 'with token 0'
t env HOLDFAST_TOKEN=12x "$bin" renew
refused 64 'HOLDFAST_TOKEN is not a token' 'with a garbled token'
t holdfast release another
refused 64 "'deploy' (HOLDFAST_NAME), not 'another'" 'with the name of another lock'
t holdfast renew --ttl 5ms
refused 64 'too short' 'renew with a ttl too short'
t holdfast status deploy --json
json '.held' 'none of this released it'
holdfast release
forget
t holdfast release
refused 64 'eval "$(holdfast acquire NAME)"' 'without any: says how to take a lock'

# expiry
t holdfast acquire --ttl 100ms --json short
json '.ttl_ms == 100 and .remaining_ms < 100' 'acquire --json'
eval "$(jq -r '"export HOLDFAST_NAME=short HOLDFAST_TOKEN=\(.token) HOLDFAST_OWNER=\(.owner)"' "$tmp/out")"
free() { holdfast status short | grep -q 'short: free'; }
ok 'a lease that nobody renews ends' until_true free
t holdfast renew
refused 123 short 'a renewal comes too late then'
forget

# words that are hard to quote
hard="it's a \"\$HOME\" \`name\` \\ with; (all) *"
eval "$(holdfast acquire -n "$hard")"
is "$HOLDFAST_NAME" "$hard" 'a name full of quotes survives eval'
t holdfast release
is "$code" 0 'and is released'
forget
t holdfast acquire -n --label "$(printf 'two\nlines \033[1m')" labelled
t holdfast status labelled
ok 'control characters of a label do not reach the terminal' not contains "$out" "$(printf '\033')"

# waiting
eval "$(holdfast acquire -n queue)"
holdfast acquire --ttl 1m queue >"$tmp/waiter" 2>"$tmp/waiter.err" &
waiter=$!
background=$waiter
waits() { [ "$(holdfast status queue --json | jq .waiters)" = 1 ]; }
ok 'a waiter is seen' until_true waits
holdfast release
wait "$waiter"
is "$?" 0 'it gets the lock when it is released'
has "$(cat "$tmp/waiter")" "export HOLDFAST_NAME='queue'" 'and prints its lease'
for signal in TERM INT; do
    rm -f "$tmp/waiter.err"
    # A shell starts background commands with INT ignored; env gives it back.
    env --default-signal=INT "$bin" acquire queue >"$tmp/waiter" 2>"$tmp/waiter.err" &
    waiter=$!
    background=$waiter
    until_true waits
    kill -s "$signal" "$waiter"
    wait "$waiter"
    code=$?
    is "$(kill -l "$code")" "$signal" "$signal ends a waiter as usual"
    t holdfast status queue --json
    json '.waiters == 0' 'it has left the queue'
done
background=''
forget

# output that does not arrive
t sh -c '"$0" acquire -n lostline >/dev/full' "$bin"
refused 125 'released again' 'stdout full: nobody could release it'
t holdfast status lostline
has "$out" 'lostline: free' 'so it is free again'
mkfifo "$tmp/pipe"
: <"$tmp/pipe" &
reader=$!
exec 9>"$tmp/pipe"
wait "$reader"
t sh -c '"$0" acquire -n lostpipe >&9 9>&-' "$bin"
exec 9>&-
refused 125 'released again' 'reader gone: not killed by SIGPIPE with the lock in hand'
t holdfast status lostpipe
has "$out" 'lostpipe: free' 'free again'

done_testing
