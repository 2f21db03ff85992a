#!/bin/bash
# Bodies, however they look, are read without harm.
# run: once
set -u
. "$(dirname "$0")/../fuzz/fuzz.sh"
fuzz_build "$root/tests/fuzz/fuzz_serve_body.c" "$root/src/serve/body.c" "$root/src/base/text.c" "$root/src/base/time.c" -lcjson
echo '{"name": "a", "owner": "0123456789abcdef0123456789abcdef", "ttl_ms": 30000, "wait_ms": 1e3, "label": "x"}' | seed acquire
echo '{"name": "\u00e4\ud83d\ude00", "owner": "0123456789abcdef0123456789abcdef", "token": "17", "x": null, "y": true}' | seed renew
echo '{"name": "a", "name": "b", "z": [{"a": "\u0000"}]}' | seed bad
fuzz_run 400 'the JSON of requests'
done_testing
