#!/bin/bash
# The SQL fence against real PostgreSQL, SQLite and MariaDB: tokens, names, roles, resets, crashes.
# (run: once)
# run: first
# shellcheck disable=SC2119 # arguments are for those who want to say more
set -u
# shellcheck source=tests/fence/fence.sh
. "$(dirname "$0")/fence.sh"
start_databases || { echo "Bail out! no databases"; exit 1; }

work() { # DIALECT TOKEN VALUE : a fenced transaction
    ask "$1" "$(enter_sql "$1" orders "$2") UPDATE orders SET v = $3; $(leave_sql "$1")"
}

value() { ask "$1" "SELECT v FROM orders;"; echo "$out"; }

stale() { case $1 in sqlite) echo 'holdfast stale' ;; *) echo ZHF01 ;; esac; }
invalid() { case $1 in sqlite) echo 'holdfast invalid' ;; *) echo ZHF04 ;; esac; }
foreign() { case $1 in sqlite) echo 'holdfast other store' ;; *) echo ZHF03 ;; esac; }
outside() { case $1 in sqlite) echo 'holdfast not entered' ;; *) echo ZHF02 ;; esac; }

enter_from() { # DIALECT TOKEN ISSUER : one transaction
    case $1 in
    postgres) echo "BEGIN; CALL holdfast_fence.enter_from('orders', $2, '$3'); COMMIT;" ;;
    sqlite) echo "PRAGMA foreign_keys = ON; BEGIN; INSERT INTO holdfast_enter (resource, token, issuer) VALUES ('orders', $2, '$3');
        DELETE FROM holdfast_entered; COMMIT;" ;;
    mariadb) echo "BEGIN; CALL holdfast_enter_from('orders', $2, '$3'); COMMIT;" ;;
    esac
}

reset_sql() { # DIALECT ISSUER REASON
    case $1 in
    postgres) echo "SELECT holdfast_fence.reset('orders', '$2', '$3');" ;;
    sqlite) echo "INSERT INTO holdfast_reset VALUES ('orders', '$2', '$3');" ;;
    mariadb) echo "CALL holdfast_reset('orders', '$2', '$3');" ;;
    esac
}

schema() { # DIALECT : everything that is defined
    case $1 in
    postgres) "$SQL_PG_BIN/pg_dump" -h "$SQL_DIR/pg" -U owner -s postgres | grep -v '^-- Dump\|restrict' ;;
    sqlite) sql sqlite <<<.schema ;;
    mariadb) mariadb-dump --no-defaults --socket="$SQL_DIR/maria/sock" -u root --no-data --routines \
        --skip-dump-date --skip-comments app ;;
    esac
}

log_table() { case $1 in postgres) echo holdfast_fence.reset_log ;; *) echo holdfast_fence_reset ;; esac; }

for d in postgres sqlite mariadb; do
    engine=
    [ "$d" = mariadb ] && engine='ENGINE = InnoDB'
    ask "$d" "CREATE TABLE orders (id INT PRIMARY KEY, v BIGINT) $engine; INSERT INTO orders VALUES (1, 0);
        CREATE TABLE stock (id INT PRIMARY KEY, v BIGINT) $engine; INSERT INTO stock VALUES (1, 0);"
    before=$(schema "$d")
    fence sql --dialect "$d" --table orders --resource orders | sql "$d"
    is "$?" 0 "$d: the migration runs"
    fence sql --dialect "$d" --table stock --resource stock | sql "$d"
    is "$?" 0 "$d: and for a second table"

    # tokens
    work "$d" 34 1
    is "$rc$(value "$d")" 01 "$d: the first token is admitted"
    work "$d" 34 2
    is "$rc$(value "$d")" 02 "$d: an equal one too"
    work "$d" 33 3
    like "$err" "$(stale "$d")" "$d: a lower one is stale"
    is "$(value "$d")" 2 "$d: and changes nothing"
    work "$d" 35 4
    is "$(value "$d")" 4 "$d: a higher one is admitted"
    for bad in 0 -1 NULL; do
        work "$d" "$bad" 5
        like "$err" "$(invalid "$d")" "$d: $bad is no token"
    done
    ask "$d" "UPDATE orders SET v = 5;"
    like "$err" "$(outside "$d")" "$d: no token at all is refused"
    is "$(value "$d")" 4 "$d: and changes nothing"
    ask "$d" "$(enter_sql "$d" nothing 36)"
    like "$err" "$(invalid "$d")" "$d: a resource without a fence"
    work "$d" 9007199254740993 6
    is "$(value "$d")" 6 "$d: 2^53 + 1 is admitted"
    work "$d" 9007199254740992 7
    like "$err" "$(stale "$d")" "$d: 2^53 is below it"
    work "$d" 9223372036854775807 8
    is "$(value "$d")" 8 "$d: 2^63 - 1 is admitted"
    work "$d" 9223372036854775806 9
    like "$err" "$(stale "$d")" "$d: 2^63 - 2 is below it"
    work "$d" 9223372036854775808 9
    [ -n "$err" ] && [ "$(value "$d")" = 8 ]
    ok $? "$d: 2^63 is no token"

    # two tables in one transaction
    ask "$d" "$(enter_sql "$d" stock 5) UPDATE stock SET v = 1; UPDATE orders SET v = 100; $(leave_sql "$d")"
    like "$err" "$(outside "$d")" "$d: one fence entered, two tables written: refused"
    ask "$d" "SELECT v FROM stock;"
    is "$out$(value "$d")" 08 "$d: as a whole"
    case $d in
    postgres) both="BEGIN; CALL holdfast_fence.enter('orders', 9223372036854775807); CALL holdfast_fence.enter('stock', 5);" ;;
    sqlite) both="PRAGMA foreign_keys = ON; BEGIN; INSERT INTO holdfast_enter (resource, token)
        VALUES ('orders', 9223372036854775807), ('stock', 5);" ;;
    mariadb) both="BEGIN; CALL holdfast_enter('orders', 9223372036854775807); CALL holdfast_enter('stock', 5);" ;;
    esac
    ask "$d" "$both UPDATE orders SET v = 10; UPDATE stock SET v = 10; $(leave_sql "$d")"
    ask "$d" "SELECT v FROM stock;"
    is "$out$(value "$d")" 1010 "$d: both entered, both written"

    # the issuer, and the way through a change of stores
    ask "$d" "$(enter_from "$d" 9223372036854775807 redis://a)"
    is "$rc" 0 "$d: the first issuer is remembered"
    ask "$d" "$(enter_from "$d" 9223372036854775807 redis://b)"
    like "$err" "$(foreign "$d")" "$d: another one is refused"
    work "$d" 9223372036854775807 11
    is "$(value "$d")" 11 "$d: one that is not said fits"
    ask "$d" "$(reset_sql "$d" redis://b '')"
    [ "$rc" != 0 ]
    ok $? "$d: a reset needs a reason"
    work "$d" 36 12
    like "$err" "$(stale "$d")" "$d: and did not happen"
    ask "$d" "$(reset_sql "$d" redis://b 'moved to b')"
    work "$d" 36 12
    is "$(value "$d")" 12 "$d: after a reset the new store's tokens count"
    ask "$d" "$(enter_from "$d" 37 redis://a)"
    like "$err" "$(foreign "$d")" "$d: and the old one's do not"
    ask "$d" "SELECT old_token, old_issuer, reason FROM $(log_table "$d");"
    is "$out" '9223372036854775807|redis://a|moved to b' "$d: the reset is on record"

    # a writer that dies between mark and data
    new_words
    case $d in
    postgres) pg <"$SQL_DIR/words" >"$SQL_DIR/answer" 2>&1 & ;;
    sqlite) sqlite3 -bail "$SQL_DIR/app.db" <"$SQL_DIR/words" >"$SQL_DIR/answer" 2>&1 & ;;
    mariadb) maria -n app <"$SQL_DIR/words" >"$SQL_DIR/answer" 2>&1 & ;;
    esac
    writer=$!
    exec 8>"$SQL_DIR/words"
    { enter_sql "$d" orders 40; echo "UPDATE orders SET v = 13; SELECT 'entered';"; } >&8
    within 20 grep -q entered "$SQL_DIR/answer"
    # pg and maria are functions: the client is the shell's child
    client=$(cat "/proc/$writer/task/$writer/children")
    # shellcheck disable=SC2086 # there may be two
    kill -KILL ${client:-$writer} 2>/dev/null
    exec 8>&-
    { wait "$writer"; } 2>/dev/null
    rm -f "$SQL_DIR/words"
    work "$d" 38 14
    is "$(value "$d")" 14 "$d: a writer killed before COMMIT left neither mark nor data"

    # and back again; a mark that two tables share stays for the other one
    for name in "both's" 'back\slash'; do
        fence sql --dialect "$d" --table orders --down | sql "$d"
        fence sql --dialect "$d" --table orders --resource "$name" | sql "$d"
        fence sql --dialect "$d" --table stock --down | sql "$d"
        fence sql --dialect "$d" --table stock --resource "$name" | sql "$d"
        quoted=${name//\'/\'\'}
        [ "$d" = mariadb ] && quoted=${quoted//\\/\\\\}
        ask "$d" "$(enter_sql "$d" "$quoted" 50) UPDATE orders SET v = 17; $(leave_sql "$d")"
        fence sql --dialect "$d" --table stock --resource "$name" --down | sql "$d"
        ask "$d" "$(enter_sql "$d" "$quoted" 49)"
        like "$err" "$(stale "$d")" "$d: one of two tables down: the mark of $name stays"
        fence sql --dialect "$d" --table orders --resource "$name" --down | sql "$d"
        ask "$d" "$(enter_sql "$d" "$quoted" 51)"
        like "$err" "$(invalid "$d")" "$d: both down: it is gone"
        fence sql --dialect "$d" --table orders --resource orders | sql "$d"
        fence sql --dialect "$d" --table stock --resource stock | sql "$d"
    done
    fence sql --dialect "$d" --table stock --down | sql "$d"
    is "$?" 0 "$d: one table down"
    work "$d" 39 15
    is "$(value "$d")" 15 "$d: the other one is still fenced"
    ask "$d" "UPDATE stock SET v = 16;"
    is "$rc" 0 "$d: and that one is not"
    fence sql --dialect "$d" --table orders --down --last | sql "$d"
    is "$(schema "$d")" "$before" "$d: the last one down leaves everything as it was"
done

# ---- names that want to be more than names ----
for d in postgres sqlite mariadb; do
    for name in '"; drop table x; --' "'; drop table x; --" '`; drop table x; --' 'a"b`c'"'d" '$holdfast$' \
        "back\\slash'" 'café table' '; //' '@TABLE@' '%s%n' ':x :"x"'; do
        case $d in
        mariadb) quoted="\`${name//\`/\`\`}\`" engine='ENGINE = InnoDB' ;;
        *) quoted="\"${name//\"/\"\"}\"" engine='' ;;
        esac
        ask "$d" "DROP TABLE IF EXISTS x; CREATE TABLE x (id INT); CREATE TABLE $quoted (id INT PRIMARY KEY, v INT) $engine;
            INSERT INTO $quoted VALUES (1, 0);"
        [ "$rc" = 0 ] || diag "$err"
        fence sql --dialect "$d" --table "$name" --resource "$name" | sql "$d" >"$SQL_DIR/up" 2>&1
        up=$?
        ask "$d" "SELECT count(*) FROM x; UPDATE $quoted SET v = 1;"
        { [ "$up" = 0 ] && [ "$out" = 0 ] && grep -q "$(outside "$d")" <<<"$err"; }
        ok $? "$d: a table called $name is fenced, and harmless"
        [ "$up" = 0 ] || diag "$(cat "$SQL_DIR/up")"
        fence sql --dialect "$d" --table "$name" --resource "$name" --down --last | sql "$d" >"$SQL_DIR/up" 2>&1
        down=$?
        ask "$d" "UPDATE $quoted SET v = 1; DROP TABLE $quoted;"
        is "$down$rc" 00 "$d: and free again"
        [ "$down" = 0 ] || diag "$(cat "$SQL_DIR/up")"
        fence sql --dialect "$d" --table "$name" --per-row | sql "$d" >"$SQL_DIR/up" 2>&1
        ask "$d" "SELECT count(*) FROM x;"
        is "$out" 0 "$d: also per row, on a table that is not there"
        [ "$d" = postgres ] && ask "$d" "DROP SCHEMA IF EXISTS holdfast_fence CASCADE;"
    done
    run fence sql --dialect "$d" --table $'a\n; drop table x'
    is "$rc" 64 "$d: a line break in a name is refused"
    run fence sql --dialect "$d" --table "$(printf 'x%.0s' {1..300})"
    is "$rc" 64 "$d: an endless name too"
done

# ---- no roles in SQLite, but no accidents either ----
ask sqlite "UPDATE holdfast_fence SET token = 0;"
fence sql --dialect sqlite --table x | sql sqlite
ask sqlite "PRAGMA foreign_keys = ON; BEGIN; INSERT INTO holdfast_enter (resource, token) VALUES ('x', 7); DELETE FROM holdfast_entered; COMMIT;
    UPDATE holdfast_fence SET token = 0;"
like "$err" 'a mark only rises' "sqlite: there are no roles, but a mark does not fall by accident"
ask sqlite "PRAGMA foreign_keys = ON; BEGIN; INSERT INTO holdfast_enter (resource, token) VALUES ('x', 8); INSERT INTO x VALUES (9); COMMIT;"
like "$err" 'FOREIGN KEY' "sqlite: a transaction that does not leave cannot commit"
ask sqlite "INSERT INTO x VALUES (10);"
like "$err" 'not entered' "sqlite: so that the next one has not entered"

ask sqlite "PRAGMA trusted_schema = OFF; PRAGMA foreign_keys = ON; BEGIN; INSERT INTO holdfast_enter (resource, token) VALUES ('x', 9);
    INSERT INTO x VALUES (11); DELETE FROM holdfast_entered; COMMIT; SELECT count(*) FROM x;"
is "$rc$out" 01 "sqlite: it works where the schema is not trusted"
[ "$rc" = 0 ] || diag "$err"
ask sqlite "PRAGMA trusted_schema = OFF; BEGIN; INSERT INTO holdfast_enter (resource, token) VALUES ('x', 9);"
like "$err" 'foreign_keys = ON is needed' "sqlite: and still needs foreign keys"

# ---- per row, a token below zero would be the sign that a token was said ----
for d in postgres sqlite mariadb; do
    ask "$d" "CREATE TABLE signs (id INT PRIMARY KEY, v INT);"
    fence sql --dialect "$d" --table signs --per-row | sql "$d"
    ask "$d" "INSERT INTO signs VALUES (1, 1, -5);"
    [ "$rc" != 0 ]
    ok $? "$d: no row starts with a token below zero"
done

# ---- nobody enters while a write is under way ----
for d in postgres mariadb; do
    ask "$d" "CREATE TABLE orders2 (v INT); INSERT INTO orders2 VALUES (0);"
    fence sql --dialect "$d" --table orders2 --resource orders2 | sql "$d"
done
new_words
maria -n app <"$SQL_DIR/words" >"$SQL_DIR/answer" 2>&1 &
exec 8>"$SQL_DIR/words"
# The entry is of an earlier transaction: only the guard's own lock keeps others out.
echo "BEGIN; CALL holdfast_enter('orders2', 51); COMMIT; BEGIN; UPDATE orders2 SET v = 51; SELECT 'written';" >&8
within 20 grep -q written "$SQL_DIR/answer"
ask mariadb "SET innodb_lock_wait_timeout = 1; BEGIN; CALL holdfast_enter('orders2', 52);"
like "$err" 'ZHF06' "mariadb: entering waits for a write under way"
echo "COMMIT; SELECT 'committed';" >&8
within 20 grep -q committed "$SQL_DIR/answer"
exec 8>&-
wait $!
rm -f "$SQL_DIR/words"
new_words
pg <"$SQL_DIR/words" >"$SQL_DIR/answer" 2>&1 &
exec 8>"$SQL_DIR/words"
echo "BEGIN; CALL holdfast_fence.enter('orders2', 51); SELECT 'entered';" >&8
within 20 grep -q entered "$SQL_DIR/answer"
ask postgres "SET lock_timeout = '1s'; CALL holdfast_fence.enter('orders2', 52);"
like "$err" 'ZHF06' "postgres: entering waits for a transaction that has entered"
exec 8>&-
wait $!
rm -f "$SQL_DIR/words"
# Where one snapshot is for the whole transaction, it is older than the entry: what the holder before wrote
# while we waited would not be seen.
for level in 'REPEATABLE READ' SERIALIZABLE; do
    new_words
    pg <"$SQL_DIR/words" >"$SQL_DIR/answer" 2>&1 &
    first=$!
    exec 8>"$SQL_DIR/words"
    echo "BEGIN; CALL holdfast_fence.enter('orders2', 54); UPDATE orders2 SET v = v + 1; SELECT 'entered';" >&8
    within 20 grep -q entered "$SQL_DIR/answer"
    pg <<<"BEGIN ISOLATION LEVEL $level; CALL holdfast_fence.enter('orders2', 54); SELECT 'saw ' || v FROM orders2;" \
        >"$SQL_DIR/late" 2>&1 8>&- &
    second=$!
    sleep 0.3
    echo "COMMIT;" >&8
    exec 8>&-
    wait "$first" "$second"
    rm -f "$SQL_DIR/words"
    like "$(cat "$SQL_DIR/late")" ZHF05 "postgres: entering under $level is refused"
done
ask postgres "BEGIN ISOLATION LEVEL REPEATABLE READ; CALL holdfast_fence.enter('orders2', 54);"
like "$err" ZHF05 "postgres: also of the holder that was admitted, with nobody in its way"
# MariaDB's default is REPEATABLE READ, too, but there the first plain read decides what is seen.
for begin in 'START TRANSACTION' 'START TRANSACTION WITH CONSISTENT SNAPSHOT'; do
    ask mariadb "BEGIN; CALL holdfast_enter('orders2', 53); UPDATE orders2 SET v = 1; COMMIT;"
    new_words
    maria -n app <"$SQL_DIR/words" >"$SQL_DIR/answer" 2>&1 &
    exec 8>"$SQL_DIR/words"
    echo "$begin; SELECT 'begun' FROM DUAL;" >&8
    within 20 grep -q begun "$SQL_DIR/answer"
    ask mariadb "BEGIN; CALL holdfast_enter('orders2', 53); UPDATE orders2 SET v = 2; COMMIT;"
    echo "CALL holdfast_enter('orders2', 53); SELECT CONCAT('saw ', v) FROM orders2;" >&8
    exec 8>&-
    wait $!
    rm -f "$SQL_DIR/words"
    case $begin in
    *SNAPSHOT)
        seen='saw 1'
        [ "$(maria -e "SHOW VARIABLES LIKE 'innodb_snapshot_isolation'" | cut -f 2)" != ON ] || seen=1020
        ;;
    *) seen='saw 2' ;;
    esac
    like "$(cat "$SQL_DIR/answer")" "$seen" "mariadb: $begin, as the page says"
done

# ---- the server dies ----
ask postgres "BEGIN; CALL holdfast_fence.enter('orders2', 60); UPDATE orders2 SET v = 60; COMMIT;"
new_words
pg <"$SQL_DIR/words" >"$SQL_DIR/answer" 2>&1 &
exec 8>"$SQL_DIR/words"
echo "BEGIN; CALL holdfast_fence.enter('orders2', 70); UPDATE orders2 SET v = 70; SELECT 'entered';" >&8
within 20 grep -q entered "$SQL_DIR/answer"
pg_stop immediate
exec 8>&-
rm -f "$SQL_DIR/words"
pg_start
ask postgres "SELECT v, (SELECT token FROM holdfast_fence.mark WHERE resource = 'orders2') FROM orders2;"
is "$out" '60|60' "postgres: after a crash mark and data are of one transaction"
ask postgres "BEGIN; CALL holdfast_fence.enter('orders2', 59);"
like "$err" ZHF01 "postgres: and a stale token is still stale"

ask mariadb "BEGIN; CALL holdfast_enter('orders2', 60); UPDATE orders2 SET v = 60; COMMIT;"
new_words
maria -n app <"$SQL_DIR/words" >"$SQL_DIR/answer" 2>&1 &
exec 8>"$SQL_DIR/words"
echo "BEGIN; CALL holdfast_enter('orders2', 70); UPDATE orders2 SET v = 70; SELECT 'entered';" >&8
within 20 grep -q entered "$SQL_DIR/answer"
maria_stop KILL
exec 8>&-
rm -f "$SQL_DIR/words"
maria_start
ask mariadb "SELECT v, (SELECT token FROM holdfast_fence WHERE resource = 'orders2') FROM orders2;"
is "$out" '60|60' "mariadb: after a crash mark and data are of one transaction"
ask mariadb "BEGIN; CALL holdfast_enter('orders2', 59);"
like "$err" ZHF01 "mariadb: and a stale token is still stale"
done_testing
