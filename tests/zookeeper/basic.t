#!/bin/bash
# What one server and one connection show: round trips, answers that are lost, sessions that end.
# shellcheck disable=SC2034,SC2317 # what eventually calls by name
set -u
. "$(dirname "$0")/lib.sh"
# Empty containers are looked for more often than by default.
java_options='-Dzookeeper.forceSync=no -Dznode.container.checkIntervalMs=500'
zk_start a minSessionTimeout=400 maxSessionTimeout=4000
proxy_start p a
url="zookeeper://$(hosts p)?tick=200ms"
children() { kazoo a "print(*(k.get_children('/holdfast/$1') if k.exists('/holdfast/$1') else []))"; }

# A pair is two requests, if nobody came between. Pings and the like are few.
client one "$url"
ask one acquire 1 pair 3000 0
ask one release 1
proxy p trips
ask one pairs 200 pair
proxy p trips
[ "$proxied" -ge 400 ] && [ "$proxied" -le 440 ]
ok $? "200 times acquire and release: two round trips each ($proxied in all)"

# The server made the child and its answer was lost: it is found again by the owner in its name.
ask one acquire 1 found 3000 0
ask one release 1
for mode in kill cut; do
    proxy p mode $mode
    proxy p once
    ask one acquire 1 found 3000 5000
    like "$answer" 'ok *' "the answer to the create is lost ($mode): granted all the same"
    is "$(children found | wc -w)" 1 'there is one child'
    is "$(kazoo a "
owner = k.get_children('/holdfast/found')[0]
print(k.exists('/holdfast/found/' + owner).czxid)")" "$(token)" 'and the token is its czxid'
    proxy p mode $mode
    proxy p once
    ask one release 1
    like "$answer" 'ok*' "the answer to the delete is lost ($mode): released"
    is "$(children found)" '' 'and the child is gone'
done

# No answer at all: unknown, and whatever was made goes away.
proxy p mode mute
ask one acquire 1 mute 3000 0
like "$answer" 'HF_UNKNOWN*' 'no answer is unknown, not busy'
proxy p mode pass
gone_from() { [ -z "$(children "$1" 2>/dev/null)" ]; }
eventually 30 gone_from mute
ok $? 'and no child stays behind'
gone one

# A stopped client: its session ends behind its back, the next in the queue gets the lock.
client one "zookeeper://$(hosts a)?tick=200ms"
client two "zookeeper://$(hosts a)?tick=200ms"
ask one acquire 1 stopped 1500 0 kept
first=$(token)
tell two acquire 1 stopped 1500 30000
silent two
ok $? 'a second client waits'
kill -STOP "${client_pid[one]}"
hear two
last=$(token)
above "$last" "$first" 'the first is stopped: the second has the lock, with a higher token'
kill -CONT "${client_pid[one]}"
ask one left 1
is "$answer" 'ok 0' 'awake, the first has no time left'
ask one release 1
like "$answer" 'HF_LOST*' 'and its release says that the lock was lost'
ask two release 1
like "$answer" 'ok*' 'the second held it to the end'

# Deleted behind the holder's back.
ask one acquire 1 broken 3000 0
kazoo a "k.delete('/holdfast/broken/' + k.get_children('/holdfast/broken')[0])"
ask one renew 1 3000
like "$answer" 'HF_LOST*' 'a child that somebody deleted is a lost lock'
ask one release 1

# A lock is a container node: the server deletes it when it is empty. Whoever comes next makes it anew, and
# what was remembered of the old one counts for nothing.
lacks() { [ "$(kazoo a "print(k.exists('/holdfast/$1'))")" = None ]; }
eventually 20 lacks pair
ok $? 'an empty lock is gone after a while'
ask one acquire 1 pair 3000 0
above "$(token)" "$last" 'and can be taken again'
ask one release 1

# What a listing shows: the age counts from the turn, not from its coming.
ask one acquire 1 seen 3000 0 kept
tell two acquire 1 seen 3000 30000 kept
silent two
age() { # of the lock "seen", in ms
    "$hf" --store "zookeeper://$(hosts a)" list --json | sed -n 's/.*"seen".*"age_ms": *\([0-9]*\).*/\1/p'
}
aged() { [ "$(age)" -ge 3000 ] 2>/dev/null; }
eventually 20 aged
ok $? "a lock has an age ($(age) ms)"
ask one release 1
hear two
young=$(age)
above 3000 "$young" 'the age of a waiter counts from its turn (ms)'
ask two release 1

# Many locks are asked about at once: what a listing costs is not two round trips for each.
kazoo a "
for i in range(300):
    k.create('/holdfast/many%d/' % i + 'a' * 32 + '-lock-0000000000', b'1 1000 0 label%d' % i, makepath=True)"
client lister "$url"
proxy p trips
ask lister list many
is "$(grep -o 'label=label' <<<"$answer" | wc -l)" 300 'three hundred locks are listed'
proxy p trips
above 300 "$proxied" 'in fewer round trips than that'
gone lister

ask one acquire 1 seen 3000 0 kept
eventually 10 eval '[ "$("$hf" --store "zookeeper://$(hosts a)" list --json | grep -c seen)" = 1 ]'
ok $? 'a listing shows it'
ask one release 1
done_testing
