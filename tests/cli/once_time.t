#!/bin/bash
# `holdfast once --per` and the calendar: slots of days and hours, slack, daylight saving, start-by, old slots.
# The embedded store's clock is this machine's, which libfaketime moves. (It also upsets the thread that says
# what is to be said while the lock is held: that is looked at elsewhere.)
# run: once, run: first
set -u
. "$(dirname "$0")/lib.sh"
library=$(find /usr/lib -name libfaketime.so.1 2>/dev/null | head -n 1)
[ -n "$library" ] || {
    echo '1..0 # SKIP libfaketime is not installed'
    exit 0
}
at() { # "2026-11-17 03:00:00" (UTC) COMMAND... : leaves $rc, $out, $err
    local when=$1
    shift
    run env TZ=UTC LD_PRELOAD="$library" FAKETIME="@$when" DONT_FAKE_MONOTONIC=1 NO_FAKE_STAT=1 \
        FAKETIME_DONT_RESET=1 "$@"
}
slot='echo $HOLDFAST_ONCE_SLOT'

slot_is() { # WHEN SLOT DESCRIPTION OPTIONS... : the slot that is meant then; "" if it is done already
    local when=$1 want=$2 what=$3
    shift 3
    at "$when" "$hf" once "$@" -- sh -c "$slot"
    is "$rc $out" "0 $want" "$what"
}

# Borders and slack.
slot_is '2026-11-17 02:44:00' 2026-11-16 'before the slack it is yesterday'\''s slot' --per 1d --at 03:00 slack
slot_is '2026-11-17 02:46:00' 2026-11-17 'within the slack the coming one is meant' --per 1d --at 03:00 slack
slot_is '2026-11-17 03:00:02' '' 'which is done when the border has passed' --per 1d --at 03:00 slack
slot_is '2026-11-18 02:59:58' 2026-11-18 'a server two seconds ahead means the next day' --per 1d --at 03:00 slack
slot_is '2026-11-18 03:00:02' '' 'and one two seconds behind finds it done' --per 1d --at 03:00 slack
slot_is '2026-11-18 02:59:58' 2026-11-17 'with --slack 0 it does not' --per 1d --at 03:00 --slack 0 none
slot_is '2026-11-17 03:00:00' 2026-11-17T03:00Z 'hours' --per 1h hours
slot_is '2026-11-17 03:44:00' '' 'are one slot' --per 1h hours
slot_is '2026-11-17 03:46:00' 2026-11-17T04:00Z 'up to the slack' --per 1h hours
slot_is '2026-11-22 23:00:00' 2026-11-16 'a week begins on Monday' --per 7d week
slot_is '2026-11-23 00:00:00' 2026-11-23 'and then the next' --per 7d week

# Years and leap days.
slot_is '2026-12-31 23:59:00' 2027-01-01 'the year ends' --per 1d year
slot_is '2027-01-01 12:00:00' '' 'in the middle of a slot' --per 1d year
slot_is '2028-02-28 23:00:00' 2028-02-28 'the day before a leap day' --per 1d year
slot_is '2028-02-29 12:00:00' 2028-02-29 'a leap day' --per 1d year
slot_is '2028-03-01 00:00:00' 2028-03-01 'and the day after' --per 1d year

# Daylight saving in Berlin: 02:00 becomes 03:00 on 29 March 2026, 03:00 becomes 02:00 on 25 October.
berlin='--per 1d --at 02:30 --tz Europe/Berlin dst'
# shellcheck disable=SC2086
{
    slot_is '2026-03-28 01:30:00' 2026-03-28 'the night before' $berlin
    slot_is '2026-03-29 00:44:00' '' 'the missing hour: not yet' $berlin
    slot_is '2026-03-29 01:00:00' 2026-03-29 'the first instant after it' $berlin
    slot_is '2026-03-29 23:00:00' '' 'once that day' $berlin
    slot_is '2026-03-30 00:30:00' 2026-03-30 'the night after, by summer time' $berlin
    slot_is '2026-10-24 00:30:00' 2026-10-24 'the night before the doubled hour' $berlin
    slot_is '2026-10-25 00:30:00' 2026-10-25 'the first 02:30' $berlin
    slot_is '2026-10-25 01:30:00' '' 'the second 02:30 is the same slot' $berlin
    slot_is '2026-10-26 01:30:00' 2026-10-26 'the night after' $berlin
}
slot_is '2026-03-08 07:00:00' 2026-03-08 'New York: the missing hour' --per 1d --at 02:30 --tz America/New_York ny
slot_is '2026-11-16 13:00:00' 2026-11-17 'far in the east' --per 1d --at 03:00 --tz Pacific/Kiritimati east
slot_is '2026-11-17 14:00:00' 2026-11-17 'far in the west' --per 1d --at 03:00 --tz Pacific/Pago_Pago west
run env TZ=Asia/Tokyo "$hf" once --per 1d --tz UTC mine -- date +%Z
is "$out" JST 'the zone of the command is left alone'

# A schedule on the edge.
at '2026-11-17 03:45:01' "$hf" once --per 1h edge -- true
like "$err" 'warning: "edge" was started close to the moment from which the next slot is meant, 15m before' \
    'a schedule that sits on the edge is warned about'
at '2026-11-17 05:30:00' "$hf" once --per 1h edge -- true
is "$err" '' 'one in the middle is not'

# Too late.
at '2026-11-17 03:20:00' "$hf" once --per 1d --at 03:00 --start-by 10m late -- touch "$dir/no"
is "$rc" 1 'after --start-by it is too late: 1'
at '2026-11-17 03:05:00' "$hf" once --per 1d --at 03:00 --start-by 10m late -- touch "$dir/no"
is "$rc" 1 'that is on record'
like "$err" 'slot 2026-11-17: not run: at 2026-11-17 03:20:00 UTC it was too late to start it' 'and is said'
test ! -e "$dir/no"
ok $? 'nothing ran'
at '2026-11-18 03:05:00' "$hf" once --per 1d --at 03:00 --start-by 10m late -- true
is "$rc" 0 'the next one is not too late'

# A job longer than its period, and a waiter from an old slot. Seconds stand for days.
long() { "$hf" once --per 4s "$@" -- sh -c "echo \$HOLDFAST_ONCE_SLOT >>$dir/long; sleep \${SLEEP:-0}"; }
align() { # to shortly after a border
    perl -MTime::HiRes=time,sleep -e 'my $p = shift; my $t = time; sleep($p - ($t - $p * int($t / $p)) + 0.3)' "$1"
}
align 4
SLEEP=6 start long longer
first=$pid
within 10 lines "$dir/long" 1
start long longer # the same slot
second=$pid
sleep 3
start long longer # the next slot, while the first one still runs
third=$pid
ended "$first"
is "$rc" 0 'a job longer than its period ends'
ended "$second"
is "$rc" 0 'who waited from its slot finds it done, later on'
ended "$third"
is "$rc" 0 'who waited for the next one runs it'
is "$(sort "$dir/long" | uniq -d | wc -l)/$(wc -l <"$dir/long")" 0/2 'each slot ran once'
align 4
SLEEP=9 start long forlate
within 10 lines "$dir/long" 3
sleep 3
run long forlate
is "$rc" 1 'a slot whose time was over before its turn came is too late'
like "$err" 'too late to start' 'and says so'

# A retry is one of its slot, whatever the time is by then.
align 2
run "$hf" once --per 2s --start-by 60s --retries 1 --retry-after 2500ms again -- \
    sh -c "echo \$HOLDFAST_ONCE_SLOT >>$dir/again; [ \$(wc -l <$dir/again) = 2 ]"
is "$rc $(uniq "$dir/again" | wc -l)/$(wc -l <"$dir/again")" '0 1/2' 'a retry after the border is of the slot before'

# Check, for monitoring.
check() { # WHEN OPTIONS...
    local when=$1
    shift
    at "$when" "$hf" once --check "$@"
}
check '2026-11-17 12:00:00' --per 1d new
is "$rc $out" '1 CRITICAL - "new" was never run' '--check: a key that was never run'
at '2026-11-17 03:00:00' "$hf" once --per 1d --at 03:00 --tz UTC job -- true
check '2026-11-17 03:30:00' --per 1d job
is "$rc" 0 '--check: no slot is due yet'
check '2026-11-17 04:30:00' --per 1d --late 1h job
is "$rc" 0 '--check: done in time'
like "$out" '^OK - "job", slot 2026-11-17: done by' 'one line says so'
check '2026-11-18 03:30:00' --per 1d --late 1h job
is "$rc" 0 '--check: the next one is not due yet'
check '2026-11-18 04:00:00' --per 1d --late 1h job
is "$rc" 1 '--check: an hour later it is'
is "$out" 'CRITICAL - "job", slot 2026-11-18: not run yet' 'and was not run'
check '2026-11-19 02:59:00' --per 1d job
is "$rc" 0 '--check: without --late, a period later'
check '2026-11-19 03:00:01' --per 1d job
is "$rc" 1 '--check: it is missing'
at '2026-11-19 03:00:00' "$hf" once --per 1d --at 03:00 job -- false
check '2026-11-19 05:00:00' --per 1d --late 1h --json job
is "$(jq -r '.ok, .slot' <<<"$out" | tr '\n' ' ')$rc" 'false 2026-11-19 1' '--check --json: it failed'
check '2026-11-19 05:00:00' --per 1h job
is "$rc" 64 '--check: another --per is refused'

done_testing
