#!/bin/bash
# Who a Redis is: a random text beside the locks, whatever the URL looks like; without its data it is another.
set -u
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/support/identity.sh
. "$root/tests/support/identity.sh"

redis_start a
redis_start b
first=redis://127.0.0.1:$(port a)
same_store redis 'one server' "$first" "redis://localhost:$(port a)" "$first/0" "$first?max_ttl=5s"
other_store "redis://127.0.0.1:$(port b)" 'another server'
old_mark "$first" "redis://localhost:$(port a)"
rcli a flushall >/dev/null
other_store "$first" 'a server that lost its data'
done_testing
