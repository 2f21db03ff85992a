#!/bin/bash
# Migrations that tools can run: in a transaction of their own, as single statements, again over an older one;
# with Alembic, Django and plain files. (run: once)
# shellcheck disable=SC2119 # arguments are for those who want to say more
set -u
# shellcheck source=tests/fence/fence.sh
. "$(dirname "$0")/fence.sh"
start_databases || { echo "Bail out! no databases"; exit 1; }
stale() { case $1 in sqlite) echo 'holdfast stale' ;; *) echo ZHF01 ;; esac; }
outside() { case $1 in sqlite) echo 'holdfast not entered' ;; *) echo ZHF02 ;; esac; }
orders() { # DIALECT : anew
    case $1 in
    postgres) pg <<<"DROP SCHEMA IF EXISTS holdfast_fence CASCADE; DROP TABLE IF EXISTS orders CASCADE;" ;;
    sqlite) rm -f "$SQL_DIR/app.db" ;;
    mariadb) maria -e "DROP DATABASE app; CREATE DATABASE app;" ;;
    esac
    ask "$1" "CREATE TABLE orders (id INT PRIMARY KEY, v INT); INSERT INTO orders VALUES (1, 0);"
}

# ---- over a migration of the first edition, and over itself ----
for d in postgres sqlite mariadb; do
    orders "$d"
    sql "$d" <"$root/tests/fence/first/$d.sql"
    is "$?" 0 "$d: a fence of the first edition"
    first=$(enter_sql "$d" orders 50)
    ask "$d" "${first/CALL holdfast_fence/SELECT holdfast_fence} UPDATE orders SET v = 1; $(leave_sql "$d")"
    is "$rc" 0 "$d: with a mark"
    for again in upgrade repeat; do
        fence sql --dialect "$d" --table orders | sql "$d"
        is "$?" 0 "$d: the migration runs over it: $again"
        ask "$d" "$(enter_sql "$d" orders 49)"
        like "$err" "$(stale "$d")" "$d: and keeps the resource and its mark: $again"
        ask "$d" "$(enter_sql "$d" orders 50) UPDATE orders SET v = v + 1; $(leave_sql "$d")"
        is "$rc" 0 "$d: the holder goes on: $again"
        ask "$d" "UPDATE orders SET v = 99;"
        like "$err" "$(outside "$d")" "$d: others do not: $again"
    done
    fence sql --dialect "$d" --table orders --down --last | sql "$d"
    is "$?" 0 "$d: and down again"
done

# ---- marks that an earlier version kept in the order of the server's locale ----
orders postgres
fence sql --dialect postgres --table orders | pg
ask postgres "$(enter_sql postgres public.orders 50) COMMIT;
    ALTER TABLE holdfast_fence.mark ALTER COLUMN resource TYPE text COLLATE \"default\",
        ALTER COLUMN key TYPE text COLLATE \"default\";
    CREATE OR REPLACE FUNCTION holdfast_fence.version() RETURNS integer LANGUAGE sql AS 'SELECT 2';"
is "$rc" 0 'postgres: a fence of version 2'
fence sql --dialect postgres --table orders | pg
ask postgres "SELECT string_agg(DISTINCT collation_name, ',') FROM information_schema.columns
    WHERE table_schema = 'holdfast_fence' AND table_name = 'mark' AND column_name IN ('resource', 'key');"
is "$out" C 'postgres: the migration keeps them as bytes'
ask postgres "$(enter_sql postgres public.orders 49)"
like "$err" "$(stale postgres)" 'postgres: and what they are'

# ---- no transaction of ours ----
for d in postgres sqlite; do
    orders "$d"
    { echo "BEGIN;"; fence sql --dialect "$d" --table orders --no-transaction; echo "ROLLBACK;"; } | sql "$d" >/dev/null
    ask "$d" "UPDATE orders SET v = 7;"
    is "$rc" 0 "$d: a tool that rolls back has rolled back"
done
for d in postgres sqlite mariadb; do
    for words in '' '--key-column v' '--per-row' '--down' '--down --last'; do
        # shellcheck disable=SC2086 # they are words
        text=$(fence sql --dialect "$d" --table orders --no-transaction $words | grep -v '^--')
        printf '%s\n' "$text" | grep -Eq '^(BEGIN;|COMMIT;|ROLLBACK;|\.|\\)'
        is "$?" 1 "$d: no transaction and no client's command in: $words"
        # shellcheck disable=SC2086
        json=$(fence sql --dialect "$d" --table orders --statements json $words)
        jq -e 'length > 0 and all(type == "string" and (test("^(BEGIN|COMMIT|DELIMITER|\\.bail)") | not))' \
            <<<"$json" >/dev/null
        ok $? "$d: statements for: $words"
    done
done

# ---- drivers, statement by statement; Alembic and Django do just that ----
python=/usr/bin/python3
run_tool() { # NAME MODULES : the tool's program on stdin
    if ! $python -c "import $2" 2>/dev/null; then
        ok 0 "$1 # SKIP python3 has no $2"
        return
    fi
    (cd "$dir" && $python - "$SQL_DIR" "$hf" "$root") >"$dir/tool" 2>&1
    is "$(tail -1 "$dir/tool")" fine "$1"
    [ "$(tail -1 "$dir/tool")" = fine ] || diag "$(tail -5 "$dir/tool")"
}
orders sqlite
run_tool "sqlite: Python's driver" sqlite3 <<'EOP'
import json, sqlite3, subprocess, sys
folder, hf, _ = sys.argv[1:]
def statements(*words):
    return json.loads(subprocess.check_output([hf, "fence", "sql", "--dialect", "sqlite", "--table", "orders",
                                               "--statements", "json", *words]))
db = sqlite3.connect(folder + "/app.db", isolation_level=None)
db.execute("BEGIN")
for s in statements(): db.execute(s)
db.execute("COMMIT")
try:
    db.execute("UPDATE orders SET v = 9"); sys.exit("not fenced")
except sqlite3.IntegrityError as e:
    assert "holdfast not entered" in str(e)
for s in statements("--down", "--last"): db.execute(s)
db.execute("UPDATE orders SET v = 9")
print("fine")
EOP
for d in postgres sqlite; do
    orders "$d"
    export TOOL_DIALECT=$d
    run_tool "$d: Alembic" alembic,sqlalchemy,psycopg2 <<'EOP'
import json, os, subprocess, sys
from sqlalchemy import create_engine, text
from alembic.migration import MigrationContext
from alembic.operations import Operations
folder, hf, _ = sys.argv[1:]
d = os.environ["TOOL_DIALECT"]
url = "sqlite:///" + folder + "/app.db" if d == "sqlite" else "postgresql+psycopg2://owner@/postgres?host=" + folder + "/pg"
def run(*words):
    made = json.loads(subprocess.check_output([hf, "fence", "sql", "--dialect", d, "--table", "orders",
                                               "--statements", "json", *words]))
    with engine.begin() as connection:
        op = Operations(MigrationContext.configure(connection))
        for statement in made:
            op.get_bind().exec_driver_sql(statement.replace("%", "%%") if d == "postgres" else statement)
engine = create_engine(url)
run()
try:
    with engine.begin() as c: c.execute(text("UPDATE orders SET v = 9"))
    sys.exit("not fenced")
except Exception as e:
    assert "not entered" in str(e), e
run("--down", "--last")
with engine.begin() as c: c.execute(text("UPDATE orders SET v = 9"))
print("fine")
EOP
    orders "$d"
    run_tool "$d: Django's RunSQL" django,psycopg2 <<'EOP'
import json, os, subprocess, sys
import django
from django.conf import settings
folder, hf, _ = sys.argv[1:]
d = os.environ["TOOL_DIALECT"]
one = {"ENGINE": "django.db.backends.sqlite3", "NAME": folder + "/app.db"} if d == "sqlite" else \
    {"ENGINE": "django.db.backends.postgresql", "NAME": "postgres", "HOST": folder + "/pg", "USER": "owner"}
settings.configure(DATABASES={"default": one}, INSTALLED_APPS=[])
django.setup()
from django.db import connection, migrations
def made(*words):
    return json.loads(subprocess.check_output([hf, "fence", "sql", "--dialect", d, "--table", "orders",
                                               "--statements", "json", *words]))
class Migration(migrations.Migration):
    operations = [migrations.RunSQL(made(), made("--down", "--last"))]
from django.db.migrations.state import ProjectState
with connection.schema_editor(atomic=True) as editor:
    Migration("fence", "app").apply(ProjectState(), editor)
try:
    connection.cursor().execute("UPDATE orders SET v = 9"); sys.exit("not fenced")
except Exception as e:
    assert "not entered" in str(e), e
with connection.schema_editor(atomic=True) as editor:
    Migration("fence", "app").unapply(ProjectState(), editor)
connection.cursor().execute("UPDATE orders SET v = 9")
print("fine")
EOP
done
done_testing
