#!/bin/sh
# run.sh [soon|long|full] [MODEL] - check the models with spin; TAP on stdout.
#
# Each row below is one check: when, of which model, a name, what spin must say (sound: no history breaks a
# promise; broken: one does), and the sizes and the broken rule. What begins with M_ breaks a rule and must be
# found; what begins with E_ makes no difference, and the model says why.
#
# `soon`, which `make test` runs, takes half a minute of one core; `long`, of `make test-long`, that and some
# minutes on two; `full` goes through larger worlds too, takes half an hour and 8 GB.
set -u
here=$(cd "$(dirname "$0")" && pwd)
mode=${1:-long}
only=${2-}

rows() {
    cat <<'END'
soon word    deaths-and-hand-overs      sound  -DN=2 -DROUNDS=2 -DKILLS=1
soon word    renewal-and-takeover       sound  -DN=2 -DTICKS=2 -DRENEWS=1
soon word    release-without-waited     broken -DN=2 -DM_RELEASE_BLIND
soon word    release-by-token-alone     broken -DN=2 -DM_RELEASE_TOKEN
soon word    waiter-does-not-set-waited broken -DN=2 -DM_WAITER_SILENT
soon word    waited-into-another-hold   broken -DN=2 -DM_WAITER_BLIND
soon word    renewal-drops-waited       broken -DN=2 -DRENEWS=1 -DM_RENEW_DROPS
soon word    renewal-by-token-alone     broken -DN=2 -DRENEWS=1 -DM_RENEW_TOKEN
soon word    renewal-by-a-plain-store   broken -DN=2 -DTICKS=2 -DRENEWS=1 -DM_RENEW_STORE
soon word    taker-by-a-plain-store     broken -DN=2 -DROUNDS=2 -DM_TAKE_STORE
soon word    newcomer-by-a-plain-store  broken -DN=2 -DM_FAST_STORE
soon word    takeover-by-token-alone    broken -DN=2 -DTICKS=2 -DRENEWS=1 -DM_TAKE_TOKEN
soon word    early-token                broken -DM_EARLY_TOKEN
soon word    a-grant-keeps-the-token    broken -DN=2 -DM_SAME_TOKEN
soon word    barging-past-a-reservation broken -DM_BARGE
soon word    renewal-of-a-broken-hold   broken -DN=2 -DBREAKS=1 -DRENEWS=1 -DM_RENEW_BROKEN
soon word    renewal-of-an-expired-hold broken -DN=2 -DTICKS=2 -DRENEWS=1 -DM_RENEW_EXPIRED
soon word    sleeps-with-nothing-to-watch broken -DKILLS=1 -DM_SLEEP
soon word    hand-over-without-a-byte   broken -DN=2 -DM_NO_WAKE
soon word    woken-after-the-swap       broken -DN=2 -DBREAKS=2 -DKILLS=1 -DM_WAKE_LATE
soon slot    deaths-amid-gifts-and-splits sound -DROUNDS=1 -DKILLS=1
soon slot    no-mark                    broken -DM_NO_MARK
soon slot    name-before-mark           broken -DM_RENAME_FIRST
soon slot    same-token-after-giving-away broken -DM_SAME_TOKEN
soon slot    no-floor                   broken -DM_NO_FLOOR
soon slot    floor-not-inherited        broken -DM_FLOOR_STAYS
soon slot    name-compared-first        broken -DM_NAME_FIRST
soon slot    name-not-compared          broken -DM_NAME_NEVER
soon slot    split-without-mark         broken -DM_SPLIT_NO_MARK
soon slot    copy-before-mark           broken -DM_COPY_FIRST
soon slot    depth-before-copy          broken -DM_DEPTH_FIRST
soon slot    mends-what-moved           broken -DM_MEND_MOVED
soon slot    does-not-mend              broken -DROUNDS=1 -DKILLS=1 -DM_NO_MEND
soon slot    takes-what-is-moving       broken -DM_TAKE_MOVING
soon slot    renews-what-is-moving      broken -DM_RENEW_MOVING
soon slot    releases-what-is-moving    broken -DM_RELEASE_MOVING
soon slot    renewal-trusts-its-pointer broken -DM_RENEW_TRUSTS
soon slot    release-trusts-its-pointer broken -DM_RELEASE_TRUSTS
soon details deaths-and-burials         sound  -DROUNDS=1 -DKILLS=1
soon details written-after-the-swap     broken -DN=1 -DM_DETAILS_LATE
soon details touched-before-the-release broken -DN=1 -DM_TOUCHED
soon details used-again-without-knowing broken -DN=1 -DM_REUSED
soon details written-over-in-the-slot   broken -DM_DETAILS_OVER
soon details list-looks-once            broken -DROUNDS=1 -DM_ONE_LOOK
soon details page-of-the-dead-not-emptied broken -DROUNDS=1 -DKILLS=1 -DM_BURY_NOT
soon details page-taken-before-emptied  broken -DN=3 -DROUNDS=1 -DKILLS=1 -DM_BURY_LATE
long word    three-clients              sound
long word    three-clients-and-a-death  sound  -DKILLS=1
long word    waiters-leave              sound  -DGIVEUP=1
long word    a-passer-by                sound  -DPASSERS=1 -DTICKS=1
long word    time-and-deaths            sound  -DN=2 -DTICKS=3 -DRENEWS=1 -DKILLS=1
long word    broken-holds               sound  -DN=2 -DBREAKS=1 -DRENEWS=1 -DTICKS=2
long word    broken-now                 sound  -DBREAKS=2
long word    taker-clears-waited        broken -DROUNDS=2 -DM_TAKER_CLEARS
long word    broken-now-and-a-death     sound  -DBREAKS=2 -DKILLS=1 -DN=2
long word    waited-although-nobody-does sound -DKILLS=1 -DE_ALWAYS_WAITED
long slot    two-clients-any-names      sound
long slot    two-slots                  sound  -DSLOTS=2
long slot    the-name-that-moves        sound  -DN=3 -DFIXED=2 -DROUNDS=1
long slot    three-clients-and-a-death  sound  -DN=3 -DFIXED=1 -DROUNDS=1 -DRENEWS=0 -DKILLS=1
long slot    floor-after-the-name       broken -DN=3 -DFIXED=1 -DRENEWS=0 -DKILLS=1 -DM_FLOOR_LATE
long slot    a-moving-word-is-stored    sound  -DROUNDS=1 -DKILLS=1 -DE_STORE_MOVING
long details two-clients                sound
full details three-clients-and-a-death  sound  -DN=3 -DROUNDS=1 -DKILLS=1
long redlock duplicates                 sound  -DDUPS=1 -DGUESS=1
long redlock amnesia                    sound  -DAMNESIA=1 -DGUESS=1
long redlock renewal                    sound  -DRENEW=1 -DGUESS=1
long redlock owner-reused               broken -DK=3 -DM_OWNER_REUSED
long redlock resent                     broken -DM_RESENT
long redlock late-grant                 broken -DAMNESIA=1 -DGUESS=1 -DM_LATE_GRANT
long redlock raise-unchecked            broken -DDUPS=1 -DM_RAISE_UNCHECKED
long redlock not-applied                broken -DM_NOT_APPLIED
long redlock renewal-creates            broken -DRENEW=1 -DM_RECREATE
long redlock reachable-quorum           broken -DM_REACHABLE
long redlock two-names                  broken -DM_TWO_NAMES
long redlock votes-at-once              broken -DAMNESIA=1 -DM_VOTES_AT_ONCE
long redlock clock-ignored              broken -DAMNESIA=1 -DGUESS=1 -DM_CLOCK_IGNORED
full word    three-clients-in-time      sound  -DTICKS=2 -DRENEWS=1
full word    broken-holds-twice         sound  -DN=2 -DROUNDS=2 -DBREAKS=1 -DRENEWS=1 -DTICKS=2
full word    three-clients-twice        sound  -DROUNDS=2
full slot    two-clients-and-a-death    sound  -DKILLS=1
full details a-death-in-two-rounds      sound  -DKILLS=1
full redlock duplicates-guesses         sound  -DDUPS=1
full redlock amnesia-guesses            sound  -DAMNESIA=1 -DGUESS=2
full redlock renewal-guesses            sound  -DRENEW=1 -DGUESS=3
full redlock renewal-amnesia            sound  -DRENEW=1 -DAMNESIA=1 -DGUESS=1
full redlock amnesia-duplicates         sound  -DAMNESIA=1 -DDUPS=1 -DGUESS=1
full redlock two-duplicates             sound  -DDUPS=2 -DGUESS=2
END
}

work=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-model.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

# What breaks is found soon, and then the compiler takes longer than the search.
how_to_compile() { # EXPECTED
    if [ "$mode" = soon ]; then
        [ "$1" = broken ] && echo -O0 || echo -O2
    else
        echo -O2 "$([ "$mode" = full ] && echo -DCOLLAPSE)"
    fi
}

# check MODEL NAME EXPECTED FLAGS... : "ok" or the reason into $work/MODEL-NAME/verdict
check() {
    model=$1 name=$2 expected=$3
    shift 3
    mkdir "$work/$model-$name" && cd "$work/$model-$name" || exit 1
    # shellcheck disable=SC2046 # words
    if ! { spin "$@" -a "$here/$model.pml" &&
        gcc -w -DSAFETY -DNOFAIR $(how_to_compile "$expected") -DMEMLIM=7000 -o pan pan.c; } \
        >build.out 2>&1; then
        echo "could not be built: $(tail -n 1 build.out)" >verdict
        return
    fi
    ./pan -m10000 -w"$([ "$mode" = soon ] && echo 20 || echo 24)" >pan.out 2>&1
    states=$(awk '/states, stored/ { print $1 }' pan.out)
    if grep -Eq '^pan:[0-9]+: (assertion violated|invalid end state)' pan.out; then
        found=broken
    elif grep -q 'errors: 0' pan.out && ! grep -Eq 'max search depth too small|out of memory|Search not completed' pan.out; then
        found=sound
    else
        found="undecided ($(tail -n 1 pan.out))"
    fi
    if [ "$found" = "$expected" ]; then
        echo "ok $states states" >verdict
    else
        echo "should be $expected and is $found: $(grep -E -m 1 '^pan:[0-9]+: ' pan.out)" >verdict
    fi
    rm -f pan pan.*
}

case $mode in
soon) wanted=soon ;;
long) wanted='soon|long' ;;
*) wanted='soon|long|full' ;;
esac
rows | grep -E "^($wanted) +${only:-.*} " >"$work/rows"
# Two at a time.
while read -r _ model name expected flags; do
    # shellcheck disable=SC2086 # flags are words
    (check "$model" "$name" "$expected" $flags) &
    running="${running-} $!"
    # shellcheck disable=SC2086
    set -- $running
    if [ $# -ge 2 ]; then
        wait "$1"
        shift
        running="$*"
    fi
done <"$work/rows"
wait

echo "1..$(wc -l <"$work/rows")"
n=0
bad=0
while read -r _ model name expected _; do
    n=$((n + 1))
    verdict=$(cat "$work/$model-$name/verdict" 2>/dev/null)
    case $verdict in
    ok*) echo "ok $n - $model: $name is $expected (${verdict#ok })" ;;
    *) echo "not ok $n - $model: $name: $verdict" && bad=1 ;;
    esac
done <"$work/rows"
exit "$bad"
