#!/bin/bash
# badnode.t - one bad node of five, or of three, costs its vote and no more, wherever it stands in the URL.
# run: once
set -u
. "$(dirname "$0")/lib.sh"

nodes 4
stepping_clock
clock_step 65
redis_start ahead
calm ahead
server_wrap=
redis_start other
calm other 5000

# works URL DESCRIPTION
works() {
    client c "$1"
    is "$answer" ok "$2: it opens"
    ask c acquire 1 x 10000 0
    like "$answer" 'ok *' "$2: a lock is taken"
    above "$(($(date +%s%6N) + 5000000))" "$(token)" "$2: its token is not from the future"
    ask c renew 1 10000
    is "$answer" ok "$2: renewed"
    ask c release 1
    is "$answer" ok "$2: and released"
    gone c
}
# warned URL PATTERN DESCRIPTION : what somebody who traces hears
warned() {
    HOLDFAST_TRACE=1 "$hf" --store "$1" run x -- true 2>"$dir/trace"
    is "$?" 0 "$3: a job runs"
    answer=$(grep vote "$dir/trace")
    like "$answer" "$2" "$3: the right one is blamed"
    is "$(wc -l <<<"$answer")" 1 "$3: once, and nobody else is"
}
slow='?node_timeout=1s'
for list in 'ahead n1 n2 n3 n4' 'n1 n2 ahead n3 n4' 'n1 n2 n3 n4 ahead' 'ahead n1 n2'; do
    # shellcheck disable=SC2086 # a list
    url=$(redlock "$slow" $list)
    works "$url" "a clock ahead ($list)"
    warned "$url" "*127.0.0.1:$(port ahead) is 1m0*s ahead of*" "a clock ahead ($list)"
done
for list in 'other n1 n2 n3 n4' 'n1 n2 n3 n4 other' 'other n1 n2'; do
    # shellcheck disable=SC2086 # a list
    url=$(redlock "$slow" $list)
    works "$url" "another max_ttl ($list)"
    warned "$url" "*127.0.0.1:$(port other): *max_ttl*5*" "another max_ttl ($list)"
done

# Clocks that need a second round: the client is not near the nodes' clocks, and the bad one must not
# move the tokens. A counter ahead of all clocks does the same.
for n in n1 n2 n3; do
    rcli "$n" set 'holdfast:{two}:t' "$(($(date +%s%6N) + 1000000)) 1000 - 00 ahead" >/dev/null
done
client d "$(redlock "$slow" ahead n1 n2 n3 n4)"
ask d acquire 1 two 10000 0
like "$answer" 'ok *' 'with two rounds it is granted as well'
above "$(($(date +%s%6N) + 10000000))" "$(token)" 'and the clock ahead does not move the token'
ask d release 1

# Too many bad ones.
client e "$(redlock "$slow" n1 other ahead)"
ask e acquire 1 x 10000 0
like "$answer" 'HF_INVALID*clock*' 'one of three has a vote: that is no majority of clocks'
rcli n3 set holdfast:inc "$(rcli n3 get holdfast:inc | sed 's/ [0-9]*$/ 5000/')" >/dev/null
client f "$(redlock "$slow" n1 other n3)"
like "$answer" 'HF_INVALID*node 127.0.0.1:*: *max_ttl*' 'two of three with another max_ttl: it does not open, and says why'
[[ $answer != *"node 127.0.0.1:$(port n1):"* ]]
ok $? 'and does not blame the third'
done_testing
