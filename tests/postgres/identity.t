#!/bin/bash
# Who a PostgreSQL is: its system identifier and the database, whatever the URL looks like. run: once
set -u
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/support/identity.sh
. "$root/tests/support/identity.sh"

pg_start a
first=$(url a)
sql a "CREATE DATABASE other" >/dev/null
same_store postgres 'one database' "$first" "${first/127.0.0.1/localhost}" "$first?application_name=x"
other_store "$(database=other url a)" 'another database'
old_mark "$first" "${first/127.0.0.1/localhost}"
done_testing
