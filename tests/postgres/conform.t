#!/bin/bash
# The conformance suite, as the server is and under the strictest isolation.
# shellcheck disable=SC2034,SC2317 # functions and variables that eventually uses by name
set -u
. "$(dirname "$0")/lib.sh"

pg_start a
conforms "$(url a)" 'the conformance suite passes'
sql a 'ALTER DATABASE postgres SET default_transaction_isolation = serializable'
conforms "$(url a)" 'and with default_transaction_isolation=serializable'
above "$(grep -c 'could not serialize' "$dir/a.log")" 0 'where transactions really failed and were tried again'
done_testing
