#!/bin/bash
# Records: holders that cannot write them any more, writes that come late, what is kept where, and for how long.
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/support/records.sh
. "$root/tests/support/records.sh"

redis_start a --appendonly yes
calm a
proxy_start p a
through="redis://127.0.0.1:$(port p)"
client a "$through"
client b "$(url a)"

# one round trip
ask a acquire 1 trips 20000 0
ask a put 1 k first
proxy p trips
ask a put 1 k second
is "$answer" ok 'a put'
proxy p trips
is "$proxied" 1 'is one round trip'
ask a get trips k
like "$answer" 'ok \[k=second token=* number=2 until=0\] now=1*' 'a get tells the record and the clock'
proxy p trips
is "$proxied" 1 'and is one as well'
ask a release 1

# writes that come too late
end_hold() { rcli a del "$1" >/dev/null; }
straight=$(url a)
overtaken_by_another hostage
overtaken_by_the_end hostage
overtaken_by_itself running
ended_unknown end_hold
stopped_with_its_keeper

# what has expired goes, a few at a time, and by a later hold
ask b acquire 1 keep 20000 0
for i in $(seq 20); do
    ask b put 1 "short:$i" x 1
done
ask b put 1 for-ever x
eventually 5 eval 'ask b records keep short:; [ "$answer" = ok ]'
ok $? 'what has expired is not shown'
is "$(rcli a hlen 'holdfast:{keep}:r')" 21 'what a hold wrote stays until another hold writes: a late copy finds it'
ask b release 1
ask b acquire 1 keep 20000 0
ask b put 1 other x
left=$(rcli a hlen 'holdfast:{keep}:r')
above "$left" 13 'a put of the next one removes eight at the most'
above 22 "$left" 'and some'
eventually 10 eval 'ask b put 1 other z; [ "$(rcli a hlen "holdfast:{keep}:r")" = 2 ]'
ok $? 'after a few more none is left'
ask b records keep -
like "$answer" 'ok @(*for-ever=x *other=z *|*other=z *for-ever=x *)' 'the others are listed'
ask b release 1

# large values are listed in pages
ask b acquire 1 large 20000 0 kept
large=$(head -c 3900 /dev/zero | tr '\0' x)
for i in $(seq 700); do
    tell b put 1 "k$i" "$large"
done
for i in $(seq 700); do
    hear b
done
ask b records large k
is "$(grep -o '\[k[0-9]*=x' <<<"$answer" | sort -u | wc -l)" 700 'a long list is complete'
ask b release 1

# damage
rcli a hset 'holdfast:{trips}:r' broken 'what is this' >/dev/null
ask b get trips broken
like "$answer" 'ok HF_CORRUPT*"broken"*damaged*' 'a record that cannot be read says so'
ask b records trips -
like "$answer" 'ok \[k=second *\] HF_CORRUPT*"broken"*' 'the others are shown all the same'
ask b acquire 1 trips 20000 0
ask b put 1 broken x
like "$answer" 'HF_CORRUPT*' 'it is not overwritten: nobody knows how new it is'
ask b put 1 k third
is "$answer" ok 'the others are written'
ask b release 1
rcli a hdel 'holdfast:{trips}:r' broken >/dev/null
ask b records trips -
like "$answer" 'ok \[k=third *\]' 'without its field all is well'

# a client that only reads leaves nothing behind
redis_start e
client r
ask r readonly "$(url e)"
ask r get nothing k
like "$answer" 'ok now=1*' 'a store that was opened read-only tells that there is no record, and the clock'
ask r records nothing -
is "$answer" ok 'lists none'
is "$(rcli e dbsize)" 0 'and makes no key'

# names: a prefix, hash tags, braces
client n "$(url a '?prefix=app:')"
for name in '{tag}x' 'x{tag}' 'open{' 'x:r'; do
    ask n acquire 1 "$name" 20000 0
    ask n put 1 '{key}' "of-$name"
    ask n get "$name" '{key}'
    like "$answer" "ok \[{key}=of-$name *" "a record of $name"
    ask n release 1
done
is "$(rcli a hexists 'holdfast:{tag}:app:{tag}x:r' '{key}')" 1 'lies beside its lock'
ask n list -
is "$answer" ok 'and is no lock'

# durability: what the server itself says
redis_start v
calm v
client v "$(url v)"
ask v acquire 1 x 20000 0
ask v put 1 k value
like "$answer" 'ok *"x"*appendonly*' 'without an append-only file a put warns'
ask v get x k
like "$answer" 'ok \[k=value *' 'and writes all the same'
rcli v config set appendonly yes >/dev/null
ask v put 1 k value
is "$answer" ok 'with one it does not'

# a replica
redis_start w --replicaof 127.0.0.1 "$(port v)" --repl-diskless-sync-delay 0
replicated() { rcli v info replication | grep -q 'state=online'; }
eventually 20 replicated
ask v put 1 k first
ask v put 1 k second
is "$answer" ok 'with a replica a put is ok'
above "$(rcli v info commandstats | sed -n 's/^cmdstat_wait:calls=\([0-9]*\).*/\1/p')" 0 'because it has waited for it'
is "$(rcli w hget 'holdfast:{x}:r' k | sed 's/.* //')" second 'and it is there'
kill -STOP "$(pid w)"
ask v put 1 k third
like "$answer" 'ok *no replica has confirmed*' 'a replica that does not answer is a warning'
kill -CONT "$(pid w)"
eventually 20 eval 'ask v put 1 k fourth; [ "$answer" = ok ]'
ok $? 'until it answers again'
calm v # its first replica gave it another id
client v2 "$(url v)"
ask v2 acquire 1 fresh 20000 0
rcli v config resetstat >/dev/null
ask v2 put 1 k x
like "$(rcli v info commandstats | tr -d '\r')" '*cmdstat_wait:calls=1,*' "a client's first put waits as well"
ask v2 release 1
redis_stop w KILL
eventually 20 eval '! replicated'
ask v put 1 k fifth
is "$answer" ok 'a replica that has left is not waited for in vain'

# a server that was demoted knows nothing
redis_start n
rcli v replicaof 127.0.0.1 "$(port n)" >/dev/null
ask v get x k
like "$answer" 'ok HF_UNREACHABLE*replica*' 'a former master tells nothing'
ask v put 1 k x
like "$answer" 'HF_@(UNREACHABLE|LOST|UNKNOWN)*' 'and takes nothing'
done_testing
