#!/bin/bash
# metrics.t - /metrics: what is counted, of what, by the judgement of promtool and of a Prometheus that scrapes; watched locks
# and no others; a store that does not answer; the alerts.
# shellcheck disable=SC2317 # conditions are called by eventually
set -u
# shellcheck source=tests/redis/lib.sh
. "$(dirname "$0")/../redis/lib.sh"
# shellcheck source=tests/serve/prometheus.sh
. "$(dirname "$0")/prometheus.sh"
# shellcheck source=tests/serve/http.sh
. "$(dirname "$0")/http.sh"
export HOLDFAST_DIR=$dir/none
read -r tcp_port prometheus_port <<<"$(free_ports 2 | tr '\n' ' ')"
take() { # NAME [FIELDS] : the answer; the owner is in $taker
    taker=$(new_owner)
    post acquire "{\"name\": \"$1\", \"owner\": \"$taker\", \"ttl_ms\": 60000${2-}}"
}
scrape() { get metrics >"$dir/metrics"; }
# value SERIES : of the last scrape; the name without holdfast_
value() { awk -v series="holdfast_$1" 'substr($0, 1, length(series) + 1) == series " " { print $NF }' "$dir/metrics"; }
sees() { scrape && [ "$(value "$1")" = "$2" ]; } # SERIES VALUE

# Every kind of figure, from the first scrape on.
serve_start --store "file:$dir/store" --watch nightly --watch 'odd "\ name'
scrape
"$promtool" check metrics <"$dir/metrics" >"$dir/check" 2>&1
is "$?:$(cat "$dir/check")" 0: 'promtool has nothing to say of an idle server'
for name in build_info:gauge http_requests_total:counter http_request_duration_seconds:histogram wait_duration_seconds:histogram \
    store_request_duration_seconds:histogram waiters:gauge clients:gauge limited_total:counter \
    store_last_answer_timestamp_seconds:gauge lock_held:gauge lock_held_seconds:gauge lock_waiters:gauge; do
    grep -qx "# TYPE holdfast_${name/:/ }" "$dir/metrics" && grep -q "^# HELP holdfast_${name%:*} [A-Z0-9]" "$dir/metrics"
    ok $? "there is ${name%:*}"
done
is "$(value "build_info{version=\"$("$hf" version | sed 's/.* //')\",scheme=\"file\"}")" 1 'the version, and the kind of store'
is "$(value 'http_requests_total{op="acquire",status="504"}')" 0 'what an alert waits for is there before it happens'
is "$(value 'lock_held{lock="nightly"}')$(value 'lock_held_seconds{lock="nightly"}')" 00.000 'a watched lock that is free'

# What is done is counted.
take nightly >"$dir/said"
holder=$taker
take nightly >/dev/null
take nightly ', "wait_ms": 60000' >"$dir/waiter" &
waiter=$!
eventually 20 sees waiters 1
ok $? 'who waits is counted'
eventually 20 sees 'lock_waiters{lock="nightly"}' 1
ok $? 'so is the queue of a watched lock'
is "$(value 'lock_held{lock="nightly"}')" 1 'which is held'
perl -e 'exit !($ARGV[0] > 0 && $ARGV[0] < 600)' "$(value 'lock_held_seconds{lock="nightly"}')"
ok $? 'for so long'
post release "{\"name\": \"nightly\", \"owner\": \"$holder\"}" >/dev/null
wait "$waiter"
scrape
is "$(value 'http_requests_total{op="acquire",status="200"}'):$(value 'http_requests_total{op="acquire",status="423"}'):$(
    value 'http_requests_total{op="release",status="200"}')" 2:1:1 'answers are counted by their code'
is "$(value 'wait_duration_seconds_count{status="HF_OK"}'):$(value 'wait_duration_seconds_bucket{status="HF_OK",le="3600"}')" 1:1 \
    'a wait is one of the waits'
is "$(value 'http_request_duration_seconds_count{op="acquire"}')" 2 'and not one of the requests'
is "$(value 'store_request_duration_seconds_count{op="release"}')" 1 'the store was asked'
is "$(value waiters)" 0 'nobody waits any more'
perl -e 'exit !(abs($ARGV[0] - time) < 60)' "$(value store_last_answer_timestamp_seconds)"
ok $? 'the store answered just now'
"$promtool" check metrics <"$dir/metrics" >"$dir/check" 2>&1
is "$?:$(cat "$dir/check")" 0: 'promtool has nothing to say of a busy one'
is "$(value 'store_request_duration_seconds_count{op="locks"}')" '' 'a scrape does not list the store'

# Names of locks are labels only if they are watched.
take unwatched >/dev/null
get 'v1/lock?name=unwatched' >/dev/null
get 'v1/no/such/path' >/dev/null
scrape
is "$(grep -c 'unwatched\|such' "$dir/metrics")" 0 'no other name is in a label'
grep -qF 'holdfast_lock_held{lock="odd \"\\ name"} 0' "$dir/metrics"
ok $? 'a name with quotes stays one label'
server_stop serve

# The bound, with all that is allowed, and a real Prometheus.
serve_credential scraper metrics
watched=()
for i in $(seq 100); do watched+=(--watch "lock $i"); done
serve_start --listen "tcp:127.0.0.1:$tcp_port" --tokens "$dir/tokens" --store "file:$dir/store" "${watched[@]}"
take 'lock 7' >/dev/null
all_known() { scrape && [ "$(grep -c '^holdfast_lock_held{' "$dir/metrics")" = 100 ]; }
eventually 20 all_known
ok $? '100 locks are watched'
series=$(grep -vc '^#' "$dir/metrics")
[ "$series" -le 600 ]
ok $? "there are at most 600 series ($series)"
is "$(curl -sS -o /dev/null -w '%{http_code}' "http://127.0.0.1:$tcp_port/metrics")" 401 'over TCP a credential is wanted'
cat >"$dir/prometheus.yml" <<END
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [$root/examples/prometheus/holdfast.rules.yml]
scrape_configs:
  - job_name: holdfast
    authorization: {credentials_file: $dir/scraper.secret}
    static_configs: [{targets: ['127.0.0.1:$tcp_port']}]
END
"$promtool" check config "$dir/prometheus.yml" >"$dir/check" 2>&1
ok $? 'the configuration of the docs is one'
"$prometheus" --config.file="$dir/prometheus.yml" --storage.tsdb.path="$dir/tsdb" --log.level=error \
    --web.listen-address="127.0.0.1:$prometheus_port" >"$dir/prometheus.log" 2>&1 &
server_pid[prometheus]=$!
api() { curl -sS -m 10 -G "http://127.0.0.1:$prometheus_port/api/v1/$1" "${@:2}" 2>/dev/null; }
knows() { [ "$(api query --data-urlencode "query=$1" | jq -r '.data.result[0].value[1]')" = "$2" ]; }
eventually 30 knows 'holdfast_lock_held{lock="lock 7"}' 1
ok $? 'a real Prometheus scrapes it'
knows 'count(holdfast_lock_held)' 100 && knows 'up{job="holdfast"}' 1
ok $? 'all of it'
healthy() { [ "$(api rules | jq -r '[.data.groups[].rules[] | select(.health == "ok")] | length')" = 4 ]; }
eventually 30 healthy
ok $? 'and evaluates the rules'
server_stop prometheus KILL
server_stop serve

# The alerts.
rules=$root/examples/prometheus/holdfast.rules.yml
"$promtool" check rules "$rules" >"$dir/check" 2>&1
ok $? 'promtool accepts the rules'
sed "s|RULES|$rules|" "$root/tests/serve/rules_test.yml" >"$dir/rules_test.yml"
"$promtool" test rules "$dir/rules_test.yml" >"$dir/check" 2>&1
ok $? 'the alerts fire when they should, and not before'
[ "$failed" = 0 ] || sed 's/^/#   /' "$dir/check" | head -n 30

# A store that has stopped answering costs a scrape nothing.
redis_start stopped
calm stopped
serve_start --store "$(url stopped)" --watch nightly
take nightly >/dev/null
eventually 20 sees 'lock_held{lock="nightly"}' 1
ok $? 'a watched lock on Redis'
kill -STOP "$(pid stopped)"
not_known() { scrape && [ -z "$(value 'lock_held{lock="nightly"}')" ]; }
best=9999
for path in metrics '' healthz; do
    for _ in 1 2 3 4 5; do
        took=$(curl -sS -m 30 -o /dev/null -w '%{time_total}' --unix-socket "$sock" "http://localhost/$path")
        best=$(perl -e 'print $ARGV[0] < $ARGV[1] ? @ARGV[0] : $ARGV[1]' "$took" "$best")
    done
    perl -e 'exit !($ARGV[0] < 0.05)' "$best"
    ok $? "Redis stands still: /$path answers within 50 ms (${best}s)"
    best=9999
done
eventually 30 not_known
ok $? 'what is not known any more is left out'
kill -CONT "$(pid stopped)"
known_again() { ! not_known; }
eventually 30 known_again
ok $? 'and back when the store is'

# Nothing on stderr, and no secret anywhere.
cat "$dir/metrics" "$dir/serve.err" | strings | grep -cFf <(printf '%s\n' "$(cat "$dir/scraper.secret")" "$holder" "$taker") >"$dir/found"
is "$(cat "$dir/found")" 0 'no owner and no secret in the figures'
done_testing
