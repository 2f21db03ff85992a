#!/bin/bash
# holdfast explain on ZooKeeper: who waits, in order.
# run: once
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/explain_queue.sh"

zk_start a minSessionTimeout=400 maxSessionTimeout=40000
explain_queue "zookeeper://$(hosts a)?tick=200ms" \
    '.holder.seems == "alive" and .holder.renewed != null and .holder.token_time == null'
done_testing
