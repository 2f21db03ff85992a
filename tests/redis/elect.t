#!/bin/bash
# elect.t - elect, leader and run --at-least on Redis, and five candidates that are killed and frozen.
# run: first
# run: also long
# run: once
set -u
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/elect_storm.sh"

stepping_clock
redis_start a --appendonly yes --appendfsync always
server_wrap=
calm a
elect_on "$(url a)" 10s

# The clock goes back by a day: --at-least waits no longer than it would otherwise.
again() { "$hf" --store "$(url a)" run -n --ttl 5s --at-least 1h back -- echo ran 2>&1; }
is "$(again)" ran 'a start, before the clock goes back'
clock_step -86400
like "$(again)" '*not again for another @(1h|59m*)' 'after that it is not again for an hour'
clock_step -82700
is "$(again)" ran 'and an hour later it is'
clock_step 0

elect_storm redis "$(url a)" 25 2000 20 --address somewhere
done_testing
