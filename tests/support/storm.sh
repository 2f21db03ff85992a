# storm.sh - a storm over a store, judged. Sourced by bash after stage.sh. See tests/tools/tool_storm.c.
#
#   storm DESCRIPTION URL HOLDS SECONDS TTL_MS [FAULT]     with STORM_WORKERS workers, 8
#
# FAULT, a function, is called again and again until the storm is over: it does one thing to the servers,
# mends it, and returns.
# shellcheck shell=bash disable=SC2154 # build and dir are of stage.sh

storm() {
    local what=$1 url=$2 holds=$3 seconds=$4 ttl_ms=$5 fault=${6-} pid faults=0
    "$build/tests/tools/tool_storm" "$url" "$holds" "$seconds" "$ttl_ms" "${STORM_WORKERS-8}" >"$dir/storm" 2>"$dir/storm.err" &
    pid=$!
    while kill -0 "$pid" 2>/dev/null; do
        if [ -n "$fault" ]; then
            "$fault"
            faults=$((faults + 1))
        else
            sleep 0.5
        fi
    done
    wait "$pid"
    is $? 0 "$what: no two valid holds, tokens in order, nothing lost behind the fence"
    sed 's/^# /#   /; s/^[^#]/#   &/' "$dir/storm" "$dir/storm.err"
    echo "#   server faults: $faults"
    above "$(storm_count holds)" $((holds - 1)) "$what: $holds holds in at most $seconds seconds"
    above "$(storm_count kills)" 0 "$what: workers were killed"
    above "$(storm_count freezes)" 0 "$what: workers were frozen past their ttl"
    above "$(storm_count unfenced_lost)" 0 "$what: without the fence updates are lost"
}

# One figure of the last line.
storm_count() {
    tail -n 1 "$dir/storm" | tr ' ' '\n' | awk -v name="$1" 'found { print; exit } $0 == name { found = 1 }'
}
