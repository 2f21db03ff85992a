-- @section up
-- holdfast outbox for PostgreSQL: a message is written in the transaction that it is about, and sent after it.
--
--     BEGIN;
--     UPDATE orders ...;   -- first what orders the messages of one key,
--     INSERT INTO holdfast_outbox.message (topic, key, payload) VALUES ('orders', 'order-7', '...');
--     COMMIT;              -- then the message
--
-- holdfast outbox relay sends it, at least once. uid names the message to receivers. Messages of one key are
-- sent one after the other, in the order of id. Do not write to the other columns, and give id no cache: ids that
-- sessions draw in advance are in no order.
--
-- Run this as the role that will own the outbox. The application, and the role of the relay, need only
--
--     GRANT USAGE ON SCHEMA holdfast_outbox TO application, relay;
--     GRANT INSERT (topic, key, payload, headers) ON holdfast_outbox.message TO application;
--     GRANT SELECT, UPDATE, DELETE ON holdfast_outbox.message TO relay;
--     GRANT SELECT, UPDATE ON holdfast_outbox.fence TO relay;
--     GRANT INSERT ON holdfast_outbox.settled TO relay;
--
-- With --schema it is that schema instead.
BEGIN;

CREATE SCHEMA IF NOT EXISTS @SCHEMA@;

-- A table or type of that name that belongs to somebody else stays as it is. On tables that are new, rights that
-- default privileges gave to others are taken back. Messages that wait are not removed by a migration.
CREATE OR REPLACE PROCEDURE @SCHEMA@.check_tables(step text)
LANGUAGE plpgsql SET search_path = pg_catalog, @SCHEMA@, pg_temp AS $holdfast$
DECLARE
    other record;
BEGIN
    FOR other IN
        SELECT o.name
          FROM pg_proc AS p,
               LATERAL (SELECT c.oid::regclass::text, obj_description(c.oid, 'pg_class') FROM pg_class AS c
                         WHERE c.relnamespace = p.pronamespace AND c.relname IN ('message', 'fence', 'settled')
                        UNION ALL
                        SELECT t.oid::regtype::text, obj_description(t.oid, 'pg_type') FROM pg_type AS t
                         WHERE t.typnamespace = p.pronamespace
                           AND t.typname IN ('message_topic', 'message_key', 'message_payload', 'message_headers')
                       ) AS o (name, comment)
         WHERE step = 'before' AND p.oid = 'check_tables(text)'::regprocedure
           AND o.comment IS DISTINCT FROM 'holdfast outbox'
    LOOP
        RAISE EXCEPTION '% is there already, and not of holdfast', other.name
            USING ERRCODE = '42P07', HINT = 'choose another --schema';
    END LOOP;
    FOR other IN
        SELECT DISTINCT c.oid::regclass AS name, a.grantee
          FROM pg_class AS c, aclexplode(c.relacl) AS a
         WHERE step = 'after' AND a.grantee <> c.relowner
           AND c.oid IN (to_regclass('message'), to_regclass('fence'), to_regclass('settled'))
           AND obj_description(c.oid, 'pg_class') IS NULL
    LOOP
        EXECUTE format('REVOKE ALL ON %s FROM %s', other.name,
                       CASE other.grantee WHEN 0 THEN 'PUBLIC'
                       ELSE quote_ident(pg_get_userbyid(other.grantee)) END);
    END LOOP;
    IF step = 'down' THEN
        LOCK TABLE message IN ACCESS EXCLUSIVE MODE;
        IF EXISTS (SELECT FROM message) THEN
            RAISE EXCEPTION '% messages have not been sent', (SELECT count(*) FROM message)
                USING ERRCODE = '55006', HINT = 'let holdfast outbox relay send them, or drop them';
        END IF;
    END IF;
END
$holdfast$;
REVOKE ALL ON PROCEDURE @SCHEMA@.check_tables(text) FROM PUBLIC;
CALL @SCHEMA@.check_tables('before');

-- Bounds, as those of types, because the server parses the checks of a table anew for every INSERT: that
-- would be a third of what a message costs.
DO $holdfast$ BEGIN
    CREATE DOMAIN @SCHEMA@.message_topic AS text COLLATE "C"
        CONSTRAINT topic_has_1_to_255_bytes CHECK (pg_catalog.octet_length(VALUE) BETWEEN 1 AND 255);
EXCEPTION WHEN duplicate_object THEN NULL;
END $holdfast$;
DO $holdfast$ BEGIN
    CREATE DOMAIN @SCHEMA@.message_key AS text COLLATE "C"
        CONSTRAINT key_has_1_to_255_bytes CHECK (pg_catalog.octet_length(VALUE) BETWEEN 1 AND 255);
EXCEPTION WHEN duplicate_object THEN NULL;
END $holdfast$;
DO $holdfast$ BEGIN
    CREATE DOMAIN @SCHEMA@.message_payload AS bytea
        CONSTRAINT payload_has_at_most_10_mib CHECK (pg_catalog.octet_length(VALUE) <= 10485760);
EXCEPTION WHEN duplicate_object THEN NULL;
END $holdfast$;
DO $holdfast$ BEGIN
    CREATE DOMAIN @SCHEMA@.message_headers AS jsonb
        CONSTRAINT headers_are_an_object_of_at_most_64_kib
        CHECK (pg_catalog.jsonb_typeof(VALUE) = 'object' AND pg_catalog.octet_length(VALUE::text) <= 65536);
EXCEPTION WHEN duplicate_object THEN NULL;
END $holdfast$;

-- Sending and deleting all the time makes many dead rows: they are removed soon, so that what others read
-- stays small.
CREATE TABLE IF NOT EXISTS @SCHEMA@.message (
    id         bigint GENERATED ALWAYS AS IDENTITY (CACHE 1) PRIMARY KEY, -- the order; never a name
    uid        uuid NOT NULL DEFAULT gen_random_uuid(),                   -- the name
    topic      @SCHEMA@.message_topic NOT NULL,
    key        @SCHEMA@.message_key NOT NULL,
    payload    @SCHEMA@.message_payload NOT NULL,
    headers    @SCHEMA@.message_headers NOT NULL DEFAULT '{}',
    created    timestamptz NOT NULL DEFAULT clock_timestamp(),
    attempts   integer NOT NULL DEFAULT 0,              -- that failed
    not_before timestamptz NOT NULL DEFAULT '-infinity', -- infinity: dead if attempts > 0, else parked
    error      text
) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0,
        autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_threshold = 100000,
        autovacuum_analyze_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);

-- What a fetch reads; what is parked behind a message that failed is not in it.
CREATE INDEX IF NOT EXISTS message_ready ON @SCHEMA@.message (id) WHERE not_before < 'infinity';
-- What failed, and what is parked: few, or not in a hurry.
CREATE INDEX IF NOT EXISTS message_failed ON @SCHEMA@.message (key, id) WHERE attempts > 0;
CREATE INDEX IF NOT EXISTS message_parked ON @SCHEMA@.message (key)
    WHERE attempts = 0 AND not_before = 'infinity';

-- The fence of the relay: one row, which admits no token below the highest.
CREATE TABLE IF NOT EXISTS @SCHEMA@.fence (
    only_one    boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    name        text,                      -- of the relay
    token       bigint NOT NULL DEFAULT 0,
    issuer      text,                      -- the store that issued the token
    admitted_at timestamptz
);
INSERT INTO @SCHEMA@.fence DEFAULT VALUES ON CONFLICT DO NOTHING;

-- What people decided about dead messages.
CREATE TABLE IF NOT EXISTS @SCHEMA@.settled (
    at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    by_role  text NOT NULL DEFAULT session_user,
    decision text NOT NULL,
    uid      uuid NOT NULL,
    topic    text NOT NULL,
    key      text NOT NULL,
    attempts integer NOT NULL,
    error    text,
    reason   text NOT NULL CHECK (reason <> '')
);
CALL @SCHEMA@.check_tables('after');
COMMENT ON TABLE @SCHEMA@.message IS 'holdfast outbox';
COMMENT ON TABLE @SCHEMA@.fence IS 'holdfast outbox';
COMMENT ON TABLE @SCHEMA@.settled IS 'holdfast outbox';
COMMENT ON DOMAIN @SCHEMA@.message_topic IS 'holdfast outbox';
COMMENT ON DOMAIN @SCHEMA@.message_key IS 'holdfast outbox';
COMMENT ON DOMAIN @SCHEMA@.message_payload IS 'holdfast outbox';
COMMENT ON DOMAIN @SCHEMA@.message_headers IS 'holdfast outbox';
COMMIT;

-- @section down
BEGIN;
CALL @SCHEMA@.check_tables('down');
DROP TABLE @SCHEMA@.settled;
DROP TABLE @SCHEMA@.fence;
DROP TABLE @SCHEMA@.message;
DROP DOMAIN IF EXISTS @SCHEMA@.message_topic, @SCHEMA@.message_key, @SCHEMA@.message_payload,
    @SCHEMA@.message_headers;
DROP PROCEDURE @SCHEMA@.check_tables(text);

-- @section down-schema
-- The schema goes when nothing else is in it.
DO $holdfast$ BEGIN
    DROP SCHEMA holdfast_outbox;
EXCEPTION WHEN dependent_objects_still_exist THEN NULL;
END $holdfast$;

-- @section down-end
COMMIT;
