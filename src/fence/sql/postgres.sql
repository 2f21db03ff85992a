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
-- holdfast, and when the table has got new children. Roles that may write the table now may enter; one
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
        ELSIF holdfast_fence.version() <> 2 THEN
            RAISE EXCEPTION 'the schema holdfast_fence is of another version: %, not 2',
                holdfast_fence.version()
                USING HINT = pg_catalog.format('let %I run its migration again', its_owner);
        END IF;
        RETURN;
    END IF;
    EXECUTE $shared$
CREATE SCHEMA IF NOT EXISTS holdfast_fence;

CREATE TABLE IF NOT EXISTS holdfast_fence.mark (
    resource    text,
    key         text NOT NULL DEFAULT '', -- '': the resource as a whole; per key: the floor of its keys
    token       bigint NOT NULL DEFAULT 0 CHECK (token >= 0),
    issuer      text,          -- the store that issued the token
    admitted_at timestamptz,
    setting     text NOT NULL, -- where a transaction remembers that it has entered
    keyed       boolean NOT NULL DEFAULT false,
    PRIMARY KEY (resource, key)
) WITH (fillfactor = 50);

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

CREATE OR REPLACE FUNCTION holdfast_fence.version() RETURNS integer LANGUAGE sql AS 'SELECT 2';

-- Why it was refused: the part of entering that is not in a hurry.
CREATE OR REPLACE FUNCTION holdfast_fence.refuse(resource text, key text, token bigint, issuer text)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
    mark record;
    whole record;
BEGIN
    IF refuse.token IS NULL OR refuse.token < 1 THEN
        RAISE EXCEPTION '% is no token', coalesce(refuse.token::text, 'NULL') USING ERRCODE = 'ZHF04';
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
        RAISE EXCEPTION 'that is no key' USING ERRCODE = 'ZHF04';
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

-- What enter() does once it is in; or rather not at all where the transaction sees an older state.
CREATE OR REPLACE FUNCTION holdfast_fence.remember(setting text, key text)
RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
    xid text := pg_current_xact_id()::text;
    entry text := chr(1) || xid || ':' || remember.key || chr(1);
    entries text := coalesce(current_setting(remember.setting, true), '');
BEGIN
    IF strpos(entries, chr(1) || xid || ':') <> 1 THEN
        RETURN set_config(remember.setting, entry, true);
    ELSIF strpos(entries, entry) = 0 THEN
        RETURN set_config(remember.setting, entries || substr(entry, 2), true);
    END IF;
    RETURN entries;
END
$holdfast$;
REVOKE ALL ON FUNCTION holdfast_fence.remember(text, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION holdfast_fence.refuse_isolation()
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
BEGIN
    RAISE EXCEPTION 'a transaction that is % sees what was there before it entered',
        current_setting('transaction_isolation')
        USING ERRCODE = 'ZHF05', HINT = 'BEGIN ISOLATION LEVEL READ COMMITTED';
END
$holdfast$;
REVOKE ALL ON FUNCTION holdfast_fence.refuse_isolation() FROM PUBLIC;

-- Procedures, because a function can be called in the middle of a query, whose snapshot is older than the
-- wait. The row lock keeps every other holder out until this transaction ends. That it has entered
-- is remembered in a setting that ends with the transaction (and with a savepoint), and holds its id.
-- enter() runs in every transaction, and a SET search_path clause would be a fifth of its cost: its
-- path is pinned by writing out every name, type and operator instead.
CREATE OR REPLACE PROCEDURE holdfast_fence.enter(resource text, token bigint)
LANGUAGE plpgsql SECURITY DEFINER AS $holdfast$
DECLARE
    entered pg_catalog.text;
BEGIN
    IF NOT pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.^@) 'read ' THEN
        PERFORM holdfast_fence.refuse_isolation();
    END IF;
    -- The holder that is admitted already, most often: nothing to store.
    SELECT m.setting INTO entered FROM holdfast_fence.mark AS m
     WHERE m.resource OPERATOR(pg_catalog.=) enter.resource AND m.key OPERATOR(pg_catalog.=) ''
       AND m.token OPERATOR(pg_catalog.=) enter.token AND NOT m.keyed
       AND m.token OPERATOR(pg_catalog.>) 0
       FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        entered := holdfast_fence.rise(enter.resource, '', enter.token, NULL);
    END IF;
    entered := pg_catalog.set_config(entered, pg_catalog.pg_current_xact_id()::pg_catalog.text, true);
END
$holdfast$;

CREATE OR REPLACE PROCEDURE holdfast_fence.enter(resource text, key text, token bigint)
LANGUAGE plpgsql SECURITY DEFINER AS $holdfast$
DECLARE
    entered pg_catalog.text;
BEGIN
    IF NOT pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.^@) 'read ' THEN
        PERFORM holdfast_fence.refuse_isolation();
    END IF;
    SELECT m.setting INTO entered FROM holdfast_fence.mark AS m
     WHERE m.resource OPERATOR(pg_catalog.=) enter.resource
       AND m.key OPERATOR(pg_catalog.=) enter.key AND m.key OPERATOR(pg_catalog.<>) ''
       AND m.token OPERATOR(pg_catalog.=) enter.token AND m.token OPERATOR(pg_catalog.>) 0
       FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        IF enter.key OPERATOR(pg_catalog.=) '' THEN
            PERFORM holdfast_fence.refuse(enter.resource, NULL, enter.token, NULL);
        END IF;
        entered := holdfast_fence.rise(enter.resource, enter.key, enter.token, NULL);
    END IF;
    entered := holdfast_fence.remember(entered, enter.key);
END
$holdfast$;

-- The same, with the store that issued the token.
CREATE OR REPLACE PROCEDURE holdfast_fence.enter_from(resource text, token bigint, issuer text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
    entered text;
BEGIN
    IF current_setting('transaction_isolation') NOT LIKE 'read %' THEN
        PERFORM holdfast_fence.refuse_isolation();
    END IF;
    entered := holdfast_fence.rise(enter_from.resource, '', enter_from.token, enter_from.issuer);
    entered := set_config(entered, pg_current_xact_id()::text, true);
END
$holdfast$;

CREATE OR REPLACE PROCEDURE holdfast_fence.enter_from(resource text, key text, token bigint, issuer text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
    entered text;
BEGIN
    IF current_setting('transaction_isolation') NOT LIKE 'read %' THEN
        PERFORM holdfast_fence.refuse_isolation();
    ELSIF enter_from.key = '' THEN
        PERFORM holdfast_fence.refuse(enter_from.resource, NULL, enter_from.token, NULL);
    END IF;
    entered := holdfast_fence.rise(enter_from.resource, enter_from.key, enter_from.token, enter_from.issuer);
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
-- from one key to another needs both.
CREATE OR REPLACE FUNCTION holdfast_fence.guard_key()
RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
    entries text := coalesce(current_setting(TG_ARGV[1], true), '');
    start text := chr(1) || coalesce(pg_current_xact_id_if_assigned()::text, '') || ':';
    key text;
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        RAISE EXCEPTION 'TRUNCATE of %, which is fenced per key', TG_TABLE_NAME USING ERRCODE = 'ZHF02';
    END IF;
    IF TG_OP <> 'INSERT' THEN
        EXECUTE format('SELECT ($1).%I::text', TG_ARGV[2]) INTO key USING OLD;
    END IF;
    IF TG_OP = 'INSERT' OR TG_OP = 'UPDATE' AND strpos(entries, start || key || chr(1)) > 0 THEN
        EXECUTE format('SELECT ($1).%I::text', TG_ARGV[2]) INTO key USING NEW;
    END IF;
    IF strpos(entries, start || key || chr(1)) > 0 THEN
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

-- The triggers that are ours, with the resource of each; those of partitions may be copies.
CREATE OR REPLACE VIEW holdfast_fence.fenced AS
SELECT t.tgrelid::regclass AS relation, t.tgname AS trigger, t.tgparentid = 0 AS own, t.tgenabled,
       convert_from(substring(t.tgargs FROM 1 FOR position('\x00'::bytea IN t.tgargs) - 1),
                    getdatabaseencoding()) AS resource
  FROM pg_catalog.pg_trigger AS t
 WHERE t.tgfoid IN ('holdfast_fence.guard()'::regprocedure, 'holdfast_fence.guard_key()'::regprocedure);
GRANT SELECT ON holdfast_fence.fenced TO PUBLIC;

-- Takes a resource into the marks for the owner of the table, lets in whoever may write it or a column
-- of it, and answers the resource's setting. Nobody else is let in: who may enter may raise the mark, and lock
-- every holder out.
CREATE OR REPLACE FUNCTION holdfast_fence.adopt(fenced regclass, resource text, keyed boolean)
RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
    caller name := CASE current_setting('role') WHEN 'none' THEN session_user
                                                ELSE current_setting('role')::name END;
    writer text;
    mark record;
BEGIN
    IF NOT pg_has_role(caller, (SELECT relowner FROM pg_class WHERE oid = fenced), 'USAGE') THEN
        RAISE EXCEPTION 'must be owner of table %', fenced USING ERRCODE = '42501';
    END IF;
    INSERT INTO holdfast_fence.mark (resource, setting, keyed)
        VALUES (adopt.resource, 'holdfast.e_' || substr(md5(adopt.resource), 1, 16), adopt.keyed)
        ON CONFLICT DO NOTHING;
    SELECT * INTO mark FROM holdfast_fence.mark AS m WHERE m.resource = adopt.resource AND m.key = '';
    IF mark.keyed <> adopt.keyed THEN
        RAISE EXCEPTION 'resource "%" is fenced %', adopt.resource,
            CASE WHEN mark.keyed THEN 'per key' ELSE 'as a whole' END
            USING ERRCODE = 'ZHF04', HINT = 'take that fence down first, or use another resource';
    END IF;
    FOR writer IN
        SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC'
                                       ELSE quote_ident(pg_get_userbyid(a.grantee)) END
          FROM (SELECT coalesce(relacl, acldefault('r', relowner)) FROM pg_class WHERE oid = fenced
                UNION ALL
                SELECT attacl FROM pg_attribute WHERE attrelid = fenced) AS acls (acl),
               aclexplode(acl) AS a
         WHERE a.privilege_type IN ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE')
    LOOP
        EXECUTE format('GRANT USAGE ON SCHEMA holdfast_fence TO %s', writer);
    END LOOP;
    RETURN mark.setting;
END
$holdfast$;

-- A mark stays as long as any table is behind it.
CREATE OR REPLACE PROCEDURE holdfast_fence.forget(resource text)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $holdfast$
    DELETE FROM holdfast_fence.mark AS m
     WHERE m.resource = forget.resource
       AND NOT EXISTS (SELECT FROM holdfast_fence.fenced AS f WHERE f.resource = m.resource);
$holdfast$;

-- A table, its partitions and its children.
CREATE OR REPLACE FUNCTION holdfast_fence.family(fenced regclass)
RETURNS TABLE (member regclass, is_partition boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $holdfast$
    WITH RECURSIVE tree (oid) AS (
        SELECT family.fenced::oid
        UNION
        SELECT i.inhrelid FROM pg_inherits AS i JOIN tree ON i.inhparent = tree.oid)
    SELECT c.oid::regclass, c.relispartition FROM tree JOIN pg_class AS c USING (oid);
$holdfast$;

CREATE OR REPLACE PROCEDURE holdfast_fence.drop_triggers(fenced regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
    old record;
BEGIN
    -- A copy goes with its original.
    FOR old IN SELECT f.relation, f.trigger FROM holdfast_fence.fenced AS f
                WHERE f.own AND f.relation IN (SELECT member FROM holdfast_fence.family(fenced))
    LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', old.trigger, old.relation);
    END LOOP;
END
$holdfast$;

-- Row triggers see a write through a parent, and are copied to partitions that come later. Statement
-- triggers see TRUNCATE, and are put on each table of the family. A transaction that has entered passes
-- the conditions, which are cheaper than a call.
CREATE OR REPLACE PROCEDURE holdfast_fence.make_triggers(fenced regclass, resource text, setting text,
                                                         key_column text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
    whole text := format('current_setting(%L, true) IS DISTINCT FROM pg_current_xact_id_if_assigned()::text',
                         setting);
    per_key text := format('coalesce(strpos(current_setting(%L, true) COLLATE "C", E''\x01'' || '
        'pg_current_xact_id_if_assigned()::text || '':'' || ', setting);
    key text := quote_ident(key_column);
    per_key_end text := format('.%s::text || E''\x01''), 0) = 0', key);
    guard text := format('EXECUTE FUNCTION holdfast_fence.guard(%L, %L)', resource, setting);
    guard_key text := format('EXECUTE FUNCTION holdfast_fence.guard_key(%L, %L, %L)', resource, setting,
                             key_column);
    one record;
BEGIN
    FOR one IN SELECT member, member = fenced OR NOT is_partition AS rows FROM holdfast_fence.family(fenced)
    LOOP
        IF key_column IS NULL THEN
            EXECUTE format('CREATE TRIGGER holdfast_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE '
                'ON %s FOR EACH STATEMENT WHEN (%s) %s', one.member, whole, guard);
            CONTINUE WHEN NOT one.rows;
            EXECUTE format('CREATE TRIGGER holdfast_guard_row AFTER INSERT OR UPDATE OR DELETE '
                'ON %s FOR EACH ROW WHEN (%s) %s', one.member, whole, guard);
            CONTINUE;
        END IF;
        EXECUTE format('CREATE TRIGGER holdfast_guard BEFORE TRUNCATE ON %s FOR EACH STATEMENT %s',
            one.member, guard_key);
        CONTINUE WHEN NOT one.rows;
        -- After: what other triggers have made of the row is what counts.
        EXECUTE format('CREATE TRIGGER holdfast_guard_insert AFTER INSERT ON %s FOR EACH ROW WHEN (%s) %s',
            one.member, per_key || 'NEW' || per_key_end, guard_key);
        EXECUTE format('CREATE TRIGGER holdfast_guard_update AFTER UPDATE ON %s FOR EACH ROW '
            'WHEN (OLD.%s IS DISTINCT FROM NEW.%s OR %s) %s',
            one.member, key, key, per_key || 'OLD' || per_key_end, guard_key);
        EXECUTE format('CREATE TRIGGER holdfast_guard_delete AFTER DELETE ON %s FOR EACH ROW WHEN (%s) %s',
            one.member, per_key || 'OLD' || per_key_end, guard_key);
    END LOOP;
    -- Also when session_replication_role says that triggers are for others.
    FOR one IN SELECT f.relation, f.trigger FROM holdfast_fence.fenced AS f
                WHERE f.relation IN (SELECT member FROM holdfast_fence.family(fenced))
    LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', one.relation, one.trigger);
    END LOOP;
END
$holdfast$;

-- Puts a table, with its partitions and children, behind a fence; or renews its triggers.
CREATE OR REPLACE PROCEDURE holdfast_fence.install(fenced regclass, resource text, key_column text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
    before text;
    type text;
BEGIN
    IF (SELECT relkind NOT IN ('r', 'p') FROM pg_class WHERE oid = fenced) THEN
        RAISE EXCEPTION '% is no table', fenced;
    END IF;
    IF key_column IS NOT NULL THEN
        -- Rows of one key must have one text, whatever is set, and other keys another.
        SELECT CASE WHEN t.typtype = 'e' THEN 'enum' WHEN c.collisdeterministic IS FALSE THEN c.collname
                    ELSE t.typname END INTO type
          FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
          LEFT JOIN pg_collation AS c ON c.oid = a.attcollation
         WHERE a.attrelid = fenced AND a.attname = key_column AND a.attnum > 0 AND NOT a.attisdropped;
        IF type IS NULL OR type NOT IN ('int2', 'int4', 'int8', 'text', 'varchar', 'bpchar', 'uuid',
                                        'bool', 'enum') THEN
            RAISE EXCEPTION 'column "%" of % cannot be the key: %', key_column, fenced,
                coalesce('it is ' || type || ', where one key has several texts', 'there is no such column')
                USING HINT = 'a key is an integer, a text, a uuid, a boolean or an enum';
        END IF;
    END IF;
    SELECT min(f.resource) INTO before FROM holdfast_fence.fenced AS f
     WHERE f.relation IN (SELECT member FROM holdfast_fence.family(fenced))
       AND f.resource IS DISTINCT FROM install.resource;
    IF before IS NOT NULL AND install.resource IS NOT NULL THEN
        RAISE EXCEPTION '% or a part of it is fenced as resource "%"', fenced, before
            USING HINT = 'take that fence down first, or name that resource';
    END IF;
    install.resource := coalesce(install.resource, before, (SELECT format('%s.%s', nspname, relname)
        FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace WHERE pg_class.oid = fenced));
    CALL holdfast_fence.drop_triggers(fenced);
    CALL holdfast_fence.make_triggers(fenced, install.resource,
        holdfast_fence.adopt(fenced, install.resource, key_column IS NOT NULL), key_column);
END
$holdfast$;

CREATE OR REPLACE PROCEDURE holdfast_fence.remove(fenced regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
    resources text[] := ARRAY(SELECT DISTINCT f.resource FROM holdfast_fence.fenced AS f
                               WHERE f.relation IN (SELECT member FROM holdfast_fence.family(fenced)));
    one text;
BEGIN
    IF resources = '{}' THEN
        RAISE EXCEPTION '% is not fenced', fenced USING ERRCODE = 'ZHF04';
    END IF;
    CALL holdfast_fence.drop_triggers(fenced);
    FOREACH one IN ARRAY resources LOOP
        CALL holdfast_fence.forget(one);
    END LOOP;
END
$holdfast$;
    $shared$;
END
$up$;
-- @section up-table
CALL holdfast_fence.install(@TABLE_TEXT@, @GIVEN_RESOURCE@, @KEY_COLUMN_TEXT@);
-- @section up-key-table
CALL holdfast_fence.install(@TABLE_TEXT@, @GIVEN_RESOURCE@, @KEY_COLUMN_TEXT@);
-- @section up-end
COMMIT;
-- How small the table is decides how its rows are looked up.
ANALYZE holdfast_fence.mark;
-- @section down-begin
BEGIN;
-- @section down-table
CALL holdfast_fence.remove(@TABLE_TEXT@);
-- @section down-shared
DROP PROCEDURE holdfast_fence.remove(regclass), holdfast_fence.install(regclass, text, text),
    holdfast_fence.make_triggers(regclass, text, text, text), holdfast_fence.drop_triggers(regclass),
    holdfast_fence.forget(text),
    holdfast_fence.enter(text, bigint), holdfast_fence.enter(text, text, bigint),
    holdfast_fence.enter_from(text, bigint, text), holdfast_fence.enter_from(text, text, bigint, text);
-- @go
DROP VIEW holdfast_fence.fenced;
-- @go
DROP FUNCTION holdfast_fence.family(regclass), holdfast_fence.adopt(regclass, text, boolean),
    holdfast_fence.purge(text, bigint), holdfast_fence.reset(text, text, text),
    holdfast_fence.guard(), holdfast_fence.guard_key(), holdfast_fence.remember(text, text),
    holdfast_fence.refuse_isolation(), holdfast_fence.rise(text, text, bigint, text),
    holdfast_fence.refuse(text, text, bigint, text), holdfast_fence.version();
-- @go
DROP TABLE holdfast_fence.reset_log, holdfast_fence.mark;
-- @section down-schema
-- The schema goes when nothing of the other kind of fence is in it.
DO $holdfast$ BEGIN
    DROP SCHEMA holdfast_fence;
EXCEPTION WHEN dependent_objects_still_exist THEN NULL;
END $holdfast$;
-- @section down-end
COMMIT;
-- @section row-up
-- holdfast fence per row for PostgreSQL: an UPDATE must say fence_token, and is refused when that is
-- below the row's.
--
--     UPDATE ... SET ..., fence_token = 34 WHERE ...;
--
-- Guards UPDATE of existing rows only: not INSERT, not DELETE, not TRUNCATE.
-- Errors: ZHF01 stale token, ZHF02 fence_token was not said, ZHF04 no token.

-- @section row-schema
CREATE SCHEMA IF NOT EXISTS holdfast_fence;
-- @section row-table
-- Fires only when the UPDATE names fence_token, and leaves a sign for the second trigger.
CREATE OR REPLACE FUNCTION holdfast_fence.row_check()
RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
BEGIN
    IF NEW.fence_token IS NULL OR NEW.fence_token < 1 THEN
        RAISE EXCEPTION '% is no token', coalesce(NEW.fence_token::text, 'NULL')
            USING ERRCODE = 'ZHF04';
    ELSIF NEW.fence_token < OLD.fence_token THEN
        RAISE EXCEPTION 'token % is stale: this row of % has admitted %',
            NEW.fence_token, TG_TABLE_NAME, OLD.fence_token USING ERRCODE = 'ZHF01';
    END IF;
    NEW.fence_token := -NEW.fence_token;
    RETURN NEW;
END
$holdfast$;
-- @go
CREATE OR REPLACE FUNCTION holdfast_fence.row_require()
RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
BEGIN
    IF NEW.fence_token >= 0 THEN
        RAISE EXCEPTION 'UPDATE of % does not say fence_token', TG_TABLE_NAME
            USING ERRCODE = 'ZHF02', HINT = 'UPDATE ... SET ..., fence_token = token';
    END IF;
    NEW.fence_token := -NEW.fence_token;
    RETURN NEW;
END
$holdfast$;
-- @go
ALTER TABLE @TABLE@ ADD COLUMN fence_token bigint NOT NULL DEFAULT 0 CHECK (fence_token >= 0);
-- @go
-- Triggers fire in the order of their names: these two last, and next to each other.
CREATE TRIGGER zz_holdfast_row_1 BEFORE UPDATE OF fence_token ON @TABLE@
    FOR EACH ROW EXECUTE FUNCTION holdfast_fence.row_check();
-- @go
CREATE TRIGGER zz_holdfast_row_2 BEFORE UPDATE ON @TABLE@
    FOR EACH ROW EXECUTE FUNCTION holdfast_fence.row_require();
-- @go
ALTER TABLE @TABLE@ ENABLE ALWAYS TRIGGER zz_holdfast_row_1;
-- @go
ALTER TABLE @TABLE@ ENABLE ALWAYS TRIGGER zz_holdfast_row_2;

-- @section row-down
DROP TRIGGER zz_holdfast_row_2 ON @TABLE@;
-- @go
DROP TRIGGER zz_holdfast_row_1 ON @TABLE@;
-- @go
ALTER TABLE @TABLE@ DROP COLUMN fence_token;

-- @section row-down-shared
DROP FUNCTION holdfast_fence.row_require();
-- @go
DROP FUNCTION holdfast_fence.row_check();
