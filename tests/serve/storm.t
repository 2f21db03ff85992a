#!/bin/bash
# storm.t - two servers on one Redis, killed and stopped; a proxy that repeats, delays and cuts requests and answers;
# clients that go through it and clients that go directly, killed and frozen, in the same queues: no two valid leases by
# the clients' own deadlines, tokens rise, no lock is kept from others for long. And mistakes that it must find.
# run: also long, run: first
# shellcheck disable=SC2317 # functions that are called by name
set -u
. "$(dirname "$0")/../redis/lib.sh"
. "$root/tests/serve/http.sh"
. "$root/tests/support/storm.sh"

ttl_ms=400
export STORM_WORKERS=16 STORM_KILL_MS=900 STORM_FREEZE_EVERY_MS=600
redis_start a
calm a
declare -A serve_pid

serve_on() { # NAME
    rm -f "$dir/$1.sock"
    "$hf" serve --store "$(url a)" --listen "unix:$dir/$1.sock" 2>>"$dir/serve.err" &
    serve_pid[$1]=$!
    server_pid[serve_$1]=$!
    eventually 20 curl -s -o "$dir/null" --unix-socket "$dir/$1.sock" http://localhost/healthz
}

nasty_start() { # [PERCENT OF DELAYED ANSWERS]
    rm -f "$dir/nasty.sock"
    python3 "$root/tests/serve/nasty.py" "$dir/nasty.sock" "$dir/one.sock" "$dir/two.sock" "$@" >"$dir/nasty" 2>"$dir/nasty.err" &
    server_pid[nasty]=$!
    eventually 20 test -S "$dir/nasty.sock"
}

nasty_stop() {
    kill -TERM "${server_pid[nasty]}"
    wait "${server_pid[nasty]}" 2>/dev/null
    unset 'server_pid[nasty]'
    sed 's/^/#   proxy: /' "$dir/nasty"
    head -n 5 "$dir/nasty.err" | sed 's/^/#   proxy: /'
}

counted() { sed -n "s/^$1 //p" "$dir/nasty" | tail -n 1; }

torment() { # one of the servers dies, or stops for longer than a ttl
    local name=one
    [ $((RANDOM % 2)) -eq 0 ] || name=two
    sleep "$((RANDOM % 3 + 1)).$((RANDOM % 10))"
    if [ $((RANDOM % 2)) -eq 0 ]; then
        kill -STOP "${serve_pid[$name]}"
        sleep 1.2
        kill -CONT "${serve_pid[$name]}"
    else
        kill -KILL "${serve_pid[$name]}"
        wait "${serve_pid[$name]}" 2>/dev/null
        serve_on "$name"
    fi
}

# build_mutant NAME : the programs with that mistake, in $dir/NAME/build
build_mutant() {
    local tree=$dir/$1
    mkdir -p "$tree/build/tests"
    (cd "$root" && cp -a --parents Makefile src include scripts tests/tools tests/support "$tree" &&
        cp -a "$build"/{obj,gen,stores,place,holdfast,libholdfast.a} "$tree/build" && cp -a "$build/tests/tools" "$tree/build/tests") &&
        python3 "$root/tests/serve/mutant.py" "$1" "$tree" &&
        env -u MAKEFLAGS -u MAKELEVEL make -s -C "$tree" BUILD=build \
            build/holdfast build/stores/{holdfast-serve,http.so,redis.so} build/tests/tools/tool_storm
}

# caught MUTANT PERCENT FIGURE... : the storm with that mistake in the sources, and PERCENT of the answers delayed; one
# of the figures is not 0
caught() {
    local mutant=$1 late=$2 figure found=
    shift 2
    build_mutant "$mutant" >"$dir/make" 2>&1
    is $? 0 "the mistake is made: $mutant"
    [ -x "$dir/$mutant/build/holdfast" ] || diag "$(tail -n 5 "$dir/make")"
    hf=$dir/$mutant/build/holdfast
    export HOLDFAST_STORE_PATH=$dir/$mutant/build/stores
    for name in one two; do
        server_stop "serve_$name"
        serve_on "$name"
    done
    for _ in 1 2 3; do # by chance it may go unnoticed for a while
        nasty_start "$late"
        STORM_FREEZE_EVERY_MS=250 STORM_KILL_MS=3000 timeout -k 5 60 \
            "$dir/$mutant/build/tests/tools/tool_storm" "$way" 300 20 $ttl_ms 8 >"$dir/storm" 2>&1
        nasty_stop >/dev/null
        tail -n 1 "$dir/storm" | sed "s/^/#   $mutant: /"
        for figure; do
            [ "$(counted "$figure")" = '' ] || [ "$(counted "$figure")" -eq 0 ] || found="$found $figure"
            [ "$(storm_count "$figure")" = '' ] || [ "$(storm_count "$figure")" -eq 0 ] || found="$found $figure"
        done
        [ -z "$found" ] || break
    done
    [ -n "$found" ]
    ok $? "and is found:$found"
}

serve_on one
serve_on two
nasty_start
way="http+unix://$dir/nasty.sock"
STORM_OTHER_URL=$(url a)
export STORM_OTHER_URL
if [ -n "${HOLDFAST_LONG-}" ]; then
    storm 'two servers behind a nasty proxy' "$way" 10000 1500 $ttl_ms torment
else
    storm 'two servers behind a nasty proxy' "$way" 600 80 $ttl_ms torment
fi
nasty_stop
is "$(counted revived)" 0 'no renewal brought a lease back that was over'
above "$(counted came_again)" 0 'though owners came again after their end'
above "$(counted repeated)" 0 'acquires were repeated'
above 15000 "$(storm_count gap_ms)" 'no lock was out of reach for long'
unset STORM_OTHER_URL
# Under the sanitizers the storm is the same, and slower.
if [ "$build" = "$root/build" ]; then
    caught owner 5 overlap order
    caught answer 40 overlap
    caught renew 5 revived
    caught holder 5 overlap
fi
done_testing
