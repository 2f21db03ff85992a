#!/bin/bash
# twice.t - a claim that somebody on the way repeats reaches the nodes by two servers with the same owner. One of them hears
# nothing of its votes and takes them back: not what the other one was granted.
# shellcheck disable=SC2317 # conditions are called by eventually
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/serve/http.sh"
command -v jq >/dev/null || skip_all 'jq is not installed'
[ -e "$build/stores/holdfast-serve" ] || skip_all 'holdfast-serve is not built'

nodes 3
for i in 1 2 3; do proxy_start "p$i" "n$i"; done
server_on() { # NAME URL
    sock=$dir/$1.sock
    serve_start --store "$2"
    server_pid[serve_$1]=${server_pid[serve]}
    unset 'server_pid[serve]'
}
server_on far "$(redlock '' p1 p2 p3)"
server_on near "$(redlock '' n1 n2 n3)"
far() { sock=$dir/far.sock post "$@"; }
body() { echo "{\"name\": \"$1\", \"owner\": \"$2\", \"ttl_ms\": 20000}"; }
renews() { # NAME OWNER
    post renew "{\"name\": \"$1\", \"owner\": \"$2\", \"token\": \"$(jq -r .token "$dir/first")\", \"ttl_ms\": 20000}" | jq -c .ttl_ms
}
mode() { for i in 1 2 3; do proxy "p$i" mode "$@"; done; }
keys() { # NAME : nodes that have it
    local count=0
    for i in 1 2 3; do
        [ -z "$(rcli "n$i" get "$1")" ] || count=$((count + 1))
    done
    echo $count
}

# The nodes hear all of it, and the far server nothing; or it loses the connections, and pays what it owes later.
far acquire "$(body warm "$(new_owner)")" >"$dir/warm"
for how in mute kill; do
    owner=$(new_owner)
    post acquire "$(body "$how" "$owner")" >"$dir/first"
    mode $how
    is "$(far acquire "$(body "$how" "$owner")" | jq -r .status)" HF_UNKNOWN "$how: what became of the second claim is not known"
    mode pass
    eventually 20 eval 'far acquire "$(body "after $RANDOM" "$(new_owner)")" | grep -q token'
    ok $? 'the nodes are back, and were paid what they were owed'
    is "$(renews "$how" "$owner")" 20000 'the first one holds the lock'
    is "$(keys "$how")" 3 'at all nodes'
    # What was granted only to the one that heard nothing is free soon.
    mode $how
    is "$(far acquire "$(body "lone $how" "$(new_owner)")" | jq -r .status)" HF_UNKNOWN 'a claim that came once and was not heard of'
    mode pass
    eventually 20 eval 'far acquire "$(body "again $RANDOM" "$(new_owner)")" | grep -q token'
    eventually 10 eval '[ "$(keys "lone $how")" = 0 ]'
    ok $? 'is taken back'
done
done_testing
