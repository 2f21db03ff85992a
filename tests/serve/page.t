#!/bin/bash
# page.t - the page, in a real browser: rows after a change, names that are markup or shell, a telephone, the keyboard alone,
# both themes, a server that is gone, a store in quarantine. page.py has the checks.
set -u
# shellcheck source=tests/redis/lib.sh
. "$(dirname "$0")/../redis/lib.sh"
command -v chromium >/dev/null || skip_all 'chromium is not installed'
# shellcheck source=tests/serve/http.sh
. "$(dirname "$0")/http.sh"
serve_credential night look lock metrics
redis_start new
read -r PAGE_PORT PAGE_OTHER_PORT <<<"$(free_ports 2 | tr '\n' ' ')"
PAGE_REDIS=$(url new)
export PAGE_PORT PAGE_OTHER_PORT PAGE_REDIS HOLDFAST=$hf PAGE_DIR=$dir
timeout 240 python3 "$root/tests/serve/page.py"
