#!/bin/sh
# run.sh [quick|full] - check the model of tokens over a quorum with spin; TAP on stdout.
#
# Each row below is one check: a name, what spin must say (sound: no history breaks a promise;
# broken: one does), and the sizes and the broken rule. `quick`, which `make test-long` runs, takes a
# minute or two on two cores; `full` goes through larger worlds too, takes a quarter of an hour and 8 GB.
set -u
model=$(cd "$(dirname "$0")" && pwd)/redlock.pml
mode=${1:-quick}
compress=$([ "$mode" = full ] && echo -DCOLLAPSE)

rows() {
    cat <<'END'
quick duplicates         sound  -DDUPS=1 -DGUESS=1
quick amnesia            sound  -DAMNESIA=1 -DGUESS=1
quick renewal            sound  -DRENEW=1 -DGUESS=1
quick owner-reused       broken -DK=3 -DM_OWNER_REUSED
quick resent             broken -DM_RESENT
quick late-grant         broken -DAMNESIA=1 -DGUESS=1 -DM_LATE_GRANT
quick raise-unchecked    broken -DDUPS=1 -DM_RAISE_UNCHECKED
quick not-applied        broken -DM_NOT_APPLIED
quick renewal-creates    broken -DRENEW=1 -DM_RECREATE
quick reachable-quorum   broken -DM_REACHABLE
quick two-names          broken -DM_TWO_NAMES
quick votes-at-once      broken -DAMNESIA=1 -DM_VOTES_AT_ONCE
quick clock-ignored      broken -DAMNESIA=1 -DGUESS=1 -DM_CLOCK_IGNORED
full  duplicates-guesses sound  -DDUPS=1
full  amnesia-guesses    sound  -DAMNESIA=1 -DGUESS=2
full  renewal-guesses    sound  -DRENEW=1 -DGUESS=3
full  renewal-amnesia    sound  -DRENEW=1 -DAMNESIA=1 -DGUESS=1
full  amnesia-duplicates sound  -DAMNESIA=1 -DDUPS=1 -DGUESS=1
full  two-duplicates     sound  -DDUPS=2 -DGUESS=2
END
}

work=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-model.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

# check NAME EXPECTED FLAGS... : "ok" or the reason into $work/NAME/verdict
check() {
    name=$1 expected=$2
    shift 2
    mkdir "$work/$name" && cd "$work/$name" || exit 1
    # shellcheck disable=SC2086 # nothing or one word
    if ! { spin "$@" -a "$model" && gcc -O2 -w -DSAFETY -DNOFAIR $compress -DMEMLIM=7000 -o pan pan.c; } \
        >build.out 2>&1; then
        echo "could not be built: $(tail -n 1 build.out)" >verdict
        return
    fi
    ./pan -m10000 >pan.out 2>&1
    states=$(awk '/states, stored/ { print $1 }' pan.out)
    if grep -q 'assertion violated' pan.out; then
        found=broken
    elif grep -q 'errors: 0' pan.out && ! grep -Eq 'max search depth too small|out of memory|Search not completed' pan.out; then
        found=sound
    else
        found="undecided ($(tail -n 1 pan.out))"
    fi
    if [ "$found" = "$expected" ]; then
        echo "ok $states states" >verdict
    else
        echo "should be $expected and is $found: $(grep -m 1 'assertion violated' pan.out)" >verdict
    fi
    rm -f pan pan.*
}

rows | if [ "$mode" = full ]; then cat; else grep '^quick'; fi >"$work/rows"
# Two at a time.
while read -r _ name expected flags; do
    # shellcheck disable=SC2086 # flags are words
    (check "$name" "$expected" $flags) &
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
while read -r _ name expected _; do
    n=$((n + 1))
    verdict=$(cat "$work/$name/verdict" 2>/dev/null)
    case $verdict in
    ok*) echo "ok $n - $name is $expected (${verdict#ok })" ;;
    *) echo "not ok $n - $name: $verdict" && bad=1 ;;
    esac
done <"$work/rows"
exit "$bad"
