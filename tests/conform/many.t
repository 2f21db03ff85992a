#!/bin/bash
# many.t - in every store: ten thousand records beside one lock, and a thousand breaks of holds that change hands.
# run: long
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$PWD/${BUILD:-build}
# In memory if there is any: each record is synced, and this is not about the disk.
folder=/dev/shm
[ -w $folder ] || folder=${TMPDIR:-/tmp}
dir=$(mktemp -d "$folder/holdfast-many.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
export CONFORM_ONLY CONFORM_KEYS=10000 CONFORM_RACES=1000
n=0

many() { # STORE COMMANDS : they start a server and run the suite, which says it in TAP
    n=$((n + 1))
    start=$SECONDS
    bash -c "set -u; $2" >"$dir/out" 2>&1
    if grep -q "^ok 1 - $CONFORM_ONLY" "$dir/out"; then
        echo "ok $n - $1: $CONFORM_ONLY, in $((SECONDS - start))s"
    elif reason=$(grep -o '# SKIP .*' "$dir/out"); then
        echo "ok $n - $1: $CONFORM_ONLY $reason"
    elif grep -qx '1\.\.0' "$dir/out"; then
        echo "ok $n - $1 # SKIP it keeps no records"
    else
        echo "not ok $n - $1: $CONFORM_ONLY"
        sed 's/^/# /' "$dir/out"
    fi
}

# shellcheck disable=SC2016 # for the shells that are started
everywhere() {
    many file "'$build/tests/conform/conform' 'file:$dir/store'"
    many redis '. tests/redis/lib.sh; redis_start a; calm a; "$build/tests/conform/conform" "$(url a)"'
    many etcd '. tests/etcd/lib.sh; etcd_start a; "$build/tests/conform/conform" "$(url a)"'
    many zookeeper '. tests/zookeeper/lib.sh; zk_start a
        "$build/tests/conform/conform" "zookeeper://$(hosts a)/conform"'
    many postgres '. tests/postgres/lib.sh; pg_start a; "$build/tests/conform/conform" "$(url a)"'
}

CONFORM_ONLY=many_keys
everywhere
CONFORM_ONLY=what_changes_hands_is_not_broken
everywhere
many redlock 'bash tests/conform/redlock.t'
echo "1..$n"
