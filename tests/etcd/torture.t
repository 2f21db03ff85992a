#!/bin/bash
# holdfast torture on an etcd of the user's own.
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/torture.sh"

etcd_start a
tortures "$(url a)"
done_testing
