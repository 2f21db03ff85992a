#!/bin/bash
# The databases that commands work in: rows, parameters, errors and time limits, by the plugins that are
# found where stores are.
# shellcheck source=tests/fence/fence.sh
. "$(dirname "$0")/../fence/fence.sh"
tool=${BUILD:-$root/build}/tests/dbs/tool_db
export HOLDFAST_STORE_PATH=${BUILD:-$root/build}/stores
case $HOLDFAST_STORE_PATH in /*) ;; *) HOLDFAST_STORE_PATH=$PWD/$HOLDFAST_STORE_PATH ;; esac

start_databases || { echo 'Bail out! no databases'; exit 1; }
sqlite3 "$SQL_DIR/app.db" 'VACUUM'
postgres="postgres://owner@/postgres?host=$SQL_DIR/pg"
sqlite="sqlite:$SQL_DIR/app.db"
mariadb="mariadb://root@/app?socket=$SQL_DIR/maria/sock"

db() { out=$("$tool" "$@" 2>&1); }

for dialect in postgres sqlite mariadb; do
    url=${!dialect}
    case $dialect in
    postgres) a='$1' b='$2' long=text bytes="'\x00ff'::bytea" ;;
    sqlite) a='?' b='?' long=text bytes="x'00ff'" ;;
    mariadb) a='?' b='?' long=longtext bytes="x'00ff'" ;;
    esac

    db "$url" 20000 'CREATE TABLE d (id integer, v text)' \
        '?' "INSERT INTO d VALUES ($a, $b)" =1 =one run =2 NULL run =3 = run =4 $'=a\nb|' run \
        '?' 'SELECT id, v FROM d ORDER BY id' run
    is "$out" $'changed 1\nchanged 1\nchanged 1\nchanged 1\n1|one\n2|(null)\n3|\n4|a\\0ab|' \
        "$dialect: rows come out as they went in, prepared once"

    db "$url" 20000 '?' "SELECT v FROM d WHERE id = 99 AND v = $a" =x run '?' 'DELETE FROM d WHERE id > 2' run
    is "$out" 'changed 2' "$dialect: no rows are no rows; a DELETE says how many"

    db "$url" 20000 '!' "SELECT 'a', NULL, $bytes, ''" '!' 'SELECT v FROM d WHERE id = 99' \
        '!' "UPDATE d SET v = 'two' WHERE id = 2" '!' 'SELECT v FROM d ORDER BY id'
    is "$out" $'a|(null)|\\00\\ff|\nchanged 1\none\ntwo' "$dialect: a statement that is run once answers, too, with bytes as they are"

    db "$url" 60000 "CREATE TABLE big (v $long)" '?' "INSERT INTO big VALUES ($a)" long 3000000 run long 5 run '?' 'SELECT v FROM big ORDER BY v' run
    is "$out" $'changed 1\nchanged 1\nxxxxx\n3000000 bytes, 3000000 of them x' "$dialect: a cell of 3 MB"

    db "$url" 20000 BEGIN '?' 'DELETE FROM d' run ROLLBACK '?' 'SELECT count(*) FROM d' run
    is "$out" $'changed 2\n2' "$dialect: transactions are plain SQL"

    db "$url" 20000 '?' 'SELECT nonsense FROM d' 'SELEC' '?' 'SELECT 7' run
    like "$out" 'HF_INVALID .*nonsense' "$dialect: what the engine refuses is refused"
    is "$(tail -n 1 <<<"$out")" 7 "$dialect: and the connection goes on"
done

db "$postgres" 20000 '?' 'SELECT 1 / $1::integer' =0 run
like "$out" 'HF_INVALID 22012 ' 'PostgreSQL: with its SQLSTATE'
# Numbers and uuids come as bytes, and are texts here.
types="SELECT 9223372036854775807, (-9223372036854775808)::bigint, 2147483647, (-2147483648)::int, 32767::smallint,
    (-32768)::smallint, 0, -1, NULL::bigint, '00000000-0000-0000-0000-000000000000'::uuid,
    'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid, '01234567-89ab-cdef-fedc-ba9876543210'::uuid, NULL::uuid"
texts='9223372036854775807|-9223372036854775808|2147483647|-2147483648|32767|-32768|0|-1|(null)'
texts+='|00000000-0000-0000-0000-000000000000|ffffffff-ffff-ffff-ffff-ffffffffffff|01234567-89ab-cdef-fedc-ba9876543210|(null)'
db "$postgres" 20000 '!' "$types" '?' "$types" run
is "$out" "$texts"$'\n'"$texts" 'PostgreSQL: numbers and uuids up to their limits, executed and prepared'
db "$mariadb" 20000 "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'holdfast stale'"
like "$out" 'HF_INVALID 45000 .*holdfast stale' 'MariaDB: with its SQLSTATE'
db "$sqlite" 20000 'CREATE TABLE once (id integer PRIMARY KEY)' 'INSERT INTO once VALUES (1)' 'INSERT INTO once VALUES (1)'
like "$out" 'HF_INVALID - .*UNIQUE constraint failed' 'SQLite: with its words'
maria --delimiter=// app <<<'CREATE PROCEDURE two() BEGIN SELECT 1; SELECT 2; END'
db "$mariadb" 20000 '?' 'CALL two()' run '?' 'SELECT 3' run
is "$out" $'1\n3' 'MariaDB: a procedure that answers twice leaves the connection in order'

# Time limits. What was given up leaves no connection, and nothing that waits.
db "$postgres" 700 'SELECT pg_sleep(60)' 'SELECT 1'
like "${out//$'\n'/ }" '^HF_UNKNOWN - .*no answer in time.* HF_UNREACHABLE' 'PostgreSQL: no longer than was said'
db "$mariadb" 700 'DO SLEEP(60)' 'SELECT 1'
like "${out//$'\n'/ }" '^HF_UNKNOWN - .*no answer in time.* HF_UNREACHABLE' 'MariaDB: no longer than was said'
db "$mariadb" 700 '?' 'SELECT SLEEP(60)' run run
like "${out//$'\n'/ }" '^HF_UNKNOWN - .*no answer in time.* HF_UNREACHABLE' 'MariaDB: nor for a prepared one'
db "$sqlite" 700 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n' \
    '?' 'SELECT 1' run
like "${out//$'\n'/ }" '^HF_BUSY.*interrupted 1$' 'SQLite: no longer than was said, and it goes on'

# Others in the way.
coproc locker { sqlite3 "$SQL_DIR/app.db"; }
pid=${locker_PID:?} # the shell forgets it as soon as it has ended
echo "BEGIN IMMEDIATE; SELECT 'locked';" >&"${locker[1]}"
read -r -t 20 <&"${locker[0]}"
db "$sqlite" 500 'DELETE FROM d'
like "$out" 'HF_BUSY.*locked' 'SQLite: a database that another has locked is busy'
echo .quit >&"${locker[1]}"
wait "$pid"
db "$postgres" 20000 "DO \$\$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '55P03'; END \$\$"
like "$out" 'HF_BUSY 55P03' 'PostgreSQL: a lock that was not to be had is busy'
db "$postgres" 20000 "DO \$\$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '25P03'; END \$\$"
like "$out" 'HF_UNREACHABLE 25P03' 'PostgreSQL: a session that was ended while it was idle is gone'
db "$mariadb" 20000 'SET innodb_lock_wait_timeout = 1' "SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213"
like "$out" 'HF_BUSY 40001' 'MariaDB: a deadlock is busy'

# Not there.
db "postgres://owner:geheim@/postgres?host=$SQL_DIR/none" 3000
like "$out" '^HF_UNREACHABLE' 'PostgreSQL: no server'
unlike "$out" geheim 'and no password in the error'
db "mariadb://root:geheim@/app?socket=$SQL_DIR/none" 3000
like "$out" '^HF_UNREACHABLE' 'MariaDB: no server'
unlike "$out" geheim 'and no password in the error'
db "sqlite:$SQL_DIR/none.db" 3000
like "$out" '^HF_UNREACHABLE.*unable to open' 'SQLite: no file'
is "$(ls "$SQL_DIR/none.db" 2>/dev/null)" '' 'and it is not made'
db sqlite: 3000
like "$out" '^HF_INVALID.*sqlite:PATH' 'SQLite: no path'
db sqlite::memory: 3000
like "$out" '^HF_INVALID.*sqlite:PATH' 'SQLite: nothing but a file'
printf 'this is a text, and no database at all%.0s\n' {1..99} >"$SQL_DIR/text"
db "sqlite:$SQL_DIR/text" 3000
like "$out" '^HF_CORRUPT.*not a database' 'SQLite: a file that is no database'
db 'postgres://owner:geheim@[::1]x/postgres' 3000
like "$out" '^HF_INVALID.*libpq understands' 'PostgreSQL: a URL that makes no sense'
unlike "$out" geheim 'and no password in the error'
db "mariadb://nobody:geheim@/app?socket=$SQL_DIR/maria/sock" 3000
like "$out" '^HF_DENIED' 'MariaDB: a user who may not'
db "postgres://stranger@/postgres?host=$SQL_DIR/pg" 3000
like "$out" '^HF_DENIED' 'PostgreSQL: a role that is not there'
db "mariadb://root@/nothing?socket=$SQL_DIR/maria/sock" 3000
like "$out" '^HF_INVALID.*nothing' 'MariaDB: no such database'
db "redis://localhost" 3000
like "$out" '^HF_INVALID.*not a database' 'a store is no database'
db "mariadb://u:p/w@host/app" 3000
like "$out" '^HF_INVALID.*%2F' 'a password that hides the hosts'
unlike "$out" 'p/w' 'is not shown'
done_testing
