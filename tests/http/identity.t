#!/bin/bash
# Who a store behind a server is: the store itself, for whoever goes there directly and whoever does not.
# run: once
set -u
. "$(dirname "$0")/../redis/lib.sh"
. "$root/tests/serve/http.sh"
# shellcheck source=tests/support/identity.sh
. "$root/tests/support/identity.sh"

redis_start a
calm a
redis_start b
calm b
serve_start --store "$(url a)"
same_store redis 'one Redis' "$(url a)" "http+unix://$sock" "$(url a)"
same_store redis 'one Redis, the other way round' "http+unix://$sock" "$(url a)" "http+unix://$sock"
other_store "$(url b)" 'another Redis'
done_testing
