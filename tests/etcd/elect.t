#!/bin/bash
# elect.t - elect, leader and run --at-least on etcd, and five candidates that are killed and frozen.
# run: first
# run: also long
# run: once
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/elect_storm.sh"

etcd_start a
elect_on "$(url a)" 10s
elect_storm etcd "$(url a)" 25 3000 25 --address somewhere
done_testing
