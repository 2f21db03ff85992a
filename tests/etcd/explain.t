#!/bin/bash
# holdfast explain on etcd: who waits, in order.
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/explain_queue.sh"

etcd_start a
explain_queue "$(url a)" '.holder.seems == "alive" and .holder.renewed != null and .holder.token_time == null'

# Somebody's key on no lease.
ctl a put $'holdfast/stuck\x1f' somebody >"$dir/put"
seen stuck '.holder.foreign and .holder.endless and .holder.token == null and .next == {"what": "never", "in_ms": null}'
ok $? 'a key without a lease never ends'
fits_schema "$dir/out"
ok $? 'as the schema says'
timeout 10 "$hf" run -w 2s stuck -- true 2>"$dir/err"
like "$(cat "$dir/err")" '*whose key has no ttl: this never ends by itself*' 'and the line of a run that waits says so'
done_testing
