#!/bin/bash
# A hold that is ended at once (break --now): its job is still at work when the next one begins. At a table in
# PostgreSQL that is fenced, what the late one writes is refused once the next one has entered.
# run: once
# shellcheck disable=SC2119,SC2317 # arguments are for those who want to say more; functions used by name
set -u
# shellcheck source=tests/fence/fence.sh
. "$(dirname "$0")/fence.sh"
pg_start || { echo "Bail out! no database"; exit 1; }
export HOLDFAST_STORE=file:$dir/store
ask postgres 'CREATE TABLE orders (id INT PRIMARY KEY, v BIGINT); INSERT INTO orders VALUES (1, 0);'
fence sql --dialect postgres --table orders --resource orders | sql postgres
is "$?" 0 'a fenced table'

# write VALUE : a fenced transaction of the job that calls it
write() {
    sql postgres <<<"$(enter_sql postgres orders "$HOLDFAST_TOKEN") UPDATE orders SET v = $1; $(leave_sql postgres)"
}
# The first job writes, and once more when it is told to; it does not care about signals.
first() {
    trap '' TERM
    write 1 && : >"$dir/wrote"
    within 20 test -e "$dir/go"
    write 3 2>"$dir/late"
    echo $? >"$dir/rc"
}
export -f write first sql pg enter_sql leave_sql within
export SQL_DIR dir

start "$hf" run --ttl 30s nightly -- bash -c first 2>"$dir/first.err"
job=$pid
within 20 test -e "$dir/wrote"
ok $? 'the first job has written'
token=$("$hf" status nightly --json | jq .token)
run "$hf" break nightly --token "$token" --now --reason 'the machine hangs'
is "$rc" 0 'its hold is ended at once'
like "$out" 'two may be at work until it hears of it' 'and two may be at work, which is said'
run "$hf" run -n nightly -- bash -c 'write 2'
is "$rc" 0 'the next one has the lock at once, enters and writes'
: >"$dir/go"
within 20 test -s "$dir/rc"
unlike "$(cat "$dir/rc")" '^0$' 'the late write is refused'
like "$(cat "$dir/late")" ZHF01 'as stale'
is "$(sql postgres <<<'SELECT v FROM orders;')" 2 'and what the next one wrote stays'
ended "$job"
is "$rc" 123 'the first one hears that it has lost its lock'
like "$(cat "$dir/first.err")" 'was broken by .*: the machine hangs' 'by whom and why'
done_testing
