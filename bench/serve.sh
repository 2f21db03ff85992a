#!/bin/bash
# serve.sh - the server beside what it stands in front of, in one run: a bare echo, direct clients, etcd's own gateway.
# Prints rows as bench/run.sh wants them. BUILD is the folder of the build.
# shellcheck disable=SC2154 # hf comes from lib.sh
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/redis/lib.sh
. tests/serve/http.sh
. bench/rows.sh
bench=$build/bench/bench_serve
waiters=900
ulimit -n "$(ulimit -Hn)"
value() { sed -n "s/^$1 //p" "$dir/figures"; }
measure() { timeout 120 "$bench" "$@" >"$dir/figures" || echo "bench: $* failed" >&2; }
serve() { serve_start --store "$1" --max-clients 2048 --max-waiters 1800; }
# on_one PID... : these, and what measures them from now on, share one processor. The scheduler may or may not do that by
# itself, and a request that crosses to another processor takes three times as long, on either side of the comparison.
on_one() {
    local one
    for one in $$ "$@"; do taskset -a -p 1 "$one" >"$dir/null"; done
}
on_all() { taskset -a -p "$(printf %x $(((1 << $(nproc)) - 1)))" $$ >"$dir/null"; }

serve "file:$dir/store"
on_one "$(pid serve)"
measure refused "$sock"
row 'serve: a bare echo' "$(value plain_us)" - us
row 'serve: a refused request' "$(value ours_us)" - us
row 'serve: a refused request against an echo' "$(value ratio)" '<=1.5' x
measure pair "$sock" "file:$dir/store"
row 'serve: acquire + release, embedded store' "$(value ours_us)" - us
row 'serve: the same against a direct pair + two refused' "$(value ratio)" '<=1.2' x
server_stop serve
on_all

redis_start r --maxclients 8000
calm r
serve "$(url r)"
on_one "$(pid serve)" "$(pid r)"
measure pair "$sock" "$(url r)"
row 'serve: acquire + release, Redis' "$(value ours_us)" - us
row 'serve: on Redis against a direct pair + two refused' "$(value ratio)" '<=1.2' x
server_stop serve
on_all
taskset -a -p "$(printf %x $(((1 << $(nproc)) - 1)))" "$(pid r)" >"$dir/null"
serve "$(url r)"
measure handover "$sock" "$(url r)" $waiters
row "serve: hand-over, $waiters waiters, Redis" "$(value served_us | tail -n 1)" - us
row "serve: the same against $waiters threads" "$(value ratio)" '<=1.3' x
server_stop serve
serve "$(url r)"
measure crowd "$sock" "$(pid serve)" $waiters "$(url r)"
row "serve: memory for $waiters waiters" "$(value more_mib)" '<=40' MiB
row 'serve: p99 of renew, idle' "$(value idle_p99_us)" - us
row "serve: p99 of renew with $waiters waiters and ten pages" "$(value ratio)" '<=3' x
server_stop serve
redis_stop r

if command -v etcd >/dev/null && [ -e "$build/stores/etcd.so" ]; then
    (
        . tests/etcd/lib.sh
        . tests/serve/http.sh
        etcd_start a
        serve "$(url a)"
        measure gateway "$sock" "$(port a)"
        row "serve: etcd's gateway: grant, lock, unlock, revoke" "$(value plain_us)" - us
        row 'serve: acquire + release, etcd' "$(value ours_us)" - us
        row "serve: on etcd against etcd's gateway" "$(value ratio)" '<=1.2' x
    )
fi
