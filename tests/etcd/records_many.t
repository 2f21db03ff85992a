#!/bin/bash
# Ten thousand records of one lock: written, listed, found, and no burden to the lock or a listing.
# run: long
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/records.sh"

etcd_start a
client a "$(url a)"
many_records 10000
is "$(keys a $'holdfast/\x1emany\x1f')" 10001 'each is a key of its own'
done_testing
