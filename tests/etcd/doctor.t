#!/bin/bash
# What `holdfast doctor` makes of an etcd: each finding on a cluster that deserves it, and on one that does not.
# shellcheck disable=SC2317 # functions that eventually uses by name
# run: first
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/doctor.sh"

# Three members, users, and a role that may what the manual says.
cluster_start a b c
url=$(url a b c)
"$hf" --store "$url" run -n job -- "$hf" fence write "$dir/report" -- echo one
ok $? 'a job with a fence'
ctl a user add root:r >/dev/null
ctl a user grant-role root root >/dev/null
ctl a role add locker >/dev/null
ctl a role grant-permission --prefix=true locker readwrite holdfast/ >/dev/null
ctl a user add job:j >/dev/null
ctl a user grant-role job locker >/dev/null
ctl a role add looker >/dev/null
ctl a role grant-permission --prefix=true looker read holdfast/ >/dev/null
ctl a user add look:l >/dev/null
ctl a user grant-role look looker >/dev/null
ctl a auth enable >/dev/null
revision() { ctl a --user root:r get none -w json | jq .header.revision; }
before=$(revision)
job=etcd://job:j@${url#etcd://}
examine "$job" --fence "$dir/report"
is "$rc" 0 'a healthy cluster, with the rights that the manual names'
holds '.correctness and [.verdicts[] | select(.level != "advice")] == []' 'and nothing is left unchecked'
spares etcd.alarm etcd.leader etcd.rights etcd.ill etcd.single etcd.even etcd.open etcd.plain etcd.unverified \
    etcd.history etcd.large store.closed latency.too-slow
fits_schema 'the answer is as its schema says'
is "$(revision)" "$before" 'nothing was written'
is "$(fact etcd.members) $(fact etcd.endpoints_healthy) $(fact etcd.auth) $(fact etcd.rights)" '3 3 on yes' 'facts'
case $(fact etcd.version) in
3.4.[0-9] | 3.4.[12]* | 3.5.[0-9] | 3.5.1[012]) finds etcd.thaw ;;
*) spares etcd.thaw ;;
esac
is "$(fact etcd.compacted)" no 'nobody has compacted it'
ctl a --user root:r compact "$before" >/dev/null
run_require() { # URL
    answer=$("$hf" --store "$1" run -n --require correctness --fence "$dir/report" job -- true 2>&1)
    rc=$?
}
run_require "$job"
is "$rc" 0 '--require correctness is met'
# Fenced keys, whose marks are keys too.
ctl a --user root:r role grant-permission --prefix=true locker readwrite data/ >/dev/null
printf x | "$hf" --store "$job" run -n job -- "$hf" fence set "$job" data/report
ok $? 'a fenced key'
examine "$job" --fence "$job#data/report"
is "$rc" 0 'a fence in etcd'
spares fence.none fence.problem fence.unread
examine "$job" --fence "$job#data/none"
is "$rc" 1 'a key without a mark'
finds fence.problem
examine "$job" --fence "etcd://127.0.0.1:1#data/report"
is "$rc" 1 'a fence that cannot be reached is none'
unchecked fence.unread
examine "etcd://look:l@${url#etcd://}"
is "$rc" 1 'a user that may only look'
finds etcd.rights
is "$(fact etcd.compacted)" yes 'somebody has'
run_require "etcd://look:l@${url#etcd://}"
is "$rc" 78 '--require refuses it'
examine "etcd://look:wrong@${url#etcd://}"
is "$rc" 1 'a wrong password'
finds store.closed

# A member is gone; then the majority.
etcd_stop c KILL
examine "$job"
finds etcd.ill
is "$rc" 0 'two of three still carry a lock'
etcd_stop b KILL
leaderless() {
    examine "etcd://job:j@127.0.0.1:$(port a)"
    [ "$rc" -ne 0 ]
}
eventually 20 leaderless
ok $? 'one of three does not'
holds '.fit != true' 'and is not fit'
etcd_stop a KILL

# Two members are one too few, or one too many.
cluster_start d e
examine "$(url d e)"
is "$rc" 0 'two members carry a lock'
finds etcd.even
spares etcd.single etcd.leader etcd.ill
etcd_stop e KILL
without_leader() {
    examine "$(url d)"
    jq -e '[.verdicts[] | select(.rule == "etcd.leader" and .level == "unfit")] != []' "$dir/doctor.json" >"$dir/jq"
}
eventually 20 without_leader
finds etcd.leader
is "$rc" 1 'one of two has no leader, and carries none'
etcd_stop d KILL

# One member, open to all, on a network, and full; then with any certificate.
address=$(python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("192.0.2.1", 9)); print(s.getsockname()[0])' 2>/dev/null)
etcd_start one --quota-backend-bytes 16777216
examine "$(url one)"
finds etcd.single
is "$(fact etcd.auth)" off 'it asks nobody for a password'
spares etcd.open etcd.alarm
head -c 1000000 /dev/zero | tr '\0' x >"$dir/large"
for i in $(seq 40); do
    ctl one put "large$i" <"$dir/large" >/dev/null 2>&1 || break
done
examine "$(url one)" --for correctness
is "$rc" 1 'a cluster that is full'
finds etcd.alarm
like "$(fact etcd.alarms)" '*NOSPACE*' 'the alarm is named'
run_require "$(url one)"
is "$rc" 78 '--require refuses it'
proxy_start p one
for mode in cut 'drop status' 'drop txn' 'chaos 600'; do
    proxy p mode "$mode"
    examine "$(url p)"
    holds '.fit != true or ([.verdicts[] | select(.level == "unchecked")] != [])' \
        "answers that do not come ($mode, exit $rc): not fit, or not all of it was checked"
    fits_schema 'in an answer that is whole'
done
kill -STOP "$(pid one)"
begin=$SECONDS
examine "$(url one)"
is "$rc" 69 'a server that hangs cannot be reached'
[ $((SECONDS - begin)) -le 8 ]
ok $? 'which takes a few seconds'
kill -CONT "$(pid one)"
etcd_stop one KILL

# One that has seen much, and that nobody looks after; then somebody does.
etcd_start old
ctl old put this that >/dev/null
examine "$(url old)"
spares etcd.history etcd.large
etcd_stop old
"$root/tests/etcd/aged.py" "$dir/old/data/member/snap/db" 200000 1700
ok $? 'a database with a long history'
etcd_again old
is "$(ctl old get this --print-value-only)" that 'that is whole'
examine "$(url old)"
is "$rc" 0 'carries a lock'
finds etcd.history etcd.large
ctl old compact 200000 >/dev/null
ctl old defrag >/dev/null
examine "$(url old)"
spares etcd.history etcd.large
etcd_stop old KILL

# A certificate that is checked, and one that is not.
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 \
    -keyout "$dir/tls.key" -out "$dir/tls.crt" >/dev/null 2>&1
scheme=https ctl_options="--cacert $dir/tls.crt"
etcd_start t --cert-file "$dir/tls.crt" --key-file "$dir/tls.key"
examine "$(url t "?tls=on&verify=off")"
is "$rc" 0 'a certificate that nobody checks'
finds etcd.unverified
examine "$(url t "?ca=$dir/tls.crt")"
is "$rc" 0 'one that we check'
spares etcd.unverified etcd.plain
etcd_stop t KILL
scheme=http ctl_options=

if [ -n "$address" ]; then
    prepare net
    line net "net=http://127.0.0.1:${server_peer[net]}" \
        --listen-client-urls "http://127.0.0.1:$(port net),http://$address:$(port net)"
    etcd_again net
    examine "etcd://$address:$(port net)"
    finds etcd.open etcd.plain
    etcd_stop net KILL
fi

done_testing
