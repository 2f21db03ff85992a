#!/bin/bash
# Who may do what to a SQL fence: the application can enter and write, and cannot touch the mark, nor make
# the fence's owner work for it; others can do nothing.
# (run: once)
# shellcheck disable=SC2119 # arguments are for those who want to say more
set -u
# shellcheck source=tests/fence/fence.sh
. "$(dirname "$0")/fence.sh"
start_databases || { echo "Bail out! no databases"; exit 1; }

# ---- PostgreSQL ----
ask postgres "CREATE ROLE app LOGIN; CREATE ROLE clerk LOGIN; CREATE ROLE reader LOGIN; CREATE ROLE late LOGIN;
    CREATE TABLE orders2 (v INT, w INT); INSERT INTO orders2 VALUES (0);
    GRANT SELECT, INSERT, UPDATE, DELETE ON orders2 TO app;
    GRANT SELECT, UPDATE (v) ON orders2 TO clerk; GRANT SELECT ON orders2 TO reader;"
fence sql --dialect postgres --table orders2 --schema public --resource orders2 | pg
enter_and_write='BEGIN; CALL holdfast_fence.enter('\''orders2'\'', 50); UPDATE orders2 SET v = 1; COMMIT;'
for role in app clerk; do
    PG_ROLE=$role ask postgres "$enter_and_write"
    is "$rc" 0 "postgres: a role that may write the table can work: $role"
done
for role in reader late; do
    PG_ROLE=$role ask postgres "CALL holdfast_fence.enter('orders2', 9223372036854775807);"
    like "$err" '42501' "postgres: one that may not cannot raise the mark: $role"
done
ask postgres "GRANT INSERT ON orders2 TO late; GRANT USAGE ON SCHEMA holdfast_fence TO late;"
PG_ROLE=late ask postgres "BEGIN; CALL holdfast_fence.enter('orders2', 50); INSERT INTO orders2 VALUES (2); COMMIT;"
is "$rc" 0 "postgres: a role that came later needs one grant"

export PG_ROLE=app
for try in "UPDATE holdfast_fence.mark SET token = 0" "DELETE FROM holdfast_fence.mark" \
    "TRUNCATE holdfast_fence.mark" "INSERT INTO holdfast_fence.mark VALUES ('x', 1)" \
    "SELECT holdfast_fence.reset('orders2', '', 'because')" \
    "SELECT holdfast_fence.refuse('orders2', '', 1, '')" "SELECT holdfast_fence.rise('orders2', '', 60, '')" \
    "SELECT holdfast_fence.purge('orders2', 5)" \
    "SELECT holdfast_fence.adopt('orders2', 'orders2', false)" "CALL holdfast_fence.install('orders2', NULL, NULL)" \
    "CALL holdfast_fence.remove('orders2')" \
    "ALTER TABLE orders2 DISABLE TRIGGER ALL" "DROP TRIGGER holdfast_guard ON orders2" \
    "SELECT token FROM holdfast_fence.mark FOR UPDATE" \
    "CREATE TABLE holdfast_fence.own (v int)" \
    "CREATE OR REPLACE FUNCTION holdfast_fence.guard() RETURNS trigger LANGUAGE sql AS 'SELECT 1'"; do
    ask postgres "$try;"
    like "$err" '42501' "postgres: it cannot: $try"
done
ask postgres "CREATE TEMP TABLE mark (resource text, token bigint, issuer text, admitted_at timestamptz, setting text);
    SET search_path = pg_temp, public; INSERT INTO mark VALUES ('orders2', 1, NULL, NULL, 'holdfast.x');
    CALL holdfast_fence.enter('orders2', 2);"
like "$err" 'ZHF01' "postgres: nor put its own table in front"
# Operators of its own, found before the system's, that say yes to everything.
PG_ROLE=owner ask postgres "CREATE SCHEMA evil AUTHORIZATION app;"
evil="SET search_path = evil, pg_catalog;"
for type in text bigint xid8; do
    ask postgres "CREATE FUNCTION evil.yes($type, $type) RETURNS boolean LANGUAGE sql AS 'SELECT true';"
    for op in '=' '<' '<=' '>' '<>'; do
        ask postgres "CREATE OPERATOR evil.$op (LEFTARG = $type, RIGHTARG = $type, FUNCTION = evil.yes);"
        [ "$rc" = 0 ] || diag "$err"
    done
done
ask postgres "CREATE FUNCTION evil.pg_current_xact_id_if_assigned() RETURNS xid8 LANGUAGE sql AS 'SELECT NULL::xid8';
    CREATE FUNCTION evil.format(text, text) RETURNS text LANGUAGE sql AS 'SELECT NULL::text'; $evil
    SELECT 1::bigint < 1::bigint AND 'a' = 'b'::text;"
is "$rc$out" 0t "postgres: a role with evil operators"
ask postgres "$evil CALL holdfast_fence.enter('orders2', 49);"
like "$err" ZHF01 "postgres: nor trick enter with them"
ask postgres "$evil UPDATE public.orders2 SET v = 2;"
like "$err" ZHF02 "postgres: nor the guard"
# Types of its own, whose checks call a function of its own: as whom do they run?
ask postgres "CREATE TABLE evil.as_whom (who text); GRANT ALL ON evil.as_whom TO PUBLIC; GRANT USAGE ON SCHEMA evil TO PUBLIC;
    CREATE FUNCTION evil.look() RETURNS boolean LANGUAGE plpgsql AS
        'BEGIN INSERT INTO evil.as_whom VALUES (current_user); RETURN true; END';"
for type in text bigint record regclass; do
    ask postgres "CREATE DOMAIN evil.$type AS pg_catalog.text CHECK (evil.look());"
    [ "$rc" = 0 ] || diag "$err"
done
ask postgres "SELECT NULL::evil.text;"
ask postgres "SELECT DISTINCT who FROM evil.as_whom;"
is "$out" app "postgres: a role with evil types"
for token in 50 51 52; do
    ask postgres "$evil BEGIN; CALL holdfast_fence.enter('orders2', $token); UPDATE public.orders2 SET v = 1; COMMIT;"
done
ask postgres "SELECT count(*) FROM evil.as_whom WHERE who <> 'app';"
is "$out" 0 "postgres: nor make the fence's owner run its code"
unset PG_ROLE

# ---- MariaDB ----
ask mariadb "CREATE USER app@localhost; CREATE TABLE orders2 (v INT) ENGINE = InnoDB; INSERT INTO orders2 VALUES (0);
    GRANT SELECT, INSERT, UPDATE, DELETE ON app.orders2 TO app@localhost;"
fence sql --dialect mariadb --table orders2 | maria app
trigger=$(maria app -e 'SHOW TRIGGERS LIKE "orders2"' | head -1 | cut -f1)
ask mariadb "GRANT EXECUTE ON PROCEDURE app.holdfast_enter TO app@localhost;"
export MARIA_USER=app
ask mariadb "BEGIN; CALL holdfast_enter('orders2', 50); UPDATE orders2 SET v = 1; COMMIT;"
is "$rc" 0 "mariadb: a user with rights on the table and enter can work"
[ "$rc" = 0 ] || diag "$err"
for try in "UPDATE holdfast_fence SET token = 0" "DELETE FROM holdfast_fence" "TRUNCATE holdfast_fence" \
    "TRUNCATE orders2" "CALL holdfast_reset('orders2', '', 'because')" "SELECT entered FROM holdfast_fence" \
    "DROP TRIGGER $trigger"; do
    ask mariadb "$try;"
    like "$err" 'denied' "mariadb: it cannot: $try"
done
# The last session is remembered by a random text; as a number, many of those are 0.
for session in "'x'" 0 0e0 "''" FALSE; do
    for first in a 0; do
        MARIA_USER=root ask mariadb "UPDATE holdfast_fence SET entered = CONCAT('$first', SUBSTR(UUID(), 2));"
        ask mariadb "SET @holdfast_session = $session; UPDATE orders2 SET v = 2;"
        like "$err" 'ZHF02' "mariadb: nor claim to be $session where $first... was the last"
    done
done
unset MARIA_USER
done_testing
