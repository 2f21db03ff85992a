#!/bin/bash
# Who a ZooKeeper is: the node its locks live below, whatever the URL looks like. run: once
set -u
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/support/identity.sh
. "$root/tests/support/identity.sh"

zk_start a
first=zookeeper://127.0.0.1:$(port a)
for chroot in '' /apart; do
    "$hf" --store "$first$chroot" run x -- true
done
same_store zookeeper 'one ensemble' "$first" "zookeeper://localhost:$(port a)" "$first,localhost:$(port a)"
other_store "$first/apart" 'another chroot'
old_mark "$first" "zookeeper://localhost:$(port a)"
done_testing
