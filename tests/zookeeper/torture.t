#!/bin/bash
# holdfast torture on a ZooKeeper of the user's own.
# run: once
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/torture.sh"

zk_start a minSessionTimeout=400 maxSessionTimeout=4000
tortures "zookeeper://$(hosts a)?tick=200ms"
left() { kazoo a 'print("\n".join(n for n in k.get_children("/holdfast") if "torture" in n))'; }
is "$(left)" '' 'no node is left'
torture_killed "zookeeper://$(hosts a)?tick=200ms" left
done_testing
