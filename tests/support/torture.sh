# torture.sh - `holdfast torture` on a store, judged. Sourced by bash after stage.sh.
#
#   tortures URL [OPTION...]   the last report, JSON, is in $dir/torture
#   torture_killed URL LEFT    a torture is killed in the middle: LEFT, a command, tells what is in the store that was not
#                              there before its first use
# shellcheck shell=bash disable=SC2154,SC2317 # hf and dir are of stage.sh; functions that are used by name

tortures() {
    local url=$1
    shift
    timeout 120 "$hf" --store "$url" torture --for 6s --json "$@" >"$dir/torture" 2>"$dir/torture.err"
    is $? 0 'torture: no two valid holds, tokens in order, nothing lost behind the fence'
    sed 's/^/#   /' "$dir/torture" "$dir/torture.err"
    reports '.sound and .overlaps == 0 and .disorders == 0 and .fenced.lost == 0' 'the report says so'
    # How many there are in so short a time is a matter of luck on a busy machine.
    reports '.holds > 20 and .fenced.updates > 20' 'there was progress'
    reports '.kills > 0' 'workers were killed'
    reports '.freezes > 0' 'and frozen'
    reports '.cuts > 0 and .cut_connections > 0' 'and cut off'
    reports '.names_left == 0' 'nothing of its names is left'
    reports '.leaves != null' 'and it says what first use of a store leaves'
}

reports() { # FILTER DESCRIPTION
    jq -e "$1" "$dir/torture" >/dev/null
    ok $? "$2"
}

torture_killed() {
    local url=$1 left=$2 pid children
    "$hf" --store "$url" torture --for 10m --ttl 1s >"$dir/out" 2>"$dir/err" &
    pid=$!
    torture_works() { [ "$("$hf" --store "$url" list --json | jq '[.[] | select(.held)] | length')" -ge 2 ]; }
    eventually 20 torture_works
    ok $? 'a torture works'
    sleep 1 # somebody is killed in a queue
    children=$(cat "/proc/$pid/task/$pid/children")
    kill -KILL "$pid"
    wait "$pid" 2>"$dir/jobs"
    torture_over() { local p; for p in $children; do [ ! -e "/proc/$p" ] || return 1; done; }
    eventually 40 torture_over
    ok $? 'when it is killed, its workers end'
    is "$($left)" '' 'and nothing is left of it'
}
