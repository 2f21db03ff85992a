#!/bin/bash
# One of several locks: one statement, one connection, one channel; a waiter that does not answer is passed over in all
# its queues; and what is asked of every store.
# run: also long
# shellcheck disable=SC2034,SC2086,SC2154,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/several.sh"

eight='s#0 s#1 s#2 s#3 s#4 s#5 s#6 s#7'
pg_start a max_connections=150
proxy_start p a

# round trips
client h "$(url a)"
client c "postgres://postgres@127.0.0.1:$(port p)/postgres"
ask c any 1 0 $eight # prepares what it uses
ask c release 1
proxy p trips
ask c any 1 0 $eight
like "$answer" 'ok * s#0' 'of eight that are free the first is taken'
proxy p trips
is "$proxied" 1 'in one round trip'
ask c release 1
for i in 0 1 2 3 4 5 6; do ask h acquire $i "s#$i" 60000 0; done
proxy p trips
ask c any 1 0 $eight
like "$answer" 'ok * s#7' 'the only one that is free is found'
proxy p trips
is "$proxied" 1 'in one round trip, too'
ask c release 1

# connections
ask h acquire 7 s#7 60000 0
connections() { sql a "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"; }
waiting_in() { waiting a "s#$1" "$2"; }
listening() { says 0 a "SELECT count(*) FROM holdfast.waiter WHERE channel = ''"; }
before=$(connections)
for i in 1 2 3 4 5 6 7 8; do
    client "w$i" "$(url a)"
    tell "w$i" any 1 60000 $eight
    eventually 20 waiting_in 7 "$i"
done
eventually 20 waiting_in 0 8 && eventually 20 listening
ok $? 'eight wait in eight queues each'
is "$(($(connections) - before))" 8 'with one connection each'
is "$(sql a "SELECT count(DISTINCT channel) FROM holdfast.waiter WHERE channel <> ''")" 8 'and one channel'

# a waiter that was handed one lock and does not answer is handed no other
kill -STOP "${client_pid[w1]}"
for i in 0 1; do ask h release $i; done
hear w2 3
like "$answer" 'ok * s#1' 'one that does not answer is passed over in its other queues'
kill -CONT "${client_pid[w1]}"
hear w1 10
like "$answer" 'ok *' 'and is served when it does'
for i in 1 2 3 4 5 6 7 8; do gone "w$i"; done

two_wait() { # for eight locks, of which h has two
    local i
    for i in 0 1; do ask h acquire $i "s#$i" 60000 5000; done
    for i in 1 2; do
        client "w$i" "$(url a)"
        tell "w$i" any 1 60000 $eight
        eventually 20 waiting_in 7 "$i"
    done
    eventually 10 listening
}

# two locks in the same instant: what is not needed is passed on
eventually 10 says 0 a 'SELECT count(*) FROM holdfast.waiter WHERE alive_until > clock_timestamp()'
sql a "UPDATE holdfast.lock SET owner = NULL WHERE name IN ('s#0', 's#1')" # the dead held them
two_wait
ask h owner 0
owner=${answer#ok }
: >"$dir/slow"
psql -XAtq -h 127.0.0.1 -p "$(port a)" -U postgres -d postgres >"$dir/slow" <<END &
BEGIN;
SELECT holdfast.release('s#0', '\x$owner', (SELECT token FROM holdfast.lock WHERE name = 's#0'),
    holdfast.incarnation(), 5000);
SELECT pg_sleep(1.5);
COMMIT;
END
slow=$!
eventually 10 grep -q released "$dir/slow"
ask h release 1 # while the other release, which chose the same waiter, is not committed
hear w1
first=${answer##* }
hear w2 3
is "$(printf '%s\n' "$first" "${answer##* }" | sort | tr '\n' ' ')" 's#0 s#1 ' \
    'of two locks that one waiter was to have at once, it has one and the next in the queue the other'
wait "$slow"
is "$(sql a 'SELECT count(*) FROM holdfast.waiter WHERE alive_until > clock_timestamp()')" 0 \
    'nobody stands in any queue any more'
for c in w1 w2; do gone "$c"; done

# two that are handed to one waiter by one commit that takes long: the waiter that has the first passes the second on
sql a "UPDATE holdfast.lock SET owner = NULL WHERE name IN ('s#0', 's#1')"
two_wait
sql a "WITH first AS (SELECT party, channel FROM holdfast.waiter
        WHERE alive_until > clock_timestamp() ORDER BY ticket LIMIT 1),
    handed AS (UPDATE holdfast.waiter AS w SET passed = true FROM first AS f
        WHERE w.party = f.party AND w.lock IN ('s#0', 's#1') RETURNING w.lock, w.owner),
    held AS (UPDATE holdfast.lock AS l SET owner = h.owner, handed = true, ttl_ms = 20000,
        expires = clock_timestamp() + interval '20 seconds' FROM handed AS h WHERE l.name = h.lock RETURNING 1)
    SELECT pg_notify(f.channel, '') FROM first AS f, (SELECT count(*) FROM held) AS n" >/dev/null
hear w1 5
like "$answer" 'ok * s#0' 'who was handed two has the first of them'
hear w2 3
like "$answer" 'ok * s#1' 'and passes the second on at once'
is "$(sql a "SELECT count(*) FROM holdfast.lock WHERE handed")" 0 'nothing stays handed to one who does not want it'
for c in w1 w2 h c; do gone "$c"; done

several "$(url a)" 2000 500
slots killed 3000 "$(url a '?listen=off')"
ok $? 'one that is killed costs those who cannot be woken no more than 3000ms'
done_testing
