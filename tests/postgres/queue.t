#!/bin/bash
# Waiting: in order, woken one at a time, and never stuck behind the dead.
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

pg_start a
export HOLDFAST_TRACE=1
for c in h w1 w2 w3; do client "$c" "$(url a)"; done
unset HOLDFAST_TRACE
woken() { cat "$dir"/client.w?.err | grep -c 'postgres: woken'; }
listening() { # COUNT : live waiters of x that have a channel
    says "$1" a "SELECT count(*) FROM holdfast.waiter
        WHERE lock = 'x' AND channel <> '' AND alive_until > clock_timestamp()"
}

# first come, first served
ask h acquire 1 x 30000 0
last=$(token)
for c in 1 2 3; do
    tell "w$c" acquire 1 x 30000 30000
    eventually 10 listening "$c"
done
ok $? 'three wait, each on a channel of its own'
ask h status x
like "$answer" '*waiters=3*' 'status counts them'
holder=h
before=$(woken)
for c in 1 2 3; do
    ask "$holder" release 1
    is "$answer" ok "$holder releases"
    hear "w$c"
    like "$answer" 'ok *' "w$c has it"
    above "$(token)" "$last" 'its token is above the last'
    last=$(token)
    holder=w$c
done
is "$(($(woken) - before))" 3 'one client woken per release'
ask w3 left 1
above "${answer#ok }" 25000 'the deadline counts from the confirmation, not from the first request'
ask w3 release 1
is "$(sql a 'SELECT count(*) FROM holdfast.waiter')" 0 'nothing stays of the queue'

# a claim that does not wait does not jump the queue
ask h acquire 1 x 30000 0
tell w1 acquire 1 x 30000 30000
eventually 10 listening 1
ask h release 1
ask w2 acquire 1 x 30000 0
like "$answer" 'HF_BUSY*' 'a newcomer does not get what is handed to another'
hear w1
like "$answer" 'ok *' 'who waited does'
ask w1 release 1

# the wait ends
ask h acquire 1 x 30000 0
ask w1 acquire 1 x 30000 400
like "$answer" 'HF_BUSY*held by*' 'a wait that ends without the lock: busy, and by whom'
is "$(sql a 'SELECT count(*) FROM holdfast.waiter')" 0 'it has left the queue'

# a waiter is killed
for c in 1 2; do
    tell "w$c" acquire 1 x 30000 30000
    eventually 10 listening "$c"
done
gone w1
ask h release 1
hear w2
like "$answer" 'ok *' 'a waiter killed just before the release does not block the queue'
ask w2 release 1

# one that is stopped loses its turn, but not its place
client w1 "$(url a)"
ask h acquire 1 x 30000 0
for c in 1 2; do
    tell "w$c" acquire 1 x 30000 30000
    eventually 10 listening "$c"
done
kill -STOP "${client_pid[w1]}"
ask h release 1
hear w2
like "$answer" 'ok *' 'a waiter that is stopped is passed over'
kill -CONT "${client_pid[w1]}"
silent w1
ok $? 'it waits on when it goes on'
ask w2 release 1
hear w1
like "$answer" 'ok *' 'and gets its turn'
ask w1 release 1

# the holder is killed
client h2 "$(url a)"
ask h2 acquire 1 x 1500 0
tell w2 acquire 1 x 30000 30000
eventually 10 waiting a x 1
gone h2
hear w2
like "$answer" 'ok *' "a crashed holder's lock goes to the queue when its ttl ends"

# nobody tells: the lock just becomes free
tell w3 acquire 1 x 30000 30000
eventually 10 listening 1
sql a "UPDATE holdfast.lock SET owner = NULL WHERE name = 'x'"
hear w3
like "$answer" 'ok *' 'the slow poll finds what no notification told'
ask w3 release 1

# the listening connection is cut
ask h acquire 1 x 30000 0
tell w3 acquire 1 x 30000 30000
eventually 10 listening 1
sql a "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%holdfast.acquire%' AND state = 'idle'" >/dev/null
ask h release 1
case $answer in ok | HF_UNKNOWN*) ;; *) ok 1 'release after its connection was ended' ;; esac
hear w3
like "$answer" 'ok *' 'a waiter whose connection was ended goes on waiting'
ask w3 release 1

# a look whose commit fails, after its row had come: it is asked again, on a connection that is in step
sql a 'CREATE SEQUENCE public.commits' \
    "CREATE FUNCTION public.stumble() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN
        IF nextval('public.commits') = 1 THEN RAISE SQLSTATE '40001'; END IF;
        RETURN NULL; END \$\$"
ask h acquire 1 x 30000 0
last=$(token)
tell w3 acquire 1 x 30000 30000
eventually 10 listening 1
sql a 'CREATE CONSTRAINT TRIGGER stumble AFTER UPDATE ON holdfast.waiter DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION public.stumble()'
stumbled() { says t a 'SELECT is_called AND last_value > 1 FROM public.commits'; }
eventually 10 stumbled
ok $? 'a commit fails on the connection that listens'
silent w3
ok $? 'its waiter waits on'
ask h release 1
hear w3
above "$(token)" "$last" 'and gets the lock'
ask w3 release 1
sql a 'DROP TRIGGER stumble ON holdfast.waiter' 'ALTER SEQUENCE public.commits RESTART' \
    'DELETE FROM holdfast.met' \
    'CREATE CONSTRAINT TRIGGER stumble AFTER INSERT ON holdfast.met DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION public.stumble()'
client m "$(url a)"
is "$answer" ok 'so is a meeting whose commit fails'
stumbled
ok $? 'as it did'
sql a 'DROP TRIGGER stumble ON holdfast.met'
gone m

# the server's queue of notifications is full, which it says when a transaction that notifies commits
sql a "CREATE FUNCTION public.full_queue() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN
        RAISE SQLSTATE '54000' USING MESSAGE = 'too many notifications in the NOTIFY queue'; END \$\$" \
    'CREATE CONSTRAINT TRIGGER full_queue AFTER UPDATE ON holdfast.lock DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.handed) EXECUTE FUNCTION public.full_queue()'
ask h acquire 1 x 30000 0
last=$(token)
tell w3 acquire 1 x 30000 30000
eventually 10 listening 1
ask h release 1
is "$answer" ok 'who releases is not told of a waiter that could not be woken'
hear w3
above "$(token)" "$last" 'which finds the lock when it looks'
ask w3 release 1
sql a 'DROP TRIGGER full_queue ON holdfast.lock'

# ?listen=off
client off "$(url a '?listen=off')"
ask h acquire 1 x 30000 0
tell off acquire 1 x 30000 30000
eventually 10 waiting a x 1
is "$(sql a "SELECT channel FROM holdfast.waiter WHERE lock = 'x'")" '' 'listen=off: no channel'
ask h release 1
hear off
like "$answer" 'ok *' 'and a look every second'
ask off release 1

# the remains of the dead go
sql a "INSERT INTO holdfast.waiter (lock, owner, channel, passed, alive_until) VALUES ('dead', 'dead', '', false, now() - interval '1 hour')"
is "$(sql a 'SELECT holdfast.sweep()')" 1 'waiters that died long ago are swept away'
done_testing
