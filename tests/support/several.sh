# several.sh - what is asked of every store about several locks at once. Sourced by bash after stage.sh. See
# tests/tools/tool_slots.c.
#
#   several URL KILLED_MS SECOND_MS [TTL_MS [LONGEST_MS]]
#
# KILLED_MS: how long a waiter that was killed in all queues may keep those behind it waiting; SECOND_MS: how long
# a second grant may take to the next in the queue ("-" for both: the store has no queues); LONGEST_MS: how long
# anybody may wait in the storm, where holders are frozen for TTL_MS and a little.
# shellcheck shell=bash disable=SC2154,SC2317 # of stage.sh; called by name

slots() { # WHAT ARG... : its last line is in $answer
    local limit=240 rc
    [ -z "${HOLDFAST_LONG-}" ] || limit=900
    # A group of its own: it stops and kills processes.
    setsid timeout -k 5 "$limit" "$build/tests/tools/tool_slots" "$@" >"$dir/slots" 2>&1
    rc=$?
    answer=$(tail -n 1 "$dir/slots")
    sed 's/^# //; s/^/#   /' "$dir/slots" | head -n 20
    return $rc
}
# One figure of it.
slots_figure() { tr ' ' '\n' <<<"$answer" | awk -v name="$1" 'found { print; exit } $0 == name { found = 1 }'; }

slots_storm() { # SECONDS TTL_MS LONGEST_MS URL...
    local longest=$3
    slots storm "$1" "$2" "${@:4}"
    ok $? '30 processes on 4 slots: no number twice, never more than four, nothing left behind'
    above "$(slots_figure least)" 1 'every number is used again and again'
    above "$(slots_figure kills)" 0 'some were killed'
    above "$(slots_figure cancels)" 0 'some waits were cancelled'
    above "$longest" "$(slots_figure longest_wait_ms)" 'nobody starves'
}

# As many as there may be: one command holds all of them, and of those who wait for any the first is killed. What
# is left behind by mistake stays for longer than anybody waits here: for its ttl of 30s.
slots_many() { # URL
    local names holder ghost waiter
    names=$(seq -f 'many#%g' 0 63)
    # shellcheck disable=SC2016,SC2086 # 64 words; what CMD is to expand
    "$hf" --store "$1" run --all $names -- \
        sh -c 'touch "$0/many.up"; while [ ! -e "$0/many.go" ]; do sleep 0.05; done' "$dir" 2>"$dir/many" &
    holder=$!
    eventually 30 test -e "$dir/many.up"
    ok $? 'one command holds 64 locks'
    "$hf" --store "$1" run --slots 64 many -- true >/dev/null 2>&1 &
    ghost=$!
    many_wait() { "$hf" --store "$2" slots many | grep -q "64 of 64 held, $1 waiting"; }
    eventually 30 many_wait 1 "$1"
    # shellcheck disable=SC2016 # what CMD is to expand
    "$hf" --store "$1" run --slots 64 --wait 20s many -- sh -c 'echo "$HOLDFAST_NAME"' >"$dir/many.got" 2>/dev/null &
    waiter=$!
    eventually 30 many_wait 2 "$1"
    ok $? 'two wait for any of them'
    kill -9 "$ghost"
    wait "$ghost" 2>/dev/null
    touch "$dir/many.go"
    wait "$holder"
    ok $? 'they are given back'
    wait "$waiter"
    ok $? 'and who is behind one that was killed has one of them'
    # shellcheck disable=SC2086 # 64 words
    "$hf" --store "$1" run --wait 20s --all $names -- true
    ok $? 'and nothing is kept of the others'
}

several() {
    local url=$1 killed=$2 second=$3 ttl=${4-600} longest=${5-10000} seconds=4 rounds=300
    # Thirty who stand in the queue for four slots, of whom six are killed every second, wait for many others.
    [ -z "${HOLDFAST_LONG-}" ] || { seconds=60 rounds=10000 longest=$((3 * longest)); }
    if [ "$killed" != - ]; then
        slots order "$url"
        ok $? 'those who wait for any slot are served in the order they came'
        slots killed "$killed" "$url"
        ok $? "one that is killed in all queues costs those behind it at most ${killed}ms, all slots together"
        slots second "$second" "$url"
        ok $? "a second grant reaches the next in the queue within ${second}ms"
        slots_many "$url"
    fi
    slots all "$rounds" "$url"
    ok $? "all of two locks, named in opposite orders, $rounds times: nobody waits for ever"
    slots_storm "$seconds" "$ttl" "$longest" "$url"
}
