#!/bin/bash
# Every cell of the tables in docs/fencing.md, executed: what the page says is what the databases do.
# (run: once)
# run: first
# shellcheck disable=SC2119 # arguments are for those who want to say more
set -u
# shellcheck source=tests/fence/fence.sh
. "$(dirname "$0")/fence.sh"
start_databases || { echo "Bail out! no databases"; exit 1; }

# ---- the writes, by the words of the first column ----

# The write of a row of table "guard", as SQL for a dialect. The table is t(id, v), with rows 1 and 2;
# parent(id) is referenced by child t2 where that is needed. Empty: there is no such thing.
guard_write() { # DIALECT ROW
    case "$1/$2" in
    */INSERT) echo "INSERT INTO t VALUES (3, 99);" ;;
    mariadb/upsert) echo "INSERT INTO t VALUES (1, 99) ON DUPLICATE KEY UPDATE v = 99;" ;;
    */upsert) echo "INSERT INTO t VALUES (1, 99) ON CONFLICT (id) DO UPDATE SET v = 99;" ;;
    'sqlite/INSERT OR REPLACE, REPLACE') echo "INSERT OR REPLACE INTO t VALUES (1, 99);" ;;
    'mariadb/INSERT OR REPLACE, REPLACE') echo "REPLACE INTO t VALUES (1, 99);" ;;
    'sqlite/INSERT OR IGNORE, INSERT IGNORE') echo "INSERT OR IGNORE INTO t VALUES (3, 99);" ;;
    'mariadb/INSERT OR IGNORE, INSERT IGNORE') echo "INSERT IGNORE INTO t VALUES (3, 99);" ;;
    */UPDATE) echo "UPDATE t SET v = 99 WHERE id = 1;" ;;
    'sqlite/UPDATE OR REPLACE') echo "UPDATE OR REPLACE t SET id = 2 WHERE id = 1;" ;;
    */DELETE) echo "DELETE FROM t WHERE id = 1;" ;;
    */'DELETE of every row') echo "DELETE FROM t;" ;;
    postgres/TRUNCATE | mariadb/TRUNCATE) echo "TRUNCATE t;" ;;
    'postgres/COPY, .import, LOAD DATA') printf 'COPY t FROM stdin;\n3\t99\n\\.\n' ;;
    'sqlite/COPY, .import, LOAD DATA')
        echo '3|99' >"$SQL_DIR/rows"
        printf '.separator |\n.import %s t\n' "$SQL_DIR/rows"
        ;;
    'mariadb/COPY, .import, LOAD DATA')
        printf '3\t99\n' >"$SQL_DIR/rows"
        echo "LOAD DATA LOCAL INFILE '$SQL_DIR/rows' INTO TABLE t;"
        ;;
    postgres/MERGE) echo "MERGE INTO t USING (VALUES (1)) AS s(id) ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET v = 99;" ;;
    'postgres/WITH ... UPDATE') echo "WITH w AS (UPDATE t SET v = 99 RETURNING id) SELECT count(*) FROM w;" ;;
    'mariadb/UPDATE of two tables') echo "UPDATE t, other SET t.v = 99, other.v = 99 WHERE t.id = other.id;" ;;
    */'through a view') echo "UPDATE t_view SET v = 99;" ;;
    */'from a trigger of another table') echo "INSERT INTO other VALUES (7, 99);" ;;
    'postgres/from a function or procedure') echo "SELECT touch_t();" ;;
    'mariadb/from a function or procedure') echo "CALL touch_t();" ;;
    sqlite/'ON DELETE CASCADE') echo "PRAGMA foreign_keys = ON; DELETE FROM parent WHERE id = 1;" ;;
    */'ON DELETE CASCADE') echo "DELETE FROM parent WHERE id = 1;" ;;
    sqlite/'ON UPDATE CASCADE') echo "PRAGMA foreign_keys = ON; UPDATE parent SET id = 5 WHERE id = 1;" ;;
    */'ON UPDATE CASCADE') echo "UPDATE parent SET id = 5 WHERE id = 1;" ;;
    'postgres/session_replication_role = replica')
        echo "SET session_replication_role = replica; UPDATE t SET v = 99;" ;;
    sqlite/'foreign_key_checks = 0, foreign_keys = OFF')
        echo "PRAGMA foreign_keys = OFF; BEGIN;
            INSERT INTO holdfast_enter (resource, token) VALUES ('t', 34); UPDATE t SET v = 99; COMMIT;" ;;
    mariadb/'foreign_key_checks = 0, foreign_keys = OFF')
        echo "SET foreign_key_checks = 0; UPDATE t SET v = 99;" ;;
    sqlite/'after ROLLBACK TO a savepoint before enter')
        echo "PRAGMA foreign_keys = ON; BEGIN; SAVEPOINT s;
            INSERT INTO holdfast_enter (resource, token) VALUES ('t', 34);
            ROLLBACK TO s; UPDATE t SET v = 99; COMMIT;" ;;
    postgres/'after ROLLBACK TO a savepoint before enter')
        echo "BEGIN; SAVEPOINT s; CALL holdfast_fence.enter('t', 34); ROLLBACK TO s; UPDATE t SET v = 99; COMMIT;" ;;
    mariadb/'after ROLLBACK TO a savepoint before enter')
        echo "BEGIN; SAVEPOINT s; CALL holdfast_enter('t', 34); ROLLBACK TO s; UPDATE t SET v = 99; COMMIT;" ;;
    */'in the next transaction of a session that entered')
        enter_sql "$1" t 34
        leave_sql "$1"
        echo "BEGIN; UPDATE t SET v = 99; COMMIT;"
        ;;
    */'after a refused enter, in a session that had entered') # the client goes on after the error
        [ "$1" = postgres ] && echo '\set ON_ERROR_STOP off'
        enter_sql "$1" t 34
        leave_sql "$1"
        enter_sql "$1" t 32
        [ "$1" = postgres ] && echo "ROLLBACK; BEGIN;"
        echo "UPDATE t SET v = 99; COMMIT;"
        ;;
    postgres/'triggers switched off') echo "ALTER TABLE t DISABLE TRIGGER ALL; UPDATE t SET v = 99;" ;;
    sqlite/'triggers switched off') printf '.dbconfig enable_trigger off\nUPDATE t SET v = 99;\n' ;;
    postgres/'a partition, by its own name') echo "UPDATE t_part SET v = 99;" ;;
    postgres/'a partition that is fenced, through its parent' | postgres/'a child that is fenced, through its parent')
        echo "UPDATE above SET v = 99;" ;;
    postgres/'a partition that came later, by its own name')
        echo "CREATE TABLE t_new PARTITION OF t FOR VALUES FROM (10) TO (20); INSERT INTO t_new VALUES (10, 99);" ;;
    postgres/'TRUNCATE of a partition that came later, by its own name')
        echo "TRUNCATE t_new;" ;;
    postgres/'a child (INHERITS), by its own name') echo "UPDATE t_child SET v = 99;" ;;
    postgres/'a child that came later, by its own name')
        echo "CREATE TABLE t_new () INHERITS (t); INSERT INTO t_new VALUES (10, 99);" ;;
    postgres/'after enter outside of a transaction') echo "CALL holdfast_fence.enter('t', 34); UPDATE t SET v = 99;" ;;
    sqlite/'after enter outside of a transaction') echo "PRAGMA foreign_keys = ON;
        INSERT INTO holdfast_enter (resource, token) VALUES ('t', 34); UPDATE t SET v = 99;" ;;
    mariadb/'after enter outside of a transaction') echo "CALL holdfast_enter('t', 34); UPDATE t SET v = 99;" ;;
    postgres/'DROP TABLE') echo "DROP TABLE t CASCADE;" ;;
    */'DROP TABLE') echo "DROP TABLE t;" ;;
    esac
}

# Rows with two sessions: what the other one does first, and while it is at work.
two_sessions() { # DIALECT ROW
    case "$2" in
    'in the next transaction, when another session has entered since')
        { enter_sql "$1" t 34; leave_sql "$1"; } | sql "$1" >/dev/null
        new_words
        sql "$1" <"$SQL_DIR/words" >"$SQL_DIR/answer" 2>&1 &
        local first=$!
        exec 8>"$SQL_DIR/words"
        { enter_sql "$1" t 34; leave_sql "$1"; echo "SELECT 'entered';"; } >&8
        within 20 grep -q entered "$SQL_DIR/answer"
        { enter_sql "$1" t 35; leave_sql "$1"; } | sql "$1" >/dev/null
        echo "UPDATE t SET v = 99;" >&8
        exec 8>&-
        wait "$first"
        cat "$SQL_DIR/answer" >&2
        rm -f "$SQL_DIR/words"
        ;;
    'in another session, while one that entered is at work')
        new_words
        sql "$1" <"$SQL_DIR/words" >"$SQL_DIR/answer" 2>&1 &
        local first=$!
        exec 8>"$SQL_DIR/words"
        { enter_sql "$1" t 34; echo "SELECT 'entered';"; } >&8
        within 20 grep -q entered "$SQL_DIR/answer"
        # It either waits for the first to end, or is refused at once; never written.
        sql "$1" <<<"UPDATE t SET v = 99;" >"$SQL_DIR/late" 2>&1 &
        local second=$!
        sleep 0.3
        leave_sql "$1" >&8
        exec 8>&-
        wait "$first" "$second"
        cat "$SQL_DIR/late" >&2
        rm -f "$SQL_DIR/words"
        ;;
    *) return 1 ;;
    esac
}

# ---- the tables before each write ----

drop_all() {
    case $1 in
    sqlite) rm -f "$SQL_DIR/app.db" ;;
    postgres) echo "DROP TABLE IF EXISTS t, above, parent, other CASCADE; DROP FUNCTION IF EXISTS touch_t, other_t;
        DROP SCHEMA IF EXISTS holdfast_fence CASCADE;" | pg ;;
    mariadb) echo "DROP DATABASE app; CREATE DATABASE app;" | maria ;;
    esac
}

make_tables() { # DIALECT ROW
    local engine='' references='' partition='' after=''
    [ "$1" = mariadb ] && engine='ENGINE = InnoDB'
    case $1/$2 in
    */*CASCADE) references=', FOREIGN KEY (id) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE' ;;
    postgres/'a partition that is fenced'*)
        echo "CREATE TABLE above (id INT, v INT) PARTITION BY RANGE (id);"
        after="ALTER TABLE above ATTACH PARTITION t FOR VALUES FROM (0) TO (10);"
        ;;
    postgres/'a child that is fenced'*)
        echo "CREATE TABLE above (id INT, v INT);"
        after="ALTER TABLE t INHERIT above;"
        ;;
    postgres/'a child (INHERITS)'*)
        after="CREATE TABLE t_child () INHERITS (t); INSERT INTO t_child VALUES (3, 30);" ;;
    postgres/*'a partition'*)
        partition='PARTITION BY RANGE (id)'
        after="CREATE TABLE t_part PARTITION OF t FOR VALUES FROM (0) TO (10);"
        ;;
    esac
    echo "CREATE TABLE parent (id INT PRIMARY KEY) $engine; INSERT INTO parent VALUES (1), (2);
        CREATE TABLE t (id INT PRIMARY KEY, v INT $references) $engine $partition; $after"
    echo "CREATE TABLE other (id INT PRIMARY KEY, v INT) $engine; INSERT INTO other VALUES (1, 0);
        INSERT INTO t VALUES (1, 10), (2, 20);"
    case "$1" in
    postgres) echo "CREATE VIEW t_view AS SELECT * FROM t;
        CREATE FUNCTION touch_t() RETURNS void LANGUAGE sql AS 'UPDATE t SET v = 99';
        CREATE FUNCTION other_t() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE t SET v = 99; RETURN NULL; END';
        CREATE TRIGGER other_t AFTER INSERT ON other FOR EACH ROW EXECUTE FUNCTION other_t();" ;;
    sqlite) echo "CREATE VIEW t_view AS SELECT * FROM t;
        CREATE TRIGGER t_view_update INSTEAD OF UPDATE ON t_view BEGIN UPDATE t SET v = NEW.v WHERE id = NEW.id; END;
        CREATE TRIGGER other_t AFTER INSERT ON other BEGIN UPDATE t SET v = 99; END;" ;;
    mariadb) echo "CREATE VIEW t_view AS SELECT * FROM t; CREATE PROCEDURE touch_t() UPDATE t SET v = 99;
        CREATE TRIGGER other_t AFTER INSERT ON other FOR EACH ROW UPDATE t SET v = 99;" ;;
    esac
}

# ---- one cell ----

guard_cell() { # DIALECT ROW
    local before after write mode
    drop_all "$1"
    make_tables "$1" "$2" | sql "$1" || return 1
    { fence sql --dialect "$1" --table t --resource t; } | sql "$1" || return 1
    { enter_sql "$1" t 33; leave_sql "$1"; } | sql "$1" >/dev/null || return 1
    case $1/$2 in
    postgres/'TRUNCATE of a partition that came later'*)
        echo "CREATE TABLE t_new PARTITION OF t FOR VALUES FROM (10) TO (20); BEGIN;
            CALL holdfast_fence.enter('t', 34); INSERT INTO t_new VALUES (10, 99); COMMIT;" | pg ;;
    esac
    before=$(contents "$1")
    write=$(guard_write "$1" "$2")
    if [ -n "$write" ]; then
        case $2 in *'refused enter'*) mode=go_on ;; *) mode=stop ;; esac
        on_error=$mode sql "$1" <<<"$write" >/dev/null 2>"$SQL_DIR/error"
    else
        two_sessions "$1" "$2" 2>"$SQL_DIR/error" || { echo -; return; }
    fi
    after=$(contents "$1")
    answer "$SQL_DIR/error" "$before" "$after"
}

row_write() { # DIALECT ROW
    case "$1/$2" in
    */'UPDATE with a lower fence_token') echo "UPDATE t SET v = 99, fence_token = 33 WHERE id = 1;" ;;
    */'UPDATE with an equal fence_token') echo "UPDATE t SET v = 99, fence_token = 34 WHERE id = 1;" ;;
    */'UPDATE with a higher fence_token') echo "UPDATE t SET v = 99, fence_token = 35 WHERE id = 1;" ;;
    */'UPDATE with fence_token 0') echo "UPDATE t SET v = 99, fence_token = 0 WHERE id = 1;" ;;
    */'UPDATE that does not say fence_token') echo "UPDATE t SET v = 99 WHERE id = 1;" ;;
    mariadb/'upsert with a lower fence_token')
        echo "INSERT INTO t VALUES (1, 99, 33) ON DUPLICATE KEY UPDATE v = 99, fence_token = 33;" ;;
    */'upsert with a lower fence_token')
        echo "INSERT INTO t VALUES (1, 99, 33) ON CONFLICT (id) DO UPDATE SET v = 99, fence_token = 33;" ;;
    */INSERT) echo "INSERT INTO t (id, v) VALUES (3, 99);" ;;
    sqlite/'INSERT OR REPLACE, REPLACE') echo "INSERT OR REPLACE INTO t (id, v) VALUES (1, 99);" ;;
    mariadb/'INSERT OR REPLACE, REPLACE') echo "REPLACE INTO t (id, v) VALUES (1, 99);" ;;
    */DELETE) echo "DELETE FROM t WHERE id = 1;" ;;
    postgres/TRUNCATE | mariadb/TRUNCATE) echo "TRUNCATE t;" ;;
    esac
}

row_cell() { # DIALECT ROW
    local before after write said
    drop_all "$1"
    make_tables "$1" "$2" | sql "$1" || return 1
    { fence sql --dialect "$1" --table t --per-row; } | sql "$1" || return 1
    sql "$1" <<<"UPDATE t SET fence_token = 34;" || return 1
    before=$(contents "$1")
    write=$(row_write "$1" "$2")
    [ -n "$write" ] || { echo -; return; }
    sql "$1" <<<"$write" >/dev/null 2>"$SQL_DIR/error"
    after=$(contents "$1")
    said=$(answer "$SQL_DIR/error" "$before" "$after")
    case $2 in *equal* | *higher*) [ "$said" = 'not covered' ] && said=admitted ;; esac
    echo "$said"
}

# ---- the tables of the page ----

for table in guard row; do
    while IFS='|' read -r row postgres sqlite mariadb; do
        is "$("${table}_cell" postgres "$row")" "$postgres" "$table: PostgreSQL: $row: $postgres"
        is "$("${table}_cell" sqlite "$row")" "$sqlite" "$table: SQLite: $row: $sqlite"
        is "$("${table}_cell" mariadb "$row")" "$mariadb" "$table: MariaDB: $row: $mariadb"
    done < <(rows_of "$table")
done
[ "$tests" -ge 100 ]
ok $? "the page has tables with $tests cells"
done_testing
