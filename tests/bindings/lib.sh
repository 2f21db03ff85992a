# lib.sh - what the tests of the bindings share, on top of the Redis tests': the bindings, built against the build
# under test, and a driver for each language. Sourced by bash after `set -u`.
#
#   prepare        builds what is missing; sets DRIVERS, a JSON object of language and command
#   two_stores     a folder and a Redis server: STORES, store_url, REDIS_PID, and NEW, a server in quarantine
# shellcheck shell=bash disable=SC2154
. "$(dirname "${BASH_SOURCE[0]}")/../redis/lib.sh"
here=$root/tests/bindings
made=$build/bindings
declare -A store_url
export LD_LIBRARY_PATH=$build PYTHONPATH=$root/bindings/python PYTHONDONTWRITEBYTECODE=1 HOLDFAST_NODE=$made/node
export GOFLAGS=-mod=mod GOPROXY=off GOCACHE=${GOCACHE:-$made/gocache} PKG_CONFIG_PATH=$made
for tool in python3 node go cc c++; do
    command -v $tool >/dev/null || skip_all "$tool is not installed"
done

# built NAME SOURCE... -- COMMAND... : runs it if NAME is not there or older than a source. One at a time: several
# tests want it at once.
built() {
    local target=$made/$1 sources=() newer=no source
    shift
    while [ "$1" != -- ]; do
        sources+=("$1")
        shift
    done
    shift
    for source in "${sources[@]}"; do
        [ "$target" -nt "$source" ] || newer=yes
    done
    [ $newer = no ] || "$@" >"$made/log" 2>&1 || {
        echo "Bail out! $target cannot be built: $(tail -n 5 "$made/log" | tr '\n' ' ')"
        exit 1
    }
}

node_addon() {
    rm -rf "$made/node"
    cp -r "$root/bindings/node" "$made/node"
    (cd "$made/node" && rm -f holdfast.node && node build.js)
}

# A module's sources stay as they are: go writes no go.sum where nothing is downloaded.
go_driver() { (cd "$here/drivers/go" && go build "$@" .); }

prepare() {
    mkdir -p "$made"
    exec {turn}>"$made/turn"
    flock "$turn"
    sed -e "s|@PREFIX@|$build|; s|@VERSION@|0|; s|@LIBDIR@|$build|; s|@INCDIR@|$root/include|" \
        "$root/holdfast.pc.in" >"$made/holdfast.pc"
    built c "$here/drivers/driver.c" "$here/drivers/answers.h" "$build/libholdfast.so" -- cc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror \
        -I"$root/include" "$here/drivers/driver.c" -L"$build" -lholdfast -lcjson -pthread -o "$made/c"
    built cpp "$here/drivers/driver.cc" "$root/bindings/cpp/holdfast.hpp" "$build/libholdfast.so" -- c++ -std=c++20 -O2 \
        -Wall -Wextra -Werror -I"$root/include" -I"$root/bindings/cpp" "$here/drivers/driver.cc" -L"$build" -lholdfast \
        -lcjson -pthread -o "$made/cpp"
    built node/holdfast.node "$root"/bindings/node/* "$build/libholdfast.so" -- node_addon
    built go "$here"/drivers/go/*.go "$root"/bindings/go/* "$build/libholdfast.so" -- go_driver -o "$made/go"
    flock -u "$turn"
    export DRIVERS="{\"c\": [\"$made/c\"], \"c++\": [\"$made/cpp\"], \"python\": [\"python3\", \"$here/drivers/driver.py\"],
        \"node\": [\"node\", \"$here/drivers/driver.js\"], \"go\": [\"$made/go\"]}"
}

two_stores() {
    redis_start a
    calm a
    redis_start new
    mkdir -m 700 "$dir/store"
    store_url=([file]=file:$dir/store [redis]=$(url a))
    export STORES="file=${store_url[file]} redis=${store_url[redis]}" NEW DIR=$dir REDIS_PID
    NEW="$(url new)?max_ttl=1h" # which is how long its quarantine lasts
    REDIS_PID=$(pid a)
}

some_wait() { # URL : somebody waits for the lock "held"
    "$hf" --store "$1" list --json 2>/dev/null | grep -q '"waiters": *[1-9]'
}

# examples KIND PAGE COMMAND... : each block of that kind is a program that runs, in a folder and with a store of its own
examples() {
    local kind=$1 page=$2 n=0 count
    shift 2
    rm -rf "$dir/examples"
    mkdir "$dir/examples"
    awk -v kind="$kind" -v dir="$dir/examples" '$0 == "```" kind { n++; inside = 1; next } /^```/ { inside = 0 }
        inside { print >(dir "/" n "." kind) }' "$page"
    count=$(find "$dir/examples" -type f | wc -l)
    [ "$count" -gt 0 ]
    ok $? "${page#"$root/"} has examples"
    while [ $((n += 1)) -le "$count" ]; do
        mkdir "$dir/examples/$n"
        (cd "$dir/examples/$n" && PATH=$(dirname "$hf"):$PATH HOLDFAST_DIR=$dir/examples/$n/store timeout 60 "$@" "../$n.$kind") \
            >"$dir/out" 2>&1
        ok $? "${page#"$root/"}, example $n runs: $(head -n 1 "$dir/out")"
        [ "$(grep -c '^Traceback\|Error' "$dir/out")" = 0 ] || sed 's/^/# /' "$dir/out"
    done
}

# another_library VERSION whole|bare : $dir/other.so, a library that says so, with all functions or none
another_library() {
    echo "const char *hf_version(void); const char *hf_version(void) { return \"$1\"; }" >"$dir/other.c"
    [ "$2" = bare ] || nm -D --defined-only "$build/libholdfast.so" |
        sed -n 's/.* T \(hf_[a-z_]*\).*/void \1(void); void \1(void) {}/p' | grep -v hf_version >>"$dir/other.c"
    cc -shared -fPIC -Wl,-soname,libholdfast.so.0 -Wl,--version-script="$root/src/holdfast.map" -o "$dir/other.so" "$dir/other.c"
}
