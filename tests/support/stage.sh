# stage.sh - what the tests of all stores with servers share: claims, clients, counters, the proxy.
# Sourced by bash after `set -u`, by the lib.sh of each of them; their servers stand there.
#
# Sets $root, $build (the folder of the build under test), $hf (the program) and $dir (a folder that
# goes away at the end). A lib.sh enters its servers in server_port and server_pid, and defines
# server_stop NAME SIGNAL.
#
# A client is a process of tool_client that holds its store and leases open: `ask NAME COMMAND...`
# sends it a line and leaves the line it answers in $answer; `tell` and `hear` do one half each.
# shellcheck shell=bash disable=SC2034 # much here is for those who source it

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$root/${BUILD:-build}
hf=${HOLDFAST:-$build/holdfast}
export HOLDFAST_STORE_PATH=$build/stores
unset HOLDFAST_STORE HOLDFAST_TRACE
dir=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-test.XXXXXX") || exit 1

tests=0
failed=0
answer=
proxied=
declare -A server_port server_pid client_in client_out client_pid proxy_in proxy_out

finish() {
    local name
    for name in "${!client_pid[@]}"; do
        kill -KILL "${client_pid[$name]}" 2>/dev/null
    done
    for name in "${!server_pid[@]}"; do
        server_stop "$name" KILL
    done
    rm -rf "$dir"
}
trap finish EXIT

skip_all() { # REASON
    echo "1..0 # SKIP $1"
    exit 0
}

ok() { # STATUS DESCRIPTION : 0 is good
    tests=$((tests + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $tests - $2"
    else
        failed=$((failed + 1))
        echo "not ok $tests - $2"
        echo "#   answer: $answer" | head -c 600
        echo
    fi
}

is() { # GOT WANTED DESCRIPTION
    [ "$1" = "$2" ]
    ok $? "$3"
    [ "$1" = "$2" ] || printf '#   got:    %s\n#   wanted: %s\n' "$1" "$2"
}

like() { # GOT PATTERN DESCRIPTION : a shell pattern
    # shellcheck disable=SC2053 # it is a pattern
    [[ $1 == $2 ]]
    ok $? "$3"
    # shellcheck disable=SC2053
    [[ $1 == $2 ]] || printf '#   got:    %s\n#   wanted: %s\n' "$1" "$2"
}

above() { # A B DESCRIPTION : numbers
    [ "${1:-0}" -gt "${2:-0}" ] 2>/dev/null
    ok $? "$3 ($1 > $2)"
}

done_testing() {
    echo "1..$tests"
    [ "$failed" -eq 0 ]
    exit $?
}

# eventually SECONDS COMMAND... : until it succeeds. Less than 5 seconds are a claim, that it is soon; 5 and more are
# patience, of which a busy machine needs more.
eventually() {
    local end=$((SECONDS + ($1 < 5 ? $1 : 3 * $1) + 1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.05
    done
}

free_ports() { "$root/tests/support/free_ports.py" "$1"; } # COUNT : different ones
free_port() { free_ports 1; }
port() { echo "${server_port[$1]}"; }
pid() { echo "${server_pid[$1]}"; }

# conforms URL DESCRIPTION : the suite that every store passes
conforms() {
    CMOCKA_MESSAGE_OUTPUT=TAP "$build/tests/conform/conform" "$1" >"$dir/conform" 2>&1
    ok $? "$2"
    grep -v '^ok' "$dir/conform" | sed 's/^/#   /' | head -n 20
}

client() { # NAME [URL]
    local in out
    mkfifo "$dir/client.$1.in" "$dir/client.$1.out"
    "$build/tests/tools/tool_client" <"$dir/client.$1.in" >"$dir/client.$1.out" \
        2>"$dir/client.$1.err" &
    client_pid[$1]=$!
    disown $!
    exec {in}>"$dir/client.$1.in" {out}<"$dir/client.$1.out"
    client_in[$1]=$in
    client_out[$1]=$out
    rm "$dir/client.$1.in" "$dir/client.$1.out"
    [ $# -lt 2 ] || ask "$1" open "$2"
}

tell() {
    local name=$1
    shift
    echo "$*" >&"${client_in[$name]}"
}

hear() { # NAME [SECONDS]
    answer=
    IFS= read -r -t "${2-40}" answer <&"${client_out[$1]}" || {
        answer='(no answer)'
        return 1
    }
}

ask() {
    tell "$@"
    hear "$1"
}

silent() { # NAME : it has not answered yet
    ! IFS= read -r -t 0.3 answer <&"${client_out[$1]}"
}

gone() { # NAME
    kill -KILL "${client_pid[$1]}" 2>/dev/null
    unset "client_pid[$1]"
}

# The token in an answer "ok TOKEN ...".
token() { echo "$answer" | sed -n 's/^ok \([0-9]*\).*/\1/p'; }

# proxy_start NAME SERVER : a proxy in front of that server; port NAME is where it listens
# proxy NAME COMMAND...   : see proxy.py; the answer is in $proxied
proxy_start() {
    local in out
    mkfifo "$dir/$1.in" "$dir/$1.out"
    python3 "$root/tests/support/proxy.py" "$(port "$2")" <"$dir/$1.in" >"$dir/$1.out" &
    client_pid[proxy.$1]=$!
    disown $!
    exec {in}>"$dir/$1.in" {out}<"$dir/$1.out"
    proxy_in[$1]=$in
    proxy_out[$1]=$out
    read -r "server_port[$1]" <&"$out"
}

proxy() {
    local name=$1
    shift
    echo "$*" >&"${proxy_in[$name]}"
    read -r -t 20 proxied <&"${proxy_out[$name]}"
}

# beating LOCK : becomes holdfast run with a child that ignores TERM and tells that it is alive
beating() {
    exec "$hf" run --ttl 4s --grace 1s "$1" -- sh -c \
        'trap "" TERM; while :; do date +%s%N >"$1.new"; mv "$1.new" "$1"; sleep 0.05; done' - \
        "$dir/alive.$1" 2>"$dir/run.err"
}
# beats LOCK : the child has begun
beats() { eventually 20 test -s "$dir/alive.$1"; }
# dead_in_time LOCK SINCE_NS : the child was dead before a lease that was renewed by then could pass on
dead_in_time() {
    local after=$((($(cat "$dir/alive.$1") - $2) / 1000000))
    [ "$after" -lt 4000 ]
    ok $? "the child was dead before the deadline ($after ms after that)"
}

# stepping_clock : servers started from now on have a wall clock that clock_step SECONDS moves; see
# clock_step.c. They are started with $server_wrap in front.
stepping_clock() {
    cc -shared -fPIC -O1 -D_GNU_SOURCE -o "$dir/clock_step.so" "$root/tests/tools/clock_step.c" ||
        skip_all 'there is no compiler'
    clock_step 0
    server_wrap="env LD_PRELOAD=$dir/clock_step.so CLOCK_STEP_FILE=$dir/clock"
}
clock_step() { printf '%-15s\n' "$1" | dd of="$dir/clock" conv=notrunc status=none; }

# counters_start COUNT URL SECONDS [TTL_MS [kept]] : processes that count under the lock "counter",
# behind a fence; see tool_counter.c. counters_stop : tells them to end early.
counters_start() {
    local i
    : >"$dir/counter"
    counter_pids=()
    for i in $(seq "$1"); do
        "$build/tests/tools/tool_counter" "$2" counter "$dir/counter" "$3" "${4-3000}" ${5+kept} \
            >"$dir/counter.out.$i" 2>"$dir/counter.err.$i" &
        counter_pids+=($!)
    done
}

counters_stop() { kill -TERM "${counter_pids[@]}" 2>/dev/null; }

# counters_end DESCRIPTION : waits for them and judges; their sums in $counted and $overlaps, the longest
# time without a hold in $gap_ms
counters_end() {
    local id bad=0 value
    for id in "${counter_pids[@]}"; do
        wait "$id" || bad=1
    done
    is "$bad" 0 "$1: tokens in order, no hold overtaken"
    sed 's/^/# /' "$dir"/counter.out.*
    counted=$(cat "$dir"/counter.out.* | awk '{ sum += $2 } END { print sum + 0 }')
    overlaps=$(cat "$dir"/counter.out.* | awk '{ sum += $10 } END { print sum + 0 }')
    read -r _ value _ _ gap_ms <"$dir/counter"
    gap_ms=$((10#${gap_ms:-0} / 1000000))
    is "$((10#$value))" "$counted" "$1: nothing was lost"
    above "$counted" 3 "$1: there was progress"
    sort "$dir"/counter.err.* | uniq -c | sort -rn | head -n 5 | sed 's/^/# /'
}

# holders NAME URL THREADS TTL_MS : threads that hold a lock each and keep it; see tool_holders.c
# holders_lost NAME               : how many of them are lost
holders() {
    : >"$dir/$1.out"
    "$build/tests/tools/tool_holders" "$2" "$3" "$4" >"$dir/$1.out" 2>"$dir/$1.err" &
    client_pid[$1]=$!
    disown $!
    eventually 60 grep -q held "$dir/$1.out"
}
holders_lost() {
    kill -TERM "${client_pid[$1]}"
    eventually 20 grep -q lost "$dir/$1.out"
    tail -n 1 "$dir/$1.out"
}
