#!/bin/bash
# doctor.sh - `holdfast doctor` on a healthy local server of each kind that is installed: the slowest of several
# whole processes. Prints name<TAB>value<TAB>bound<TAB>unit<TAB>ok|MISS. BUILD is the folder of the build (build).
set -u
cd "$(dirname "$0")/.." || exit 1
here=$PWD # PostgreSQL's tests leave it
rounds=7

# measure STORE URL : in a shell of its own, whose server it is
measure() {
    local slowest=0 began ms i
    . "$here/bench/rows.sh"
    "$hf" --store "$2" run --ttl 1s --wait 90s warm -- true || return
    for i in $(seq "$rounds"); do
        began=$(date +%s%N)
        "$hf" --store "$2" doctor >/dev/null || return
        ms=$((($(date +%s%N) - began) / 1000000))
        [ "$ms" -le "$slowest" ] || slowest=$ms
    done
    row "doctor.$1" "$slowest" '<=1000' ms
}

(
    . tests/support/stage.sh
    # shellcheck disable=SC2317 # by the end of stage.sh
    server_stop() { :; }
    measure file "file:$dir/store"
)
(
    . tests/redis/lib.sh >/dev/null
    redis_start a
    calm a
    measure redis "$(url a)"
)
(
    . tests/redlock/lib.sh >/dev/null
    nodes 5
    measure redlock "$(redlock)"
)
(
    . tests/postgres/lib.sh >/dev/null
    pg_start a
    measure postgres "postgres://postgres@127.0.0.1:$(port a)/postgres"
)
(
    . tests/etcd/lib.sh >/dev/null
    etcd_start a
    measure etcd "$(url a)"
)
(
    . tests/zookeeper/lib.sh >/dev/null
    zk_start a
    measure zookeeper "zookeeper://$(hosts a)"
)
exit 0
