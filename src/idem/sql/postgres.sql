-- @section up
-- holdfast idempotency keys for PostgreSQL: a request that comes twice has one effect, and the second
-- gets the answer of the first.
--
--     BEGIN;
--     SELECT * FROM holdfast_idem.claim(scope, key, fingerprint);   -- state, status, answer
--     -- 'new': do the work here, then
--     SELECT holdfast_idem.finish(scope, key, status, answer);
--     COMMIT;
--
-- claim says 'new', 'done' (with the stored status and answer), 'running' or 'mismatch', and never
-- waits for another claim. Claimed but not finished cannot commit: 23503, claimed_but_not_finished.
-- Errors: ZHF11 not claimed here, or not the current attempt; ZHF15 bad argument.
--
-- Run this as the role that will own the keys. The application needs only
--
--     GRANT USAGE ON SCHEMA holdfast_idem TO application;
--
-- With --schema it is that schema instead.
BEGIN;

CREATE SCHEMA IF NOT EXISTS @SCHEMA@;

-- What is kept here is the owner's alone: rights that default privileges gave to others are taken back, those
-- on purge only once, when it is new. A table of that name that belongs to somebody else stays as it is.
--
-- Here and below a call whose arguments are not of the very types of PostgreSQL's function names pg_catalog:
-- a function in @SCHEMA@ that fits better would be run instead, in the owner's name.
CREATE OR REPLACE PROCEDURE @SCHEMA@.settle(before boolean)
LANGUAGE plpgsql SET search_path = pg_catalog, @SCHEMA@, pg_temp AS $holdfast$
DECLARE
    other record;
BEGIN
    FOR other IN
        SELECT c.oid::regclass AS name FROM pg_class AS c
         WHERE before AND c.relname IN ('entry', 'nothing', 'attempt_number')
           AND c.relnamespace = (SELECT p.pronamespace FROM pg_proc AS p
                                  WHERE p.oid = 'settle(boolean)'::regprocedure)
           AND pg_catalog.obj_description(c.oid, 'pg_class') IS DISTINCT FROM 'holdfast idem'
    LOOP
        RAISE EXCEPTION '% is there already, and not of holdfast', other.name
            USING ERRCODE = '42P07', HINT = 'choose another --schema';
    END LOOP;
    FOR other IN
        SELECT DISTINCT CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind,
               c.oid::regclass::text AS name, a.grantee
          FROM pg_class AS c, aclexplode(c.relacl) AS a
         WHERE NOT before AND a.grantee <> c.relowner
           AND c.oid IN (pg_catalog.to_regclass('entry'), pg_catalog.to_regclass('nothing'),
                         pg_catalog.to_regclass('attempt_number'))
        UNION ALL
        SELECT DISTINCT 'FUNCTION', p.oid::regprocedure::text, a.grantee
          FROM pg_proc AS p, aclexplode(p.proacl) AS a
         WHERE NOT before AND a.grantee <> p.proowner
           AND p.oid = pg_catalog.to_regprocedure('purge(interval, integer)')
           AND pg_catalog.obj_description(p.oid, 'pg_proc') IS DISTINCT FROM 'holdfast idem'
    LOOP
        EXECUTE pg_catalog.format('REVOKE ALL ON %s %s FROM %s', other.kind, other.name,
            CASE other.grantee WHEN 0::oid THEN 'PUBLIC'
            ELSE pg_catalog.quote_ident(pg_get_userbyid(other.grantee)) END);
    END LOOP;
END
$holdfast$;
REVOKE ALL ON PROCEDURE @SCHEMA@.settle(boolean) FROM PUBLIC;
CALL @SCHEMA@.settle(true);

-- Always empty: nothing that points here can be committed.
CREATE TABLE IF NOT EXISTS @SCHEMA@.nothing (id integer PRIMARY KEY CHECK (id IS NULL));

CREATE TABLE IF NOT EXISTS @SCHEMA@.entry (
    scope       text COLLATE "C" NOT NULL,
    key         text COLLATE "C" NOT NULL,
    fingerprint text COLLATE "C" NOT NULL,
    claimed     integer CONSTRAINT claimed_but_not_finished
                REFERENCES @SCHEMA@.nothing DEFERRABLE INITIALLY DEFERRED,
    attempt     bigint,      -- started, not claimed
    leased_till timestamptz, -- of that attempt
    status      integer,
    answer      bytea,
    finished_at timestamptz,
    PRIMARY KEY (scope, key)
);
CREATE INDEX IF NOT EXISTS entry_finished ON @SCHEMA@.entry (finished_at)
    WHERE finished_at IS NOT NULL;

-- Never counted per key: that would start again after a purge, and an old attempt could finish a new one.
CREATE SEQUENCE IF NOT EXISTS @SCHEMA@.attempt_number;

COMMENT ON TABLE @SCHEMA@.nothing IS 'holdfast idem';
COMMENT ON TABLE @SCHEMA@.entry IS 'holdfast idem';
COMMENT ON SEQUENCE @SCHEMA@.attempt_number IS 'holdfast idem';

-- The part of the functions that is not in a hurry.
CREATE OR REPLACE FUNCTION @SCHEMA@.refuse(code text, what text, scope text, key text)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
BEGIN
    RAISE EXCEPTION '%', what || coalesce(': ' || quote_literal(left(refuse.scope, 60)) || ', '
                                          || quote_literal(left(refuse.key, 60)), '')
        USING ERRCODE = code;
END
$holdfast$;
REVOKE ALL ON FUNCTION @SCHEMA@.refuse(text, text, text, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION @SCHEMA@.check_key(scope text, key text, fingerprint text)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, @SCHEMA@, pg_temp AS $holdfast$
BEGIN
    PERFORM refuse('ZHF15', 'a scope and a key have 1 to 255 bytes', NULL, NULL)
      WHERE (octet_length(check_key.scope) BETWEEN 1 AND 255
             AND octet_length(check_key.key) BETWEEN 1 AND 255) IS NOT TRUE;
    PERFORM refuse('ZHF15', 'a fingerprint has at most 64 bytes, and is not NULL', NULL, NULL);
END
$holdfast$;
REVOKE ALL ON FUNCTION @SCHEMA@.check_key(text, text, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION @SCHEMA@.check_answer(status integer, answer bytea)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, @SCHEMA@, pg_temp AS $holdfast$
BEGIN
    PERFORM refuse('ZHF15', 'a status is not NULL', NULL, NULL) WHERE check_answer.status IS NULL;
    PERFORM refuse('ZHF15', 'an answer has at most 1 MiB', NULL, NULL);
END
$holdfast$;
REVOKE ALL ON FUNCTION @SCHEMA@.check_answer(integer, bytea) FROM PUBLIC;

-- Reads first: otherwise replays of a finished key would take the lock from each other and say 'running', and
-- an INSERT would wait for an open purge. A row with claimed is of this very transaction: no other can
-- commit one. No scan of the whole table, whatever statistics say: they may date from the day when it had
-- one row, and plans are kept.
CREATE OR REPLACE FUNCTION @SCHEMA@.claim(scope text, key text, fingerprint text,
    OUT state text, OUT status integer, OUT answer bytea)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, @SCHEMA@, pg_temp SET enable_seqscan = off AS $holdfast$
DECLARE
    known entry;
BEGIN
    IF (octet_length(claim.scope) BETWEEN 1 AND 255 AND octet_length(claim.key) BETWEEN 1 AND 255
        AND octet_length(claim.fingerprint) <= 64) IS NOT TRUE THEN
        PERFORM check_key(claim.scope, claim.key, claim.fingerprint);
    END IF;
    SELECT e.* INTO known FROM entry AS e WHERE e.scope = claim.scope AND e.key = claim.key;
    IF NOT FOUND THEN
        IF NOT pg_try_advisory_xact_lock(
            hashtextextended(claim.key, pg_catalog.hashtextextended(claim.scope, 0))) THEN
            state := 'running';
            RETURN;
        END IF;
        INSERT INTO entry (scope, key, fingerprint, claimed)
            VALUES (claim.scope, claim.key, claim.fingerprint, 1) ON CONFLICT DO NOTHING;
        IF FOUND THEN
            state := 'new';
            RETURN;
        END IF;
        SELECT e.* INTO known FROM entry AS e WHERE e.scope = claim.scope AND e.key = claim.key;
    END IF;
    IF known.scope IS NULL OR known.claimed IS NOT NULL THEN
        state := 'running';
    ELSIF known.fingerprint <> claim.fingerprint THEN
        state := 'mismatch';
    ELSIF known.finished_at IS NULL THEN
        state := 'running';
    ELSE
        state := 'done';
        status := known.status;
        answer := known.answer;
    END IF;
END
$holdfast$;

CREATE OR REPLACE FUNCTION @SCHEMA@.finish(scope text, key text, status integer, answer bytea)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, @SCHEMA@, pg_temp SET enable_seqscan = off AS $holdfast$
BEGIN
    IF finish.status IS NULL OR octet_length(finish.answer) > 1048576 THEN
        PERFORM check_answer(finish.status, finish.answer);
    END IF;
    UPDATE entry AS e
       SET claimed = NULL, status = finish.status, answer = finish.answer,
           finished_at = clock_timestamp()
     WHERE e.scope = finish.scope AND e.key = finish.key AND e.claimed IS NOT NULL;
    IF NOT FOUND THEN
        PERFORM refuse('ZHF11', 'not claimed in this transaction', finish.scope, finish.key);
    END IF;
END
$holdfast$;

-- For an effect elsewhere: start, commit, the effect, finish_attempt, commit. The lease is for liveness
-- only. It is measured from the call, not from the beginning of the transaction.
CREATE OR REPLACE FUNCTION @SCHEMA@.start(scope text, key text, fingerprint text, lease interval,
    OUT state text, OUT attempt bigint, OUT remaining integer, OUT status integer, OUT answer bytea)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, @SCHEMA@, pg_temp SET enable_seqscan = off AS $holdfast$
DECLARE
    known entry;
BEGIN
    IF (start.lease > interval '0' AND start.lease <= interval '7 days') IS NOT TRUE THEN
        PERFORM refuse('ZHF15', 'a lease is above 0, and at most 7 days', NULL, NULL);
    END IF;
    SELECT c.state, c.status, c.answer INTO state, status, answer
      FROM claim(start.scope, start.key, start.fingerprint) AS c;
    IF state = 'new' THEN
        UPDATE entry AS e
           SET claimed = NULL, attempt = pg_catalog.nextval('attempt_number'),
               leased_till = clock_timestamp() + start.lease
         WHERE e.scope = start.scope AND e.key = start.key
        RETURNING e.attempt INTO attempt;
        RETURN;
    ELSIF state <> 'running' THEN
        RETURN;
    END IF;
    -- One whose lease is over is taken over, by one of those who try.
    SELECT e.* INTO known FROM entry AS e
     WHERE e.scope = start.scope AND e.key = start.key AND e.finished_at IS NULL
       AND e.leased_till <= clock_timestamp() FOR NO KEY UPDATE SKIP LOCKED;
    IF FOUND THEN
        state := 'new';
        UPDATE entry AS e
           SET attempt = pg_catalog.nextval('attempt_number'), leased_till = clock_timestamp() + start.lease
         WHERE e.scope = start.scope AND e.key = start.key
        RETURNING e.attempt INTO attempt;
    ELSE
        SELECT ceil(extract(epoch FROM e.leased_till - clock_timestamp())) INTO remaining
          FROM entry AS e WHERE e.scope = start.scope AND e.key = start.key;
        remaining := greatest(remaining, 1);
    END IF;
END
$holdfast$;

-- The same attempt with the same answer again is no error: a COMMIT whose reply was lost can be repeated.
CREATE OR REPLACE FUNCTION @SCHEMA@.finish_attempt(scope text, key text, attempt bigint,
    status integer, answer bytea)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, @SCHEMA@, pg_temp SET enable_seqscan = off AS $holdfast$
BEGIN
    IF finish_attempt.status IS NULL OR octet_length(finish_attempt.answer) > 1048576 THEN
        PERFORM check_answer(finish_attempt.status, finish_attempt.answer);
    END IF;
    UPDATE entry AS e
       SET status = finish_attempt.status, answer = finish_attempt.answer,
           finished_at = coalesce(e.finished_at, clock_timestamp())
     WHERE e.scope = finish_attempt.scope AND e.key = finish_attempt.key
       AND e.attempt = finish_attempt.attempt
       AND (e.finished_at IS NULL
            OR e.status = finish_attempt.status
               AND e.answer IS NOT DISTINCT FROM finish_attempt.answer);
    IF NOT FOUND THEN
        PERFORM refuse('ZHF11', 'not the current attempt', finish_attempt.scope, finish_attempt.key);
    END IF;
END
$holdfast$;

-- Only if the effect certainly did not happen: the next one starts at once.
CREATE OR REPLACE FUNCTION @SCHEMA@.release(scope text, key text, attempt bigint)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, @SCHEMA@, pg_temp SET enable_seqscan = off AS $holdfast$
BEGIN
    DELETE FROM entry AS e
     WHERE e.scope = release.scope AND e.key = release.key AND e.attempt = release.attempt
       AND e.finished_at IS NULL;
    IF NOT FOUND THEN
        PERFORM refuse('ZHF11', 'not the current attempt', release.scope, release.key);
    END IF;
END
$holdfast$;

-- Removes finished keys only, the oldest first; says how many. A purged key runs again. Not for the
-- application: GRANT EXECUTE to whoever may run it.
CREATE OR REPLACE FUNCTION @SCHEMA@.purge(older_than interval DEFAULT interval '@KEEP@ seconds',
    at_most integer DEFAULT 1000)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, @SCHEMA@, pg_temp SET enable_seqscan = off AS $holdfast$
DECLARE
    purged bigint;
BEGIN
    IF (purge.older_than >= interval '0' AND purge.at_most > 0) IS NOT TRUE THEN
        PERFORM refuse('ZHF15', 'purge what is older than an interval, and at most so many', NULL, NULL);
    END IF;
    WITH old AS MATERIALIZED (
        SELECT o.scope, o.key FROM entry AS o
         WHERE o.finished_at < clock_timestamp() - purge.older_than
         ORDER BY o.finished_at LIMIT purge.at_most FOR UPDATE SKIP LOCKED)
    DELETE FROM entry AS e USING old WHERE e.scope = old.scope AND e.key = old.key;
    GET DIAGNOSTICS purged = ROW_COUNT;
    RETURN purged;
END
$holdfast$;
REVOKE ALL ON FUNCTION @SCHEMA@.purge(interval, integer) FROM PUBLIC;
CALL @SCHEMA@.settle(false);
COMMENT ON FUNCTION @SCHEMA@.purge(interval, integer) IS 'holdfast idem';
COMMIT;

-- @section down
BEGIN;
DROP FUNCTION @SCHEMA@.purge(interval, integer);
DROP FUNCTION @SCHEMA@.release(text, text, bigint);
DROP FUNCTION @SCHEMA@.finish_attempt(text, text, bigint, integer, bytea);
DROP FUNCTION @SCHEMA@.start(text, text, text, interval);
DROP FUNCTION @SCHEMA@.finish(text, text, integer, bytea);
DROP FUNCTION @SCHEMA@.claim(text, text, text);
DROP FUNCTION @SCHEMA@.check_answer(integer, bytea);
DROP FUNCTION @SCHEMA@.check_key(text, text, text);
DROP FUNCTION @SCHEMA@.refuse(text, text, text, text);
DROP PROCEDURE @SCHEMA@.settle(boolean);
DROP SEQUENCE @SCHEMA@.attempt_number;
DROP TABLE @SCHEMA@.entry;
DROP TABLE @SCHEMA@.nothing;

-- @section down-schema
-- The schema goes when nothing else is in it.
DO $holdfast$ BEGIN
    DROP SCHEMA holdfast_idem;
EXCEPTION WHEN dependent_objects_still_exist THEN NULL;
END $holdfast$;

-- @section down-end
COMMIT;
