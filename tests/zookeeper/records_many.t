#!/bin/bash
# Ten thousand records of one lock: written, listed, found, and no burden to the lock or a listing.
# run: long
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/records.sh"

zk_start a minSessionTimeout=400 maxSessionTimeout=80000
client a "zookeeper://$(hosts a)?tick=200ms"
many_records 10000
is "$(kazoo a "print(len(k.get_children('/holdfast/%records/many')))")" 10001 'each is a node of its own'
done_testing
