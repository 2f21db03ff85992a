#!/bin/bash
# break.t - a hold in Redis is broken: alive, frozen, cut off, by hand and by others' clients.
# shellcheck disable=SC2317 # functions that break_cut uses by name
set -u
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/../support/break.sh"

redis_start a
calm a
proxy_start p a
url=$(url a)
near=$(url p)
cut() { proxy p mode deaf; }
mend() { proxy p mode pass; }

break_alive "$url" 3000
break_frozen "$url" 1500
break_cut "$url" 2000 "$near" cut mend
break_run "$url" 6s
break_twice "$url" 20000

# What lies in Redis.
client c "$url"
ask c acquire 0 seen 20000 0 free
token=$(token)
owner=$(rcli a get seen)
before=$(rcli a pttl seen)
ask c break seen "$token"
is "$(rcli a get seen)" "$owner!" 'the key has a mark behind the owner'
left=$(rcli a pttl seen)
[ "$left" -le "$before" ] && [ "$left" -gt $((before - 10000)) ]
ok $? 'and its time is as it was'
like "$(rcli a --raw get 'holdfast:{seen}:b')" "$token *breaker*a test" 'who and why stand beside it'
above "$(rcli a pttl 'holdfast:{seen}:b')" "$left" '... for a while longer'
ask c release 0
is "$(rcli a exists seen)" 0 'its release takes it away'

# A client that is not holdfast.
rcli a set theirs somebody px 30000 >/dev/null
"$hf" --store "$url" break theirs --token 0 2>"$dir/err"
is $? 64 'a foreign holder would not hear of it'
like "$(cat "$dir/err")" '*not holdfast*' 'which is said'
is "$(rcli a get theirs)" somebody 'and nothing happens'
answer=$("$hf" --store "$url" break theirs --token 5 --now 2>&1)
is $? 1 'a token that it does not have'
is "$(rcli a get theirs)" somebody 'nothing happens'
answer=$("$hf" --store "$url" break theirs --token 0 --now 2>&1)
is $? 0 'with --now'
like "$answer" 'ended "theirs", held by a client that is not holdfast*' 'it is ended'
is "$(rcli a exists theirs)" 0 'and gone'
ask c acquire 0 ours 20000 0 free
"$hf" --store "$url" break ours --token 0 --now 2>/dev/null
is $? 1 'which ends none of ours'
ask c renew 0 20000
is "$answer" ok 'it is renewed'
ask c release 0

# --now, and nobody is handed a lock by a server in quarantine.
client w "$url"
ask c acquire 0 fresh 20000 0 kept
token=$(token)
tell w acquire 0 fresh 5000 60000
eventually 10 waiting_for fresh "$url"
rcli a set holdfast:inc "$(rcli a info replication | tr -d '\r' | sed -n 's/^master_replid://p') 99999999999999 1 60000" >/dev/null
answer=$("$hf" --store "$url" break fresh --token "$token" --now 2>&1)
is $? 0 'in quarantine a hold can be ended'
silent w
ok $? 'and the lock is not passed on'
eventually 15 broken c
ok $? 'whose it was hears that it was broken'
calm a
hear w 70
like "$answer" 'ok *' 'after the quarantine the waiter has it'
ask w release 0

# Without a script: the mark is not what SET IFEQ would find.
rcli a set bare "$owner!" px 5000 >/dev/null
is "$(rcli a get bare)" "$owner!" '(a value with a mark is none of the bare owner)'
done_testing
