-- @section up
-- holdfast fence for PostgreSQL: a table refuses every write of a transaction that has not entered
-- with a token at least as high as the highest admitted.
--
--     BEGIN;
--     CALL holdfast_fence.enter('RESOURCE', 34);          -- before the first read
--     CALL holdfast_fence.enter('RESOURCE', 'KEY', 34);   -- instead, if the table is fenced per key
--     UPDATE ...;
--     COMMIT;
--
-- RESOURCE is SCHEMA.TABLE, unless it was named. Errors: ZHF01 stale token, ZHF02 not entered, ZHF03
-- token of another store, ZHF04 no token or no such resource, ZHF05 not READ COMMITTED, ZHF06 another
-- transaction is inside and does not end.
--
-- Run this as the owner of the table, with psql -v ON_ERROR_STOP=1. Run it again after an upgrade of
-- holdfast, and when the table has new children. Roles that may write the table now may enter; one
-- that comes later, or writes through a view or a function, needs
--
--     GRANT USAGE ON SCHEMA holdfast_fence TO role;

-- @section up-begin
BEGIN;

-- @section up-shared
-- What fenced tables share is made, or brought to this version, by the owner of the schema.
DO $up$
DECLARE
    its_owner pg_catalog.name;
BEGIN
    PERFORM pg_catalog.pg_advisory_xact_lock(7451030);
    SELECT pg_catalog.pg_get_userbyid(nspowner) INTO its_owner
      FROM pg_catalog.pg_namespace WHERE nspname = 'holdfast_fence';
    IF its_owner IS NOT NULL AND NOT pg_catalog.pg_has_role(its_owner, 'USAGE') THEN
        IF NOT pg_catalog.has_schema_privilege('holdfast_fence', 'USAGE') THEN
            RAISE EXCEPTION 'the schema holdfast_fence is of role %', its_owner
                USING ERRCODE = '42501', HINT = pg_catalog.format(
                    'ask for: GRANT USAGE ON SCHEMA holdfast_fence TO %I', current_user);
        ELSIF pg_catalog.to_regprocedure('holdfast_fence.version()') IS NULL THEN
            RAISE EXCEPTION 'the schema holdfast_fence is of an older holdfast'
                USING HINT = pg_catalog.format('let %I run its migration again', its_owner);
        ELSIF holdfast_fence.version() <> 3 THEN
            RAISE EXCEPTION 'the schema holdfast_fence is of another version: %, not 3',
                holdfast_fence.version()
                USING HINT = pg_catalog.format('let %I run its migration again', its_owner);
        END IF;
        RETURN;
    END IF;
    EXECUTE $shared$
CREATE SCHEMA IF NOT EXISTS holdfast_fence;

-- Looked up as bytes: no change of the server's locale can hide a mark from its index. The pages are left
-- nearly empty, so that holders of different keys seldom meet on one.
CREATE TABLE IF NOT EXISTS holdfast_fence.mark (
    resource    text COLLATE "C",
    key         text COLLATE "C" NOT NULL DEFAULT '', -- '': the resource as a whole; per key: the floor of its keys
    token       bigint NOT NULL DEFAULT 0 CHECK (token >= 0),
    issuer      text,          -- the store that issued the token
    admitted_at timestamptz,
    setting     text NOT NULL, -- where a transaction remembers that it has entered
    keyed       boolean NOT NULL DEFAULT false,
    PRIMARY KEY (resource, key)
) WITH (fillfactor = 20);

DO $older$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_attribute
                    WHERE attrelid = 'holdfast_fence.mark'::pg_catalog.regclass AND attname = 'keyed')
    THEN
        ALTER TABLE holdfast_fence.mark ADD COLUMN key text NOT NULL DEFAULT '',
            ADD COLUMN keyed boolean NOT NULL DEFAULT false,
            DROP CONSTRAINT mark_pkey, ADD PRIMARY KEY (resource, key);
        DROP FUNCTION holdfast_fence.enter(text, bigint, text);
        DROP FUNCTION holdfast_fence.refuse(text, bigint, text);
        DROP PROCEDURE holdfast_fence.let_writers_in(regclass);
    END IF;
    IF EXISTS (SELECT FROM pg_catalog.pg_attribute
                WHERE attrelid = 'holdfast_fence.mark'::pg_catalog.regclass
                  AND attname IN ('resource', 'key') AND attcollation <> 'pg_catalog."C"'::pg_catalog.regcollation)
    THEN
        ALTER TABLE holdfast_fence.mark ALTER COLUMN resource TYPE text COLLATE "C",
            ALTER COLUMN key TYPE text COLLATE "C", SET (fillfactor = 20);
        DROP FUNCTION IF EXISTS holdfast_fence.refuse_isolation();
    END IF;
END $older$;

CREATE TABLE IF NOT EXISTS holdfast_fence.reset_log (
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    by_role    text NOT NULL DEFAULT session_user,
    resource   text NOT NULL,
    old_token  bigint,
    old_issuer text,
    reason     text NOT NULL CHECK (reason <> '')
);
REVOKE ALL ON holdfast_fence.mark, holdfast_fence.reset_log FROM PUBLIC;

CREATE OR REPLACE FUNCTION holdfast_fence.version() RETURNS integer LANGUAGE sql AS 'SELECT 3';

-- Why it was refused: the part of entering that is not in a hurry.
CREATE OR REPLACE FUNCTION holdfast_fence.refuse(resource text, key text, token bigint, issuer text)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
    mark record;
    whole record;
BEGIN
    IF refuse.token IS NULL OR refuse.token < 1 THEN
        RAISE EXCEPTION '% is not a token', coalesce(refuse.token::text, 'NULL') USING ERRCODE = 'ZHF04';
    END IF;
    SELECT m.* INTO whole FROM holdfast_fence.mark AS m WHERE m.resource = refuse.resource AND m.key = '';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no fence for resource "%"', refuse.resource
            USING ERRCODE = 'ZHF04', HINT = 'run the migration that holdfast fence sql prints';
    ELSIF whole.keyed AND refuse.key = '' THEN
        RAISE EXCEPTION 'resource "%" is fenced per key', refuse.resource USING ERRCODE = 'ZHF04',
            HINT = 'CALL holdfast_fence.enter(resource, key, token)';
    ELSIF NOT whole.keyed AND refuse.key <> '' THEN
        RAISE EXCEPTION 'resource "%" is not fenced per key', refuse.resource USING ERRCODE = 'ZHF04',
            HINT = 'CALL holdfast_fence.enter(resource, token)';
    ELSIF refuse.key IS NULL OR strpos(refuse.key, chr(1)) > 0 THEN
        RAISE EXCEPTION 'that is not a key' USING ERRCODE = 'ZHF04';
    END IF;
    SELECT m.* INTO mark FROM holdfast_fence.mark AS m
     WHERE m.resource = refuse.resource AND m.key = refuse.key;
    IF NOT FOUND OR whole.token > mark.token THEN
        mark := whole;
    END IF;
    IF mark.issuer <> refuse.issuer AND refuse.issuer <> '' THEN
        RAISE EXCEPTION 'token % is of store %, but resource "%" follows %',
            refuse.token, refuse.issuer, refuse.resource, mark.issuer
            USING ERRCODE = 'ZHF03',
                  HINT = 'after a change of stores: SELECT holdfast_fence.reset(resource, issuer, reason)';
    END IF;
    RAISE EXCEPTION 'token % is stale: % was admitted at % to resource "%"%',
        refuse.token, mark.token, coalesce(mark.admitted_at::text, 'an unknown time'), refuse.resource,
        CASE WHEN refuse.key <> '' THEN format(', key "%s"', refuse.key) ELSE '' END
        USING ERRCODE = 'ZHF01';
END
$holdfast$;
REVOKE ALL ON FUNCTION holdfast_fence.refuse(text, text, bigint, text) FROM PUBLIC;

-- The slow way in: a higher token, a new key, an issuer, or a row that somebody else has locked. Waits for
-- at most holdfast.enter_wait (10s), or the caller's lock_timeout if that is shorter. Answers where
-- the transaction remembers that it has entered.
CREATE OR REPLACE FUNCTION holdfast_fence.rise(resource text, key text, token bigint, issuer text)
RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
    wait text := coalesce(nullif(current_setting('holdfast.enter_wait', true), ''), '10s');
    before text := current_setting('lock_timeout');
    where_to text;
BEGIN
    IF current_setting('transaction_isolation') NOT LIKE 'read %' THEN
        RAISE EXCEPTION 'a transaction that is % sees what was there before it entered',
            current_setting('transaction_isolation')
            USING ERRCODE = 'ZHF05', HINT = 'BEGIN ISOLATION LEVEL READ COMMITTED';
    END IF;
    IF wait ~ '^[0-9]+$' THEN
        wait := wait || 'ms';
    END IF;
    BEGIN
        IF before = '0' OR before::interval > wait::interval THEN
            PERFORM set_config('lock_timeout', wait, true);
        END IF;
        UPDATE holdfast_fence.mark AS m
           SET token = rise.token,
               admitted_at = CASE WHEN m.token = rise.token THEN m.admitted_at ELSE clock_timestamp() END,
               issuer = coalesce(m.issuer, nullif(rise.issuer, ''))
         WHERE m.resource = rise.resource AND m.key = rise.key AND m.keyed = (rise.key <> '')
           AND m.token <= rise.token AND rise.token > 0
           AND coalesce(m.issuer = rise.issuer OR rise.issuer = '', true)
        RETURNING m.setting INTO where_to;
        -- A new key starts at the floor, which purge() raises. The lock on the floor keeps a mark that
        -- is being purged from being made again with the floor of before.
        IF where_to IS NULL AND rise.key <> '' AND strpos(rise.key, chr(1)) = 0 THEN
            INSERT INTO holdfast_fence.mark AS m (resource, key, token, issuer, admitted_at, setting, keyed)
            SELECT f.resource, rise.key, rise.token, coalesce(f.issuer, nullif(rise.issuer, '')),
                   clock_timestamp(), f.setting, true
              FROM holdfast_fence.mark AS f
             WHERE f.resource = rise.resource AND f.key = '' AND f.keyed
               AND f.token <= rise.token AND rise.token > 0
               AND coalesce(f.issuer = rise.issuer OR rise.issuer = '', true)
               FOR SHARE
            ON CONFLICT ON CONSTRAINT mark_pkey DO UPDATE
               SET token = excluded.token, admitted_at = excluded.admitted_at,
                   issuer = coalesce(m.issuer, excluded.issuer)
             WHERE m.token <= excluded.token
               AND coalesce(m.issuer = rise.issuer OR rise.issuer = '', true)
            RETURNING m.setting INTO where_to;
        END IF;
        PERFORM set_config('lock_timeout', before, true);
    EXCEPTION WHEN lock_not_available THEN
        RAISE EXCEPTION 'another transaction is inside the fence of resource "%" and does not end',
            rise.resource USING ERRCODE = 'ZHF06',
            HINT = 'set idle_in_transaction_session_timeout for those who enter, so that one that is '
                   'frozen is ended; how long enter waits is said by holdfast.enter_wait';
    END;
    IF where_to IS NULL THEN
        PERFORM holdfast_fence.refuse(rise.resource, rise.key, rise.token, rise.issuer);
    END IF;
    RETURN where_to;
END
$holdfast$;
REVOKE ALL ON FUNCTION holdfast_fence.rise(text, text, bigint, text) FROM PUBLIC;

-- What the transaction remembers of the keys it has entered for, in settings that end with it and with a
-- savepoint: the last one, behind a colon, and all of them as soon as there are two. Triggers look at the
-- first in their conditions, and at the second in guard_key().
CREATE OR REPLACE FUNCTION holdfast_fence.remember(setting text, key text)
RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
    last text := substr(coalesce(current_setting(remember.setting, true), ''), 2);
    list text := coalesce(nullif(current_setting(remember.setting || '_all', true), ''),
                          chr(1) || last || chr(1));
BEGIN
    IF last <> '' AND strpos(list, chr(1) || remember.key || chr(1)) = 0 THEN
        list := list || remember.key || chr(1);
        PERFORM set_config(remember.setting || '_all', list, true);
    END IF;
    RETURN set_config(remember.setting, ':' || remember.key, true);
END
$holdfast$;
REVOKE ALL ON FUNCTION holdfast_fence.remember(text, text) FROM PUBLIC;

-- Procedures, because a function can be called in the middle of a query, whose snapshot is older than the
-- wait. The row lock keeps every other holder out until this transaction ends. That it has entered
-- is remembered in a setting that ends with the transaction (and with a savepoint), and holds its id.
-- enter() runs in every transaction. So it does all it can in one query, for the holder that is admitted
-- already: nothing is stored. The setting is set before the row is locked; if that fails the query
-- answers nothing, and rise() decides. A SET search_path clause would be a fifth of its cost: its path is
-- pinned by writing out every name, type and operator instead.
CREATE OR REPLACE PROCEDURE holdfast_fence.enter(resource text, token bigint)
LANGUAGE plpgsql SECURITY DEFINER AS $holdfast$
DECLARE
    entered pg_catalog.text;
BEGIN
    SELECT CASE WHEN pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.^@) 'read '
                THEN pg_catalog.set_config(m.setting, pg_catalog.pg_current_xact_id()::pg_catalog.text, true)
           END
      INTO entered FROM holdfast_fence.mark AS m
     WHERE m.resource OPERATOR(pg_catalog.=) enter.resource AND m.key OPERATOR(pg_catalog.=) ''
       AND m.token OPERATOR(pg_catalog.=) enter.token AND NOT m.keyed
       AND m.token OPERATOR(pg_catalog.>) 0
       FOR NO KEY UPDATE SKIP LOCKED;
    IF entered IS NULL THEN
        entered := holdfast_fence.rise(enter.resource, '', enter.token, NULL);
        entered := pg_catalog.set_config(entered, pg_catalog.pg_current_xact_id()::pg_catalog.text, true);
    END IF;
END
$holdfast$;

-- Marks of keys are above 0 from the start, and the mark of key '' is nobody's.
CREATE OR REPLACE PROCEDURE holdfast_fence.enter(resource text, key text, token bigint)
LANGUAGE plpgsql SECURITY DEFINER AS $holdfast$
DECLARE
    entered pg_catalog.text;
BEGIN
    SELECT CASE WHEN NOT pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.^@) 'read '
                THEN NULL
                WHEN pg_catalog.current_setting(m.setting, true) OPERATOR(pg_catalog.<>) ''
                THEN holdfast_fence.remember(m.setting, m.key)
                ELSE pg_catalog.set_config(m.setting, ':' OPERATOR(pg_catalog.||) m.key, true)
           END
      INTO entered FROM holdfast_fence.mark AS m
     WHERE m.resource OPERATOR(pg_catalog.=) enter.resource
       AND m.key OPERATOR(pg_catalog.=) enter.key AND m.key OPERATOR(pg_catalog.<>) ''
       AND m.token OPERATOR(pg_catalog.=) enter.token
       FOR NO KEY UPDATE SKIP LOCKED;
    IF entered IS NULL THEN
        CALL holdfast_fence.enter_from(enter.resource, enter.key, enter.token, NULL);
    END IF;
END
$holdfast$;

-- The same, with the store that issued the token.
CREATE OR REPLACE PROCEDURE holdfast_fence.enter_from(resource text, token bigint, issuer text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
    entered text;
BEGIN
    entered := holdfast_fence.rise(enter_from.resource, '', enter_from.token, enter_from.issuer);
    entered := set_config(entered, pg_current_xact_id()::text, true);
END
$holdfast$;

CREATE OR REPLACE PROCEDURE holdfast_fence.enter_from(resource text, key text, token bigint, issuer text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
    entered text;
BEGIN
    entered := holdfast_fence.rise(enter_from.resource, nullif(enter_from.key, ''), enter_from.token,
                                   enter_from.issuer);
    entered := holdfast_fence.remember(entered, enter_from.key);
END
$holdfast$;

-- Fires where the condition of its trigger did not see that the transaction has entered. Its arguments are
-- the resource and the setting. It needs no rights, so it runs with the writer's; its path is
-- pinned as that of enter().
CREATE OR REPLACE FUNCTION holdfast_fence.guard()
RETURNS trigger LANGUAGE plpgsql AS $holdfast$
BEGIN
    IF pg_catalog.current_setting(TG_ARGV[1], true) OPERATOR(pg_catalog.=)
       pg_catalog.pg_current_xact_id_if_assigned()::pg_catalog.text THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION '% of %: this transaction has not entered the fence', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'ZHF02',
              HINT = pg_catalog.format(
                  'CALL holdfast_fence.enter(%L, token) first, in the same transaction', TG_ARGV[0]);
END
$holdfast$;

-- The same for a row of a table that is fenced per key; its third argument is the column. A row that moves
-- from one key to another needs both. A transaction that has entered for several keys comes here with every
-- row that is not of the last one.
CREATE OR REPLACE FUNCTION holdfast_fence.guard_key()
RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
    list text := coalesce(nullif(current_setting(TG_ARGV[1] || '_all', true), ''),
                          chr(1) || substr(coalesce(current_setting(TG_ARGV[1], true), ''), 2) || chr(1));
    key text;
    inside boolean := false;
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        RAISE EXCEPTION 'TRUNCATE of %, which is fenced per key', TG_TABLE_NAME USING ERRCODE = 'ZHF02';
    END IF;
    IF TG_OP <> 'INSERT' THEN
        EXECUTE format('SELECT ($1).%I::text', TG_ARGV[2]) INTO key USING OLD;
        inside := strpos(list, chr(1) || key || chr(1)) > 0 AND strpos(key, chr(1)) = 0 AND key <> '';
    END IF;
    IF TG_OP = 'INSERT' OR TG_OP = 'UPDATE' AND inside THEN
        EXECUTE format('SELECT ($1).%I::text', TG_ARGV[2]) INTO key USING NEW;
        inside := strpos(list, chr(1) || key || chr(1)) > 0 AND strpos(key, chr(1)) = 0 AND key <> '';
    END IF;
    IF inside THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION '% of %: this transaction has not entered the fence of key "%"',
        TG_OP, TG_TABLE_NAME, key
        USING ERRCODE = 'ZHF02', HINT = format(
            'CALL holdfast_fence.enter(%L, %L, token) first, in the same transaction', TG_ARGV[0], key);
END
$holdfast$;

-- For a change of stores or a restored backup. Only the owner may call it.
CREATE OR REPLACE FUNCTION holdfast_fence.reset(resource text, issuer text, reason text)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
BEGIN
    PERFORM FROM holdfast_fence.mark AS m WHERE m.resource = reset.resource FOR UPDATE;
    INSERT INTO holdfast_fence.reset_log (resource, old_token, old_issuer, reason)
        SELECT m.resource, max(m.token), max(m.issuer), reset.reason
          FROM holdfast_fence.mark AS m WHERE m.resource = reset.resource GROUP BY m.resource;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no fence for resource "%"', reset.resource USING ERRCODE = 'ZHF04';
    END IF;
    UPDATE holdfast_fence.mark AS m
       SET token = 0, issuer = nullif(reset.issuer, ''), admitted_at = NULL
     WHERE m.resource = reset.resource AND m.key = '';
    DELETE FROM holdfast_fence.mark AS m WHERE m.resource = reset.resource AND m.key <> '';
END
$holdfast$;
REVOKE ALL ON FUNCTION holdfast_fence.reset(text, text, text) FROM PUBLIC;

-- Forgets the marks of keys below a token, and answers how many. From then on no key admits a token below
-- that one, so a late holder stays out; make sure that no live hold has such a token.
CREATE OR REPLACE FUNCTION holdfast_fence.purge(resource text, below bigint)
RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
    purged bigint;
BEGIN
    UPDATE holdfast_fence.mark AS m SET token = greatest(m.token, purge.below)
     WHERE m.resource = purge.resource AND m.key = '' AND m.keyed;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no fence per key for resource "%"', purge.resource USING ERRCODE = 'ZHF04';
    END IF;
    DELETE FROM holdfast_fence.mark AS m WHERE (m.resource, m.key) IN (
        SELECT d.resource, d.key FROM holdfast_fence.mark AS d
         WHERE d.resource = purge.resource AND d.key <> '' AND d.token < purge.below
           FOR UPDATE SKIP LOCKED);
    GET DIAGNOSTICS purged = ROW_COUNT;
    RETURN purged;
END
$holdfast$;
REVOKE ALL ON FUNCTION holdfast_fence.purge(text, bigint) FROM PUBLIC;

