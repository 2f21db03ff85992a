# fence_keys.sh - fenced keys in a store that keeps the mark beside the key. Sourced after the lib.sh of the store.
#
#   fence_keys URL PREFIX   keys begin with PREFIX. The caller defines
#                           value KEY           prints what is there, or (none)
#                           mark KEY            prints the text of its mark
# shellcheck shell=bash disable=SC2154 # hf and dir are of stage.sh

put() { # TEXT KEY ARGUMENT... : fence set
    local text=$1
    shift
    printf '%s' "$text" | "$hf" fence set "$store" "$@" >"$dir/out" 2>"$dir/err"
    rc=$?
    answer=$(cat "$dir/err")
}
do_fence() { # COMMAND KEY ARGUMENT...
    local command=$1
    shift
    "$hf" fence "$command" "$store" "$@" >"$dir/out" 2>"$dir/err"
    rc=$?
    answer=$(cat "$dir/err")
}

# Writers with tokens of their own, in any order: what stays is of the highest, and nobody is told otherwise.
fence_race() {
    local n key=$1
    for n in $(seq 12); do
        (
            printf 'by %s' "$n" | "$hf" fence set "$store" "$key" --token "$n" 2>/dev/null
            echo "$n $?" >"$dir/race.$n"
        ) &
        race_pids+=($!)
    done
    wait "${race_pids[@]}"
    is "$(value "$key")" 'by 12' 'of twelve writers at once the highest token has the last word'
    is "$(cat "$dir"/race.* | awk '$2 != 0 && $2 != 65' | wc -l)" 0 'the others were admitted before it, or refused'
    is "$(cat "$dir/race.12")" '12 0' 'and it was admitted'
}

fence_keys() {
    store=$1
    local p=$2 big race_pids=()
    unset HOLDFAST_STORE HOLDFAST_TOKEN
    put one "${p}k" --token 34
    is "$rc$(value "${p}k")" 0one 'the first token is admitted'
    put two "${p}k" --token 34
    is "$rc$(value "${p}k")" 0two 'an equal one too'
    put three "${p}k" --token 33
    is "$rc$(value "${p}k")" 65two 'a lower one: exit 65, and nothing has changed'
    like "$answer" "holdfast: token 33 is stale: 34 was admitted at 20*Z to ${p}k" 'in a sentence'
    put four "${p}k" --token 9223372036854775807
    is "$rc$(value "${p}k")" 0four 'the highest token there is'
    put five "${p}k" --token 9223372036854775806
    is "$rc" 65 'and the one below it'
    put '' "${p}empty" --token 5
    is "$rc$(value "${p}empty")" 0 'an empty value'
    printf 'a\0b\r\nc' | "$hf" fence set "$store" "${p}bytes" --token 5
    is "$(value "${p}bytes" | od -An -c | tr -d ' \n' | sed 's/\\n$//')" 'a\0b\r\nc' 'any bytes'
    big=$(head -c 900000 /dev/zero | tr '\0' x)
    put "$big" "${p}big" --token 5
    is "$rc$(value "${p}big" | wc -c)" 0900000 'a large value'

    put gone "${p}d" --token 35
    do_fence del "${p}d" --token 34
    is "$rc$(value "${p}d")" 65gone 'a stale delete is refused'
    do_fence del "${p}d" --token 37
    is "$rc$(value "${p}d")" '0(none)' 'a good one deletes'
    do_fence del "${p}d" --token 37
    is "$rc" 0 'twice if need be'
    put late "${p}d" --token 36
    is "$rc$(value "${p}d")" '65(none)' 'and the mark outlives the key'
    do_fence enter "${p}d" --token 40
    put late "${p}d" --token 39
    is "$rc" 65 'enter raises the mark'
    do_fence enter "${p}d" --token 39
    is "$rc" 65 'and is refused like a write'
    do_fence enter "${p}d" --token 40
    is "$rc" 0 'the same token may enter again'

    put a "${p}i" --token 5 --issuer redis://a
    put b "${p}i" --token 6 --issuer redis://b
    is "$rc$(value "${p}i")" 64a 'a token of another store is refused'
    like "$answer" '*redis://b*redis://a*fence reset*' 'with the remedy'
    do_fence reset "${p}i" --reason 'moved to b' --issuer redis://b
    put e "${p}i" --token 1 --issuer redis://b
    is "$rc$(value "${p}i")" 0e 'after a reset the new tokens count'
    like "$(mark "${p}i")" '*5 redis://a -> 0 redis://b: moved to b*' 'and it is on record'
    for n in $(seq 12); do do_fence reset "${p}i" --reason "again $n"; done
    is "$(mark "${p}i" | grep -c 'again')" 8 'as are the last eight'
    put f "${p}i" --token 3
    is "$(mark "${p}i" | grep -c 'again')" 8 'which a new mark keeps'
    like "$("$hf" fence check "$store" "${p}i" 2>&1)" '*3*' 'check tells the mark'
    fence_race "${p}race"
}
