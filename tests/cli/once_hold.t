#!/bin/bash
# `once --on-crash hold` is at most once: whoever is killed, and whenever, CMD is not started again until a person
# says so.
# run: slow
set -u
. "$(dirname "$0")/lib.sh"
off_border $((24 * 3600))

KEYS=200 # or as many as there is time for
AT_MOST_S=8
MOMENT_MS=40 # a whole run takes about as long
CMD_S=0.02

state() { "$hf" once --show --json "$1" 2>/dev/null | jq -r .state; }
effects() { grep -cx "$1" "$dir/effects"; }
once() { # KEY [exec]
    ${2-} "$hf" once --on-crash hold --per 1d "$1" -- sh -c "echo $1 >>$dir/effects; sleep $CMD_S" 2>"$dir/err"
}

children() { # PID
    local list=
    read -r list <"/proc/$1/task/$1/children"
    echo "$list"
} 2>/dev/null

# victims WHO PID : of a running once, as far as there are any by now
victims() {
    local watchdog cmd
    watchdog=$(children "$2")
    cmd=$([ -z "$watchdog" ] || children "${watchdog%% *}")
    case $1 in
    once) echo "$2" ;;
    watchdog) echo "${watchdog:-$2}" ;;
    cmd) echo "${cmd:-$2}" ;;
    all) echo "$2 $watchdog $cmd" ;;
    esac
}

# What is on record after the kill says what the next one has to do: "killed while it ran" is never run again.
expected() { # STATE
    case $1 in
    running | held) echo 70 ;;
    failed) echo 1 ;; # CMD was killed, and alone: that is on record as its failure
    *) echo 0 ;;
    esac
}

: >"$dir/effects"
once warm
who=(once watchdog cmd all)
declare -A seen=()
tried='' twice='' wrong='' held=''
for ((i = 0; i < KEYS && SECONDS < AT_MOST_S; i++)); do
    key=key$i
    once "$key" exec &
    pid=$!
    sleep "$(printf '0.%03d' $((RANDOM % MOMENT_MS)))"
    # shellcheck disable=SC2046 # a list of numbers
    kill -KILL $(victims "${who[i % 4]}" "$pid") 2>/dev/null
    ended "$pid"
    before=$(state "$key")
    once "$key"
    rc=$?
    tried="$tried $key"
    seen[${before:-none}]=$((${seen[${before:-none}]-0} + 1))
    [ "$rc" = "$(expected "$before")" ] || wrong="$wrong $key(${who[i % 4]}, $before):$rc"
    [ "$rc" != 70 ] || held="$held $key"
done
for key in $tried; do
    [ "$(effects "$key")" -le 1 ] || twice="$twice $key"
done
diag "$i keys; on record after the kill: $(for s in "${!seen[@]}"; do echo "$s ${seen[$s]}"; done | sort | tr '\n' ' ')"
is "$twice" '' 'nothing takes effect twice'
is "$wrong" '' 'what crashed in between exits 70, and nothing else does'
[ "${seen[running]-0}" -gt 0 ]
ok $? 'and there were some'

# However often it is asked, and until a person has looked: a few of them.
again='' cleared=''
for key in $(tr ' ' '\n' <<<"$held" | tail -n 5); do
    count=$(effects "$key")
    once "$key"
    again="$again $?/$(($(effects "$key") - count))"
    "$hf" once --clear "$key" --reason 'looked at it' >/dev/null
    once "$key"
    cleared="$cleared $?/$(($(effects "$key") - count))"
done
is "$(tr ' ' '\n' <<<"${again# }" | sort -u)" 70/0 'it stays so'
is "$(tr ' ' '\n' <<<"${cleared# }" | sort -u)" 0/1 'until --clear: then it runs, once'
done_testing
