#!/bin/bash
# Servers that can compare and delete, or compare and set, without a script.
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

if ! cc -shared -fPIC -O1 -D_GNU_SOURCE -o "$dir/ifeq.so" "$root/tests/redis/ifeq_module.c" 2>"$dir/log"; then
    echo "1..0 # SKIP no compiler: $(head -n 1 "$dir/log")"
    exit 0
fi
calls() { # SERVER COMMAND
    local n
    n=$(rcli "$1" info commandstats | tr -d '\r' | sed -n "s/^cmdstat_$2:calls=\([0-9]*\),.*/\1/p")
    echo "${n:-0}"
}

# knows SERVER COMMAND : of itself
knows() { rcli "$1" command info "$2" | grep -qi "$2"; }

redis_start plain
for dialect in delex delifeq; do
    if knows plain $dialect; then
        redis_start "$dialect"
    else
        redis_start "$dialect" --loadmodule "$dir/ifeq.so" $dialect
    fi
    calm $dialect
    client "c$dialect" "$(url $dialect)"
    is "$answer" ok "a server with $dialect"
    client "d$dialect" "$(url $dialect)"
    ask "c$dialect" acquire 1 x 5000 0
    like "$answer" 'ok *' 'acquire'
    scripts=$(calls $dialect evalsha)
    rcli $dialect pexpire x 3000 >"$dir/out"
    ask "c$dialect" renew 1 5000
    is "$answer" ok 'renew'
    above "$(rcli $dialect pttl x)" 3000 'it was extended'
    is "$(calls $dialect evalsha)" "$scripts" 'without a script'
    ask "c$dialect" renew 1 9000
    is "$answer" ok 'renew with another ttl'
    above "$(rcli $dialect pttl x)" 7000 'it was extended'
    is "$(calls $dialect evalsha)" $((scripts + 1)) 'by a script'
    like "$(rcli $dialect get 'holdfast:{x}:t')" '* 9000 *' 'which puts it on record'
    scripts=$(calls $dialect evalsha)
    ask "c$dialect" renew 1 9000
    is "$answer" ok 'renew again'
    is "$(calls $dialect evalsha)" "$scripts" 'without a script'
    ask "c$dialect" release 1
    is "$answer" ok 'release'
    is "$(rcli $dialect exists x)" 0 'it is gone'
    is "$(calls $dialect evalsha)" "$scripts" 'without a script'
    is "$(calls $dialect $dialect)" 1 "by $dialect"

    # a pair of owner and token that the server did not give us goes by a script, which compares both
    ask "c$dialect" acquire 1 pair 5000 0
    t=$(token)
    ask "c$dialect" owner 1
    owner=${answer#ok }
    ask "d$dialect" adopt 1 pair "$owner" $((t - 1))
    like "$answer" 'HF_LOST*' 'an older token of the same owner is not taken over'
    ask "d$dialect" adopt 1 pair "$owner" "$t"
    like "$answer" "ok $t *" 'the right one is'
    scripts=$(calls $dialect evalsha)
    ask "d$dialect" release 1
    is "$answer" ok 'released by the one who took it over'
    is "$(calls $dialect evalsha)" $((scripts + 1)) 'by a script: what is detached may have been claimed twice'

    conforms "$(url $dialect)" "all that every store promises, with $dialect"

    # one round trip
    proxy_start "p$dialect" $dialect
    client "e$dialect" "$(url "p$dialect")"
    ask "e$dialect" acquire 1 trip 5000 0
    proxy "p$dialect" trips
    ask "e$dialect" release 1
    proxy "p$dialect" trips
    is "$proxied" 1 'a release is one round trip'

    # what is not ours stays
    ask "c$dialect" acquire 1 y 5000 0
    rcli $dialect set y somebody px 50000 >/dev/null
    ask "c$dialect" renew 1 5000
    like "$answer" 'HF_LOST*' 'renewal of what another holds: lost'
    is "$(rcli $dialect get y)" somebody 'untouched'
    ask "c$dialect" acquire 2 z 5000 0
    rcli $dialect set z somebody px 50000 >/dev/null
    ask "c$dialect" release 2
    like "$answer" 'HF_LOST*another owner*' 'release of what another holds: lost, and why'
    is "$(rcli $dialect get z)" somebody 'untouched'
    ask "c$dialect" acquire 3 v 5000 0
    rcli $dialect del v >/dev/null
    ask "c$dialect" renew 3 5000
    like "$answer" 'HF_LOST*' 'a key that is gone'
    is "$(rcli $dialect exists v)" 0 'is not made again'

    # waiters are woken all the same
    ask "c$dialect" acquire 4 q 9000 0
    tell "d$dialect" acquire 4 q 9000 20000
    eventually 5 eval '[ "$(rcli $dialect zcard "holdfast:{q}:q")" = 1 ]'
    woken=$(calls $dialect rpush)
    ask "c$dialect" release 4
    is "$answer" ok 'release with somebody waiting'
    is "$(calls $dialect rpush)" $((woken + 1)) 'hands over at once'
    hear "d$dialect"
    like "$answer" 'ok *' 'and the waiter has it'

    # SET needs memory, a renewal must not
    rcli $dialect config set maxmemory 1 >/dev/null
    ask "d$dialect" renew 4 9000
    is "$answer" ok 'renewal on a server without memory falls back on the script'
    ask "d$dialect" release 4
    is "$answer" ok 'and release works'
    rcli $dialect config set maxmemory 0 >/dev/null
done
done_testing
