#!/bin/bash
# Ways to use a SQL fence that look right and once were not: autocommit, a query around enter, two schemas, a
# holder that froze, another owner, other engines, dumps. (run: once)
# shellcheck disable=SC2119 # arguments are for those who want to say more
set -u
# shellcheck source=tests/fence/fence.sh
. "$(dirname "$0")/fence.sh"
start_databases || { echo "Bail out! no databases"; exit 1; }

# ---- MariaDB: two sessions in autocommit must not lower a mark ----
ask mariadb "CREATE TABLE auto (v INT) ENGINE = InnoDB; INSERT INTO auto VALUES (0);
    CREATE TABLE seen (n BIGINT AUTO_INCREMENT PRIMARY KEY, token BIGINT) ENGINE = InnoDB;"
fence sql --dialect mariadb --table auto | sql mariadb
ask mariadb "CREATE TRIGGER watch AFTER UPDATE ON holdfast_fence FOR EACH ROW
    INSERT INTO seen (token) VALUES (NEW.token);"
sessions=
for seed in 1 2 3; do
    awk -v seed=$seed 'BEGIN { srand(seed); for (n = 1; n <= 3000; n++)
        printf "CALL holdfast_enter(\047auto\047, %d);\n", n * 5 + int(rand() * 20) + 1 }' >"$SQL_DIR/calls.$seed"
done
for seed in 1 2 3; do
    maria -f app <"$SQL_DIR/calls.$seed" >/dev/null 2>&1 &
    sessions="$sessions $!"
done
# shellcheck disable=SC2086 # they are words
wait $sessions
ask mariadb "SELECT count(*) FROM seen a JOIN seen b ON b.n = (SELECT min(n) FROM seen WHERE n > a.n)
    WHERE b.token < a.token;"
is "$out" 0 'mariadb: enter in autocommit never lowers a mark'
ask mariadb "CALL holdfast_enter('auto', 99999999);"
like "$err" ZHF05 'mariadb: it is refused there'
ask mariadb "SET autocommit = 0; CALL holdfast_enter('auto', 99999999); UPDATE auto SET v = 1; COMMIT;"
is "$rc" 0 'mariadb: with autocommit = 0 there is always a transaction'
ask mariadb "SET autocommit = 0; COMMIT; CALL holdfast_enter('auto', 99999998);"
like "$err" ZHF01 'mariadb: and the mark is the last one'


# ---- MariaDB: what the last check has found is nothing for the next ----
new_words
maria -n app <"$SQL_DIR/words" >"$SQL_DIR/answer" 2>&1 &
earlier=$!
exec 8>"$SQL_DIR/words"
echo "BEGIN; CALL holdfast_enter('auto', 99999999); UPDATE auto SET v = 2; COMMIT; SELECT 'written';" >&8
within 20 grep -q written "$SQL_DIR/answer"
ask mariadb "BEGIN; CALL holdfast_enter('auto', 99999999); COMMIT;"
echo "UPDATE auto SET v = 3;" >&8
exec 8>&-
{ wait "$earlier"; } 2>/dev/null
rm -f "$SQL_DIR/words"
like "$(cat "$SQL_DIR/answer")" ZHF02 'mariadb: a session that wrote before another entered is refused'
ask mariadb "SET @holdfast_inside = 'x', @holdfast_session = 'x'; UPDATE auto SET v = 3;"
like "$err" ZHF02 'mariadb: and so is one that sets the variables itself'
ask mariadb "SELECT v FROM auto;"
is "$out" 2 'mariadb: and nothing has changed'

# ---- PostgreSQL: enter cannot stand inside a query ----
ask postgres "CREATE TABLE orders (n INT); INSERT INTO orders VALUES (1);"
fence sql --dialect postgres --table orders --resource orders | pg
ask postgres "BEGIN; SELECT n, holdfast_fence.enter('orders', 34) FROM orders;"
like "$err" 'is a procedure|does not exist' 'postgres: enter is nothing for a SELECT'
ask postgres "BEGIN; WITH w AS (UPDATE orders SET n = 2 RETURNING n) SELECT holdfast_fence.enter('orders', 34) FROM w;"
[ "$rc" != 0 ]
ok $? 'postgres: nor for a query that writes'
ask postgres "SELECT n FROM orders;"
is "$out" 1 'postgres: and nothing has changed'
ask postgres "BEGIN; CALL holdfast_fence.enter('orders', 34); UPDATE orders SET n = 3; COMMIT; SELECT n FROM orders;"
is "$out" 3 'postgres: it is called'

# ---- PostgreSQL: two schemas, one name ----
ask postgres "CREATE SCHEMA a; CREATE SCHEMA b; CREATE TABLE a.t (n INT); CREATE TABLE b.t (n INT);"
fence sql --dialect postgres --schema a --table t | pg
{ echo 'SET search_path = b;'; fence sql --dialect postgres --table t; } | pg
ask postgres "BEGIN; CALL holdfast_fence.enter('a.t', 50); INSERT INTO a.t VALUES (1); COMMIT;
    BEGIN; CALL holdfast_fence.enter('b.t', 40); INSERT INTO b.t VALUES (1); COMMIT;"
is "$rc" 0 'postgres: tables of one name in two schemas have two fences'
ask postgres "BEGIN; CALL holdfast_fence.enter('a.t', 51); INSERT INTO b.t VALUES (2); COMMIT;"
like "$err" ZHF02 'postgres: and who entered one has not entered the other'

# ---- a holder that froze inside its transaction ----
ask mariadb "CREATE TABLE orders (n INT) ENGINE = InnoDB; INSERT INTO orders VALUES (1);"
fence sql --dialect mariadb --table orders | sql mariadb
for d in postgres mariadb; do
    mkfifo "$SQL_DIR/words"
    sql "$d" <"$SQL_DIR/words" >"$SQL_DIR/answer" 2>&1 &
    frozen=$!
    exec 8>"$SQL_DIR/words"
    case $d in
    postgres) frozen_limit="SET idle_in_transaction_session_timeout = '3s';" quick="SET holdfast.enter_wait = '500ms';" ;;
    mariadb) frozen_limit="SET idle_write_transaction_timeout = 3;" quick="SET @holdfast_enter_wait = 1;" ;;
    esac
    { echo "$frozen_limit"; enter_sql "$d" orders 60; echo "UPDATE orders SET n = 60; SELECT 'entered';"; } >&8
    within 20 grep -q entered "$SQL_DIR/answer"
    ask "$d" "$quick $(enter_sql "$d" orders 61)"
    like "$err" ZHF06 "$d: the next holder hears that one is inside and does not end"
    after=$(case $d in postgres) echo "SHOW lock_timeout;" ;; mariadb) echo "SELECT @@innodb_lock_wait_timeout;" ;; esac)
    again() { ask "$d" "$(enter_sql "$d" orders 61) UPDATE orders SET n = 61; COMMIT; $after"; [ "$rc" = 0 ]; }
    within 60 again
    ok $? "$d: with a limit for idle transactions the frozen one is ended"
    is "$out" "$(ask "$d" "$after"; echo "$out")" "$d: and the caller's own limit is what it was"
    exec 8>&-
    { wait "$frozen"; } 2>/dev/null
    rm -f "$SQL_DIR/words"
    ask "$d" "SELECT n FROM orders;"
    is "$out" 61 "$d: what it wrote is gone with it"
done

# ---- --down --last is for the last one ----
for d in sqlite mariadb; do
    engine=
    [ "$d" = mariadb ] && engine='ENGINE = InnoDB'
    ask "$d" "CREATE TABLE one (v INT) $engine; CREATE TABLE two (v INT) $engine;"
    for t in one two; do fence sql --dialect "$d" --table $t | sql "$d"; done
    ask "$d" "$(enter_sql "$d" two 70) INSERT INTO two VALUES (1); $(leave_sql "$d")"
    case $d in
    sqlite) fence sql --dialect sqlite --table one --down --last | sqlite3 "$SQL_DIR/app.db" >"$SQL_DIR/out" 2>&1 ;;
    mariadb) fence sql --dialect mariadb --table one --down --last | maria app >"$SQL_DIR/out" 2>&1 ;;
    esac
    like "$(cat "$SQL_DIR/out")" 'other tables are fenced' "$d: --last is refused while another table is fenced"
    ask "$d" "$(enter_sql "$d" two 69)"
    like "$err" 'ZHF01|holdfast stale' "$d: whose mark is still there"
done

# ---- MariaDB: engines without transactions; grants ----
ask mariadb "CREATE TABLE flat (v INT) ENGINE = MyISAM;"
fence sql --dialect mariadb --table flat | maria app >"$SQL_DIR/out" 2>&1
like "$(cat "$SQL_DIR/out")" 'ZHF04.*MyISAM has no transactions' 'mariadb: MyISAM is refused'
ask mariadb "INSERT INTO flat VALUES (1);"
is "$rc" 0 'mariadb: and left as it is'
like "$(fence sql --dialect mariadb --table one)" 'GRANT EXECUTE ON PROCEDURE holdfast_leave' 'mariadb: the grants are named'

# ---- PostgreSQL: a second owner ----
ask postgres "CREATE ROLE second LOGIN; CREATE ROLE third LOGIN; CREATE SCHEMA s AUTHORIZATION second;
    GRANT USAGE ON SCHEMA s TO third;"
export PG_ROLE=second
ask postgres "CREATE TABLE s.mine (v INT); GRANT INSERT ON s.mine TO third;"
fence sql --dialect postgres --schema s --table mine | pg >"$SQL_DIR/out" 2>&1
like "$(cat "$SQL_DIR/out")" 'GRANT USAGE ON SCHEMA holdfast_fence TO second' 'postgres: a second owner hears what to ask for'
PG_ROLE=owner ask postgres "GRANT USAGE ON SCHEMA holdfast_fence TO second;"
fence sql --dialect postgres --schema s --table mine | pg
is "$?" 0 'postgres: and can install then'
PG_ROLE=third ask postgres "BEGIN; CALL holdfast_fence.enter('s.mine', 5); INSERT INTO s.mine VALUES (1); COMMIT;"
is "$rc" 0 'postgres: whoever may write its table may enter'
PG_ROLE=third ask postgres "INSERT INTO s.mine VALUES (1);"
like "$err" ZHF02 'postgres: and must'
ask postgres "CALL holdfast_fence.install('public.orders', NULL, NULL);"
[ "$rc" != 0 ]
ok $? 'postgres: it cannot fence what is not its own'
fence sql --dialect postgres --schema s --table mine --down | pg
is "$?" 0 'postgres: and takes its fence down again'
unset PG_ROLE

# ---- SQLite: tokens as text, as doubles ----
ask sqlite "CREATE TABLE x (v INT);"
fence sql --dialect sqlite --table x | sql sqlite
for token in "'1794780471337312'" 1794780471337313.0 "'1794780471337314'"; do
    ask sqlite "$(enter_sql sqlite x "$token") INSERT INTO x VALUES (1); $(leave_sql sqlite)"
    is "$rc" 0 "sqlite: $token is a token"
done
ask sqlite "SELECT token, typeof(token) FROM holdfast_fence WHERE resource = 'x';"
is "$out" '1794780471337314|integer' 'sqlite: and kept as a number'
for token in "'1794780471337313'" 1794780471337313.0; do
    ask sqlite "$(enter_sql sqlite x "$token")"
    like "$err" 'holdfast stale' "sqlite: $token is below it"
done
for token in "'9223372036854775808'" "'0'" "'1e18'" "' 1794780471337319'" "'1794780471337319x'" "'01794780471337319'" \
    1794780471337319.5 9007199254740993.0 1e18 "x'39'" "''"; do
    ask sqlite "$(enter_sql sqlite x "$token")"
    like "$err" 'holdfast invalid' "sqlite: $token is none"
done
done_testing
