#!/bin/bash
# `holdfast outbox` as a program: what it prints, and what it refuses.
set -u
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"

refuses() { # DESCRIPTION PATTERN ARGUMENT...
    local what=$1 pattern=$2
    shift 2
    run "$hf" outbox "$@"
    is "$rc" 64 "$what"
    like "$err" "$pattern" "$what: clearly"
}

refuses 'no command' 'holdfast outbox --help'
refuses 'another command' 'unknown outbox command "push"' push
refuses 'no dialect' 'dialect is required' sql
refuses 'an unknown dialect' 'oracle' sql --dialect oracle
refuses 'an operand' 'orders' sql --dialect sqlite orders
refuses 'a schema where there are none' 'schemas' sql --dialect mariadb --schema x
refuses 'an empty schema' '1 to 63 bytes' sql --dialect postgres --schema ''
refuses 'a line break in a schema' 'control characters' sql --dialect postgres --schema $'a\nb'

refuses 'a relay without a database' '--db is required' relay -- cat
refuses 'a relay with nowhere to send' 'say where' relay --db sqlite:x
refuses 'a relay with two places to send to' 'say where' relay --db sqlite:x --http http://h/ -- cat
refuses 'a command without dashes' 'cat' relay --db sqlite:x cat
refuses 'a database that is none' 'not a database' relay --db redis://h -- cat
refuses 'a database without a scheme' 'not a database' list --db app.db
refuses 'no file' 'sqlite:PATH' list --db sqlite:
refuses 'a schema in SQLite' 'schemas' list --db sqlite:x --schema s
refuses 'no keys at once' 'parallel' relay --db sqlite:x --parallel 0 -- cat
refuses 'too many of them' 'parallel' relay --db sqlite:x --parallel 1000 -- cat
refuses 'no batch' 'batch' relay --db sqlite:x --batch 0 -- cat
refuses 'no attempts' 'attempts' relay --db sqlite:x --attempts 0 -- cat
refuses 'no pause' 'poll' relay --db sqlite:x --poll 0 -- cat
refuses 'no time for an answer' 'timeout' relay --db sqlite:x --timeout 0 -- cat
refuses 'an empty name' 'name' relay --db sqlite:x --name '' -- cat
refuses 'a name that is too long' 'name' relay --db sqlite:x --name "$(printf 'x%.0s' {1..194})" -- cat
refuses 'no UID' 'which message' drop --db sqlite:x --reason r
refuses 'a UID that is none' 'not a UID' retry --db sqlite:x --reason r XYZ
refuses 'no reason' 'reason is required' drop --db sqlite:x 00
refuses 'a list of something' 'x' list --db sqlite:x x
run "$hf" outbox list --db "sqlite:$dir/none.db"
is "$rc" 69 'a file that is not there'
[ ! -e "$dir/none.db" ]
ok $? 'and is not made'
run env HOLDFAST_STORE_PATH=/nonexistent "$hf" outbox relay --no-wait --db "postgres://u:s3cr3t@127.0.0.1:1/d" -- cat
is "$rc" 69 'a database that is down, and no wait'
unlike "$err" s3cr3t 'its password is not shown'

for dialect in postgres sqlite mariadb; do
    for down in '' --down; do
        # shellcheck disable=SC2086 # it may be nothing
        {
            text=$("$hf" outbox sql --dialect "$dialect" $down)
            plain=$("$hf" outbox sql --dialect "$dialect" $down --no-transaction)
            run "$hf" outbox sql --dialect "$dialect" $down --no-transaction --statements json
        }
        is "$rc$err" 0 "$dialect $down: a list of statements"
        unlike "$text" '@[A-Z]' "$dialect $down: every word was filled in"
        is "$plain" "$(grep -vx -e 'BEGIN;' -e 'COMMIT;' <<<"$text")" "$dialect $down: --no-transaction leaves out two lines"
        # Nothing but comments, empty lines and client commands is lost.
        is "$(jq -r '.[]' <<<"$out" | tr -d ' \n;/')" \
            "$(grep -v -e '^--' -e '^$' -e '^DELIMITER' <<<"$plain" | tr -d ' \n;/')" "$dialect $down: with all of it"
    done
done
"$hf" outbox sql --dialect sqlite >/dev/full 2>"$dir/err"
is "$?" 69 'a full disk is noticed'
done_testing
