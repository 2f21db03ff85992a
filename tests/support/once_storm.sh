# once_storm.sh - five servers and one job, judged. Sourced by bash after stage.sh. See once_storm.pl.
#
#   once_storm DESCRIPTION URL NAME=VALUE...     each slot must be done once; $storm_fault, if set, is a function
#                                                that does one thing to the servers, mends it, and returns: it is
#                                                called again and again until the last border
#   once_misses DESCRIPTION URL NAME=VALUE...    the control: one server and no slack must miss slots
#   once_waits DESCRIPTION URL BACK              five start while the store is down; BACK, a function, brings it
#                                                back; one runs
#
# $once_program, if set, is started in place of $hf by once_storm and once_waits.
#
# The ratios of skew, slack and period are those of 10 minutes, 15 minutes and a day: 12s, 83ms, 125ms.
# HOLDFAST_LONG=1: more slots.
# shellcheck shell=bash disable=SC2154 # build, dir, hf and root are of stage.sh

storm_number=0

once_storm() {
    local what=$1 url=$2 pid faults=0 odds
    shift 2
    storm_number=$((storm_number + 1))
    perl "$root/tests/support/once_storm.pl" "${once_program:-$hf}" "$url" dir="$dir/once$storm_number" "$@" \
        ${HOLDFAST_LONG:+slots=40} >"$dir/once" 2>"$dir/once.err" &
    pid=$!
    while [ -n "${storm_fault-}" ] && kill -0 "$pid" 2>/dev/null; do
        "$storm_fault" "$pid"
        faults=$((faults + 1))
    done
    wait "$pid"
    is $? 0 "$what: each slot was done exactly once"
    sed 's/^/#   /' "$dir/once" "$dir/once.err"
    [ -z "${storm_fault-}" ] || echo "#   server faults: $faults"
    above "$(once_count once)" 0 "$what: there were slots"
    is "$(once_count missed)" 0 "$what: none missed"
    is "$(once_count doubled)" 0 "$what: none done twice"
    odds=$(($(once_count kills) + $(once_count freezes)))
    above "$odds" 0 "$what: servers were killed and frozen"
}

# Skew and no slack: a firing that is early finds the slot before it done, and nobody comes again. With slack, and
# everything else as it was, none is missed. Both at the same time, in locks of their own.
once_misses() {
    local what=$1 url=$2 pid
    shift 2
    set -- servers=1 late=0 kill=0 freeze=0 fail=0 "$@"
    perl "$root/tests/support/once_storm.pl" "$hf" "$url" dir="$dir/with" name=with slack=300 "$@" >"$dir/with.out" 2>&1 &
    pid=$!
    perl "$root/tests/support/once_storm.pl" "$hf" "$url" dir="$dir/without" name=without slack=0 "$@" >"$dir/once" 2>&1
    sed 's/^/#   without slack: /; q' "$dir/once"
    above "$(once_count missed)" 0 "$what: one server without slack misses slots"
    is "$(once_count doubled)" 0 "$what: and does none twice"
    wait "$pid"
    is $? 0 "$what: with slack it misses none"
    sed 's/^/#   with slack: /' "$dir/with.out"
}

once_waits() {
    local what=$1 url=$2 back=$3 pids='' i bad=0
    storm_number=$((storm_number + 1))
    for i in 1 2 3 4 5; do
        "${once_program:-$hf}" --store "$url" once --label "server$i" "waits-$storm_number" -- \
            sh -c "echo $i >>'$dir/waits'" 2>"$dir/waits.$i" &
        pids="$pids $!"
    done
    sleep 1
    [ ! -e "$dir/waits" ]
    ok $? "$what: nothing runs meanwhile"
    $back
    for i in $pids; do
        wait "$i" || bad=$?
    done
    is "$bad" 0 "$what: all five exit 0 when it is back"
    is "$(wc -l <"$dir/waits")" 1 "$what: one ran"
    is "$(cat "$dir"/waits.? | grep -c 'done by')" 4 "$what: four say who"
    rm -f "$dir/waits"*
}

# One figure of the first line.
once_count() {
    head -n 1 "$dir/once" | tr ' ' '\n' | awk -v name="$1" 'found { print; exit } $0 == name { found = 1 }'
}
