#!/bin/bash
# `holdfast once` and `run --at-least` on a disk that stalls for longer than a lease lasts.
# run: once, run: first
set -u
. "$(dirname "$0")/lib.sh"

cc -shared -fPIC -O1 -D_GNU_SOURCE -o "$dir/slow.so" "$(dirname "$0")/../tools/slow_sync.c" || exit 1
slowly() { run env LD_PRELOAD="$dir/slow.so" SLOW_SYNC="$dir/slow" SLOW_SYNC_MS=3000 "$@"; }
state() { "$hf" once --show --json "$1" | jq -r .state; }

# When the job is over: its lease is renewed until the outcome is on record.
for what in file folder; do
    slowly "$hf" once --ttl 2s "outcome-$what" -- touch "$dir/slow.$what"
    is "$rc $(state "outcome-$what")" '0 done' "a success is put on record, however slow the sync of a $what is"
    test ! -e "$dir/slow.$what"
    ok $? 'and it was slow'
done

# Before it starts: what is on record is a run that was never started, and we know that.
run "$hf" once --on-crash hold before -- false
touch "$dir/slow.folder"
slowly "$hf" once --on-crash hold --ttl 2s before -- touch "$dir/ran"
is "$rc $(state before)" '0 done' 'what was not even started is not held'
like "$err" 'expired before .*touch could be started' 'it was too slow'
test -e "$dir/ran"
ok $? 'and is run in the next turn'

# --at-least: our own mark, of a start that was put off because nobody knew whether it is on disk, is no start.
run "$hf" run --at-least 1s mark -- true
sleep 1.1
touch "$dir/slow.broken"
start env LD_PRELOAD="$dir/slow.so" SLOW_SYNC="$dir/slow" SLOW_SYNC_MS=0 \
    "$hf" run -w 30s --ttl 1s --at-least 1h mark -- touch "$dir/marked" 2>"$dir/marks"
within 20 grep -q 'it may be there' "$dir/marks"
rm "$dir/slow.broken"
ended "$pid"
is "$rc" 0 'a mark that was not known to be there does not keep us from starting'
test -e "$dir/marked"
ok $? 'when it is'

done_testing
