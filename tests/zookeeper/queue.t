#!/bin/sh
# What the ZooKeeper store decides without a server.
"${BUILD:-build}/tests/zookeeper/tool_queue"
