#!/bin/bash
# keys.t - ten thousand records beside one lock, in every store that keeps records.
# run: long
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$PWD/${BUILD:-build}
dir=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-keys.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
export CONFORM_ONLY=many_keys CONFORM_KEYS=10000
n=0

many() { # STORE COMMANDS : they start a server and run the suite, which says it in TAP
    n=$((n + 1))
    start=$SECONDS
    bash -c "set -u; $2" >"$dir/out" 2>&1
    if grep -q '^ok 1 - many_keys' "$dir/out"; then
        echo "ok $n - $1, in $((SECONDS - start))s"
    elif reason=$(grep -o '# SKIP .*' "$dir/out"); then
        echo "ok $n - $1 $reason"
    elif grep -qx '1\.\.0' "$dir/out"; then
        echo "ok $n - $1 # SKIP it keeps no records"
    else
        echo "not ok $n - $1"
        sed 's/^/# /' "$dir/out"
    fi
}

# shellcheck disable=SC2016 # for the shells that are started
{
    many file "'$build/tests/conform/conform' 'file:$dir/store'"
    many redis '. tests/redis/lib.sh; redis_start a; calm a; "$build/tests/conform/conform" "$(url a)"'
    many etcd '. tests/etcd/lib.sh; etcd_start a; "$build/tests/conform/conform" "$(url a)"'
    many zookeeper '. tests/zookeeper/lib.sh; zk_start a
        "$build/tests/conform/conform" "zookeeper://$(hosts a)/conform"'
    many postgres '. tests/postgres/lib.sh; pg_start a; "$build/tests/conform/conform" "$(url a)"'
}
echo "1..$n"
