#!/bin/bash
# holdfast torture on a PostgreSQL of the user's own.
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/torture.sh"

pg_start a
tortures "$(url a)"
rows() { for table in lock waiter record broken; do sql a "SELECT '$table' FROM holdfast.$table"; done; }
is "$(rows)" '' 'no row of a lock is left'
torture_killed "$(url a)" rows
done_testing
