#!/bin/bash
# Records: holders that cannot write them any more, writes that come late, what is kept where, and for how long.
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/records.sh"

zk_start a minSessionTimeout=400 maxSessionTimeout=80000
proxy_start p a
through="zookeeper://$(hosts p)?tick=200ms"
straight="zookeeper://$(hosts a)?tick=200ms"
client a "$through"
client b "$straight"
records() { # LOCK : how many nodes there are
    kazoo a "
path = '/holdfast/%records/$1'
print(len(k.get_children(path)) if k.exists(path) else 0)"
}

# one round trip: what a client has read or written, it knows
ask a acquire 1 trips 20000 0
ask a get trips k
like "$answer" 'ok now=1*' 'a get of nothing tells the clock'
ask a put 1 k first
is "$answer" ok 'a put'
ask a get trips k
like "$answer" 'ok \[k=first token=* number=1 until=0\] now=1*' 'a get tells the record and the clock'
proxy p trips
for i in 2 3 4 5 6 7 8 9 10 11; do ask a put 1 k third; done
proxy p trips
above 15 "$proxied" 'ten puts of what the client knows are ten round trips, and a ping or so'
ask b get trips k
like "$answer" 'ok \[k=third *number=11 *' 'everybody reads it'
ask a release 1
ask b acquire 1 trips 20000 0
ask b put 1 k fourth
is "$answer" ok 'the next hold is above the last'
ask b release 1
ask a acquire 1 trips 20000 0
ask a put 1 k fifth
is "$answer" ok 'also for a client that remembers an older version'
ask a release 1

# what arrives when another holds the lock, or nobody
overtaken_by_another hostage
overtaken_by_the_end hostage

# a late copy of an older number, of a record that is there and of one that is not
ask a acquire 1 copy 20000 0 kept
ask a put 1 there before
for key in there new; do
    proxy p mode hold running
    tell a put 1 $key running
    eventually 10 eval 'proxy p held; [ "$proxied" -gt 0 ]'
    proxy p mode pass
    hear a
    is "$answer" ok "a put that gets no answer is sent again ($key)"
    ask a put 1 $key finished
    is "$answer" ok 'the next one is written'
    proxy p let
    is "$proxied" 1 'then the first copy of the first one arrives'
    ask b get copy $key
    like "$answer" "ok \[$key=finished *" 'and undoes nothing'
done
ask a release 1

# A server refuses by itself what arrives on a connection that its session has left, or after the session's
# end. So the same once more with a put that is on its way, and not yet given up.
on_its_way() { # LOCK KEY : a put of client a
    proxy p mode hold hostage
    tell a put 1 "$2" hostage
    eventually 10 eval 'proxy p held; [ "$proxied" -gt 0 ]'
    proxy p mode pass
}
for key in there new; do
    ask a acquire 1 way 20000 0
    ask a put 1 there before
    on_its_way way $key
    kazoo a "
for child in k.get_children('/holdfast/way'):
    k.delete('/holdfast/way/' + child)"
    ask b acquire 1 way 20000 0
    [ $key = new ] || ask b put 1 $key finished
    proxy p let
    hear a
    like "$answer" 'HF_LOST*' "a put that arrives when the hold is over ($key)"
    ask b records way $key
    case $key in
    there) like "$answer" 'ok \[there=finished *\]' 'overwrites nothing' ;;
    new) is "$answer" ok 'writes nothing' ;;
    esac
    ask b release 1
    ask a release 1
done
# and overtaken by a later one of the same hold, from another process
ask a acquire 1 overtaken 20000 0
ask a put 1 k before
ask a get overtaken k
of_hold=$(sed -n 's/.*token=\([0-9]*\).*/\1/p' <<<"$answer")
ask a owner 1
owner=${answer#ok }
on_its_way overtaken k
overtake() {
    ask b adopt 1 overtaken "$owner" "$of_hold"
    ask b put 1 k above
    [ "$answer" = ok ]
}
eventually 10 overtake
ask b get overtaken k
number=$(sed -n 's/.* number=\([0-9]*\).*/\1/p' <<<"$answer")
proxy p let
hear a
is "$answer" ok 'a put that is overtaken is written again'
ask b get overtaken k
above "$(sed -n 's/.* number=\([0-9]*\).*/\1/p' <<<"$answer")" "$number" 'as a newer one: numbers only rise'
ask b leave 1
ask a release 1

# the answer is lost
ask a acquire 1 mute 20000 0 kept
ask a put 1 k before
proxy p mode kill
proxy p once
ask a put 1 k value
is "$answer" ok 'a put whose answer was lost is found to be there'
ask b get mute k
like "$answer" 'ok \[k=value * number=2 *' 'once'
ask a release 1

# a hold that ended in the store, unknown to its holder
ask a acquire 1 deleted 20000 0
ask a put 1 k before
kazoo a "
for child in k.get_children('/holdfast/deleted'):
    k.delete('/holdfast/deleted/' + child)"
ask a put 1 k after
like "$answer" 'HF_LOST*' 'a put without a hold: lost'
ask a put 1 new after
like "$answer" 'HF_LOST*' 'likewise of a new record'
ask b acquire 1 deleted 20000 0
ask a put 1 k after
like "$answer" 'HF_LOST*' 'likewise when it is held by another'
ask b records deleted -
like "$answer" 'ok \[k=before *\]' 'and nothing was written'
ask b release 1
ask a release 1

stopped_with_its_keeper

# what has expired goes, a bounded number at a time, and by a later hold
ask b acquire 1 keep 60000 0 kept
for i in $(seq 80); do tell b put 1 "short:$i" x 1; done
for i in $(seq 80); do hear b; done
ask b put 1 for-ever x
ask b put 1 later x 3600000
eventually 5 eval 'ask b records keep short:; [ "$answer" = ok ]'
ok $? 'what has expired is not shown'
sleep 0.5
is "$(records keep)" 82 'what a hold wrote stays until another hold writes: a late copy finds it'
ask b release 1
ask b acquire 1 keep 20000 0
ask b put 1 other x
eventually 5 eval '[ "$(records keep)" -lt 83 ]'
sleep 0.5
left=$(records keep)
above 83 "$left" 'a put of the next one removes some'
above "$left" 48 'and not too many'
ask b release 1
again() { # another hold, another put
    ask b acquire 1 keep 20000 0
    ask b put 1 other y
    sleep 0.1
    ask b release 1
    [ "$(records keep)" = 3 ]
}
eventually 20 again
ok $? 'in the end none of them is left'
ask b records keep -
like "$answer" 'ok *\[for-ever=x *' 'and the others are'
ask b get keep later
like "$answer" 'ok \[later=x *until=1* now=1*' 'those that will expire too'

# where they are
ask b list -
is "$answer" ok 'a listing does not show them'
is "$(kazoo a "print(k.exists('/holdfast/%clock'))")" None 'the node that tells the time is never there'
ask b acquire 1 '%records' 20000 0
ask b put 1 .. x
is "$answer" ok 'a lock called like their node'
ask b get '%records' ..
like "$answer" 'ok \[..=x *' 'has records, with any keys'
ask b status '%records'
like "$answer" 'ok \[%records held=1 *' 'and is a lock'
ask b release 1

# damage
kazoo a "k.create('/holdfast/%records/trips/broken', b'what is this')"
ask b get trips broken
like "$answer" 'ok HF_CORRUPT*"broken"*damaged*' 'a record that cannot be read says so'
ask b records trips -
like "$answer" 'ok \[k=fifth *\] HF_CORRUPT*"broken"*' 'the others are shown all the same'
ask b acquire 1 trips 20000 0
ask b put 1 broken x
like "$answer" 'HF_CORRUPT*' 'it is not overwritten: nobody knows how new it is'
ask b put 1 k sixth
is "$answer" ok 'the others are written'
ask b release 1
kazoo a "k.delete('/holdfast/%records/trips/broken')"
ask b records trips -
like "$answer" 'ok \[k=sixth *\]' 'without its node all is well'

# a client that only reads leaves nothing behind, also where there is nothing yet
zk_start e
client r
ask r readonly "zookeeper://$(hosts e)/deep/down"
ask r get nothing k
like "$answer" 'ok now=1*' 'a store that was opened read-only tells that there is no record, and the clock'
ask r records nothing -
is "$answer" ok 'lists none'
is "$(kazoo e "print(k.get_children('/'))")" "['zookeeper']" 'and makes no node'

# the longest of everything, each byte of it percent-encoded
long_name=$(printf '%%%.0s' $(seq 200)) long_key=$(printf '%%%.0s' $(seq 64))
client l "zookeeper://$(hosts e)/deep"
ask l acquire 1 "$long_name" 20000 0
ask l put 1 "$long_key" x 3600000
is "$answer" ok 'the longest name and key'
ask l records "$long_name" "$long_key"
like "$answer" "ok \[$long_key=x *\]" 'are listed'
ask l release 1

# with credentials, below a node that an administrator made for everybody
kazoo e "k.create('/own/holdfast', makepath=True)"
client u "zookeeper://user:secret@$(hosts e)/own"
ask u acquire 1 x 20000 0
ask u put 1 k private
is "$answer" ok 'a user writes'
client v "zookeeper://$(hosts e)/own"
ask v get x k
like "$answer" 'ok HF_DENIED*' 'and others do not read it'
ask v records x -
like "$answer" 'ok HF_DENIED*' 'nor its neighbours'
ask u get x k
like "$answer" 'ok \[k=private *' 'but the user does'
ask u release 1

# without a server
ask b acquire 1 down 20000 0
zk_stop a
ask b get down k
like "$answer" 'ok HF_UNREACHABLE*' 'a get without a server'
done_testing
