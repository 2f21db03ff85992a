#!/bin/sh
# line.t - what the ZooKeeper store decides without a server, and a bounded fuzz run over names and data.
set -u
cd "$(dirname "$0")/../.." || exit 1
seed=${SEED-$$}
echo "# SEED=$seed"
"${BUILD:-build}/tests/zookeeper/tool_line" "$seed" 20000
