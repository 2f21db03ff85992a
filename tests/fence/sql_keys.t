#!/bin/bash
# A fence per key: a holder that has entered for a key writes the rows of that key and no others, holders of different
# keys do not wait for each other, and a purge lets no late holder in. (run: once)
# shellcheck disable=SC2119 # arguments are for those who want to say more
set -u
# shellcheck source=tests/fence/fence.sh
. "$(dirname "$0")/fence.sh"
start_databases || { echo "Bail out! no databases"; exit 1; }

enter_key() { # DIALECT KEY TOKEN : a transaction that has entered
    case $1 in
    postgres) echo "BEGIN; CALL holdfast_fence.enter('t', '$2', $3);" ;;
    sqlite) echo "PRAGMA foreign_keys = ON; BEGIN IMMEDIATE;
        INSERT INTO holdfast_enter (resource, key, token) VALUES ('t', '$2', $3);" ;;
    mariadb) echo "START TRANSACTION; CALL holdfast_enter_key('t', '$2', $3);" ;;
    esac
}

also_key() { # DIALECT KEY TOKEN : in a transaction
    case $1 in
    sqlite) echo "INSERT INTO holdfast_enter (resource, key, token) VALUES ('t', '$2', $3);" ;;
    *) enter_key "$@" | sed 's/^[^;]*;//' ;;
    esac
}

make_tables() { # DIALECT ROW : t(id, v, k), with a row of key a and one of key b
    local engine='' references='' partition='' after='' primary='PRIMARY KEY'
    [ "$1" = mariadb ] && engine='ENGINE = InnoDB'
    case $1/$2 in
    */*CASCADE*) references=', FOREIGN KEY (id) REFERENCES parent (id) ON DELETE CASCADE' ;;
    postgres/*partition*)
        partition='PARTITION BY RANGE (id)'
        after="CREATE TABLE t_part PARTITION OF t FOR VALUES FROM (0) TO (10);"
        ;;
    postgres/*'a trigger changes'*)
        after="CREATE FUNCTION to_b() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.k := ''b''; RETURN NEW; END';
            CREATE TRIGGER zz_to_b BEFORE INSERT ON t FOR EACH ROW WHEN (NEW.id = 3) EXECUTE FUNCTION to_b();" ;;
    mariadb/*'a trigger changes'*)
        after="CREATE TRIGGER to_b BEFORE INSERT ON t FOR EACH ROW SET NEW.k = IF(NEW.id = 3, 'b', NEW.k);" ;;
    esac
    echo "CREATE TABLE parent (id INT PRIMARY KEY) $engine; INSERT INTO parent VALUES (1), (2);
        CREATE TABLE t (id INT $primary, v INT, k VARCHAR(20) $references) $engine $partition; $after
        CREATE TABLE other (id INT PRIMARY KEY, v INT) $engine;
        INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b');"
    case "$1" in
    postgres) echo "CREATE FUNCTION other_t() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN UPDATE t SET v = 99 WHERE k = ''b''; RETURN NULL; END';
        CREATE TRIGGER other_t AFTER INSERT ON other FOR EACH ROW EXECUTE FUNCTION other_t();" ;;
    sqlite) echo "CREATE TRIGGER other_t AFTER INSERT ON other BEGIN UPDATE t SET v = 99 WHERE k = 'b'; END;" ;;
    mariadb) echo "CREATE TRIGGER other_t AFTER INSERT ON other FOR EACH ROW UPDATE t SET v = 99 WHERE k = 'b';" ;;
    esac
}

drop_all() {
    case $1 in
    sqlite) rm -f "$SQL_DIR/app.db" ;;
    postgres) echo "DROP TABLE IF EXISTS t, parent, other CASCADE; DROP FUNCTION IF EXISTS other_t, to_b;
        DROP SCHEMA IF EXISTS holdfast_fence CASCADE;" | pg ;;
    mariadb) echo "DROP DATABASE app; CREATE DATABASE app;" | maria ;;
    esac
}

key_write() { # DIALECT ROW
    case "$1/$2" in
    */'INSERT of key a') echo "INSERT INTO t VALUES (3, 99, 'a');" ;;
    */'UPDATE of key a' | */'UPDATE of key a, with'* | */'UPDATE of key a in a session'*)
        echo "UPDATE t SET v = 99 WHERE id = 1;" ;;
    */'DELETE of key a') echo "DELETE FROM t WHERE id = 1;" ;;
    */'INSERT of key b') echo "INSERT INTO t VALUES (3, 99, 'b');" ;;
    */'UPDATE of key b') echo "UPDATE t SET v = 99 WHERE id = 2;" ;;
    */'DELETE of key b') echo "DELETE FROM t WHERE id = 2;" ;;
    */'UPDATE that moves a row from a to b, having entered for both')
        also_key "$1" b 34
        echo "UPDATE t SET v = 99, k = 'b' WHERE id = 1;"
        ;;
    */'UPDATE that moves a row from a to b') echo "UPDATE t SET v = 99, k = 'b' WHERE id = 1;" ;;
    */'UPDATE that moves a row from b to a') echo "UPDATE t SET v = 99, k = 'a' WHERE id = 2;" ;;
    */'UPDATE of every row') echo "UPDATE t SET v = 99;" ;;
    */'DELETE of every row') echo "DELETE FROM t;" ;;
    postgres/TRUNCATE | mariadb/TRUNCATE) echo "TRUNCATE t;" ;;
    mariadb/'upsert onto a row of key b')
        echo "INSERT INTO t VALUES (2, 99, 'a') ON DUPLICATE KEY UPDATE v = 99;" ;;
    */'upsert onto a row of key b')
        echo "INSERT INTO t VALUES (2, 99, 'a') ON CONFLICT (id) DO UPDATE SET v = 99;" ;;
    sqlite/'INSERT OR REPLACE, REPLACE over'*) echo "INSERT OR REPLACE INTO t VALUES (2, 99, 'a');" ;;
    mariadb/'INSERT OR REPLACE, REPLACE over'*) echo "REPLACE INTO t VALUES (2, 99, 'a');" ;;
    postgres/COPY*) printf 'COPY t FROM stdin;\n3\t99\tb\n\\.\n' ;;
    sqlite/COPY*)
        echo '3|99|b' >"$SQL_DIR/rows"
        printf '.separator |\n.import %s t\n' "$SQL_DIR/rows"
        ;;
    mariadb/COPY*)
        printf '3\t99\tb\n' >"$SQL_DIR/rows"
        echo "LOAD DATA LOCAL INFILE '$SQL_DIR/rows' INTO TABLE t;"
        ;;
    */'INSERT of a row without a key') echo "INSERT INTO t VALUES (3, 99, NULL);" ;;
    postgres/*'a trigger changes to b' | mariadb/*'a trigger changes to b') echo "INSERT INTO t VALUES (3, 99, 'a');" ;;
    */'from a trigger of another table, to key b') echo "INSERT INTO other VALUES (7, 99);" ;;
    */'ON DELETE CASCADE to key b') echo "DELETE FROM parent WHERE id = 2;" ;;
    postgres/'a partition, by its own name, to key b') echo "UPDATE t_part SET v = 99 WHERE id = 2;" ;;
    esac
}

key_transaction() { # DIALECT ROW : the whole of it
    local write
    case $2 in
    *'in a session that has not entered') key_write "$@" ;;
    *'after ROLLBACK TO'*)
        [ "$1" = sqlite ] && echo "PRAGMA foreign_keys = ON;"
        echo "BEGIN; SAVEPOINT s;"
        also_key "$1" a 34
        echo "ROLLBACK TO s; UPDATE t SET v = 99 WHERE id = 1; COMMIT;"
        ;;
    *)
        write=$(key_write "$@")
        [ -n "$write" ] || return 1
        enter_key "$1" a 34
        echo "$write"
        leave_sql "$1"
        ;;
    esac
}

key_cell() { # DIALECT ROW
    local before after
    drop_all "$1"
    make_tables "$1" "$2" | sql "$1" || return 1
    fence sql --dialect "$1" --table t --resource t --key-column k | sql "$1" || return 1
    { enter_key "$1" b 40; leave_sql "$1"; } | sql "$1" >/dev/null || return 1
    case $2 in *both) { reset_key "$1"; } | sql "$1" >/dev/null ;; esac
    key_transaction "$1" "$2" >"$SQL_DIR/write" || { echo -; return; }
    before=$(contents "$1")
    sql "$1" <"$SQL_DIR/write" >/dev/null 2>"$SQL_DIR/error"
    after=$(contents "$1")
    case $(answer "$SQL_DIR/error" "$before" "$after") in
    'not covered') case $2 in
        'INSERT of key a' | 'UPDATE of key a' | 'DELETE of key a' | *'below that of key b' | *both) echo admitted ;;
        *) echo 'not covered' ;;
        esac ;;
    *) answer "$SQL_DIR/error" "$before" "$after" ;;
    esac
}

reset_key() {
    case $1 in
    postgres) echo "SELECT holdfast_fence.reset('t', '', 'test');" ;;
    sqlite) echo "INSERT INTO holdfast_reset VALUES ('t', '', 'test');" ;;
    mariadb) echo "CALL holdfast_reset('t', '', 'test');" ;;
    esac
}

while IFS='|' read -r row postgres sqlite mariadb; do
    is "$(key_cell postgres "$row")" "$postgres" "PostgreSQL: $row: $postgres"
    is "$(key_cell sqlite "$row")" "$sqlite" "SQLite: $row: $sqlite"
    is "$(key_cell mariadb "$row")" "$mariadb" "MariaDB: $row: $mariadb"
done < <(rows_of key)
[ "$tests" -ge 60 ]
ok $? "the page has a table with $tests cells"

# ---- marks per key ----
stale() { case $1 in sqlite) echo 'holdfast stale' ;; *) echo ZHF01 ;; esac; }
invalid() { case $1 in sqlite) echo 'holdfast invalid' ;; *) echo ZHF04 ;; esac; }
purge() { # DIALECT BELOW
    case $1 in
    postgres) ask postgres "SELECT holdfast_fence.purge('t', $2);" ;;
    sqlite) ask sqlite "INSERT INTO holdfast_purge VALUES ('t', $2);" ;;
    mariadb) ask mariadb "BEGIN; CALL holdfast_purge('t', $2); COMMIT;" ;;
    esac
}
marks() { # DIALECT : of how many keys
    case $1 in
    postgres) ask postgres "SELECT count(*) FROM holdfast_fence.mark WHERE key <> '';" ;;
    sqlite) ask sqlite "SELECT count(*) FROM holdfast_fence_key;" ;;
    mariadb) ask mariadb "SELECT count(*) FROM holdfast_fence WHERE key_value <> '';" ;;
    esac
    echo "$out"
}
work() { # DIALECT KEY TOKEN VALUE
    ask "$1" "$(enter_key "$1" "$2" "$3") UPDATE t SET v = $4 WHERE k = '$2'; $(leave_sql "$1")"
}
for d in postgres sqlite mariadb; do
    drop_all "$d"
    make_tables "$d" '' | sql "$d"
    fence sql --dialect "$d" --table t --resource t --key-column k | sql "$d"
    work "$d" a 50 1
    is "$rc" 0 "$d: a key has a mark of its own"
    [ "$rc" = 0 ] || diag "$err"
    work "$d" a 49 2
    like "$err" "$(stale "$d")" "$d: which refuses a lower token"
    work "$d" b 30 3
    is "$rc" 0 "$d: and another key has another"
    for key in 1 2 3 4 5; do work "$d" "old$key" "3$key" 4; done
    is "$(marks "$d")" 7 "$d: seven keys, seven marks"
    purge "$d" 40
    is "$(marks "$d")" 1 "$d: a purge leaves those that are not below"
    work "$d" a 49 5
    like "$err" "$(stale "$d")" "$d: with their marks"
    work "$d" old1 30 5
    like "$err" "$(stale "$d")" "$d: a late holder of a purged key stays out"
    work "$d" new 39 5
    like "$err" "$(stale "$d")" "$d: and of a new one"
    work "$d" old1 40 5
    is "$rc" 0 "$d: one that is not late goes on"
    purge "$d" 20
    work "$d" old2 39 5
    like "$err" "$(stale "$d")" "$d: a lower purge takes nothing back"
    ask "$d" "$(enter_sql "$d" t 60)"
    like "$err" "$(invalid "$d")" "$d: nobody enters without a key"
    ask "$d" "$(enter_key "$d" '' 60)"
    like "$err" "$(invalid "$d")" "$d: nor with an empty one"
    ask "$d" "$(enter_key "$d" '' 40)"
    like "$err" "$(invalid "$d")" "$d: not even with the token of the floor, which is kept there"
    fence sql --dialect "$d" --table t --resource t | sql "$d" >/dev/null 2>&1
    ask "$d" "$(enter_key "$d" a 60) UPDATE t SET v = 5 WHERE k = 'b';"
    [ "$rc" != 0 ]
    ok $? "$d: a fence per key does not become one for all by accident"
done

# ---- holders of different keys do not wait for each other ----
for d in postgres mariadb; do
    new_words
    sql "$d" <"$SQL_DIR/words" >"$SQL_DIR/answer" 2>&1 &
    first=$!
    exec 8>"$SQL_DIR/words"
    { enter_key "$d" a 70; echo "UPDATE t SET v = 70 WHERE id = 1; SELECT 'entered';"; } >&8
    within 20 grep -q entered "$SQL_DIR/answer"
    case $d in postgres) quick="SET holdfast.enter_wait = '300ms';" ;; mariadb) quick="SET @holdfast_enter_wait = 1;" ;; esac
    ask "$d" "$quick $(enter_key "$d" b 70) UPDATE t SET v = 71 WHERE id = 2; $(leave_sql "$d")"
    is "$rc" 0 "$d: another key goes on while one is at work"
    [ "$rc" = 0 ] || diag "$err"
    ask "$d" "$quick $(enter_key "$d" fresh 70) INSERT INTO t VALUES (9, 9, 'fresh'); $(leave_sql "$d")"
    is "$rc" 0 "$d: a new one, too"
    [ "$rc" = 0 ] || diag "$err"
    ask "$d" "$quick $(enter_key "$d" a 71)"
    like "$err" ZHF06 "$d: the same one waits, not for ever"
    echo "COMMIT;" >&8
    exec 8>&-
    wait "$first"
    rm -f "$SQL_DIR/words"
done

# ---- keys are bytes ----
ask mariadb "DROP DATABASE app; CREATE DATABASE app; USE app;
    CREATE TABLE t (id INT PRIMARY KEY, v INT, k VARCHAR(20) COLLATE utf8mb4_general_ci) ENGINE = InnoDB;
    INSERT INTO t VALUES (1, 0, 'a');"
fence sql --dialect mariadb --table t --key-column k | sql mariadb
ask mariadb "$(enter_key mariadb a 5) UPDATE t SET k = 'A'; COMMIT;"
like "$err" ZHF02 "mariadb: a and A are two keys, whatever the column thinks"
ask postgres "CREATE TABLE moments (id INT, at timestamptz); CREATE TABLE numbers (id INT, n numeric);"
for c in moments.at numbers.n numbers.none; do
    fence sql --dialect postgres --table "${c%.*}" --key-column "${c#*.}" | pg >"$SQL_DIR/out" 2>&1
    like "$(cat "$SQL_DIR/out")" 'cannot be the key' "postgres: $c is no key"
done
ask postgres "CREATE TABLE odd (id INT, \"a %s'\\ \"\"b\" INT); INSERT INTO odd VALUES (1, 5);"
fence sql --dialect postgres --table odd --key-column "a %s'\\ \"b" | pg
ask postgres "BEGIN; CALL holdfast_fence.enter('public.odd', '5', 5); UPDATE odd SET id = 2; COMMIT;"
is "$rc" 0 "postgres: an odd column is a column"
ask postgres "BEGIN; CALL holdfast_fence.enter('public.odd', '6', 5); UPDATE odd SET id = 2; COMMIT;"
like "$err" ZHF02 "postgres: and checked"

# ---- what a session remembers of the keys it entered for ----
ask postgres "CREATE TABLE few (id INT, k text);
    INSERT INTO few VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, ''), (5, NULL), (6, E'a\\x01b');"
fence sql --dialect postgres --table few --key-column k | pg
in_few() { # KEY... : enters for each
    local key
    echo "BEGIN;"
    for key in "$@"; do echo "CALL holdfast_fence.enter('public.few', '$key', 5);"; done
}
ask postgres "$(in_few a b) UPDATE few SET id = id + 10 WHERE k IN ('a', 'b'); COMMIT;"
is "$rc" 0 "postgres: who entered for two keys writes rows of both in one statement"
ask postgres "$(in_few a b a c) UPDATE few SET id = id + 10 WHERE k IN ('a', 'b', 'c'); COMMIT;"
is "$rc" 0 "postgres: and of three, in whatever order"
ask postgres "$(in_few a b) UPDATE few SET id = id + 10 WHERE k = 'c'; COMMIT;"
like "$err" ZHF02 "postgres: but of no other"
for where in "k = ''" "k IS NULL" "id = 6"; do
    ask postgres "$(in_few a b) UPDATE few SET id = 0 WHERE $where; COMMIT;"
    like "$err" ZHF02 "postgres: rows without a key, or with one that is none: $where"
    ask postgres "$(in_few a) COMMIT; UPDATE few SET id = 0 WHERE $where;"
    like "$err" ZHF02 "postgres: nor in a session that has left: $where"
    ask postgres "UPDATE few SET id = 0 WHERE $where;"
    like "$err" ZHF02 "postgres: nor in one that never was inside: $where"
done
ask postgres "$(in_few a) COMMIT; UPDATE few SET id = 0 WHERE k = 'a';"
like "$err" ZHF02 "postgres: what was entered ends with the transaction"
for level in 'REPEATABLE READ' SERIALIZABLE; do
    ask postgres "BEGIN ISOLATION LEVEL $level; CALL holdfast_fence.enter('public.few', 'a', 5);"
    like "$err" ZHF05 "postgres: also the holder that was admitted is refused under $level"
done
ask postgres "$(in_few a) SAVEPOINT s; CALL holdfast_fence.enter('public.few', 'b', 5); ROLLBACK TO s;
    UPDATE few SET id = 0 WHERE k = 'b'; COMMIT;"
like "$err" ZHF02 "postgres: a second key ends with its savepoint"
ask postgres "$(in_few a) SAVEPOINT s; CALL holdfast_fence.enter('public.few', 'b', 5); ROLLBACK TO s;
    UPDATE few SET id = 0 WHERE k = 'a'; COMMIT;"
is "$rc" 0 "postgres: and the first is still there"
done_testing
