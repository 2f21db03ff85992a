#!/bin/bash
# What `holdfast doctor` makes of a ZooKeeper: each finding on a server that deserves it, and on one that does not.
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/doctor.sh"

# Three servers, a user, sessions that are long enough.
zk_ensemble e maxSessionTimeout=60000
all=$(hosts e1 e2 e3)
job=zookeeper://job:secret@$all/jobs
examine "$job"
is "$rc" 0 'an ensemble that holdfast has not used yet'
is "$(kazoo e1 'print(k.exists("/jobs") is None)')" True 'and still has not'
"$hf" --store "$job" run -n --ttl 10s job -- "$hf" fence write "$dir/report" -- echo one
ok $? 'a job with a fence'
before=$(kazoo e1 'k.add_auth("digest", "job:secret"); print(sorted(k.get_children("/jobs/holdfast")))')
examine "$job" --fence "$dir/report"
is "$rc" 0 'a healthy ensemble'
[ -n "$before" ]
ok $? 'whose nodes we see'
holds '.correctness and [.verdicts[] | select(.level != "advice")] == []' 'and nothing is left unchecked'
spares zookeeper.rights zookeeper.tick zookeeper.session zookeeper.single zookeeper.even zookeeper.open store.closed \
    latency.too-slow
fits_schema 'the answer is as its schema says'
is "$(fact zookeeper.servers) $(fact zookeeper.lease)" '3 30000' 'facts'
is "$(kazoo e1 'k.add_auth("digest", "job:secret"); print(sorted(k.get_children("/jobs/holdfast")))')" "$before" 'it left no node behind'
run_require() { # URL
    answer=$("$hf" --store "$1" run -n --ttl 10s --require correctness --fence "$dir/report" job -- true 2>&1)
    rc=$?
}
run_require "$job"
is "$rc" 0 '--require correctness is met'
run_require "zookeeper://job:wrong@$all/jobs"
[ "$rc" -ne 0 ]
ok $? "--require: with another password it is not (exit $rc)"

# Fenced keys, whose marks are nodes.
printf x | "$hf" --store "$job" run -n --ttl 10s job -- "$hf" fence set "$job" /report
ok $? 'a fenced key'
examine "$job" --fence "$job#/report"
is "$rc" 0 'a fence in ZooKeeper'
spares fence.none fence.problem fence.unread
examine "$job" --fence "$job#/none"
is "$rc" 1 'a key without a mark'
finds fence.problem
examine "$job" --fence "zookeeper://127.0.0.1:1#/report"
is "$rc" 1 'a fence that cannot be reached is none'
unchecked fence.unread

# No user; a path that is for another.
examine "zookeeper://$all/open"
finds zookeeper.open
kazoo e1 'from kazoo.security import make_digest_acl
k.create("/theirs", acl=[make_digest_acl("they", "t", all=True)])' >/dev/null
examine "zookeeper://$all/theirs" --for correctness
is "$rc" 1 'a path that is for others'
kazoo e1 'from kazoo.security import make_digest_acl
k.create("/looked"); k.create("/least")
k.create("/looked/holdfast", acl=[make_digest_acl("they", "t", all=True), make_acl("world", "anyone", read=True)])
k.create("/least/holdfast", acl=[make_digest_acl("job", "secret", create=True, read=True, delete=True)])' >/dev/null
examine "zookeeper://job:secret@$all/least"
is "$rc" 0 'with the rights that the manual names'
holds '[.verdicts[] | select(.level == "unchecked")] == []' 'nothing is left unchecked'
examine "zookeeper://$all/looked"
is "$rc" 1 'a path where we may only look'
finds zookeeper.rights
run_require "zookeeper://$all/looked"
is "$rc" 78 '--require refuses it'
for name in e1 e2 e3; do zk_stop "$name" KILL; done

# Two servers are one too few, or one too many.
zk_servers=2 zk_ensemble d
examine "zookeeper://$(hosts d1 d2)"
is "$rc" 0 'two servers carry a lock'
finds zookeeper.even
spares zookeeper.single
for name in d1 d2; do zk_stop "$name" KILL; done

# One server, whose tick is longer than we think, and sessions shorter.
zk_start one tickTime=3000 maxSessionTimeout=20000
examine "zookeeper://$(hosts one)" --for correctness
finds zookeeper.single zookeeper.tick zookeeper.session
examine "zookeeper://$(hosts one)?tick=3s" --ttl 10s
spares zookeeper.tick zookeeper.session
proxy_start p one
for mode in cut 'chaos 200'; do
    proxy p mode "$mode"
    examine "zookeeper://127.0.0.1:$(port p)"
    holds '.fit != true or ([.verdicts[] | select(.level == "unchecked")] != [])' \
        "answers that do not come ($mode, exit $rc): not fit, or not all of it was checked"
    fits_schema 'in an answer that is whole'
done
kill -STOP "$(pid one)"
begin=$SECONDS
examine "zookeeper://$(hosts one)"
is "$rc" 69 'a server that hangs cannot be reached'
[ $((SECONDS - begin)) -le 9 ]
ok $? 'which takes a few seconds'
kill -CONT "$(pid one)"

done_testing
