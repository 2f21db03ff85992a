#!/bin/bash
# The etcd store on a calm server: taking, renewing, releasing, listing, leases.
set -u
. "$(dirname "$0")/lib.sh"

etcd_start a
proxy_start p a
client one "$(url a)"
is "$answer" ok 'a server without users opens'
ask one acquire 1 x 5000 0 kept
like "$answer" 'ok [1-9]* left=4[0-9][0-9][0-9]' 'acquire: a token, and the ttl less the drift'
first=$(token)
is "$(ctl a get --prefix $'holdfast/x\x1f' -w json | grep -o '"create_revision":[0-9]*')" \
    "\"create_revision\":$first" 'the token is the create revision'
client two "$(url a)"
ask two acquire 1 x 5000 0
like "$answer" 'HF_BUSY*held by */*tool_client (token '"$first"')*' 'the other is told who has it'
ask two status x
like "$answer" "ok \[x held=1 token=$first label=*tool_client left=[1-9]* age=* waiters=0 foreign=0 detached=0\]" 'status'
ask one renew 1 9000
is "$answer" ok 'renew'
ask two status x
like "$answer" '* left=[89][0-9][0-9][0-9] *' 'the lock lives longer now'
ask one release 1
is "$answer" ok 'release'
is "$(keys a)" 0 'the key is gone'
ask two acquire 1 x 5000 0
above "$(token)" "$first" 'the next token is larger'
ask two status nothing
is "$answer" ok 'status of a free lock shows nothing'

# taken away behind our back
ctl a del --prefix $'holdfast/x\x1f' >/dev/null
ask two renew 1 5000
like "$answer" 'HF_LOST*was broken*' 'a key that was deleted: the lock is lost, and how'
is "$(keys a)" 0 'a renewal does not make it again'
ask two acquire 2 y 5000 0
ctl a lease list | sed 1d | while read -r id; do ctl a lease revoke "$id" >/dev/null; done
ask two renew 2 5000
like "$answer" 'HF_LOST*expired*' 'a lease that was revoked: the lock is lost'
ask two acquire 3 y 5000 0
like "$answer" 'ok *' 'and a client whose leases all went takes locks on new ones'
ask one acquire 3 z 5000 0 kept
like "$answer" 'ok *' 'also those that were shared'
ask two release 3
ask one release 3
is "$answer" ok 'released'

# leases: one for all that is kept, one for each that is not
before=$(leases a)
for i in 1 2 3 4 5; do ask one acquire $i "kept$i" 20000 0 kept; done
is "$(($(leases a) - before))" 1 'five kept holds share a lease'
for i in 6 7; do ask one acquire $i "own$i" 20000 0; done
# shellcheck disable=SC2317 # called by name
own() { [ "$(($(leases a) - before))" = 3 ]; } # an attempt's lease may take a moment to go
eventually 10 own
ok $? 'two that renew themselves have their own'
for i in 1 2 3 4 5 6 7; do ask one release $i; done
is "$answer" ok 'all released'
eventually 5 eval '[ $(($(leases a) - before)) = 1 ]'
ok $? 'the private leases are gone at once'
ask one close
eventually 5 eval '[ "$(leases a)" -le "$before" ]'
ok $? 'the shared one when the store is closed'

# requests, counted at the wire
client c "$(url p)"
ask c acquire 1 warm 20000 0 kept
ask c release 1
proxy p requests
ask c acquire 1 trip 20000 0 kept
proxy p requests
is "$proxied" 1 'acquire is one request'
ask c release 1
proxy p requests
is "$proxied" 1 'release is one'

# a hold that is left behind does not live with the others
ask c acquire 1 left 3000 0 kept
ask c leave 1
ask c acquire 2 stays 3000 0 kept
eventually 12 eval 'ask two status left; [ "$answer" = ok ]'
ok $? 'a hold that nobody renews ends, though others on its lease are kept'
ask c lost 2
is "$answer" 'ok 0 not lost' 'and they live on'
ask c release 2
is "$answer" ok 'to the end'

# detached
ask two acquire 5 d 9000 0 detached
t=$(token)
ask two owner 5
owner=${answer#ok }
ask two leave 5
ask c adopt 6 d "$owner" "$t"
like "$answer" "ok $t left=[1-9]* ttl=9000" 'a detached lease is adopted'
ask c renew 6 20000
is "$answer" ok 'renewed with another ttl'
ask two adopt 7 d "$owner" "$t"
like "$answer" "ok $t * ttl=20000" 'which is on record'
ask two renew 7 20000
is "$answer" ok 'and renewed with the same'
ask two adopt 8 d "$owner" 12345
like "$answer" 'HF_LOST*' 'with another token it is not'
ask two status d
like "$answer" '*detached=1*' 'status shows it as detached'
ask c release 6
is "$answer" ok 'and released'
like "$(ask two release 7; echo "$answer")" 'HF_LOST*' 'once'

# whole seconds: etcd grants more, the caller is told what it asked for, and has it to the end
now() { date +%s%3N; }
ask one open "$(url a)"
for ttl in 100 1100 2500; do
    ask two acquire 9 "short$ttl" $ttl 0
    taken=$(now)
    ask two left 9
    until=$(($(now) + ${answer#ok }))
    [ "${answer#ok }" -le $ttl ]
    ok $? "a ttl of $ttl ms is not told longer"
    ask two leave 9
    ask one acquire 9 "short$ttl" 5000 20000
    above "$(now)" "$((until - 1))" "and not ended before ($((until - taken)) ms)"
    ask one release 9
done

# other keys, other prefixes
ctl a put holdfast/stranger 1 >/dev/null
ctl a put $'holdfast/odd\x1fsomebody' hello >/dev/null
ask two acquire 9 odd 5000 0
like "$answer" 'HF_BUSY*not holdfast*' "a foreign key in a lock's queue is respected"
ask two list -
like "$answer" 'ok \[odd held=1 *foreign=1*' 'and shows as foreign; what is no lock does not show'
client three "$(url a '?prefix=app%2Flocks%2F')"
ask three acquire 1 x 5000 0
like "$answer" 'ok *' 'another prefix'
is "$(keys a app/locks/x)" 1 'is in the key'
ask three list -
like "$answer" 'ok \[x held=1*\]' 'and not in the listing'
client four "$(url a '?prefix=')"
ask four acquire 1 x 5000 0
like "$answer" 'ok *' 'no prefix at all'
ask four list -
like "$answer" 'ok *\[x held=1*' 'lists too'
for bad in 'etcd://' 'etcd:x' 'etcd://h:0' 'etcd://h?nonsense=1' 'etcd://h?cert=/x' 'etcd://@h' 'etcd://h:1,' 'etcd://h/x'; do
    ask three close
    ask three open "$bad"
    like "$answer" 'HF_INVALID*' "$bad is refused"
done
ask three open etcd://127.0.0.1:1
like "$answer" 'HF_UNREACHABLE*127.0.0.1:1*' 'nobody listens: unreachable'

# many locks in a listing of several pages
python3 - "$(port a)" <<'EOF'
import base64, http.client, json, sys
c = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]))
b = lambda s: base64.b64encode(s.encode()).decode()
for i in range(12):
    ops = [{'request_put': {'key': b(f'many/l{i}.{j}\x1f0'), 'value': b('v')}} for j in range(100)]
    c.request('POST', '/v3/kv/txn', json.dumps({'success': ops}))
    c.getresponse().read()
EOF
client five "$(url a '?prefix=many%2F')"
ask five list -
is "$(grep -o ' \[' <<<"$answer" | wc -l)" 1200 'a listing of 1,200 locks is complete'
done_testing
