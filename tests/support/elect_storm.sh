# elect_storm.sh - five candidates under random kills and freezes, judged. Sourced by bash after stage.sh.
#
#   elect_storm DESCRIPTION URL SECONDS TTL_MS LEADERLESS_S [OPTION...]
#
# What each leader's command and a process that it left behind write, again and again, tells who was alive
# when: see elect_storm.pl. LEADERLESS_S is the longest time that may pass without any of them. With
# HOLDFAST_LONG it takes two minutes. Options are those of `holdfast elect`.
# shellcheck shell=bash disable=SC2154,SC2317 # root, hf and dir are of stage.sh; eventually calls by name

elect_storm() {
    local what=$1 url=$2 seconds=$3 ttl_ms=$4 most=$5
    shift 5
    [ -z "${HOLDFAST_LONG-}" ] || seconds=120
    perl "$root/tests/support/elect_storm.pl" "$hf" "$url" "$seconds" "$ttl_ms" "$dir/elect" "$@" \
        >"$dir/elect.said" 2>&1
    is $? 0 "$what: no child of a leader was alive beside one of a later term"
    sed 's/^/#   /' "$dir/elect.said"
    above "$(elect_count terms)" 2 "$what: several terms"
    above "$(elect_count faults)" 2 "$what: several faults"
    above $((most * 1000)) "$(elect_count leaderless_ms)" "$what: never without a leader for longer than ${most}s"
    is "$(elect_count left_behind)" 0 "$what: nothing is left behind"
}

#   elect_on URL TTL [nowhere] : candidates, an address, a hand-over at the end, and --at-least, on a store; on
#   one without records, `nowhere`, both are refused in a sentence
elect_on() {
    local url=$1 ttl=$2 first second term out
    local address=10.0.0.1:80
    [ -z "${3-}" ] || address=
    # shellcheck disable=SC2086,SC2016 # no address is no option; the command's variables
    "$hf" --store "$url" elect --ttl "$ttl" --label one ${address:+--address $address} sched -- \
        sh -c 'echo $HOLDFAST_TERM >>"$0"; exec sleep 600' "$dir/terms" 2>"$dir/first" &
    first=$!
    eventually 30 test -s "$dir/terms"
    ok $? 'a candidate leads'
    term=$(cat "$dir/terms")
    out=$("$hf" --store "$url" leader sched)
    is $? 0 'leader: somebody leads'
    like "$out" "sched: one leads*, ${address:+address $address, }term $term" 'who, where, and the term'
    # shellcheck disable=SC2016
    "$hf" --store "$url" elect --ttl "$ttl" --label two sched -- \
        sh -c 'echo $HOLDFAST_TERM >>"$0"; exec sleep 600' "$dir/terms" 2>"$dir/second" &
    second=$!
    elect_line() { "$hf" --store "$url" list --json | grep -q '"waiters": 1'; }
    [ -n "${3-}" ] || eventually 30 elect_line
    kill -TERM "$first"
    wait "$first"
    is $? 143 'TERM ends the leader'
    elect_second() { [ "$(wc -l <"$dir/terms")" -eq 2 ]; }
    eventually 30 elect_second
    ok $? 'and the other one leads'
    like "$("$hf" --store "$url" leader sched)" "sched: two leads*, term $(tail -n 1 "$dir/terms")" \
        'with a term of its own, and not with the address of another'
    above "$(tail -n 1 "$dir/terms")" "$term" 'a higher one'
    kill -TERM "$second"
    wait "$second"
    "$hf" --store "$url" leader sched >"$dir/nobody"
    is "$?:$(cat "$dir/nobody")" '1:sched: nobody leads' 'then nobody leads'
    elect_at_least "$url" "$ttl" "${3-}"
}

elect_at_least() { # URL TTL [nowhere]
    local out
    if [ -n "$3" ]; then
        out=$("$hf" --store "$1" run -n --ttl "$2" --at-least 1h job -- true 2>&1)
        is $? 64 '--at-least is refused'
        like "$out" 'holdfast: lock "job" in store *: --at-least needs records, which this kind of store does not keep' \
            'in one sentence'
        out=$("$hf" --store "$1" elect --ttl "$2" --address x job -- true 2>&1)
        is $? 64 'so is --address'
        like "$out" 'holdfast: lock "job" in store *: --address needs records, which this kind of store does not keep' \
            'in one sentence'
        out=$("$hf" --store "$1" once --ttl "$2" job -- echo ran 2>&1)
        is $? 64 'and once'
        like "$out" 'holdfast: lock "job" in store *: this kind of store keeps no records, see "holdfast help stores"' \
            'in one sentence'
        return
    fi
    out=$("$hf" --store "$1" run -n --ttl "$2" --at-least 1h job -- echo ran 2>&1)
    is "$?:$out" 0:ran '--at-least: the first one runs'
    out=$("$hf" --store "$1" run -n --ttl "$2" --at-least 1h job -- echo ran 2>&1)
    is $? 75 'the next one does not'
    like "$out" '*started less than 1h ago (--at-least), not again for another *' 'and is told why'
    "$hf" --store "$1" run -n --ttl "$2" --at-least 3s soon -- true
    "$hf" --store "$1" run -w 60s --ttl "$2" --at-least 3s soon -- true 2>"$dir/soon"
    is $? 0 'it runs when the time has come'
    like "$(cat "$dir/soon")" '*not again for another *; waiting' 'which it waited for'
}

# One figure of the last line.
elect_count() {
    tail -n 1 "$dir/elect.said" | tr ' ' '\n' | awk -v name="$1" 'found { print; exit } $0 == name { found = 1 }'
}
