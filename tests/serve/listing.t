#!/bin/bash
# Listings are shared: one under way serves all who ask, an answer is good for 1s, the next one starts no sooner than ten
# times what the last one took, and while nobody looks nothing is listed.
# shellcheck disable=SC2317 # conditions are called by eventually
set -u
. "$(dirname "$0")/../redis/lib.sh"
. "$(dirname "$0")/http.sh"
command -v jq >/dev/null || skip_all 'jq is not installed'

redis_start r
calm r
serve_start --store "$(url r)"
post acquire "{\"name\": \"job\", \"owner\": \"$(new_owner)\", \"ttl_ms\": 60000}" >"$dir/held"
listed() { # how often the store was listed
    local count
    count=$(get metrics | sed -n 's/^holdfast_store_request_duration_seconds_count{op="locks"} //p')
    echo "${count:-0}"
}
as_of() { get v1/locks | jq -r .as_of_ms; }

is "$(get v1/locks | jq -r '.locks[0].name')" job 'a listing'
is "$(listed)" 1 'asks the store'
sleep 2
is "$(listed)" 1 'and while nobody looks, nobody does'

# Redis stands still for a moment while twenty ask.
rcli r client pause 600 all >"$dir/paused"
asking=()
for i in $(seq 20); do
    get v1/locks >"$dir/list.$i" &
    asking+=($!)
done
wait "${asking[@]}"
is "$(cat "$dir"/list.* | jq -r .as_of_ms | sort -u | wc -l)" 1 'twenty who ask at once get one listing'
is "$(listed)" 2 'for which the store was asked once'
took=$(jq -r .took_ms "$dir/list.1")
above "$took" 150 'and it took a while'
ended=$(date +%s%N)
first=$(jq -r .as_of_ms "$dir/list.1")
changed() { [ "$(as_of)" != "$first" ]; }
eventually 30 changed
waited=$((($(date +%s%N) - ended) / 1000000))
[ "$waited" -ge $((9 * took)) ]
ok $? "the next one comes no sooner than after ten times that ($waited ms after one of $took ms)"

second=$(as_of)
later() { [ "$(as_of)" != "$second" ]; }
began=$(date +%s%N)
eventually 30 later
waited=$((($(date +%s%N) - began) / 1000000))
[ "$waited" -lt 4000 ]
ok $? "and after one that was quick, soon ($waited ms)"
done_testing
