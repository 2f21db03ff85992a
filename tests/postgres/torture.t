#!/bin/bash
# holdfast torture on a PostgreSQL of the user's own.
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/torture.sh"

pg_start a
tortures "$(url a)"
is "$(sql a 'SELECT count(*) FROM holdfast.lock')" 0 'no row of a lock is left'
is "$(sql a 'SELECT count(*) FROM holdfast.waiter WHERE alive_until > now() + interval $$10s$$')" 0 'nobody waits'
done_testing
