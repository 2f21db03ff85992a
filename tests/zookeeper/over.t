#!/bin/bash
# Holds that are over before their child is gone, sessions that a server makes shorter, and names that are
# written in two ways.
# shellcheck disable=SC2034,SC2317 # what eventually calls by name
set -u
. "$(dirname "$0")/lib.sh"
zk_start a minSessionTimeout=400 maxSessionTimeout=80000
url="zookeeper://$(hosts a)?tick=200ms"
client one "$url"
client two "$url"
may() { # RIGHTS : of everybody, on the lock "over"
    kazoo a "k.set_acls('/holdfast/over', [make_acl('world', 'anyone', $1)])"
}

# The time of a hold is over, and the server does not let its child be deleted.
ask one acquire 1 over 3000 0
first=$(token)
ask one owner 1
owner=${answer#ok }
may 'read=True, write=True, create=True, admin=True'
ask one status over
like "$answer" "*held=1 token=$first *" 'a hold'
ended() {
    ask one left 1
    [ "$answer" = 'ok 0' ]
}
eventually 10 ended
is "$(kazoo a "print(len(k.get_children('/holdfast/over')))")" 1 'its time ends, and its child stays'
ask one status over
is "$answer" ok 'status does not call it held'
ask one list -
is "$answer" ok 'nor does a listing'
ask one adopt 2 over "$owner" "$first"
like "$answer" 'HF_LOST*' 'nobody can go on with it'
tell two acquire 1 over 3000 30000
eventually 10 eval 'ask one status over; [[ $answer == *waiters=1* ]]'
like "$answer" 'ok \[over held=0 token=0 label= *waiters=1 *' 'who waits behind it is shown'
may 'all=True'
hear two
last=$(token)
above "$last" "$first" 'and gets the lock as soon as the child can go'
ask one status over
like "$answer" "*held=1 token=$last *" 'which is a hold again'
ask two release 1

# What cannot be read is not lost.
ask one acquire 1 hidden 3000 0
hidden=$(token)
ask one owner 1
owner=${answer#ok }
ask two adopt 1 hidden "$owner" "$hidden"
like "$answer" "ok $hidden *" 'another process finds the hold'
left=${answer##*left=}
above 501 "${left%% *}" 'and relies on it for a moment only (ms)'
ask two leave 1
kazoo a "k.set_acls('/holdfast/hidden/' + k.get_children('/holdfast/hidden')[0],
    [make_acl('world', 'anyone', write=True, delete=True, admin=True)])"
ask two adopt 1 hidden "$owner" "$hidden"
like "$answer" 'HF_DENIED*' 'and does not call it lost when it may not read it'
ask one release 1

# A name that is not written as we write it is none of ours.
ask one acquire 1 twice 3000 0
kazoo a "k.create('/holdfast/%74wice')"
ask one list tw
is "$(grep -o '\[twice' <<<"$answer" | wc -l)" 1 'a lock is listed once'
ask one release 1

# A session ends, and a server that lags behind still shows its child for a while.
client three "$url"
ask one acquire 1 ghost 10000 0 kept
tell two acquire 1 ghost 1000 60000
eventually 10 eval 'ask one status ghost; [[ $answer == *waiters=1* ]]'
kill -STOP "${client_pid[two]}"
owner=$(kazoo a "print(sorted(k.get_children('/holdfast/ghost'), key=lambda n: n[-10:])[1][:32])")
eventually 10 eval 'ask one status ghost; [[ $answer == *waiters=0* ]]'
ok $? 'the session of a waiter ends'
kazoo a "k.create('/holdfast/ghost/$owner-lock-', b'', sequence=True)"
tell three acquire 1 ghost 10000 60000
eventually 10 eval 'ask one status ghost; [[ $answer == *waiters=2* ]]'
kill -CONT "${client_pid[two]}"
eventually 10 eval 'ask one status ghost; [[ $answer == *waiters=3* ]]'
ok $? 'it comes back into the queue'
ask one release 1
sleep 1
silent two
ok $? 'and does not take the old child for its own'
kazoo a "
for name in k.get_children('/holdfast/ghost'):
    if name.startswith('$owner'):
        k.delete('/holdfast/ghost/' + name)"
hear three
like "$answer" 'ok *' 'who came before it is served before it'
last=$(token)
ask three release 1
hear two
above "$(token)" "$last" 'and it comes last'
ask two renew 1 1000
is "$answer" ok 'it holds the lock'
ask two release 1
is "$answer" ok 'to the end'

# The server comes back and allows only shorter sessions.
ask one acquire 1 shorter 60000 0
tell two acquire 1 shorter 60000 120000
eventually 10 eval 'ask one status shorter; [[ $answer == *waiters=1* ]]'
zk_stop a
sed -i 's/^maxSessionTimeout=.*/maxSessionTimeout=8000/' "$dir/a/conf"
zk_launch a
zk_ready a
ask one renew 1 60000
is "$answer" ok 'a hold is renewed'
ask one left 1
above 6001 "${answer#ok }" 'for no longer than its session allows by then (ms)'
ask one renew 1 6000
is "$answer" ok 'and goes on as such'
silent two
ok $? 'the second waits on'
ask one release 1
is "$answer" ok 'it was held to the end'
hear two
left=${answer##*left=}
above 6001 "$left" 'a waiter gets no more than its session has by then either (ms)'
above "$left" 0 'and not nothing'
done_testing
