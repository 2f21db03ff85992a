#!/bin/bash
# Who an etcd is: its cluster, whatever the URL looks like. run: once
set -u
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/support/identity.sh
. "$root/tests/support/identity.sh"

etcd_start a
etcd_start b
a=127.0.0.1:$(port a)
same_store etcd 'one cluster' "etcd://$a" "etcd://localhost:$(port a)" "etcd://$a,localhost:$(port a)" \
    "etcd://127.0.0.1:1,$a"
other_store "etcd://127.0.0.1:$(port b)" 'another cluster'
other_store "etcd://$a?prefix=elsewhere/" 'another prefix'
old_mark "etcd://$a" "etcd://localhost:$(port a)"
done_testing
