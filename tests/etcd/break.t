#!/bin/bash
# break.t - a hold in etcd is broken. What is special is the lease that holds share, and the watch.
# shellcheck disable=SC2317 # functions that are called by name
# run: first
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/break.sh"

etcd_start a
proxy_start p a
url=$(url a)
cut() { proxy p mode deaf && proxy p strand; }
mend() { proxy p mode pass; }

break_alive "$url" 3000
break_frozen "$url" 3000
break_cut "$url" 3000 "$(url p)" cut mend
break_run "$url" 6s
break_idle "$url" 3000
break_now "$url" 3000
break_twice "$url" 15000

# The watch tells of it at once, whatever the ttl.
client h "$url"
client b "$url"
ask h acquire 0 soon 60000 0 kept
t=$(token)
sleep 1 # until it is watched: nothing tells
ask b break soon "$t"
eventually 2 broken h
ok $? 'a holder with a long ttl hears of it at once'
ask h release 0
for i in $(seq 1 20); do ask h acquire "$((i % 20))" "many$i" 60000 0 kept; done
t=$(token)
sleep 1
ask b break many20 "$t"
eventually 2 broken h
ok $? 'also one of many'
ask h lost 19
like "$answer" 'ok 0 *' 'and it alone'
gone h

# The lease that it shares with others is left to end, and the others move to a new one.
lease_of() { ctl a get --prefix "holdfast/$1"$'\x1f' -w json | jq -r '.kvs[0].lease'; }
apart() { [ "$(lease_of one)" != "$(lease_of two)" ]; }
together() { ! apart; }
client s "$url"
ask s acquire 0 one 12000 0 kept
t=$(token)
ask s acquire 1 two 12000 0 kept
eventually 10 eval '[ "$(ctl a get --prefix "holdfast/one"$'"'\x1f'"' -w json | jq .kvs[0].version)" -gt 1 ]'
ok $? 'a hold was renewed'
eventually 10 together
ok $? 'two holds share a lease'
ask b break one "$t"
eventually 2 broken s
ok $? 'one of them is broken'
eventually 6 apart
ok $? 'the other does not keep it alive'
like "$(lease_of one)" '[1-9]*' '(both are there)'
ask s release 0
ask s renew 1 12000
is "$answer" ok 'and lives on'
gone s

# A renewal that is refused does not make a detached hold last longer.
client w "$url"
ask b acquire 1 detached 4000 0 detached
t=$(token)
ask b owner 1
owner=${answer#ok }
ask b break detached "$t"
like "$answer" 'ok left=[1-9]*detached=1*' 'a detached hold is broken'
end=$((SECONDS + 12))
renewed=0
refused=0
while ask w adopt 1 detached "$owner" "$t" && [[ $answer == ok* ]] && [ $SECONDS -lt $end ]; do
    ask w renew 1 4000
    case $answer in
    ok*) renewed=$((renewed + 1)) ;;
    HF_LOST*'broken by breaker'*) refused=$((refused + 1)) ;;
    esac
    ask w leave 1
    sleep 0.3
done
is "$renewed" 0 'and never renewed'
above "$refused" 3 'however often that is tried'
[ $SECONDS -lt $end ]
ok $? 'which does not make it last longer'

# A key that another client put there.
ctl a put $'holdfast/theirs\x1f' somebody >/dev/null
"$hf" --store "$url" break theirs --token 0 2>"$dir/err"
is $? 64 'a foreign holder would not hear of it'
rev=$(ctl a get $'holdfast/theirs\x1f' -w json | jq '.kvs[0].create_revision')
ask b break theirs "$rev"
like "$answer" 'HF_INVALID*not holdfast*' 'its revision is no token'
printf 'y\n' | script -qefc "$hf --store $url break theirs" "$dir/screen" >"$dir/out"
is $? 64 'on a terminal, too'
like "$(cat "$dir/screen")" '*not holdfast*--now*' 'which is said'
answer=$("$hf" --store "$url" break theirs --token 0 --now 2>&1)
is $? 0 'with --now'
ask b acquire 0 theirs 3000 0
like "$answer" 'ok *' 'it is ended'
"$hf" --store "$url" break theirs --token 0 --now 2>"$dir/err"
is $? 1 'which ends none of ours'
ask b release 0

# What is left behind: nothing, once the leases have ended.
notices() { ctl a get --prefix $'holdfast/\x1c' --keys-only | grep -ac 'detached\|lazy'; }
eventually 20 eval '[ "$(notices)" -eq 0 ]'
is "$(notices)" 0 'the notices of breaks have ended with the leases of the holds'
done_testing
