#!/bin/bash
# holdfast torture on a ZooKeeper of the user's own.
# run: once
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/torture.sh"

zk_start a minSessionTimeout=400 maxSessionTimeout=4000
tortures "zookeeper://$(hosts a)?tick=200ms"
done_testing
