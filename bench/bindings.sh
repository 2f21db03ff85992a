#!/bin/bash
# bindings.sh - a pair of acquire and release in each language beside the same in C, on the embedded store and on one
# Redis server, and beside the peers there; in turns, in one run. Prints rows as bench/rows.sh says. BUILD is the
# folder of the build (build).
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/bindings/lib.sh
. bench/rows.sh
prepare
two_stores
port=$(port a)
python=python3
python3 -c 'import redis' 2>/dev/null || python=/usr/bin/python3

declare -A seen
note() { # PREFIX COMMAND... : keeps its "name value" lines, under that prefix
    local prefix=$1 name value
    shift
    while read -r name value; do
        seen[$prefix$name]="${seen[$prefix$name]-} $value"
    done < <("$@" 2>>"$dir/errors")
}
least() { # NAME
    # shellcheck disable=SC2086 # numbers
    [ -z "${seen[$1]-}" ] || printf '%s\n' ${seen[$1]} | sort -n | head -n 1
}
middle() { # NAME
    # shellcheck disable=SC2086 # numbers
    [ -z "${seen[$1]-}" ] || printf '%s\n' ${seen[$1]} | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

mkdir "$dir/go"
cp bench/bindings_pair.go "$dir/go/"
(cd "$dir/go" && go mod init pair && go mod edit -require holdfast@v0.0.0 -replace "holdfast=$root/bindings/go" &&
    go build -o "$dir/go_pair" .) >"$dir/go/said" 2>&1 || cat "$dir/go/said" >>"$dir/errors"

redlock=no
if command -v npm >/dev/null; then
    mkdir "$dir/node"
    (cd "$dir/node" && npm install --silent --no-audit --no-fund redlock@5.0.0-beta.2 ioredis) >>"$dir/errors" 2>&1 && redlock=yes
fi

for _ in 1 2 3 4 5; do
    note file. "$build/bench/bench_bindings" "${store_url[file]}"
    note file. "$dir/go_pair" "${store_url[file]}"
    note file. "$python" bench/bindings_pair.py "${store_url[file]}"
    note file. node bench/bindings_pair.js "${store_url[file]}"
    note redis. "$build/bench/bench_bindings" "${store_url[redis]}"
    note redis. "$dir/go_pair" "${store_url[redis]}"
    note redis. "$python" bench/bindings_pair.py "${store_url[redis]}"
    note redis. "$python" bench/redis_peers.py pair "$port"
    note redis. node bench/bindings_pair.js "${store_url[redis]}"
    [ $redlock = no ] || note redis. env -C "$dir/node" node "$PWD/bench/redis_peers.mjs" "$port"
done

c=$(least file.c_pair_us)
row bindings.file_c "$c" - us
row bindings.file_go "$(least file.go_pair_us)" - us
row bindings.file_go_vs_c "$(ratio "$(least file.go_pair_us)" "$c")" '<=1.4' x
row bindings.file_python "$(least file.python_pair_us)" - us
row bindings.file_python_vs_c "$(ratio "$(least file.python_pair_us)" "$c")" '<=4' x
row bindings.file_node "$(least file.node_pair_us)" - us
c=$(least redis.c_pair_us)
row bindings.redis_c "$c" - us
row bindings.redis_go "$(least redis.go_pair_us)" - us
row bindings.redis_python "$(least redis.python_pair_us)" - us
row bindings.redis_py "$(least redis.redis_py_pair_us)" - us
row bindings.python_vs_redis_py "$(ratio "$(least redis.python_pair_us)" "$(least redis.redis_py_pair_us)")" '<=0.6' x
# Node runs threads of its own beside the pair, and so its rounds differ: the middle one counts, of either side.
row bindings.redis_node "$(middle redis.node_pair_us)" - us
row bindings.node_redlock "$(middle redis.node_redlock_pair_us)" - us
row bindings.node_vs_redlock "$(ratio "$(middle redis.node_pair_us)" "$(middle redis.node_redlock_pair_us)")" '<=0.6' x
[ ! -s "$dir/errors" ] || sed 's/^/# /' "$dir/errors" | head -n 20 >&2
