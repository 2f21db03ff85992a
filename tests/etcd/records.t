#!/bin/bash
# Records: holders that cannot write them any more, writes that come late, what is kept where, and for how long.
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/records.sh"

etcd_start a
proxy_start p a
client a "$(url p)"
straight=$(url a)
client b "$straight"
records() { keys a $'holdfast/\x1e'"$1"$'\x1f'; }  # of that lock
expiries() { keys a $'holdfast/\x1d'"$1"$'\x1f'; } # entries in the list of those that expire

# one round trip
ask a acquire 1 trips 20000 0
proxy p requests
ask a put 1 k first
is "$answer" ok 'a put'
ask a put 1 k second 3600000
ask a put 1 k third
proxy p requests
is "$proxied" 3 'is one request, the first, the next, and one that is not kept for ever'
ask a get trips k
like "$answer" 'ok \[k=third token=* number=3 until=0\] now=1*000' 'a get tells the record and the clock'
proxy p requests
is "$proxied" 1 'and is one as well'
ask a release 1
client c "$(url p)"
ask c acquire 1 trips 20000 0
proxy p requests
ask c put 1 k fourth
proxy p requests
is "$proxied" 1 'also for a client that has read no record'
ask c release 1

# what arrives when another holds the lock, or nobody
overtaken_by_another request_txn
overtaken_by_the_end request_txn

# a late copy of an older number
ask a acquire 1 copy 60000 0 kept
proxy p mode hold request_txn
tell a put 1 k running
eventually 10 eval 'proxy p held; [ "$proxied" -gt 0 ]'
proxy p mode pass
hear a
is "$answer" ok 'a put that gets no answer is sent again'
ask a put 1 k finished
is "$answer" ok 'the next one is written'
proxy p let
is "$proxied" 1 'then the first copy of the first one arrives'
ask b get copy k
like "$answer" 'ok \[k=finished * number=2 *' 'and undoes nothing'
# the same with a first write: it comes when the record has expired, which is there all the same
proxy p mode hold request_txn
tell a put 1 brief running
eventually 10 eval 'proxy p held; [ "$proxied" -gt 0 ]'
proxy p mode pass
hear a
ask a put 1 brief finished 1
eventually 10 eval 'ask b get copy brief; [[ $answer == "ok now="* ]]'
for i in 1 2 3; do ask a put 1 other x; done
proxy p let
is "$proxied" 1 'a first copy that arrives when what came later has expired'
sleep 0.2
ask b get copy brief
like "$answer" 'ok now=*' 'does not bring it back'
ask a release 1

# the answer is lost
ask a acquire 1 mute 30000 0 kept
proxy p mode kill
proxy p once
ask a put 1 k value
is "$answer" ok 'a put whose answer was lost is found to be there'
ask b get mute k
like "$answer" 'ok \[k=value * number=1 *' 'once'
for junk in bare wrong nonsense; do
    proxy p mode $junk
    proxy p once
    ask a put 1 "$junk" value
    is "$answer" ok "an answer that says nothing ($junk) is not believed"
    ask b get mute "$junk"
    like "$answer" "ok \[$junk=value *" 'and what was sent is there'
done
ask a release 1

# a hold that ended in the store, unknown to its holder
ask a acquire 1 deleted 20000 0
ask a put 1 k before
ctl a del $'holdfast/deleted\x1f' >/dev/null
ask a put 1 k after
like "$answer" 'HF_LOST*' 'a put without a hold: lost'
ask a acquire 2 revoked 20000 0
ctl a lease list | sed 1d | while read -r id; do ctl a lease revoke "$id" >/dev/null; done
ask a put 2 k after
like "$answer" 'HF_LOST*' 'likewise when its lease has ended'
ask b get revoked k
like "$answer" 'ok now=*' 'and nothing was written'
ask b acquire 1 deleted 20000 0
ask a put 1 k after
like "$answer" 'HF_LOST*' 'likewise when it is held by another'
ask b get deleted k
like "$answer" 'ok \[k=before *' 'whose records stay as they were'
ask b release 1
ask a release 1
ask a release 2

# one that waited has another key
ask a acquire 1 waited 20000 0
tell b acquire 1 waited 20000 20000
eventually 10 eval 'ask a status waited; [[ $answer == *waiters=1* ]]'
ask a put 1 k first
is "$answer" ok 'a holder with somebody behind it writes'
ask a release 1
hear b
ask b put 1 k second
is "$answer" ok 'and so does the one that waited'
ask b owner 1
owner=${answer#ok }
ask b get waited k
number=$(sed -n 's/.*token=\([0-9]*\).*/\1/p' <<<"$answer")
client d "$(url a)"
ask d adopt 1 waited "$owner" "$number"
ask d put 1 k third
is "$answer" ok 'also from a process that knows it only by its owner and token'
ask b release 1
ask d put 1 k fourth
like "$answer" 'HF_LOST*' 'until it is released'
gone d

stopped_with_its_keeper

# what has expired goes, a few at a time, and by a later hold
ask b acquire 1 keep 20000 0
for i in $(seq 6); do
    ask b put 1 "short:$i" x 1
done
ask b put 1 again x 1
ask b put 1 for-ever x
ask b put 1 again x 3600000
eventually 5 eval 'ask b records keep short:; [ "$answer" = ok ]'
ok $? 'what has expired is not shown'
ask b put 1 other x
sleep 0.3
is "$(records keep)" 9 'what a hold wrote stays until another hold writes: a late copy finds it'
ask b release 1
ask b acquire 1 keep 20000 0
ask b put 1 other x
eventually 5 eval '[ "$(records keep)" -le 6 ]'
like "$(records keep)" '[56]' 'a put of the next one removes four, or three and an entry that is out of date'
ask b put 1 other y
ask b put 1 other z
eventually 5 eval '[ "$(expiries keep)" = 1 ]'
is "$(records keep)$(expiries keep)" 31 'until none is left, and no entry but that of what will expire'
ask b records keep -
like "$answer" 'ok \[again=x *until=1*\] \[for-ever=x *\] \[other=z *\]' 'the others are listed'
ask b release 1

# where they are
like "$(ctl a get --prefix $'holdfast/\x1ekeep\x1f' --keys-only | tr '\n\036\037' '.RN')" \
    '*holdfast/RkeepNother*' 'records lie outside the queue of the lock'
ask b list -
is "$answer" ok 'and a listing does not show them'
leases=$(leases a)
ask b acquire 1 keep 20000 0
ask b put 1 leaseless x 5000
ask b release 1
eventually 10 eval '[ "$(leases a)" -le "$leases" ]'
ok $? 'no lease is left for them'

# damage
ctl a put $'holdfast/\x1etrips\x1fbroken' 'what is this' >/dev/null
ask b get trips broken
like "$answer" 'ok HF_CORRUPT*"broken"*damaged*' 'a record that cannot be read says so'
ask b records trips -
like "$answer" 'ok \[k=fourth *\] HF_CORRUPT*"broken"*' 'the others are shown all the same'
ask b acquire 1 trips 20000 0
ask b put 1 broken x
like "$answer" 'HF_CORRUPT*' 'it is not overwritten: nobody knows how new it is'
ask b put 1 k fifth
is "$answer" ok 'the others are written'
ask b release 1
ctl a del $'holdfast/\x1etrips\x1fbroken' >/dev/null
ask b records trips -
like "$answer" 'ok \[k=fifth *\]' 'without its key all is well'

# a client that only reads leaves nothing behind
etcd_start e
client r
ask r readonly "$(url e)"
ask r get nothing k
like "$answer" 'ok now=1*' 'a store that was opened read-only tells that there is no record, and the clock'
ask r records nothing -
is "$answer" ok 'lists none'
is "$(keys e '')" 0 'and makes no key'

# a prefix of its own, or none at all
for prefix in '?prefix=' '?prefix=app'; do
    client n "$(url e "$prefix")"
    ask n acquire 1 x 20000 0
    ask n put 1 k of-x 3600000
    ask n get x k
    like "$answer" 'ok \[k=of-x *' "a record under ${prefix#?}"
    ask n list -
    like "$answer" 'ok \[x *\]' 'is no lock'
    ask n release 1
    gone n
done

# the longest of everything
long_prefix=$(printf 'p%.0s' $(seq 100)) long_name=$(printf 'n%.0s' $(seq 200)) long_key=$(printf 'k%.0s' $(seq 63))
client l "$(url e "?prefix=$long_prefix")"
ask l acquire 1 "$long_name" 20000 0
for i in 1 2 3 4; do ask l put 1 "$long_key$i" x 1; done
is "$answer" ok 'the longest prefix, name and key'
eventually 5 eval 'ask l records "$long_name" -; [ "$answer" = ok ]'
ask l release 1
ask l acquire 1 "$long_name" 20000 0
ask l put 1 "${long_key}5" x
eventually 5 eval '[ "$(keys e "$long_prefix")" = 2 ]'
ok $? 'what has expired of them is removed all the same'
ask l records "$long_name" "$long_key"
like "$answer" "ok \[${long_key}5=x *\]" 'and the rest is listed'
ask l release 1

# a server without an answer
ask r close
etcd_stop e KILL
ask b acquire 1 down 20000 0
etcd_stop a
ask b get down k
like "$answer" 'ok HF_UNREACHABLE*' 'a get without a server'
done_testing
