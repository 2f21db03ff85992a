#!/bin/bash
# Bad days of a server and of the way to it.
# run: first
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

pg_start a
client k "$(url a)" # a client with a good line, to look on
proxy_start p a
client c "$(url p)"
is "$answer" ok 'a client behind the proxy'

# the answer never comes
for mode in mute kill cut garbage; do
    ask c acquire 1 warm 5000 0
    ask c release 1
    proxy p mode $mode
    [ $mode = mute ] || proxy p once
    ask c acquire 1 "lost-$mode" 30000 0
    like "$answer" 'HF_UNKNOWN*may have taken effect*' "$mode: the outcome is unknown, not busy"
    proxy p mode pass
    eventually 10 is_free a "lost-$mode"
    ok $? "$mode: the lock is given back"
    ask k acquire 1 "lost-$mode" 5000 0
    like "$answer" 'ok *' "$mode: and free for the next"
    ask k release 1
done

# an unknown renewal leaves the lease as it was
ask c acquire 1 keep 20000 0
proxy p mode kill
proxy p once
ask c renew 1 20000
like "$answer" 'HF_UNKNOWN*' 'a renewal without an answer: unknown'
proxy p mode pass
ask c renew 1 20000
is "$answer" ok 'the next one finds the lock still held'
proxy p mode kill
proxy p once
ask c release 1
like "$answer" 'HF_UNKNOWN*' 'a release without an answer: unknown'
proxy p mode pass

# a warning that comes with a commit: the standby may not have it, or notifications pile up
for file in syncrep.c async.c; do
    ask c acquire 1 warned 20000 0
    proxy p mode warning $file
    proxy p once
    ask c release 1
    case $file in
    syncrep.c) like "$answer" 'HF_UNKNOWN*' 'a warning about the standby: unknown' ;;
    *) is "$answer" ok 'one about the queue of notifications is nothing to us' ;;
    esac
done

# somebody else's open transaction sits on the row
ask k pairs 1 row
mkfifo "$dir/psql.in"
: >"$dir/psql.out"
psql -XAtq -h 127.0.0.1 -p "$(port a)" -U postgres -d postgres <"$dir/psql.in" >"$dir/psql.out" 2>&1 &
sitter=$!
exec 9>"$dir/psql.in"
echo "BEGIN; SELECT 'locked' FROM holdfast.lock WHERE name = 'row' FOR UPDATE;" >&9
eventually 10 grep -q locked "$dir/psql.out"
start=$SECONDS
ask k acquire 1 row 20000 0
like "$answer" 'HF_U*' 'a locked row does not hang us'
[ $((SECONDS - start)) -le 15 ]
ok $? 'longer than a request may take'
ask k pairs 5 other
like "$answer" 'ok *' 'other locks go on'
echo 'COMMIT; \q' >&9
exec 9>&-
wait $sitter
eventually 10 is_free a row
ok $? 'nothing is taken in the end'

# an administrator ends our connections
ask k acquire 1 admin 20000 0
sql a "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'holdfast'" >/dev/null
# The order to end comes back before it is obeyed; a request sent in between is rightly unknown.
ended() { [ "$(sql a "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'holdfast'")" = 0 ]; }
eventually 10 ended
ask k renew 1 20000
is "$answer" ok 'a connection that was ended while idle is replaced'
ask k release 1

# no connection left
sql a 'ALTER ROLE postgres CONNECTION LIMIT -1' 'CREATE ROLE few LOGIN CONNECTION LIMIT 1' \
    'GRANT USAGE ON SCHEMA holdfast TO few'
client f1 "postgres://few@127.0.0.1:$(port a)/postgres"
client f2 "postgres://few@127.0.0.1:$(port a)/postgres"
like "$answer" 'HF_UNREACHABLE*no connection left for us*' 'too many connections is said'
ask f1 acquire 1 few 20000 0
like "$answer" 'ok *' 'one connection is enough'
client f3 "$(url a)"
ask f3 acquire 1 few2 1500 0
ask f1 acquire 2 few2 20000 20000
like "$answer" 'ok *' 'also to wait while something is held'
ask f1 renew 1 20000
is "$answer" ok 'and to renew'
gone f1

# a read-only session
sql a 'CREATE ROLE reader LOGIN' 'GRANT USAGE ON SCHEMA holdfast TO reader' \
    'ALTER ROLE reader SET default_transaction_read_only = on'
client r "postgres://reader@127.0.0.1:$(port a)/postgres"
ask r acquire 1 ro 20000 0
like "$answer" 'HF_UNREACHABLE*read-only*target_session_attrs*' 'read-only is said'
is "$(sql a "SELECT count(*) FROM holdfast.lock WHERE name = 'ro'")" 0 'and nothing is taken'

# crashed and restarted while a client holds and another waits
ask c acquire 1 r 30000 0
t=$(token)
tell k acquire 1 r 20000 40000
eventually 10 waiting a r 1
pg_stop a QUIT
silent k
pg_again a
ask c renew 1 30000
case $answer in HF_UNREACHABLE* | HF_UNKNOWN*) ask c renew 1 30000 ;; esac
is "$answer" ok 'a hold survives the crash of its server'
ask c release 1
hear k
like "$answer" 'ok *' 'and a waiter goes on waiting'
above "$(token)" "$t" 'and the tokens go on'
ask k release 1

# frozen: nothing is known, and nobody waits longer than a request may take
pg_signal a STOP
start=$SECONDS
ask k acquire 1 x 5000 0
like "$answer" 'HF_UNKNOWN*' 'a frozen server: unknown'
[ $((SECONDS - start)) -le 15 ]
ok $? 'within the time of a request'
pg_signal a CONT
eventually 15 is_free a x
ok $? 'thawed, it takes back what it took'

# gone for good
pg_stop a QUIT
ask k acquire 1 x 5000 0
like "$answer" 'HF_UNREACHABLE*' 'no server: unreachable'
done_testing
