-- Version 7: what holders leave behind. No role but their owner has a right on the tables; who may use the
-- schema calls the functions.

CREATE TABLE holdfast.record (
    lock    bytea NOT NULL,
    key     bytea NOT NULL,
    token   bigint NOT NULL,       -- of the hold that wrote it
    number  bigint NOT NULL,       -- which write of that hold it was
    written timestamptz NOT NULL,
    until   timestamptz,           -- NULL: kept for ever
    value   bytea NOT NULL,
    PRIMARY KEY (lock, key)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX record_until ON holdfast.record (lock, until) WHERE until IS NOT NULL;

CREATE OR REPLACE FUNCTION holdfast.to_ms(p_at timestamptz) RETURNS bigint
LANGUAGE sql STABLE AS $$ SELECT floor(extract(epoch FROM p_at) * 1000)::bigint $$;

-- Writes a record: only for the one who holds the lock now, and only what is newer than what is there. The
-- lock's row is locked first and the clock read after that: a holder that was stopped on its way finds its
-- successor there. 'written', 'stale', or 'taken', 'expired', 'forgotten', 'standby'.
CREATE OR REPLACE FUNCTION holdfast.record_put(
    p_name bytea, p_owner bytea, p_token bigint, p_number bigint, p_key bytea, p_value bytea,
    p_keep_ms bigint, p_patience_ms integer, OUT verdict text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    it   holdfast.lock;
    now  timestamptz;
    done text;
BEGIN
    IF pg_is_in_recovery() THEN
        verdict := 'standby';
        RETURN;
    END IF;
    done := holdfast.set_up('on', p_patience_ms);
    SELECT * INTO it FROM holdfast.lock AS l WHERE l.name = p_name FOR NO KEY UPDATE;
    now := clock_timestamp();
    IF it.owner = p_owner AND it.token = p_token AND NOT it.handed AND it.expires > now THEN
        verdict := 'written';
    ELSE
        verdict := holdfast.loss(it, p_token);
        RETURN;
    END IF;
    INSERT INTO holdfast.record AS r
    VALUES (p_name, p_key, p_token, p_number, now,
            now + nullif(p_keep_ms, 0) * interval '1 millisecond', p_value)
    ON CONFLICT (lock, key) DO UPDATE
    SET token = excluded.token, number = excluded.number, written = excluded.written,
        until = excluded.until, value = excluded.value
    WHERE (r.token, r.number) < (excluded.token, excluded.number);
    IF NOT FOUND THEN
        -- Perhaps the same write again, because nobody said that the first one is durable. This commit tells:
        -- the lock of the row is a write, too, and waits for a synchronous standby.
        verdict := 'stale';
        RETURN;
    END IF;
    -- What this hold wrote stays, expired or not: it is what refuses a late copy of an earlier write.
    DELETE FROM holdfast.record AS r
    WHERE r.lock = p_name AND r.key IN (
        SELECT o.key FROM holdfast.record AS o
        WHERE o.lock = p_name AND o.until <= now AND o.token <> p_token
        ORDER BY o.until LIMIT 8);
END
$$;

-- Reads a record, and the clock in any case. 'record', 'none' or 'standby': what that has may be old.
CREATE OR REPLACE FUNCTION holdfast.record_get(
    p_name bytea, p_key bytea,
    OUT verdict text, OUT now_ms bigint, OUT key text, OUT token bigint, OUT number bigint,
    OUT written_ms bigint, OUT until_ms bigint, OUT value text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    now timestamptz := clock_timestamp();
    it  holdfast.record;
BEGIN
    IF pg_is_in_recovery() THEN
        verdict := 'standby';
        RETURN;
    END IF;
    verdict := 'none';
    now_ms := holdfast.to_ms(now);
    SELECT * INTO it FROM holdfast.record AS r
    WHERE r.lock = p_name AND r.key = p_key AND (r.until IS NULL OR r.until > now);
    IF FOUND THEN
        verdict := 'record';
        key := encode(it.key, 'hex');
        token := it.token;
        number := it.number;
        written_ms := holdfast.to_ms(it.written);
        until_ms := coalesce(holdfast.to_ms(it.until), 0);
        value := encode(it.value, 'hex');
    END IF;
END
$$;

-- The records of a lock whose keys start with p_prefix, by key, from p_after (exclusive) on: so many rows at
-- the most, and no more once they have so many bytes. Or a single row, 'standby'.
CREATE OR REPLACE FUNCTION holdfast.record_list(
    p_name bytea, p_prefix bytea, p_after bytea, p_rows integer, p_bytes integer)
RETURNS TABLE (verdict text, now_ms bigint, key text, token bigint, number bigint,
               written_ms bigint, until_ms bigint, value text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    now timestamptz := clock_timestamp();
BEGIN
    IF pg_is_in_recovery() THEN
        verdict := 'standby';
        RETURN NEXT;
        RETURN;
    END IF;
    RETURN QUERY
    SELECT 'record', holdfast.to_ms(now), encode(p.key, 'hex'), p.token, p.number,
        holdfast.to_ms(p.written), coalesce(holdfast.to_ms(p.until), 0), encode(p.value, 'hex')
    FROM (
        SELECT r.*, sum(octet_length(r.value)) OVER (ORDER BY r.key) - octet_length(r.value) AS before
        FROM (
            SELECT * FROM holdfast.record AS r
            -- A range of the index. No key is longer than 64 bytes.
            WHERE r.lock = p_name AND (r.until IS NULL OR r.until > now)
                AND r.key >= coalesce(p_after, p_prefix) AND r.key IS DISTINCT FROM p_after
                AND r.key <= p_prefix || decode(repeat('ff', 64), 'hex')
            ORDER BY r.key LIMIT p_rows) AS r) AS p
    WHERE p.before < p_bytes
    ORDER BY p.key;
END
$$;
