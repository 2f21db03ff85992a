#!/bin/bash
# elect.t - elect, leader and run --at-least on ZooKeeper, and five candidates that are killed and frozen.
# run: first
# run: also long
# run: once
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/elect_storm.sh"

zk_start a minSessionTimeout=400 maxSessionTimeout=40000
elect_on "zookeeper://$(hosts a)/elect?tick=200ms" 3s
elect_storm zookeeper "zookeeper://$(hosts a)/elect?tick=200ms" 25 3000 25 --address somewhere
done_testing
