#!/bin/bash
# acquire, renew and release: the lease that belongs to no process.
set -u
. "$(dirname "$0")/cmd.sh"

# forget: the variables of an earlier acquire.
forget() { unset HOLDFAST_NAME HOLDFAST_TOKEN HOLDFAST_OWNER; }

# the round trip
store=$HOLDFAST_STORE
eval "$(holdfast acquire --ttl 1m deploy)"
is "$?" 0 'eval of acquire succeeds'
is "${HOLDFAST_NAME-}" deploy 'HOLDFAST_NAME is set'
check 'HOLDFAST_TOKEN is a number' expr "${HOLDFAST_TOKEN-}" : '[1-9][0-9]*$'
check 'HOLDFAST_OWNER is 32 hex digits' expr "${HOLDFAST_OWNER-}" : '[0-9a-f]\{32\}$'
is "${HOLDFAST_STORE-}" "$store" 'HOLDFAST_STORE names the store'
check 'they are exported' sh -c '[ -n "$HOLDFAST_OWNER" ] && [ -n "$HOLDFAST_NAME" ]'
first=$HOLDFAST_TOKEN
run holdfast status deploy --json
json '.held and .detached and (.foreign | not)' 'it is held, and detached'
json ".token == $first" 'with that token'
run holdfast renew
is "$rc$out$err" 0 'renew needs no words and says nothing'
run holdfast renew --ttl 1h deploy
is "$rc" 0 'renew with the name and another ttl'
run holdfast status deploy --json
json '.remaining_ms > 3000000' 'it lasts longer now'
run holdfast renew
run holdfast status deploy --json
json '.remaining_ms > 3000000' 'renew keeps the ttl it has'
run holdfast release
is "$rc$out$err" 0 'release needs no words and says nothing'
run holdfast status deploy --json
json '.held | not' 'it is free'

# lost
run holdfast release
refused 123 deploy 'a second release finds it lost'
run holdfast renew
refused 123 deploy 'a renewal after release finds it lost'
mine=$HOLDFAST_OWNER
eval "$(holdfast acquire -n deploy)"
is "$?" 0 'another takes it'
check 'tokens rise' [ "$HOLDFAST_TOKEN" -gt "$first" ]
check 'owners are fresh' [ "$HOLDFAST_OWNER" != "$mine" ]
run env HOLDFAST_OWNER="$mine" HOLDFAST_TOKEN="$first" "$hf" release
refused 123 deploy 'the former owner cannot release it'
run env HOLDFAST_OWNER="$mine" "$hf" renew
refused 123 deploy 'nor renew it'
run holdfast renew
is "$rc" 0 'it is untouched by that'
owner=$HOLDFAST_OWNER

# secrets
run holdfast status deploy
check 'status does not show the owner' not contains "$out$err" "$owner"
run holdfast list --json
check 'nor does list' not contains "$out$err" "$owner"
run holdfast acquire -n deploy
check 'nor a refusal' not contains "$out$err" "$owner"
run env HOLDFAST_OWNER="not-$owner" "$hf" renew
refused 64 'HOLDFAST_OWNER is not an owner' 'a garbled owner'
check 'is not repeated' not contains "$err" "$owner"

# busy: what is evaluated must fail, and change nothing
run holdfast acquire -n deploy
refused 75 deploy 'busy: exit 75'
before=$HOLDFAST_TOKEN
eval "$(holdfast acquire -n deploy 2>/dev/null)"
is "$?" 75 'eval of a refused acquire fails with that code'
is "$HOLDFAST_TOKEN$HOLDFAST_OWNER" "$before$owner" 'and leaves the variables alone'
eval "$(holdfast acquire -n -E 42 deploy 2>/dev/null)"
is "$?" 42 'with --busy-exit, with that one'
eval "$(holdfast acquire --ttl nonsense deploy 2>/dev/null)"
is "$?" 64 'also for wrong usage'
run holdfast acquire -w 150ms deploy
is "$rc" 75 'a wait that ends is busy too'
run holdfast acquire -n --json deploy
is "$rc$out" 75 'with --json nothing is printed on failure'

# the variables
run env -u HOLDFAST_OWNER "$hf" release
refused 64 "HOLDFAST_OWNER is not set" 'without the owner'
run env -u HOLDFAST_TOKEN "$hf" release
refused 64 'HOLDFAST_TOKEN is not set' 'without the token'
run env -u HOLDFAST_NAME "$hf" renew
refused 64 'HOLDFAST_NAME is not set' 'without the name'
run env HOLDFAST_TOKEN=0 "$hf" renew
refused 64 'HOLDFAST_TOKEN is not a token' 'with token 0'
run env HOLDFAST_TOKEN=12x "$hf" renew
refused 64 'HOLDFAST_TOKEN is not a token' 'with a garbled token'
run holdfast release another
refused 64 "\"deploy\" (HOLDFAST_NAME), not \"another\"" 'with the name of another lock'
run holdfast renew --ttl 5ms
refused 64 'too short' 'renew with a ttl too short'
run holdfast status deploy --json
json '.held' 'none of this released it'
holdfast release
forget
run holdfast release
refused 64 'eval "$(holdfast acquire NAME)"' 'without any: says how to take a lock'

# expiry
run holdfast acquire --ttl 100ms --json short
json '.ttl_ms == 100 and .remaining_ms < 100' 'acquire --json'
eval "$(jq -r '"export HOLDFAST_NAME=short HOLDFAST_TOKEN=\(.token) HOLDFAST_OWNER=\(.owner)"' "$dir/out")"
free() { holdfast status short | grep -q 'short: free'; }
check 'a lease that nobody renews ends' within 20 free
run holdfast renew
refused 123 short 'a renewal comes too late then'
forget

# words that are hard to quote
hard="it's a \"\$HOME\" \`name\` \\ with; (all) *"
eval "$(holdfast acquire -n "$hard")"
is "$HOLDFAST_NAME" "$hard" 'a name full of quotes survives eval'
run holdfast release
is "$rc" 0 'and is released'
forget
run holdfast acquire -n --label "$(printf 'two\nlines \033[1m')" labelled
run holdfast status labelled
check 'control characters of a label do not reach the terminal' not contains "$out" "$(printf '\033')"

# waiting
eval "$(holdfast acquire -n queue)"
"$hf" acquire --ttl 1m queue >"$dir/waiter" 2>"$dir/waiter.err" &
waiter=$!
started=$waiter
waits() { [ "$(holdfast status queue --json | jq .waiters)" = 1 ]; }
check 'a waiter is seen' within 20 waits
holdfast release
wait "$waiter"
is "$?" 0 'it gets the lock when it is released'
has "$(cat "$dir/waiter")" "export HOLDFAST_NAME='queue'" 'and prints its lease'

# A waiter that is told to end by a signal dies of it: a shell that saw an exit code instead would
# not know of the Ctrl-C and go on with its script. perl can tell the two apart, and its child does
# not ignore INT as a shell's background commands do, nor HUP as those of nohup(1) do.
waiter_with_status='
    my $file = shift;
    my $child = fork // die;
    if (!$child) { $SIG{$_} = "DEFAULT" for qw(INT HUP); exec @ARGV or die }
    open my $out, ">", "$file.new" or die;
    print $out $child;
    close $out;
    rename "$file.new", $file;
    waitpid $child, 0;
    exit($? & 127);'
for signal in TERM INT HUP; do
    rm -f "$dir/pid"
    perl -e "$waiter_with_status" "$dir/pid" "$hf" acquire queue >"$dir/waiter" 2>/dev/null &
    waiter=$!
    within 20 waits
    within 20 test -f "$dir/pid"
    started="$waiter $(cat "$dir/pid")"
    kill -s "$signal" "$(cat "$dir/pid")"
    wait "$waiter"
    rc=$?
    is "$(kill -l "$rc")" "$signal" "$signal ends a waiter as usual"
    is "$(cat "$dir/waiter")" "(exit $((128 + rc)))" 'what it printed makes an eval fail'
    run holdfast status queue --json
    json '.waiters == 0' 'it has left the queue'
done
started=
forget

# output that does not arrive
run sh -c '"$0" acquire -n lostline >/dev/full' "$hf"
refused 125 'released again' 'stdout full: nobody could release it'
run holdfast status lostline
has "$out" 'lostline: free' 'so it is free again'
mkfifo "$dir/pipe"
: <"$dir/pipe" &
reader=$!
exec 9>"$dir/pipe"
wait "$reader"
run sh -c '"$0" acquire -n lostpipe >&9 9>&-' "$hf"
exec 9>&-
refused 125 'released again' 'reader gone: not killed by SIGPIPE with the lock in hand'
run holdfast status lostpipe
has "$out" 'lostpipe: free' 'free again'

done_testing
