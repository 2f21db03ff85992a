#!/bin/bash
# Requests, however they look, are read without harm.
# run: once
set -u
. "$(dirname "$0")/../fuzz/fuzz.sh"
fuzz_build "$root/tests/fuzz/fuzz_serve_request.c" "$root/src/serve/http.c" "$root/src/base/text.c" "$root/src/base/time.c"
printf 'GET /v1/locks?prefix=a%%20b&limit=5 HTTP/1.1\r\nHost: localhost:7070\r\nAccept: */*\r\n\r\n' | seed get
printf 'POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\nAuthorization: Bearer x\r\n\r\n{}' | seed post
printf 'GET / HTTP/1.0\r\nHost: [::1]:1\r\nConnection: keep-alive, close\r\nTransfer-Encoding: chunked\r\nUpgrade: h2c\r\n\r\n' | seed odd
fuzz_run 600 'heads and queries of requests'
done_testing
