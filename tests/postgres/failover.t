#!/bin/bash
# An asynchronous standby is promoted before it received a grant: nobody gets that lock while it may be
# held, and tokens do not go back.
# run: first
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

pg_start a
client c0 "$(url a '?max_ttl=6s')"
ask c0 acquire 1 known 6000 0
pg_standby s a
pg_start s
eventually 20 says 1 s 'SELECT count(*) FROM holdfast.lock'
ok $? 'a primary and its asynchronous standby'
both="postgres://postgres@127.0.0.1:$(port a),127.0.0.1:$(port s)/postgres?target_session_attrs=read-write&max_ttl=6s"
client c "$both"
is "$answer" ok 'a client knows both'
ask c acquire 2 known2 6000 0
eventually 20 says 2 s 'SELECT count(*) FROM holdfast.lock'
pg_stop s
ask c acquire 1 forgotten 6000 0
like "$answer" 'ok *' 'a grant that the standby does not get'
token=$(token)
ask c renew 2 6000
pg_stop a QUIT
pg_again s
promoted=$(date +%s%N)
sql s 'SELECT pg_promote()' >/dev/null
eventually 20 says f s 'SELECT pg_is_in_recovery()'
ok $? 'the standby is promoted'
is "$(sql s "SELECT count(*) FROM holdfast.lock WHERE name = 'forgotten'")" 0 'it has forgotten the grant'

before=$(sql s 'SELECT * FROM holdfast.met')
like "$("$hf" --store "$both" status)" '*quarantine for another [1-6]*promoted or restored*' 'who looks is told why and until when'
is "$(sql s 'SELECT * FROM holdfast.met')" "$before" 'and changes nothing'
client d "$both"
is "$answer" ok 'another client opens the new primary'
ask d acquire 1 forgotten 5000 0
like "$answer" 'HF_QUARANTINE retry=[1-9]*promoted or restored*grants again in*' 'which grants nothing yet'
ask c acquire 3 other 5000 0
case $answer in HF_UN*) ask c acquire 3 other 5000 0 ;; esac
like "$answer" 'HF_QUARANTINE*' 'not even to a client that knew the old one'
ask c renew 2 6000
case $answer in HF_UN*) ask c renew 2 6000 ;; esac
like "$answer" '[oH]*' 'renewals are answered'
ask c renew 1 6000
like "$answer" 'HF_LOST*' 'the forgotten hold is lost, and not made again'
client e "$both"
tell e acquire 1 forgotten 5000 30000
ask d acquire 1 forgotten 5000 30000
like "$answer" 'ok *' 'a wait covers the quarantine'
took=$((($(date +%s%N) - promoted) / 1000000))
above "$took" 5990 'it lasted as long as any hold could have (ms)'
above "$(token)" "$token" 'and the token is above the forgotten one'
like "$("$hf" --store "$both" status --json)" '*"quarantine": null*' 'it is over for those who look, too'
ask d release 1
hear e
like "$answer" 'ok *' 'also for the second in the queue'
ask e release 1

# met before, or plainly calm: no delay
client f "$both"
ask f acquire 1 new 5000 0
like "$answer" 'ok *' 'who comes later is not delayed'
ask f release 1
sql s CHECKPOINT 'DELETE FROM holdfast.met'
sleep 7
client g "$both"
ask g acquire 1 new 5000 0
like "$answer" 'ok *' 'a server that was promoted long ago is not delayed when it is met first'
ask g release 1
sql s "UPDATE holdfast.met SET id = '1/00000001'"
client x "$both"
ask x acquire 1 new 5000 0
like "$answer" 'HF_QUARANTINE*' 'unless its data came from another cluster, which may have granted until now'
sql s 'DELETE FROM holdfast.met' CHECKPOINT
client h "$both"
ask h acquire 1 new 5000 0
like "$answer" 'HF_QUARANTINE*' 'one that cannot prove it is'
client i "$(url s '?max_ttl=4s')"
like "$answer" 'HF_INVALID*agreed on max_ttl=6s*max_ttl=4s*' 'a shorter max_ttl is refused meanwhile'
client j "$(url s '?max_ttl=8s')"
like "$answer" 'HF_INVALID*agreed on max_ttl=6s*max_ttl=8s*' 'and a longer one just as well'
ask h acquire 1 new 5000 0
like "$answer" 'HF_QUARANTINE*' 'what was agreed on is as it was'

# a person who knows better ends it
ask h end drill
like "$answer" 'ok *was ended*before its time*' 'a quarantine can be ended'
ask h acquire 1 new 5000 0
like "$answer" 'ok *' 'and grants are given'
ask h release 1
client k "$both"
ask k acquire 1 new 5000 0
like "$answer" 'ok *' 'to everybody'
ask k release 1
is "$(sql s "SELECT id = holdfast.incarnation() AND at < open_at AND role = 'postgres'
    AND length(label) > 0 AND reason = 'drill' FROM holdfast.opened")" t \
    'who did it, when and why is on record'
ask h end again
like "$answer" 'HF_INVALID*not in quarantine*' 'there is nothing to end then'
is "$(sql s "SELECT verdict FROM holdfast.end_quarantine('1/00000001', '', '')")" new \
    'and another life is not ended'

# the old primary is not dead but frozen: its port takes connections, and nobody answers
pg_again a
pg_signal a STOP
for c in 1 2; do
    client "frozen$c" "$both"
    is "$answer" ok 'a frozen host is passed over'
done
ask frozen1 list -
like "$answer" 'ok*' 'and the promoted one answers'
pg_stop a QUIT

# an older client left its functions behind, which know no such look
sql s 'DROP FUNCTION holdfast.quarantine'
like "$("$hf" --store "$(url s '?max_ttl=6s')" status --json)" '*"quarantine": null*' 'an old schema does not spoil the rest'
# a database that is restored without the schema is as new as any
sql s 'CREATE DATABASE fresh'
database=fresh
client l "$(url s '?max_ttl=6s')"
sql s CHECKPOINT 'DELETE FROM holdfast.met'
like "$("$hf" --store "$(url s '?max_ttl=6s')" status --json)" '*"remaining_ms": [1-9]*never met holdfast*' \
    'a life that nobody has met is judged by whoever looks'
client m "$(url s '?max_ttl=6s')"
ask m acquire 1 x 5000 0
like "$answer" 'HF_QUARANTINE*' 'a schema that may have been lost with its locks'
done_testing
