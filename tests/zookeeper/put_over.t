#!/bin/bash
# A record that is written for a hold whose time is over, while its child is still there.
set -u
. "$(dirname "$0")/lib.sh"
zk_start a minSessionTimeout=400 maxSessionTimeout=20000
"$build/tests/zookeeper/tool_put_over" "zookeeper://$(hosts a)?tick=200ms"
