#!/bin/bash
# `holdfast idem sql` as a program: what it prints, and what it refuses.
set -u
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"

refuses() { # DESCRIPTION PATTERN ARGUMENT...
    local what=$1 pattern=$2
    shift 2
    run "$hf" idem "$@"
    is "$rc" 64 "$what"
    like "$err" "$pattern" "$what: clearly"
}

refuses 'no command' 'holdfast idem --help'
refuses 'another command' 'unknown idem command "relay"' relay
refuses 'no dialect' 'dialect is required' sql
refuses 'an unknown dialect' 'oracle' sql --dialect oracle
refuses 'an operand' 'orders' sql --dialect sqlite orders
refuses 'a schema where there are none' 'schemas' sql --dialect mariadb --schema x
refuses 'an empty schema' '1 to 63 bytes' sql --dialect postgres --schema ''
refuses 'a schema of 64 bytes' '1 to 63 bytes' sql --dialect postgres --schema "$(printf 'x%.0s' {1..64})"
refuses 'a line break in a schema' 'control characters' sql --dialect postgres --schema $'a\nb'
refuses 'nothing kept' 'keep' sql --dialect sqlite --keep 0
refuses 'a strange age' 'keep' sql --dialect sqlite --keep soon
refuses 'a strange form' 'statements' sql --dialect sqlite --statements yaml

for dialect in postgres sqlite mariadb; do
    for down in '' --down; do
        # shellcheck disable=SC2086 # it may be nothing
        {
            text=$("$hf" idem sql --dialect "$dialect" $down)
            plain=$("$hf" idem sql --dialect "$dialect" $down --no-transaction)
            run "$hf" idem sql --dialect "$dialect" $down --no-transaction --statements json
        }
        is "$rc$err" 0 "$dialect $down: a list of statements"
        unlike "$text" '@[A-Z]' "$dialect $down: every word was filled in"
        is "$plain" "$(grep -vx -e 'BEGIN;' -e 'COMMIT;' <<<"$text")" "$dialect $down: --no-transaction leaves out two lines"
        # Nothing but comments, empty lines and client commands is lost.
        is "$(jq -r '.[]' <<<"$out" | tr -d ' \n;/')" \
            "$(grep -v -e '^--' -e '^$' -e '^DELIMITER' <<<"$plain" | tr -d ' \n;/')" "$dialect $down: with all of it"
    done
done
for dialect in postgres sqlite; do
    is "$("$hf" idem sql --dialect "$dialect" --statements json | jq '[.[] | select(. == "BEGIN" or . == "COMMIT")] | length')" \
        0 "$dialect: a list is for tools with a transaction of their own"
done
like "$("$hf" idem sql --dialect sqlite --keep 90m)" 'NEW.older_than, 5400.000' '--keep is in it'
"$hf" idem sql --dialect sqlite >/dev/full 2>"$dir/err"
is "$?" 69 'a full disk is noticed'
"$hf" idem sql --dialect sqlite --statements json >/dev/full 2>"$dir/err"
is "$?" 69 'with a list, too'
done_testing
