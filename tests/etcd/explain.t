#!/bin/bash
# holdfast explain on etcd: who waits, in order.
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/explain_queue.sh"

etcd_start a
explain_queue "$(url a)" '.holder.seems == "alive" and .holder.renewed != null and .holder.token_time == null'
done_testing
