#!/bin/bash
# openapi.t - docs/openapi.json describes what the server answers, and all of it. openapi.py has the checks.
# run: once
set -u
# shellcheck source=tests/support/stage.sh
. "$(dirname "$0")/../support/stage.sh"
python3 -c 'import jsonschema' 2>/dev/null || skip_all 'python3-jsonschema is not installed'
# shellcheck source=tests/serve/http.sh
. "$(dirname "$0")/http.sh"
serve_credential reader look
port=$(free_port)
serve_start --store "file:$dir/store" --listen "tcp:127.0.0.1:$port" --tokens "$dir/tokens"
timeout 120 python3 "$root/tests/serve/openapi.py" "$sock" "$port" "$dir/reader.secret"
