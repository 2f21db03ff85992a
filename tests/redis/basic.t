#!/bin/bash
# The Redis store on a calm server: taking, renewing, releasing, listing, names, foreign clients.
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

redis_start a

# looking leaves no trace, and settles no max_ttl for others
answer=$("$hf" --store "$(url a)" list --json 2>&1 && "$hf" --store "$(url a '?max_ttl=30s')" status x 2>&1)
is "$?" 0 'a new server can be looked at'
like "$answer" '\[\]*x: free*' 'it has no locks'
is "$(rcli a dbsize)" 0 'looking makes no key'

client one "$(url a)"
is "$answer" ok 'a server without a password opens'
# A new server grants nothing for max_ttl: see incarnation.t. Here it is made to seem old.
like "$(ask one acquire 1 x 5000 0; echo "$answer")" 'HF_QUARANTINE*' 'a server that just started is in quarantine'
calm a

ask one acquire 1 x 5000 0
like "$answer" 'ok [1-9]* left=4[0-9][0-9][0-9]' 'acquire: a token, and the ttl less the drift'
first=$(token)
client two "$(url a)"
ask two acquire 1 x 5000 0
like "$answer" 'HF_BUSY*held by */*tool_client (token '"$first"')*' 'the other is told who has it'
ask two status x
like "$answer" "ok \[x held=1 token=$first label=*tool_client left=[1-9]* age=* waiters=0 foreign=0 detached=0\]" 'status'
is "$(rcli a type x)" string 'the lock is a plain string key'
ask one renew 1 9000
is "$answer" ok 'renew'
above "$(rcli a pttl x)" 8000 'the key lives longer now'
ask one release 1
is "$answer" ok 'release'
is "$(rcli a exists x)" 0 'the key is gone'
ask two acquire 1 x 5000 0
above "$(token)" "$first" 'the next token is larger'
ask two status nothing
is "$answer" ok 'status of a free lock shows nothing'

# taken away
rcli a del x >/dev/null
ask two renew 1 5000
like "$answer" 'HF_LOST*expired*' 'a key that is gone is not made again by a renewal'
is "$(rcli a exists x)" 0 'really not'
ask two acquire 2 y 5000 0
rcli a set y somebody px 60000 >/dev/null
ask two release 2
like "$answer" 'HF_LOST*another owner*' 'release does not delete what another holds'
is "$(rcli a get y)" somebody 'really not'
ask two status y
like "$answer" 'ok \[y held=1 token=0 label= left=[1-9]* age=-1 waiters=0 foreign=1 *' 'a foreign holder shows as foreign'
ask one acquire 1 y 5000 0
like "$answer" 'HF_BUSY*not holdfast*' 'and is respected'
ask one acquire 3 z 5000 0
is "$(rcli a set z me nx px 1000)" '' 'a plain SET NX client respects ours'
ask one release 3
is "$(rcli a set z me nx px 1000)" OK 'and gets it after the release'

# a foreign lock without a ttl, deleted while we wait
rcli a set plain me >/dev/null
tell one acquire 4 plain 5000 20000
eventually 5 eval '[ "$(rcli a zcard "holdfast:{plain}:q")" = 1 ]'
rcli a del plain >/dev/null
hear one
like "$answer" 'ok *' 'a waiter finds a lock that a foreign client freed'
ask one release 4

# detached
ask one acquire 5 d 9000 0 detached
t=$(token)
ask one owner 5
owner=${answer#ok }
ask one leave 5
ask two adopt 6 d "$owner" "$t"
like "$answer" "ok $t left=[1-9]* ttl=9000" 'a detached lease is adopted'
ask two renew 6 20000
ask one adopt 7 d "$owner" "$t"
like "$answer" "ok $t * ttl=20000" 'its new ttl is on record'
ask one adopt 8 d "$owner" 12345
like "$answer" 'HF_LOST*' 'with another token it is not'
ask one status d
like "$answer" '*detached=1*' 'status shows it as detached'
ask two release 6
is "$answer" ok 'and released'
like "$(ask one release 7; echo "$answer")" 'HF_LOST*' 'once'

# names
for name in 'holdfast:{x}:q' 'holdfast:inc' 'a}b' '{}a'; do
    ask one acquire 9 "$name" 5000 0
    like "$answer" 'HF_INVALID*' "the name $name is refused"
done
ask one acquire 9 'user{42}mail' 5000 0
like "$answer" 'ok *' 'a name with a hash tag'
is "$(rcli a exists 'holdfast:{42}:user{42}mail:t')" 1 'keeps it in the keys beside it'
ask one acquire 10 42 5000 0
like "$answer" 'ok *' 'and does not mix them up with those of its tag'
ask one acquire 11 'we?rd*[n]ame' 5000 0
ask two list 'we?r'
like "$answer" 'ok \[we\?rd\*\[n\]ame *\]' 'list by a prefix with pattern characters'
ask two list user
like "$answer" 'ok \[user{42}mail *\]' 'list by a prefix that has a tag behind it'
ask two list -
is "$(grep -o ' \[' <<<"$answer" | wc -l)" "$(grep -o 'held=1' <<<"$answer" | wc -l)" 'list shows each lock once'
ask one acquire 12 "$(printf '%0200d' 7)" 5000 0
like "$answer" 'ok *' 'a name of 200 bytes'
ask two list 000
like "$answer" 'ok \[0*7 held=1*' 'is listed'
ask one acquire 13 long 61000 0
like "$answer" 'HF_INVALID*max_ttl*' 'a ttl above max_ttl is refused'

# prefix and database
client three "$(url a "/3?prefix=app:")"
like "$answer" ok 'another database and a prefix'
rcli a -n 3 set holdfast:inc "$(rcli a get holdfast:inc)" >/dev/null
ask three acquire 1 x 5000 0
like "$answer" 'ok *' 'acquire there'
is "$(rcli a -n 3 exists app:x)" 1 'the key has the prefix'
ask three list x
like "$answer" 'ok \[x held=1*' 'the listing has not'

# what is left behind
ask one pairs 50 many
above "$(token)" 1 'fifty pairs, each token above the last'
is "$(rcli a --scan --pattern 'holdfast:{many}*')" 'holdfast:{many}:t' 'only the token counter stays'
is "$(rcli a ttl 'holdfast:{many}:t')" -1 'for good'
done_testing
