#!/bin/bash
# once.sh - `holdfast once` beside `status` and `run`, whole processes, on every store whose server is installed.
# Prints name<TAB>value<TAB>bound<TAB>unit<TAB>ok|MISS. BUILD is the folder of the build (build). With quick as
# argument there are fewer rounds.
set -u
cd "$(dirname "$0")/.." || exit 1
here=$PWD # PostgreSQL's tests leave it
rounds=400
[ "${1-}" != quick ] || rounds=60

period=30 # seconds
# know_keys URL : the keys n1, n2, ... have had a slot, so that theirs is not the first, in which their settings
# have to be written too; and the next slot has begun
know_keys() {
    for i in $(seq "$rounds"); do
        "$hf" --store "$1" once --per "${period}s" --slack 0 "n$i" -- true
    done
    sleep $((period - $(date +%s) % period))
}

# measure STORE URL : in a shell of its own, whose server it is
measure() {
    local store=$1 url=$2 name took
    local -A us
    . "$here/bench/rows.sh"
    local next=()
    "$hf" --store "$url" once seen -- true
    if [ "$store" = file ]; then
        know_keys "$url"
        next=("next=$hf|--store|$url|once|--per|${period}s|--slack|0|--start-by|1h|n%|--|true" 'sync=sync3')
    fi
    # shellcheck disable=SC2154 # of stage.sh
    while read -r name took; do
        us[$name]=$took
    done < <(perl "$here/bench/once.pl" "$rounds" "$dir" "status=$hf|--store|$url|status|seen" \
        "done=$hf|--store|$url|once|seen|--|true" \
        "run=$hf|--store|$url|run|r%|--|true" \
        "once=$hf|--store|$url|once|--per|1d|o%|--|true" ${next[@]+"${next[@]}"})
    row "once.$store.status" "${us[status]-}" - us
    row "once.$store.done" "${us[done]-}" - us
    row "once.$store.done_vs_status" "$(ratio "${us[done]-}" "${us[status]-}")" '<=1.2' x
    row "once.$store.run" "${us[run]-}" - us
    row "once.$store.once" "${us[once]-}" - us
    case $store in
    file)
        row once.file.sync3 "${us[sync]-}" - us
        row once.file.next "${us[next]-}" - us
        row once.file.once_vs_run_and_sync3 \
            "$(ratio "${us[next]-}" "$((${us[run]:-0} + ${us[sync]:-0}))")" '<=1' x
        row once.file.first_vs_run_and_sync3 \
            "$(ratio "${us[once]-}" "$((${us[run]:-0} + ${us[sync]:-0}))")" '<=1' x
        ;;
    redis | postgres) row "once.$store.once_vs_run" "$(ratio "${us[once]-}" "${us[run]-}")" '<=2' x ;;
    *) row "once.$store.once_vs_run" "$(ratio "${us[once]-}" "${us[run]-}")" - x ;;
    esac
}

(
    . tests/support/stage.sh
    measure file "file:$dir/store"
)
(
    . tests/redis/lib.sh
    redis_start a --appendonly yes --appendfsync always
    calm a
    measure redis "$(url a)"
)
(
    . tests/postgres/lib.sh
    pg_fsync=on
    pg_start a
    measure postgres "$(url a)"
)
(
    . tests/etcd/lib.sh
    etcd_start a
    measure etcd "$(url a)"
)
(
    . tests/zookeeper/lib.sh
    zk_start a
    measure zookeeper "zookeeper://$(hosts a)"
)
