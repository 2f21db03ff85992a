#!/bin/bash
# elect.t - elect, leader and run --at-least on PostgreSQL, and five candidates that are killed and frozen.
# run: first
# run: also long
# run: once
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/elect_storm.sh"

pg_start a
elect_on "$(url a)" 10s
elect_storm postgres "$(url a)" 25 2000 20 --address somewhere
done_testing
