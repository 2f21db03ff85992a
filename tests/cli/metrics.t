#!/bin/bash
# --metrics: figures for Prometheus, which outlive the process.
set -u
. "$(dirname "$0")/lib.sh"

prom=$dir/job.prom
value() { # NAME [FILE] : of a figure
    sed -n "s/^holdfast_$1{[^}]*} //p" "${2:-$prom}"
}

before=$(date +%s)
run "$hf" run --metrics "$prom" job -- true
is "$rc:$err" 0: 'a run with --metrics'
is "$(sed 's/} .*/}/' "$prom" | grep -v '^#' | sort -u | tr '\n' ' ')" \
    "$(for name in last_duration_seconds last_exit_code last_start_timestamp_seconds \
        last_success_timestamp_seconds last_wait_seconds lost_total skipped_total starts_total \
        waited_seconds_total; do printf 'holdfast_%s{lock="job",store="file:%s"} ' $name "$dir/store"; done)" \
    'the names of the figures, and their labels'
is "$(grep -c '^# TYPE holdfast_[a-z_]* \(gauge\|counter\)$' "$prom")" 9 'each with its type'
is "$(grep -c '^# HELP holdfast_[a-z_]* [A-Z]' "$prom")" 9 'and its help'
is "$(value last_exit_code):$(value starts_total):$(value lost_total):$(value skipped_total)" 0:1:0:0 'what they say'
perl -e 'exit !($ARGV[0] >= $ARGV[2] && $ARGV[1] >= $ARGV[2] && $ARGV[1] <= time + 1)' \
    "$(value last_start_timestamp_seconds)" "$(value last_success_timestamp_seconds)" "$before"
ok $? 'the last start and the last success are now'
if command -v promtool >/dev/null; then
    promtool check metrics <"$prom" >"$dir/check" 2>&1
    is "$?:$(cat "$dir/check")" 0: 'promtool has nothing to say'
fi

success=$(value last_success_timestamp_seconds)
run "$hf" run --metrics "$prom" job -- sh -c 'sleep 0.3; exit 3'
is "$rc:$(value last_exit_code):$(value starts_total)" 3:3:2 'a failure is told, and totals go on'
is "$(value last_success_timestamp_seconds)" "$success" 'the last success stays what it was'
perl -e 'exit !($ARGV[0] >= 0.3 && $ARGV[0] < 60)' "$(value last_duration_seconds)"
ok $? 'how long it took'
run "$hf" run --metrics "$prom" job -- "$dir/none"
is "$rc:$(value last_exit_code)" 127:127 'a command that is not there'

# While it runs, and while others are skipped.
mkfifo "$dir/hold"
start "$hf" run --metrics "$prom" job -- sh -c "echo up >$dir/up; read -r _ <$dir/hold"
holder=$pid
within 10 test -s "$dir/up"
started() { [ "$(value starts_total)" = 4 ]; }
within 10 started
ok $? 'a start is told when it happens'
run "$hf" run -n --skip-ok --metrics "$prom" job -- true
run "$hf" run -w 200ms --metrics "$prom" job -- true
is "$rc:$(value skipped_total):$(value starts_total):$(value last_exit_code)" 75:2:4:127 \
    'skipped ones are counted, and leave the last exit code alone'
perl -e 'exit !($ARGV[0] >= 0.15 && $ARGV[1] >= 0.15)' "$(value last_wait_seconds)" "$(value waited_seconds_total)"
ok $? 'so is the wait'
kill -TERM "$holder"
ended "$holder"
is "$(value last_exit_code):$(value skipped_total):$(value starts_total)" 143:2:4 'nothing of that is forgotten in the end'

start "$hf" run --ttl 1s --grace 100ms --metrics "$prom" frozen -- sleep 60 2>/dev/null
is_up() { [ "$(value starts_total)" = 1 ]; }
within 10 is_up
kill -STOP "$pid"
sleep 1.5
kill -CONT "$pid"
ended "$pid"
is "$rc:$(value lost_total):$(value last_exit_code)" 123:1:123 'a lost lock is counted'
is "$(value starts_total)" 1 'the totals of another lock are not ours'

# A collector may look at any time, and many may write.
rm -f "$prom"
run "$hf" run --metrics "$prom" job -- true
perl -MTime::HiRes=sleep -e 'my ($prom, $over) = @ARGV; my ($looks, $torn) = (0, 0);
    until (-e $over) {
        open(my $file, "<", $prom);
        my $text = join("", <$file>);
        $torn++ if 9 != (() = $text =~ /^holdfast_[a-z_]+\{.*\} [0-9.e+]+\n/mg);
        $looks++;
        sleep(0.0005);
    }
    print "$torn of $looks"' "$prom" "$dir/over" >"$dir/looks" &
reader=$!
pids=
for _ in {1..6}; do
    (for _ in {1..5}; do "$hf" run --metrics "$prom" job -- true; done) &
    pids="$pids $!"
done
for i in $pids; do wait "$i"; done
touch "$dir/over"
wait "$reader"
like "$(cat "$dir/looks")" '^0 of [1-9][0-9]+$' "who reads meanwhile sees whole files, each time"
is "$(value starts_total)" 31 'thirty-one starts, thirty of them of six processes, are counted'
is "$(cd "$dir" && ls -- *.new 2>/dev/null)" '' 'nothing is left beside the file'

# Odd names, damaged files, and places that cannot be written.
run "$hf" run --metrics "$dir/odd.prom" $'q"\\ \xff' -- true
is "$(grep -cF $'lock="q\\"\\\\ \xef\xbf\xbd"' "$dir/odd.prom")" 9 'labels are escaped, and UTF-8'
run "$hf" run --metrics "$dir/odd.prom" $'q"\\ \xff' -- true
is "$(value starts_total "$dir/odd.prom")" 2 'and are found again'
printf 'holdfast_starts_total{lock="job",store="file:%s"} banana\n\0\0\nholdfast_lost_total' "$dir/store" >"$prom"
run "$hf" run --metrics "$prom" job -- true
is "$rc:$(value starts_total)" 0:1 'a damaged file is begun anew'
run "$hf" run --metrics "$dir/no/such.prom" job -- touch "$dir/ran1"
is "$rc:$(ls "$dir/ran1")" "0:$dir/ran1" 'a place that is not there does not stop the job'
is "$(grep -c 'cannot be written' <<<"$err")" 1 'and is said once'
run "$hf" run --metrics - job -- true
is "$rc" 64 '--metrics - is refused'

# Every figure is in the man page.
page=$(cd "$(dirname "$0")/../.." && pwd)/man/holdfast-run.1
missing=
# shellcheck disable=SC2013 # words
for name in $(sed -n 's/^# TYPE \([a-z_]*\) .*/\1/p' "$prom"); do
    grep -q "^\.B $name\$" "$page" || missing="$missing $name"
done
is "$missing" '' 'holdfast-run(1) has every figure'

done_testing
