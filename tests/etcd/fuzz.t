#!/bin/bash
# A fixed number of runs of the fuzz target for answers and watch streams, from a fixed seed.
# run: once
# run: also long
set -u
. "$(dirname "$0")/../fuzz/fuzz.sh"

# shellcheck disable=SC2046 # a list of words
fuzz_build "$root/tests/fuzz/fuzz_etcd_answer.c" \
    "$root"/src/stores/etcd/{answer,base64,layout,record,url,errors}.c "$root"/src/http/options.c "$root"/src/base/*.c \
    $(pkg-config --cflags --libs libcjson)
seed txn <<'END'
{"header":{"cluster_id":"12101","revision":"2"},"succeeded":true,"responses":[{"response_put":{"header":{"revision":"2"}}},{"response_range":{"kvs":[{"key":"aG9sZGZhc3QveB8=","create_revision":"2","mod_revision":"2","lease":"7","value":"dg=="}]}}]}
END
seed range <<'END'
{"header":{"cluster_id":"1","revision":"9"},"kvs":[{"key":"YQ==","create_revision":"2","mod_revision":"9223372036854775807","value":"dg=="}],"more":true,"count":"900"}
END
seed deleted <<'END'
{"header":{"revision":"7"},"responses":[{"response_delete_range":{"deleted":"1","prev_kvs":[{"key":"YQ==","create_revision":"5","value":"dg=="}]}}]}
END
seed watch <<'END'
{"result":{"header":{"cluster_id":"1","revision":"2"},"created":true}}
{"result":{"header":{"revision":"3"},"events":[{"type":"DELETE","kv":{"key":"YQ==","mod_revision":"3"}}]}}
END
seed canceled <<'END'
{"result":{"header":{"revision":"3"},"canceled":true,"compact_revision":"17","cancel_reason":"mvcc"}}
END
seed keepalive <<'END'
{"result":{"header":{"cluster_id":"1"},"ID":"12345","TTL":"5"}}
END
seed error <<'END'
{"error":{"grpc_code":14,"http_code":503,"message":"etcdserver: no leader"}}
END
printf '0123456789abcdef0123456789abcdef 1 k 30000 1700000000000000 host/123/backup' | seed value
printf 'etcd://user:pa%%3Ass@h1:2379,[::1]:2379,h3?prefix=a%%2F&ca=/x&cert=/y&key=/z&verify=off' | seed url
printf 'aG9sZGZhc3QveB8wMTIz' | seed base64
# What is longer than any key or value of ours.
long=$(head -c 900 /dev/zero | base64 -w 0)
printf '%s' "$long" | seed base64_long
printf '{"header":{},"kvs":[{"key":"%s","create_revision":"2"}]}' "$long" | seed key_long
printf '{"header":{},"kvs":[{"key":"YQ==","create_revision":"2","value":"%s"}]}' "$long" | seed value_long
printf '000000000000002a 0000000000000007 1 1700000000000 1700000003600\nvalue' | seed record
key=$(printf 'holdfast/\035n\037000000000000002a\037k' | base64 -w 0)
printf '{"header":{},"kvs":[{"key":"%s","mod_revision":"9","value":""}]}' "$key" | seed expiry
fuzz_run 2048 'no answer and no watch stream breaks the parser'
done_testing
