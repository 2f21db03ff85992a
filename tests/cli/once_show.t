#!/bin/bash
# `holdfast once`: what it refuses, what it shows, and records that are not as they should be.
set -u
. "$(dirname "$0")/lib.sh"

usage() { # PATTERN DESCRIPTION WORDS...
    local pattern=$1 what=$2
    shift 2
    run "$hf" once "$@"
    is "$rc" 64 "$what: 64"
    like "$err" "$pattern" "$what: says why"
}
usage 'name of the lock is missing' 'no key'
usage 'put "--" and the command after it' 'no command' key
usage '"--" is missing before "./job"' 'a command without dashes' key ./job --with options
usage 'no time zone "Europe/Nowhere"' 'an unknown zone' --per 1d --tz Europe/Nowhere key -- true
usage 'is not a time zone such as' 'a path for a zone' --per 1d --tz ../../etc/passwd key -- true
usage 'is not a time zone' 'an absolute path' --per 1d --tz /usr/share/zoneinfo/UTC key -- true
usage 'there is no time zone "Europe"' 'a folder for a zone' --per 1d --tz Europe key -- true
usage 'not a usable time zone' 'a file that is no zone' --per 1d --tz leapseconds key -- true
for per in 0 5h 25h 7s 50m 36h 400d 500ms; do
    run "$hf" once --per "$per" key -- true
    is "$rc" 64 "--per $per is no period"
done
for at in 24:00 3:00 0300 noon ''; do
    run "$hf" once --per 1d --at "$at" key -- true
    is "$rc" 64 "--at \"$at\" is no time of the day"
done
usage 'need --per' '--at without --per' --at 03:00 key -- true
usage 'periods of whole days' '--at with hours' --per 1h --at 03:00 key -- true
usage 'at most half a period' 'a slack of a period' --per 1h --slack 31m key -- true
usage 'slot could run twice; .* --start-by and --slack together, here 1d and 15m' 'too short a --keep' --per 1d --keep 86401s key -- true
usage 'cannot be used together' 'two questions' --show --history key
usage 'needs --per' '--check without --per' --check key
usage 'are for --show' '--json for a run' --json key -- true
usage '--slot is for' '--slot for a history' --history --slot 2026-11-17 key
usage 'exit code is 0 to 255' 'a --done-exit of 256' --done-exit 256 key -- true
usage 'did you mean "--retries"' 'a slip' --retrys 1 key -- true

run env TZDIR="$dir/nowhere" "$hf" once --per 1d --tz Europe/Berlin key -- true
is "$rc" 0 'a TZDIR that has no zones is passed over'
run "$hf" once --per 1d --tz UTC utc -- true
is "$rc" 0 'UTC needs no database'
if unshare -m true 2>/dev/null; then
    mkdir "$dir/empty"
    run unshare -m sh -c 'mount --bind "$1" /usr/share && shift && exec "$@"' sh "$dir/empty" \
        "$hf" once --per 1d --tz Europe/Berlin zone -- true
    is "$rc" 64 'a machine without the database: 64'
    like "$err" 'has no time zones, /usr/share/zoneinfo is missing: install tzdata, or use --tz UTC' \
        'a machine without the database: says what to do'
    run unshare -m sh -c 'mount --bind "$1" /usr/share && shift && exec "$@"' sh "$dir/empty" \
        "$hf" once --per 1d zone -- true
    is "$rc" 0 'a machine without the database: UTC is there'
else
    skip 3 'may not mount'
fi

# Show.
run "$hf" once --show nothing
is "$rc" 1 '--show: nothing is on record'
like "$err" 'nothing is on record about "nothing"' '--show: and that is said'
run "$hf" once --history nothing
is "$rc$out" 0 '--history: an empty one'
run "$hf" once --history --json nothing
is "$(jq length <<<"$out")" 0 '--history --json: an empty list'
# A slot of hours that neither ends while this test runs nor is about to, which `once` would warn of.
hourly=(--per 1h)
case $(date +%M) in 4[0-7]) hourly+=(--slack 5m) ;; esac
run "$hf" once --label 'me "and" you' "${hourly[@]}" job -- true
run "$hf" once --show job
like "$out" '^"job", slot 20..-..-..T..:00Z: done by me "and" you, began' '--show: a sentence'
like "$out" 'settings   --per 1h$' '--show: the settings'
run "$hf" once --show job --json
is "$(jq -r '.key, .state, .by, .exit_code, .attempts, .per_ms' <<<"$out" | tr '\n' ' ')" \
    'job done me "and" you 0 1 3600000 ' '--show --json'
slot=$(jq -r .slot <<<"$out")
run "$hf" once --show --slot "$slot" job
is "$rc" 0 '--show --slot'
run "$hf" once --show --slot 1999-01-01 job
is "$rc" 1 '--show --slot: not on record'
run "$hf" once --history job
like "$out" "^$slot +done +0 +1 +20.* UTC +[0-9.]+m?s +me" '--history: a line per slot'
run env TZ=America/New_York "$hf" once --history --json job
is "$(jq -r '.[0].slot' <<<"$out")" "$slot" '--history --json'

# Output is what a program wrote, and may be anything.
"$hf" once --output bytes -- printf 'one\000two\033[31m\n\300three\n' >/dev/null
is "$("$hf" once --show --json bytes | jq '.output == "one\ufffdtwo\u001b[31m\n\ufffdthree\n"')" true 'JSON has all of it, whatever bytes there are'
is "$("$hf" once --show bytes | tail -n 2 | od -An -c | tr -d ' \n')" 'one\0two033[31m\n300three\n' 'a pipe gets it as it is'
script -qec "$hf once --show bytes" /dev/null </dev/null >"$dir/seen"
like "$(cat "$dir/seen")" 'one.two.\[31m' 'a terminal sees it'
! grep -q $'\033' "$dir/seen"
ok $? 'and does nothing that it says'

# One record that is damaged, beside another of the key.
run "$hf" once mixed -- true
run "$hf" once --clear --per 1d --reason 'every day from now on' mixed
run "$hf" once --on-crash hold --per 1d mixed -- sh -c 'kill -KILL $PPID; exec sleep 60'
file=$(grep -la mixedonce:ever "$dir"/store/records/*/*)
head -c 100 /dev/urandom >"$file"
run "$hf" once --history mixed
like "$rc ${out//$'\n'/ }" '^69 .*20..-..-.. +held ' '--history: the others are shown'
is "$(grep -c '^holdfast: .*damaged' "$dir/err")" 1 '--history: and one sentence tells of it'
run "$hf" once --history --json mixed
is "$(jq -r '.[].state' <<<"$out")" held '--history --json: the others, too'
run "$hf" once --clear --reason 'looked at it' mixed
like "$rc $out" '^69 cleared "mixed", slot 20' '--clear: the others can be cleared'
rm "$file"
run "$hf" once --history mixed
like "$rc ${out//$'\n'/ }" '^0 .* cleared ' 'without that file all is well'

# Records that are damaged.
for file in "$dir"/store/records/*/*; do
    head -c 100 /dev/urandom >"$file"
done
run "$hf" once --events "$dir/damaged" "${hourly[@]}" job -- true
is "$rc" 69 'a damaged record: 69'
is "$(jq -r .event "$dir/damaged" | tr '\n' ' ')" 'failed ended ' 'a damaged record: the events tell'
is "$(grep -c '^holdfast: ' "$dir/err")" 1 'a damaged record: one sentence'
diag "$err"
run "$hf" once --per 1h other -- true
is "$rc" 0 'the rest of the store works'

done_testing
