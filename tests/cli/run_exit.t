#!/bin/bash
# The exit code of `holdfast run` is the child's, or one of the documented table.
set -u
. "$(dirname "$0")/lib.sh"

run "$hf" run -n job -- true
is "$rc" 0 'success passes through'
is "$err" '' 'and nothing is said'

for code in 1 7 64 75 123 255; do
    run "$hf" run -n job -- sh -c "exit $code"
    is "$rc" "$code" "exit $code passes through"
done

for signal in TERM KILL USR1 INT; do
    run "$hf" run -n job -- sh -c "kill -$signal \$\$"
    is "$rc" $((128 + $(kill -l "$signal"))) "a child killed by $signal gives 128 + its number"
done

run "$hf" run -n job -- "$dir/no-such-command"
is "$rc" 127 'a command that does not exist gives 127'
like "$err" "^holdfast: $dir/no-such-command: " 'and a sentence that names it'

run "$hf" run -n job -- no-such-command-in-path
is "$rc" 127 'nor one that is not in the path'

: >"$dir/plain"
run "$hf" run -n job -- "$dir/plain"
is "$rc" 126 'a file that cannot be executed gives 126'
like "$err" "^holdfast: $dir/plain: " 'and a sentence that names it'

run is_free job
is "$rc" 0 'the lock is free after all that'

start "$hf" run job -- sleep 60

within 10 eval '! is_free job'
run "$hf" run -n job -- true
is "$rc" 75 'busy gives 75'
like "$err" '/sleep' 'and says who holds it'
run "$hf" run -n -E 9 job -- true
is "$rc" 9 '-E chooses another code for busy'
run "$hf" run -n --busy-exit=0 job -- true
is "$rc" 0 'also 0'
run "$hf" run -n --skip-ok job -- false
is "$rc" 0 '--skip-ok exits 0 when busy'
is "$err" '' 'and says nothing'
run "$hf" run -n --skip-ok other -- false
is "$rc" 1 'but not when the command itself fails'

run "$hf" run --max-runtime 200ms --grace 100ms other -- sleep 60
is "$rc" 124 '--max-runtime gives 124'
like "$err" 'as long as --max-runtime' 'and says so'
run "$hf" run --max-runtime 200ms --grace 200ms other -- \
    sh -c 'trap "" TERM; while :; do sleep 0.1; done'
is "$rc" 124 'also for a child that ignores TERM'
run "$hf" run --max-runtime 60s other -- sh -c 'exit 3'
is "$rc" 3 'a child that ends before is not touched'
# Longer than 64 bits of nanoseconds: three hundred years, and as long as can be written.
for long in 2600000h 106751991d; do
    run "$hf" run --max-runtime "$long" -w "$long" other -- sh -c 'sleep 0.3; exit 3'
    is "$rc" 3 "--max-runtime $long is no limit"
done

mkdir "$dir/foreign" && chmod 777 "$dir/foreign"
run "$hf" --store "file:$dir/foreign" run -n job -- true
is "$rc" 77 'a directory that anybody may write to gives 77'
run "$hf" --store nosuch://x run -n job -- true
is "$rc" 64 'an unknown scheme gives 64'

done_testing
