#!/bin/bash
# Bad input: what is no request, what two programs could read in two ways, bodies that are no flat JSON object.
set -u
. "$(dirname "$0")/../support/stage.sh"
. "$(dirname "$0")/http.sh"

serve_start --store "file:$dir/store"
PYTHONDONTWRITEBYTECODE=1 python3 "$root/tests/serve/input.py" "$sock"
good=$?
server_stop serve
[ $good -eq 0 ]
