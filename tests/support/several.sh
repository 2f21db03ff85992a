# several.sh - one of several locks, as every store with servers has to do it. Sourced by bash after stage.sh.
#
#   in_line URL PREFIX COUNT              so many wait for PREFIX#0, as the store sees it
#   order URL                             who waits for any of four is served in the order of arrival
#   killed URL PREFIX TTL_MS LIMIT_MS     what a killed waiter for any of PREFIX#0 to #3 costs those behind it
#   referee SECONDS TTL_MS WORKERS URL    see tests/tools/tool_slots.c
# shellcheck shell=bash disable=SC2154 # build, dir, answer and client_pid are of stage.sh

in_line() {
    ask look status "$2#0"
    case $answer in
    *" waiters=$3 "*) ;;
    *) return 1 ;;
    esac
}
four() { echo "$1#0 $1#1 $1#2 $1#3"; }
now_ms() { echo $(($(date +%s%N) / 1000000)); }

order() {
    local i late=0
    client look "$1"
    client h "$1"
    for i in 0 1 2 3; do ask h acquire $i "line#$i" 20000 0; done
    for i in 1 2 3 4 5 6; do
        client "o$i" "$1"
        # shellcheck disable=SC2046 # four names
        tell "o$i" any 1 20000 60000 $(four line)
        eventually 20 in_line "$1" line "$i" || late=1
    done
    is $late 0 'six stand in line for any of four'
    for i in 0 1 2 3; do
        ask h release $i
        hear "o$((i + 1))"
        like "$answer" "ok *which=line#$i" "number $i, when it is free, is had by the one who came as number $((i + 1))"
    done
    ask o4 release 1
    hear o5
    like "$answer" 'ok *which=line#3' 'and then by the fifth'
    ask o1 release 1
    hear o6
    like "$answer" 'ok *which=line#0' 'and by the sixth'
    eventually 10 in_line "$1" line 0
    ok $? 'nobody stands in any line any more'
    for i in o1 o2 o3 o4 o5 o6 h look; do gone "$i"; done
}

killed() {
    local i start took answers=0
    client look "$1"
    client h "$1"
    for i in 0 1 2 3; do ask h acquire $i "$2#$i" "$3" 0 kept; done
    for i in 1 2 3 4 5; do
        client "k$i" "$1"
        # shellcheck disable=SC2046 # four names
        tell "k$i" any 1 "$3" 90000 $(four "$2")
        eventually 20 in_line "$1" "$2" "$i"
    done
    gone k1
    start=$(now_ms)
    for i in 0 1 2 3; do ask h release $i; done
    for i in 2 3 4 5; do
        hear "k$i"
        case $answer in ok*) answers=$((answers + 1)) ;; esac
    done
    took=$(($(now_ms) - start))
    is $answers 4 'four of those who stood behind a dead waiter have a number each'
    [ $took -le "$4" ]
    ok $? "within $4 ms all together: $took"
    for i in k2 k3 k4 k5 h look; do gone "$i"; done
}

referee() {
    "$build/tests/tools/tool_slots" "$4" 4 "$1" "$2" "$3" >"$dir/slots" 2>&1
    is $? 0 "$3 processes on 4 slots, killed, frozen and cancelled for $1 s: no number twice, none lost"
    sed 's/^/#   /' "$dir/slots"
}
