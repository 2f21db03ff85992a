# explain_queue.sh - `holdfast explain` where the store knows who waits. Sourced after the lib.sh of the store.
#
#   explain_queue URL FILTER   who waits, in order, and who is next; FILTER is for what else the store tells
# shellcheck shell=bash disable=SC2154 # hf, dir and root are of stage.sh
. "$root/tests/support/explain.sh"

# seen NAME FILTER : of what is said of the lock now, which is left in $dir/out
seen() { "$hf" explain "$1" --json >"$dir/out" && jq -e "$2" "$dir/out" >"$dir/jq"; }

explain_queue() {
    local label pids=()
    export HOLDFAST_STORE=$1
    "$hf" run --label first queue -- sleep 600 2>"$dir/first.err" &
    pids+=($!)
    eventually 20 seen queue .held
    for label in second third; do
        "$hf" run -w 60s --label "$label" queue -- true 2>"$dir/$label.err" &
        pids+=($!)
        eventually 20 seen queue ".queue[-1].label == \"$label\""
    done
    seen queue '[.queue[].label] == ["second", "third"] and [.queue[].place] == [1, 2]'
    ok $? 'who waits, in order'
    seen queue ".waiters == 2 and .holder.label == \"first\" and .holder.token > 0 and ($2)"
    ok $? 'and who holds it'
    fits_schema "$dir/out"
    ok $? 'as the schema says'
    "$hf" explain queue >"$dir/out"
    like "$(golden <"$dir/out")" '*1. second, for SPAN
    2. third, for SPAN*and second has the lock.' 'and who is next'
    kill -TERM "${pids[@]}"
    wait "${pids[@]}" 2>"$dir/jobs"
}
