#!/bin/bash
# Several servers: what one does not answer is settled by reading from another, and never sent again.
# The ttl is long, so that no renewal is among the requests that are counted.
# shellcheck disable=SC2317 # functions that counted calls by name
set -u
. "$(dirname "$0")/lib.sh"

cluster_start a b c
proxy_start p a
proxy_start q b
client k "$(url c)" # looks on

requests() { # how many each of the two was sent since the last time
    proxy p requests
    local at_p=$proxied
    proxy q requests
    sent="$at_p to the first, $proxied to the second"
}

fresh() { # NAME : a client that talks to the first, and has its lease
    client "$1" "$(url p q)"
    ask "$1" acquire 2 "warm$1" 600000 0 kept
    requests
}

# A keeper may look after what it keeps just then, and its request is counted too. So what is counted is done up to
# three times, with a client and a lock of its own each time: what is sent twice is sent twice every time.
once='1 to the first, 1 to the second'
counted() { # PATTERN COMMAND : COMMAND N does it, and leaves what was said in $said and $sent
    for n in 1 2 3; do
        "$2" "$n"
        # shellcheck disable=SC2053 # it is a pattern
        [[ $sent != $1 ]] || break
    done
}

taken() {
    fresh "d$1"
    proxy p mode kill
    ask "d$1" acquire 1 "x$1" 600000 0 kept
    said=$answer
    t=$(token)
    requests
    proxy p mode pass
}
counted "$once" taken
like "$said" 'ok *' 'taken, and the connection is cut before the answer: read from the other server'
is "$sent" "$once" 'the request was sent once, and one look'
is "$(ctl c get --prefix "holdfast/x$n"$'\x1f' -w json | grep -o '"create_revision":[0-9]*,"mod_revision":[0-9]*')" \
    "\"create_revision\":$t,\"mod_revision\":$t" 'the key was put once, with that token'
ask "d$n" release 1
is "$answer" ok 'and released there'

released() {
    fresh "f$1"
    ask "f$1" acquire 1 "y$1" 600000 0 kept
    requests
    proxy p mode kill
    ask "f$1" release 1
    said=$answer
    requests
    proxy p mode pass
}
counted "$once" released
is "$said" ok 'released, and the connection is cut before the answer: read from the other server'
is "$sent" "$once" 'the request was sent once, and one look'
ask k status "y$n"
is "$answer" ok 'it is free'

# A release that is not answered soon is sent again: it does no harm.
unknown='1 to the first, [234] to the second'
dropped() {
    fresh "g$1"
    proxy p mode drop
    ask "g$1" acquire 1 "z$1" 600000 0 kept
    said=$answer
    requests
    proxy p mode pass
}
counted "$unknown" dropped
like "$said" 'HF_UNKNOWN*' 'not forwarded, and nobody knows: unknown'
like "$sent" "$unknown" 'it was sent once; a look, and a release to be sure'
ask k status "z$n"
is "$answer" ok 'it is free'

# a server that is not there was certainly not asked
client h "$(url a q)"
ask h acquire 2 warmh 600000 0 kept
etcd_stop a KILL
requests
ask h acquire 1 v 600000 0 kept
case $answer in
ok*) ok 0 'the first server is gone: the next is asked' ;;
*) like "$answer" 'HF_UNKNOWN*' 'its connection broke: unknown' ;;
esac
ask h release 1
client i "$(url a q)"
is "$answer" ok 'opened through the second'
ask i acquire 1 u 600000 0 kept
like "$answer" 'ok *' 'and taken there'
ask i release 1
is "$answer" ok 'released'
done_testing
