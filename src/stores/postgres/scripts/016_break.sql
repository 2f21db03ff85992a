-- Version 16: holds that were broken. The lock's row has the token of the last one, so that nothing has to be
-- cleared when the lock changes hands. The functions that look at it are in the last file.

ALTER TABLE holdfast.lock ADD COLUMN IF NOT EXISTS broken bigint NOT NULL DEFAULT 0;

-- Who broke it, when and why: the last one of each lock, and those of the hour before it, whose holders may not
-- have heard of it yet.
CREATE TABLE IF NOT EXISTS holdfast.broken (
    lock    bytea NOT NULL,
    token   bigint NOT NULL,
    at      timestamptz NOT NULL,
    at_once boolean NOT NULL,      -- the hold was ended, not only revoked
    role    text NOT NULL,
    label   bytea NOT NULL,
    reason  bytea NOT NULL
);
ALTER TABLE holdfast.broken DROP CONSTRAINT IF EXISTS broken_pkey;
ALTER TABLE holdfast.broken ADD CONSTRAINT broken_pkey PRIMARY KEY (lock, token);

-- Breaks the hold p_token: it is no longer renewed, and stays until it is released or its time is over; or, at
-- once, ends it, and passes the lock on unless this life of the server may have forgotten a holder. Who may use
-- the schema may not use this, unless that is granted.
-- 'revoked' with how long it lasts, whose it is, and whether it was revoked before. Nothing changes if it is
-- 'free', 'handed' to the next in line at this moment, or held with an 'other' token; 'standby'.
CREATE OR REPLACE FUNCTION holdfast.revoke(
    p_name bytea, p_token bigint, p_label bytea, p_reason bytea, p_at_once boolean, p_id text,
    p_patience_ms integer,
    OUT verdict text, OUT left_ms bigint, OUT again boolean, OUT detached boolean, OUT label text)
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
    SELECT * INTO it FROM holdfast.lock AS l WHERE l.name = p_name FOR UPDATE;
    now := clock_timestamp();
    verdict := CASE
        WHEN it.owner IS NULL OR it.expires <= now THEN 'free'
        WHEN it.handed THEN 'handed'
        WHEN it.token <> p_token THEN 'other'
        ELSE 'revoked'
    END;
    IF verdict <> 'revoked' THEN
        RETURN;
    END IF;
    again := it.broken = it.token;
    detached := it.detached;
    label := encode(it.label, 'hex');
    IF NOT again THEN
        UPDATE holdfast.lock AS l SET broken = p_token WHERE l.name = p_name;
        DELETE FROM holdfast.broken AS b WHERE b.lock = p_name AND b.at < now - interval '1 hour';
        INSERT INTO holdfast.broken AS b
        VALUES (p_name, p_token, now, p_at_once, session_user, p_label, p_reason)
        ON CONFLICT (lock, token) DO UPDATE
        SET at = excluded.at, at_once = excluded.at_once,
            role = excluded.role, label = excluded.label, reason = excluded.reason;
    END IF;
    left_ms := 0;
    IF NOT p_at_once THEN
        left_ms := least(it.ttl_ms, ceil(extract(epoch FROM it.expires - now) * 1000));
    ELSIF holdfast.grants(p_id, 0) THEN
        PERFORM holdfast.pass_on(p_name);
    ELSE
        UPDATE holdfast.lock AS l SET owner = NULL, handed = false WHERE l.name = p_name;
    END IF;
END
$$;
REVOKE EXECUTE ON FUNCTION holdfast.revoke(bytea, bigint, bytea, bytea, boolean, text, integer) FROM PUBLIC;

-- Who broke that hold, for its holder. 'broken', or 'none'.
CREATE OR REPLACE FUNCTION holdfast.who_broke(
    p_name bytea, p_token bigint,
    OUT verdict text, OUT at_ms bigint, OUT label text, OUT reason text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    verdict := 'none';
    SELECT 'broken', holdfast.to_ms(b.at), encode(b.label, 'hex'), encode(b.reason, 'hex')
    INTO verdict, at_ms, label, reason
    FROM holdfast.broken AS b WHERE b.lock = p_name AND b.token = p_token;
END
$$;

-- Was it? The lock's row tells of the last break only. For holds that are over.
CREATE OR REPLACE FUNCTION holdfast.was_broken(p_name bytea, p_token bigint) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN EXISTS (SELECT FROM holdfast.broken AS b WHERE b.lock = p_name AND b.token = p_token);
END
$$;
