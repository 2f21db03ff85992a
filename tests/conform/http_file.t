#!/bin/bash
# http_file.t - the conformance suite by HTTP, over a Unix socket, with the embedded store behind the server.
set -u
. "$(dirname "$0")/../support/stage.sh"
. "$root/tests/serve/http.sh"

serve_start --store "file:$dir/store"
"$build/tests/conform/conform" "http+unix://$sock"
