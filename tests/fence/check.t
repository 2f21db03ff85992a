#!/bin/bash
# `holdfast fence check`: a fence that is whole, and everything that takes it away without a word. (run: once)
# shellcheck disable=SC2119 # arguments are for those who want to say more
set -u
# shellcheck source=tests/fence/fence.sh
. "$(dirname "$0")/fence.sh"
# shellcheck source=tests/fence/redis.sh
. "$(dirname "$0")/redis.sh"
REDIS_DIR=
trap '[ -z "$REDIS_DIR" ] || redis_end; sql_end; cleanup' EXIT
start_databases || { echo "Bail out! no databases"; exit 1; }
python=python3
[ ! -x /usr/bin/python3 ] || python=/usr/bin/python3

store=file:$dir/store
pg_url="postgres://owner@/postgres?host=$SQL_DIR/pg"
maria_url="mariadb://root@/app?socket=$SQL_DIR/maria/sock"
url_of() {
    case $1 in
    postgres) echo "$pg_url" ;;
    sqlite) echo "sqlite:$SQL_DIR/app.db" ;;
    mariadb) echo "$maria_url" ;;
    esac
}
check() { # DIALECT [option...]
    local d=$1
    shift
    out=$("$hf" --store "$store" fence check --db "$(url_of "$d")" --table t "$@" 2>"$SQL_DIR/err")
    rc=$?
    err=$(cat "$SQL_DIR/err")
}
found() { # LEVEL CHECK PATTERN WHAT : it was found, and there is a remedy
    is "$rc" 1 "$4: exit 1"
    like "$out" "^$1: $2: .*$3" "$4"
    like "$out" '^    remedy: .' "$4: and what to do"
}

whole() { # DIALECT : a fenced table, and servers as the docs want them
    local engine=''
    [ "$1" = mariadb ] && engine='ENGINE = InnoDB'
    case $1 in
    postgres) echo "DROP TABLE IF EXISTS t, t2 CASCADE; DROP SCHEMA IF EXISTS holdfast_fence CASCADE;
        ALTER DATABASE postgres SET idle_in_transaction_session_timeout = '15s';" | pg ;;
    sqlite) rm -f "$SQL_DIR/app.db" ;;
    mariadb) echo "DROP DATABASE app; CREATE DATABASE app; SET GLOBAL idle_write_transaction_timeout = 15;" | maria ;;
    esac
    echo "CREATE TABLE t (id INT PRIMARY KEY, v INT, k VARCHAR(20)) $engine; INSERT INTO t VALUES (1, 1, 'a');" | sql "$1"
    migrate "$1"
}
migrate() { # DIALECT [option...]
    local d=$1
    shift
    fence sql --dialect "$d" --table t "$@" | sql "$d"
}

for d in postgres sqlite mariadb; do
    resource=t
    [ $d != postgres ] || resource=public.t
    case $d in sqlite) rm -f "$SQL_DIR/app.db"; sqlite3 "$SQL_DIR/app.db" VACUUM ;; esac
    check $d
    found problem installed 'there is no table' "$d: no such table"
    echo "CREATE TABLE t (id INT PRIMARY KEY);" | sql $d
    check $d
    found problem installed 'not fenced' "$d: a table without a fence"
    like "$out" "remedy: .*holdfast fence sql --dialect $d --table t \|" "$d: the remedy is the migration"

    whole $d
    check $d
    is "$rc" 0 "$d: a fence that is whole"
    [ "$rc" = 0 ] || diag "$out" "$err"
    like "$out" "^note: installed: fenced, as resource \"$resource\"" "$d: and what it is called"
    check $d --json
    is "$(jq -r .ok <<<"$out")" true "$d: as JSON"
    is "$(jq -r '.findings[] | select(.level == "problem")' <<<"$out")" '' "$d: without problems"

    # Whose tokens.
    id=$(HOLDFAST_STORE=$store "$hf" fence write "$dir/probe" --token 1 </dev/null && "$hf" fence show "$dir/probe" --json | jq -r .issuer)
    case $d in
    postgres) ask $d "BEGIN; CALL holdfast_fence.enter_from('$resource', 5, '$id'); COMMIT;" ;;
    sqlite) ask $d "PRAGMA foreign_keys = ON; BEGIN; INSERT INTO holdfast_enter (resource, token, issuer) VALUES ('t', 5, '$id');
        DELETE FROM holdfast_entered; COMMIT;" ;;
    mariadb) ask $d "START TRANSACTION; CALL holdfast_enter_from('t', 5, '$id'); COMMIT;" ;;
    esac
    check $d
    is "$rc" 0 "$d: marks of the store in use"
    [ "$rc" = 0 ] || diag "$out" "$err"
    store=file:$dir/other check $d
    found problem issuer 'follows id:file:[0-9a-f]+, the store in use is id:file:' "$d: marks of another store"
    store=redis://127.0.0.1:1 check $d
    is "$rc" 69 "$d: a store that cannot be asked: nothing is said about it"
    out=$(env -u HOLDFAST_STORE "$hf" fence check --db "$(url_of $d)" --table t)
    is "$?" 0 "$d: without a store the marks are not compared"
    like "$out" '^note: issuer: .*not compared' "$d: and that is said"

    # Another version; parts that are missing.
    case $d in
    postgres) sql $d <<<"CREATE OR REPLACE FUNCTION holdfast_fence.version() RETURNS integer LANGUAGE sql AS 'SELECT 1';" ;;
    sqlite) sql $d <<<"DROP VIEW holdfast_fence_version; CREATE VIEW holdfast_fence_version (version) AS SELECT 1;" ;;
    mariadb) sql $d <<<"CREATE OR REPLACE FUNCTION holdfast_fence_version() RETURNS INT DETERMINISTIC NO SQL RETURN 1;" ;;
    esac
    check $d
    found problem version 'of version 1, this holdfast.s are of [23]' "$d: shared functions of another version"
    migrate $d
    check $d
    is "$rc" 0 "$d: the remedy helps"
    case $d in
    postgres) sql $d <<<"DROP PROCEDURE holdfast_fence.enter(text, bigint);" ;;
    sqlite) sql $d <<<"DROP TRIGGER holdfast_fence_rise;" ;;
    mariadb) sql $d <<<"DROP PROCEDURE holdfast_refuse;" ;;
    esac
    check $d
    found problem version missing "$d: a shared function that is missing"
    migrate $d
    case $d in
    postgres) sql $d <<<"DELETE FROM holdfast_fence.mark;" ;;
    sqlite) sql $d <<<"DELETE FROM holdfast_fence;" ;;
    mariadb) sql $d <<<"DELETE FROM holdfast_fence;" ;;
    esac
    check $d
    found problem installed 'no mark' "$d: a mark that is missing"
    case $d in
    postgres) sql $d <<<"DROP TRIGGER holdfast_guard_row ON t;" ;;
    sqlite) sql $d <<<"DROP TRIGGER holdfast_update_t;" ;;
    mariadb) sql $d <<<"$(echo 'SHOW TRIGGERS' | maria app | awk '/holdfast_update/ { print "DROP TRIGGER " $1 ";" }')" ;;
    esac
    check $d
    found problem covered 'UPDATE.* of t is not covered' "$d: a trigger that is missing"

    # Per key and per row.
    whole $d
    case $d in
    postgres) sql $d <<<"DROP SCHEMA holdfast_fence CASCADE;" ;;
    *) fence sql --dialect $d --table t --down --last | sql $d ;;
    esac
    migrate $d --key-column k
    check $d
    is "$rc" 0 "$d: a fence per key that is whole"
    like "$out" 'fenced per key' "$d: and it says so"
    [ "$rc" = 0 ] || diag "$out" "$err"
    whole $d
    case $d in
    postgres) sql $d <<<"DROP SCHEMA holdfast_fence CASCADE;" ;;
    *) fence sql --dialect $d --table t --down --last | sql $d ;;
    esac
    migrate $d --per-row
    check $d
    is "$rc" 0 "$d: a fence per row that is whole"
    like "$out" 'fenced per row' "$d: and it says so"
    [ "$rc" = 0 ] || diag "$out" "$err"
done

# ---- PostgreSQL ----
whole postgres
sql postgres <<<"ALTER TABLE t DISABLE TRIGGER ALL;"
check postgres
found problem enabled 'trigger holdfast_guard of t is switched off' 'postgres: triggers that are switched off'
sql postgres <<<"$(sed -n 's/^    remedy: \(ALTER.*\)/\1;/p' <<<"$out")"
check postgres
is "$rc" 0 'postgres: the remedy helps'

"$SQL_PG_BIN/pg_dump" -h "$SQL_DIR/pg" -U owner -Fc postgres >"$SQL_DIR/dump"
pg <<<"CREATE DATABASE again;"
"$SQL_PG_BIN/pg_restore" -h "$SQL_DIR/pg" -U owner -d again --schema-only "$SQL_DIR/dump"
"$SQL_PG_BIN/pg_restore" -h "$SQL_DIR/pg" -U owner -d again --data-only --disable-triggers "$SQL_DIR/dump"
out=$("$hf" --store "$store" fence check --db "postgres://owner@/again?host=$SQL_DIR/pg" --table t) rc=$?
found problem enabled 'does not fire where session_replication_role is replica' 'postgres: after pg_restore --disable-triggers'
pg <<<"DROP DATABASE again;"

for kind in partition child; do
    whole postgres
    case $kind in
    partition) pg <<<"DROP TABLE t; CREATE TABLE t (id INT, v INT) PARTITION BY RANGE (id);
        CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (0) TO (10);" ;;
    child) pg <<<"CREATE TABLE t2 () INHERITS (t);" ;;
    esac
    migrate postgres
    check postgres
    is "$rc" 0 "postgres: every $kind is covered"
    [ "$rc" = 0 ] || diag "$out"
    case $kind in
    partition) pg <<<"CREATE TABLE t3 PARTITION OF t FOR VALUES FROM (10) TO (20);" ;;
    child) pg <<<"CREATE TABLE t3 () INHERITS (t);" ;;
    esac
    check postgres
    found problem covered 'TRUNCATE.* of t3 is not covered' "postgres: a $kind that came later"
    migrate postgres
    check postgres
    is "$rc" 0 "postgres: the remedy helps"
done

whole postgres
pg <<<"CREATE ROLE app LOGIN; CREATE ROLE late LOGIN; CREATE ROLE nosy LOGIN; CREATE SCHEMA \"My S\";
    GRANT SELECT, UPDATE ON t TO app; CREATE TABLE \"My S\".\"T 1\" (id INT);"
migrate postgres
check postgres
like "$out" '^note: roles: roles that may enter: app$' 'postgres: who may enter'
pg <<<"GRANT UPDATE (v) ON t TO late;"
check postgres
found problem roles 'role late may write, and not enter' 'postgres: a writer that came later'
pg <<<"REVOKE UPDATE (v) ON t FROM late; GRANT USAGE ON SCHEMA holdfast_fence TO nosy;"
check postgres
found problem roles 'role nosy may enter, .* but writes no fenced table' 'postgres: one who may lock the others out'
pg <<<"REVOKE USAGE ON SCHEMA holdfast_fence FROM nosy; ALTER DATABASE postgres RESET idle_in_transaction_session_timeout;"
check postgres
found problem timeouts 'idle_in_transaction_session_timeout is off for app' 'postgres: no limit for who freezes'
pg <<<"ALTER ROLE app SET idle_in_transaction_session_timeout = '15s';"
check postgres
is "$rc" 0 'postgres: the remedy helps'
pg <<<"ALTER ROLE app SET holdfast.enter_wait = '0';"
check postgres
found problem timeouts 'enter waits without limit' 'postgres: no limit for who waits'
pg <<<"ALTER ROLE app RESET ALL; ALTER DATABASE postgres SET idle_in_transaction_session_timeout = '15s';"
out=$("$hf" --store "$store" fence check --db "postgres://app@/postgres?host=$SQL_DIR/pg" --table t) rc=$?
found problem installed 'permission denied' 'postgres: who may not look says so, and not that all is well'
out=$("$hf" --store "$store" fence check --db "$pg_url" --schema 'My S' --table 'T 1') rc=$?
found problem installed '"My S"."T 1" is not fenced' 'postgres: a schema, and names that need quotes'
like "$out" "remedy: .* --schema 'My S' --table 'T 1' \|" 'postgres: also in the remedy'

# ---- SQLite: tools that change a table make it anew ----
whole sqlite
cat >"$SQL_DIR/alter.py" <<'PY'
import sys
import django
from django.conf import settings
settings.configure(INSTALLED_APPS=[], DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": sys.argv[1]}})
django.setup()
from django.db import connection, models
class T(models.Model):
    id = models.IntegerField(primary_key=True)
    v = models.IntegerField(null=True)
    class Meta:
        app_label = "t"
        db_table = "t"
with connection.schema_editor() as editor:
    new = models.BigIntegerField(null=True)
    new.set_attributes_from_name("v")
    new.model = T
    editor.alter_field(T, T._meta.get_field("v"), new, strict=False)
PY
"$python" "$SQL_DIR/alter.py" "$SQL_DIR/app.db" 2>"$SQL_DIR/err" || diag "$(cat "$SQL_DIR/err")"
check sqlite
found problem installed 'not fenced: if it was, it has been made anew' 'sqlite: after an AlterField of Django'
whole sqlite
"$python" - "$SQL_DIR/app.db" <<'PY' 2>"$SQL_DIR/err" || diag "$(cat "$SQL_DIR/err")"
import sys, sqlalchemy
from alembic.migration import MigrationContext
from alembic.operations import Operations
engine = sqlalchemy.create_engine("sqlite:///" + sys.argv[1])
with engine.begin() as connection:
    op = Operations(MigrationContext.configure(connection))
    with op.batch_alter_table("t") as batch:
        batch.alter_column("v", type_=sqlalchemy.BigInteger())
PY
check sqlite
found problem installed 'not fenced: if it was, it has been made anew' "sqlite: after Alembic's batch mode"
migrate sqlite
check sqlite
is "$rc" 0 'sqlite: the remedy helps'
sqlite3 "$SQL_DIR/app.db" "INSERT INTO holdfast_entered (resource) VALUES ('t');"
check sqlite
found problem enabled 'committed without leaving' 'sqlite: somebody who has not left, with foreign keys off'

# ---- MariaDB ----
whole mariadb
sql mariadb <<<"CREATE OR REPLACE TABLE t (id INT PRIMARY KEY, v BIGINT) ENGINE = InnoDB;"
check mariadb
found problem installed 'not fenced: if it was, it has been made anew' 'mariadb: after CREATE OR REPLACE TABLE'
whole mariadb
for routines in '' --routines; do
    mariadb-dump --no-defaults --socket="$SQL_DIR/maria/sock" -u root $routines app >"$SQL_DIR/dump"
    maria -e 'DROP DATABASE app; CREATE DATABASE app'
    maria app <"$SQL_DIR/dump"
    check mariadb
    ask mariadb "$(enter_sql mariadb t 6) UPDATE t SET v = 2; COMMIT;"
    if [ -z "$routines" ]; then
        [ "$rc" != 0 ]
        ok $? 'mariadb: restored without its procedures a table refuses every write'
        like "$err" 'does not exist' 'mariadb: so says the server'
        check mariadb
        found problem version 'missing: .*holdfast_enter' 'mariadb: a dump without --routines'
        like "$out" 'mariadb-dump --routines' 'mariadb: and how to make a better one'
        migrate mariadb
    else
        is "$rc" 0 'mariadb: with --routines it goes on'
        check mariadb
        is "$rc" 0 'mariadb: and is whole'
        [ "$rc" = 0 ] || diag "$out"
    fi
done
maria -e 'SET GLOBAL idle_write_transaction_timeout = 0'
check mariadb
found problem timeouts 'idle_write_transaction_timeout is off' 'mariadb: no limit for who freezes'
maria -e "SET GLOBAL idle_write_transaction_timeout = 15; CREATE USER web; GRANT EXECUTE ON PROCEDURE app.holdfast_enter TO web"
check mariadb
like "$out" '^note: roles: may enter: .*web@%' 'mariadb: who may enter'
is "$rc" 0 'mariadb: which is no problem'
maria -e "GRANT EXECUTE ON PROCEDURE app.holdfast_reset TO web"
check mariadb
found problem roles 'may reset or purge marks: .*web' 'mariadb: who may reset is one'
sql mariadb <<<"CREATE TABLE parent (id INT PRIMARY KEY) ENGINE = InnoDB; INSERT INTO parent VALUES (1);
    ALTER TABLE t ADD CONSTRAINT up FOREIGN KEY (id) REFERENCES parent (id) ON DELETE CASCADE;"
check mariadb
found problem covered 'changed by a cascade from parent' 'mariadb: a cascade'

# ---- databases that cannot be asked ----
for url in "postgres://owner:geheim@/postgres?host=$SQL_DIR/none" "mariadb://root:geheim@/app?socket=$SQL_DIR/none" "sqlite:$SQL_DIR/none.db"; do
    out=$("$hf" --store "$store" fence check --db "$url" --table t 2>&1)
    is "$?" 69 "exit 69: ${url%%:*} cannot be reached"
    unlike "$out" geheim 'and no password is shown'
done
out=$("$hf" --store "$store" fence check --db "sqlite:$SQL_DIR/none.db" --table t --json 2>/dev/null)
is "$(jq .ok <<<"$out")" null 'as JSON: neither well nor ill'
"$hf" fence check --db "$pg_url" >/dev/null 2>&1
is "$?" 64 '--db wants --table'

# ---- files ----
cd "$dir" || exit 1
export HOLDFAST_STORE=$store
echo x >plain
out=$("$hf" fence check plain) rc=$?
found problem installed 'no mark' 'a file that was never fenced'
echo x | "$hf" fence write kept --token 5
out=$("$hf" fence check kept) rc=$?
is "$rc" 0 'a fenced file'
like "$out" 'token 5 was admitted' 'and its token'
out=$("$hf" --store "file:$dir/other" fence check kept) rc=$?
found problem issuer 'follows id:file' 'a file of another store'
ln kept second
out=$("$hf" fence check kept) rc=$?
found problem covered 'hard link' 'a second way to the file'
rm second
chmod o+w kept
out=$("$hf" fence check kept) rc=$?
found problem roles 'everybody may write to' 'a file for everybody'
chmod o-w kept
printf 'damaged' >.kept.fence
out=$("$hf" fence check kept --json) rc=$?
is "$rc$(jq -r '.ok' <<<"$out")" 1false 'a damaged sidecar'

# ---- keys of Redis ----
redis_begin || { echo "Bail out! no redis"; exit 1; }
export HOLDFAST_STORE=$REDIS_URL
out=$("$hf" fence check "$REDIS_URL" order:1) rc=$?
found problem installed 'no mark' 'a key that was never fenced'
is "$(redis-cli -s "$REDIS_SOCKET" exists 'holdfast:{order:1}:fence')" 0 'looking makes no mark'
echo x | "$hf" fence set "$REDIS_URL" order:1 --token 7
out=$("$hf" fence check "$REDIS_URL" order:1) rc=$?
is "$rc" 0 'a fenced key'
like "$out" 'token 7 was admitted' 'and its token'
out=$("$hf" --store "$store" fence check "$REDIS_URL" order:1) rc=$?
found problem issuer 'follows id:redis' 'a key of another store'
out=$("$hf" --store "$store" fence check redis://127.0.0.1:1 order:1 2>&1) rc=$?
is "$rc" 69 'a Redis that cannot be reached'
done_testing
