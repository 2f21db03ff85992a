-- holdfast fence for PostgreSQL: a table refuses every write of a transaction that has not entered
-- with a token at least as high as the highest admitted.
--
--     BEGIN;
--     SELECT holdfast_fence.enter('RESOURCE', 34);    -- before the first read
--     UPDATE ...;
--     COMMIT;
--
-- Errors: ZHF01 stale token, ZHF02 not entered, ZHF03 token of another store, ZHF04 no token or no
-- such resource, ZHF05 not READ COMMITTED.
--
-- Run this as the owner of the table. Roles that may write the table now may enter; one that comes later,
-- or writes through a view or a function, needs
--
--     GRANT USAGE ON SCHEMA holdfast_fence TO role;
BEGIN;

CREATE SCHEMA IF NOT EXISTS holdfast_fence;

CREATE TABLE IF NOT EXISTS holdfast_fence.mark (
    resource    text PRIMARY KEY,
    token       bigint NOT NULL DEFAULT 0 CHECK (token >= 0),
    issuer      text,         -- the store that issued the token
    admitted_at timestamptz,
    setting     text NOT NULL -- where a transaction remembers that it has entered
);

CREATE TABLE IF NOT EXISTS holdfast_fence.reset_log (
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    by_role    text NOT NULL DEFAULT session_user,
    resource   text NOT NULL,
    old_token  bigint,
    old_issuer text,
    reason     text NOT NULL CHECK (reason <> '')
);
REVOKE ALL ON holdfast_fence.mark, holdfast_fence.reset_log FROM PUBLIC;

-- Why it was refused: the part of enter() that is not in a hurry.
CREATE OR REPLACE FUNCTION holdfast_fence.refuse(resource text, token bigint, issuer text)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
    mark record;
BEGIN
    IF refuse.token IS NULL OR refuse.token < 1 THEN
        RAISE EXCEPTION '% is no token', coalesce(refuse.token::text, 'NULL') USING ERRCODE = 'ZHF04';
    END IF;
    SELECT m.* INTO mark FROM holdfast_fence.mark AS m WHERE m.resource = refuse.resource;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no fence for resource "%"', refuse.resource
            USING ERRCODE = 'ZHF04', HINT = 'run the migration that holdfast fence sql prints';
    ELSIF mark.issuer <> refuse.issuer AND refuse.issuer <> '' THEN
        RAISE EXCEPTION 'token % is of store %, but resource "%" follows %',
            refuse.token, refuse.issuer, refuse.resource, mark.issuer
            USING ERRCODE = 'ZHF03',
                  HINT = 'after a change of stores: SELECT holdfast_fence.reset(resource, issuer, reason)';
    END IF;
    RAISE EXCEPTION 'token % is stale: % was admitted at % to resource "%"',
        refuse.token, mark.token, mark.admitted_at, refuse.resource USING ERRCODE = 'ZHF01';
END
$holdfast$;
REVOKE ALL ON FUNCTION holdfast_fence.refuse(text, bigint, text) FROM PUBLIC;

-- The row lock keeps every other holder out until this transaction ends. That it has entered is
-- remembered in a setting that ends with the transaction (and with a savepoint), and holds its id.
-- enter() runs in every transaction, and a SET search_path clause would be a fifth of its cost: its
-- path is pinned by writing out every name, type and operator instead.
CREATE OR REPLACE FUNCTION holdfast_fence.enter(resource text, token bigint, issuer text DEFAULT NULL)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $holdfast$
DECLARE
    entered pg_catalog.text;
BEGIN
    IF NOT pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.^@) 'read ' THEN
        RAISE EXCEPTION 'a transaction that is % sees what was there before it entered',
            pg_catalog.current_setting('transaction_isolation')
            USING ERRCODE = 'ZHF05', HINT = 'BEGIN ISOLATION LEVEL READ COMMITTED';
    END IF;
    -- The holder that is admitted already, most often: nothing to store, and one statement does all.
    PERFORM pg_catalog.set_config(m.setting, pg_catalog.pg_current_xact_id()::pg_catalog.text, true)
       FROM holdfast_fence.mark AS m
      WHERE m.resource OPERATOR(pg_catalog.=) enter.resource
        AND m.token OPERATOR(pg_catalog.=) enter.token
        AND m.token OPERATOR(pg_catalog.>) 0
        AND (enter.issuer IS NULL OR m.issuer OPERATOR(pg_catalog.=) enter.issuer)
        FOR NO KEY UPDATE;
    IF FOUND THEN
        RETURN;
    END IF;
    -- A higher token, or one that others have passed while we waited for the row: the mark decides.
    UPDATE holdfast_fence.mark AS m
       SET token = enter.token,
           admitted_at = CASE WHEN m.token OPERATOR(pg_catalog.=) enter.token THEN m.admitted_at
                              ELSE pg_catalog.clock_timestamp() END,
           issuer = coalesce(m.issuer, CASE WHEN enter.issuer OPERATOR(pg_catalog.<>) ''
                                            THEN enter.issuer END)
     WHERE m.resource OPERATOR(pg_catalog.=) enter.resource
       AND m.token OPERATOR(pg_catalog.<=) enter.token
       AND enter.token OPERATOR(pg_catalog.>) 0
       AND coalesce(m.issuer OPERATOR(pg_catalog.=) enter.issuer
                    OR enter.issuer OPERATOR(pg_catalog.=) '', true)
    RETURNING m.setting INTO entered;
    IF NOT FOUND THEN
        PERFORM holdfast_fence.refuse(enter.resource, enter.token, enter.issuer);
    END IF;
    PERFORM pg_catalog.set_config(entered, pg_catalog.pg_current_xact_id()::pg_catalog.text, true);
END
$holdfast$;

-- Its arguments are the resource and the setting. It needs no rights, so it runs with the writer's;
-- its path is pinned as that of enter().
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
                  'SELECT holdfast_fence.enter(%L, token) first, in the same transaction', TG_ARGV[0]);
END
$holdfast$;

-- For a change of stores or a restored backup. Only the owner may call it.
CREATE OR REPLACE FUNCTION holdfast_fence.reset(resource text, issuer text, reason text)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
BEGIN
    INSERT INTO holdfast_fence.reset_log (resource, old_token, old_issuer, reason)
        SELECT m.resource, m.token, m.issuer, reset.reason
          FROM holdfast_fence.mark AS m WHERE m.resource = reset.resource FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no fence for resource "%"', reset.resource USING ERRCODE = 'ZHF04';
    END IF;
    UPDATE holdfast_fence.mark AS m
       SET token = 0, issuer = nullif(reset.issuer, ''), admitted_at = NULL
     WHERE m.resource = reset.resource;
END
$holdfast$;
REVOKE ALL ON FUNCTION holdfast_fence.reset(text, text, text) FROM PUBLIC;

-- Lets in whoever may write the table, or a column of it. Nobody else: who may enter may raise the mark,
-- and lock every holder out.
CREATE OR REPLACE PROCEDURE holdfast_fence.let_writers_in(fenced regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
DECLARE
    writer text;
BEGIN
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
END
$holdfast$;
REVOKE ALL ON PROCEDURE holdfast_fence.let_writers_in(regclass) FROM PUBLIC;

INSERT INTO holdfast_fence.mark (resource, setting) VALUES ('orders', 'holdfast.e_17be90a73bcc633a')
    ON CONFLICT DO NOTHING;
CALL holdfast_fence.let_writers_in('"orders"');

CREATE TRIGGER holdfast_guard
    BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON "orders"
    FOR EACH STATEMENT EXECUTE FUNCTION holdfast_fence.guard('orders', 'holdfast.e_17be90a73bcc633a');
-- Also when session_replication_role says that triggers are for others.
ALTER TABLE "orders" ENABLE ALWAYS TRIGGER holdfast_guard;

COMMIT;
-- How small the table is decides how its rows are looked up.
ANALYZE holdfast_fence.mark;

