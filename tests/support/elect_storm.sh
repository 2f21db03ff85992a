# elect_storm.sh - five candidates under random kills and freezes, judged. Sourced by bash after stage.sh.
#
#   elect_storm DESCRIPTION URL SECONDS TTL_MS LEADERLESS_S [OPTION...]
#
# What each leader's command and a process that it left behind write, again and again, tells who was alive
# when: see elect_storm.pl. LEADERLESS_S is the longest time that may pass without any of them. With
# HOLDFAST_LONG it takes two minutes. Options are those of `holdfast elect`.
# shellcheck shell=bash disable=SC2154 # root, hf and dir are of stage.sh

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

# One figure of the last line.
elect_count() {
    tail -n 1 "$dir/elect.said" | tr ' ' '\n' | awk -v name="$1" 'found { print; exit } $0 == name { found = 1 }'
}
