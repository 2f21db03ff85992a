#!/bin/bash
# A leader that is frozen and thaws may end leases that are alive (etcd before 3.4.31 and 3.5.13): the
# holder hears of it at once and its job is ended, not only when it would have renewed.
# run: first
# run: once
# shellcheck disable=SC2034,SC2154,SC2317 # functions and variables that eventually uses
set -u
. "$(dirname "$0")/lib.sh"

rounds=2
cluster_start a b c
revoke_all() { # SERVER
    ctl "$1" lease list | sed 1d | while read -r id; do ctl "$1" lease revoke "$id" >/dev/null; done
}

# what an operator does is heard at once, too: the ttl is long, so that no renewal tells
client e "$(url a b c)"
ask e acquire 1 revoked 30000 0 kept
ask e acquire 2 deleted 30000 0 kept
ask e acquire 3 spared 30000 0 kept
for i in $(seq 20 50); do ask e acquire "$i" "many$i" 30000 0 kept; done
sleep 1
is_lost() { ask e lost "$1"; [[ $answer != 'ok 0 '* ]]; }
ctl a del $'holdfast/deleted\x1f' >/dev/null
eventually 3 is_lost 2
ok $? 'a key that is deleted is heard of long before the next renewal'
like "$answer" '*operator broke*' 'and why it is lost'
ask e lost 3
like "$answer" 'ok 0 *' 'its neighbour is not'
# the server that is listened to is killed: others are listened to
etcd_stop a KILL
eventually 5 eval 'ctl b put x y >/dev/null'
sleep 4
ask e acquire 4 later 30000 0 kept
sleep 2
ctl b del $'holdfast/later\x1f' >/dev/null
eventually 3 is_lost 4
ok $? 'through another server, when the first is gone'
ctl b del $'holdfast/spared\x1f' >/dev/null
eventually 3 is_lost 3
ok $? 'also of a lock that the first server watched'
etcd_again a
revoke_all b
eventually 3 is_lost 1
ok $? 'a lease that is revoked'
all_lost() {
    for i in $(seq 20 50); do is_lost "$i" || return 1; done
}
eventually 3 all_lost
ok $? 'is lost for all that were on it'
gone e

# Jobs that tell when they were last alive, and next to each one that waits and tells when it began.
job() { # NUMBER TTL
    "$hf" --store "$all" run --ttl "$2" "thaw$1" -- sh -c \
        'while :; do date +%s%N >"$1.new"; mv "$1.new" "$1"; sleep 0.05; done' - "$dir/alive.$1" \
        2>"$dir/job.$1" &
    jobs_of+=($!)
}
next() { # NUMBER
    "$hf" --store "$all" run --ttl 4s -w 20s "thaw$1" -- sh -c 'date +%s%N >"$1"' - "$dir/next.$1" \
        2>/dev/null &
    jobs_of+=($!)
}
jobs_begin() { # TTL : four jobs under the locks, and four that wait for them
    jobs_of=()
    rm -f "$dir"/alive.* "$dir"/next.*
    for i in 1 2 3 4; do job $i "$1"; done
    for i in 1 2 3 4; do beats $i; done
    for i in 1 2 3 4; do next $i; done
    sleep 0.5
}
jobs_end() {
    kill -TERM "${jobs_of[@]}" 2>/dev/null
    for id in "${jobs_of[@]}"; do wait "$id"; done
}
taken=0 # locks that passed on while their job lived
late=0
# judge SINCE_NS LIMIT_MS : of the jobs that were alive then, and whose lock passed on, which lived on for longer?
judge() {
    for i in 1 2 3 4; do
        last=$(cat "$dir/alive.$i")
        [ -s "$dir/next.$i" ] || continue
        [ "$last" -gt $(($1 - 100000000)) ] || continue
        taken=$((taken + 1))
        after=$(((last - $(cat "$dir/next.$i")) / 1000000))
        echo "# lock $i: the job lived on for $after ms beside the next one"
        [ "$after" -lt "$2" ] || late=$((late + 1))
    done
}

for round in $(seq "$rounds"); do
    eventually 20 eval 'first=$(leader a b c)'
    # shellcheck disable=SC2046 # two names
    set -- $(printf '%s\n' a b c | grep -v "$first")
    all=$(url "$1" "$2")
    jobs_begin 4s
    kill -STOP "$(pid "$first")"
    # the old leader takes the leases for expired; its peers have just hung up on it, or not yet
    sleep "5.$((round * 2 + 1))"
    thawed=$(date +%s%N)
    kill -CONT "$(pid "$first")"
    sleep 3
    judge "$thawed" 1000 # before the next renewal, which is due every 1.3s
    jobs_end
    [ "$taken" -eq 0 ] || break
done
is "$late" 0 "no job lived on beside the next one (of $taken that could, in round $round)"

# It is a matter of luck whether a leader that thaws does it. So it is told to, between two renewals, which are 4s
# apart. That jobs live until then is not luck, but a machine may be slow: there is a second try, and a third.
all=$(url a b c)
taken=0
late=0
for try in 1 2 3; do
    eventually 20 eval 'first=$(leader a b c)'
    jobs_begin 12s
    sleep 4.5 # `run` listens from shortly before the first renewal on
    told=$(date +%s%N)
    revoke_all "$first"
    eventually 15 test -s "$dir/next.1" -a -s "$dir/next.2" -a -s "$dir/next.3" -a -s "$dir/next.4"
    sleep 0.5
    judge "$told" 1500
    jobs_end
    [ "$taken" -eq 0 ] || break
done
above "$taken" 0 "leases were ended while their jobs lived, in try $try"
is "$late" 0 'and no job lived on until it would have renewed'
sed 's/^/# /' "$dir"/job.*
etcd --version | sed -n 's/^etcd Version: /# etcd /p'
done_testing
