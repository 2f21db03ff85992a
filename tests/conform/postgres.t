#!/bin/bash
# postgres.t - the conformance suite over PostgreSQL: as it is, under the strictest isolation, and with a
# synchronous standby.
# run: first
# run: threads
set -u
. "$(dirname "$0")/../postgres/lib.sh"

pg_start a
conforms "$(url a)" 'a single server'
sql a 'ALTER DATABASE postgres SET default_transaction_isolation = serializable'
conforms "$(url a)" 'with default_transaction_isolation=serializable'
above "$(grep -c 'could not serialize' "$dir/a.log")" 0 \
    'where transactions really failed and were tried again'
sql a 'ALTER DATABASE postgres RESET default_transaction_isolation'
pg_sync_standby s a
ok $? 'a standby that the server waits for'
conforms "$(url a)" 'a server with a synchronous standby'
done_testing
