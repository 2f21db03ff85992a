#!/bin/bash
# holdfast torture on an etcd of the user's own.
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/torture.sh"

etcd_start a
tortures "$(url a)"
left() { ctl a get --prefix holdfast --keys-only; }
is "$(left)" '' 'no key is left'
torture_killed "$(url a)" left
done_testing
