-- Version 24: the functions about locks; 006_incarnation.sql says how such files change. Versions 5, 12, 15, 19 and 22
-- were earlier sets of them.

DROP FUNCTION IF EXISTS holdfast.list(bytea, boolean, bytea, integer);

-- For this transaction: how durable it is to be, and how long the lock of a row may keep it. That the wait
-- for a standby was given up is said by a warning alone, which a role's settings may keep from us.
CREATE OR REPLACE FUNCTION holdfast.set_up(p_synchronous text, p_patience_ms integer) RETURNS text
LANGUAGE sql VOLATILE AS $$
    SELECT set_config('synchronous_commit', p_synchronous, true)
        || set_config('lock_timeout', p_patience_ms::text, true)
        || set_config('client_min_messages', 'warning', true)
$$;

-- Whether one of a party was handed a lock and has not been heard of since. A party that is dead costs those
-- behind it a second, and not a second for each lock that it waited for.
CREATE OR REPLACE FUNCTION holdfast.is_silent(p_party bytea) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT FROM holdfast.waiter AS w WHERE w.party = p_party AND w.passed);
END
$$;

-- Whose turn it is: the first live waiter that is not silent, or one of p_owners. The caller has locked the
-- lock's row.
CREATE OR REPLACE FUNCTION holdfast.head(p_name bytea, p_owners bytea[], p_now timestamptz)
RETURNS holdfast.waiter
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    head holdfast.waiter;
BEGIN
    SELECT * INTO head FROM holdfast.waiter AS w
    WHERE w.lock = p_name AND w.alive_until > p_now
        AND (w.owner = ANY (p_owners)
            OR (NOT w.passed AND (w.party IS NULL OR NOT holdfast.is_silent(w.party))))
    ORDER BY w.ticket LIMIT 1;
    RETURN head;
END
$$;

-- Gives a free lock to the first live waiter, for a second in which it has to confirm, and wakes
-- that one alone; or makes it free. The caller has locked the lock's row. Waiters that are leaving at this
-- moment, because they got another lock, have locked theirs and are passed over.
CREATE OR REPLACE FUNCTION holdfast.pass_on(p_name bytea) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    now  timestamptz := clock_timestamp();
    head holdfast.waiter;
BEGIN
    SELECT * INTO head FROM holdfast.waiter AS w
    WHERE w.lock = p_name AND w.alive_until > now AND NOT w.passed
        AND (w.party IS NULL OR NOT holdfast.is_silent(w.party))
    ORDER BY w.ticket LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN -- or it is giving a sign of life
        SELECT * INTO head FROM holdfast.waiter AS w
        WHERE w.lock = p_name AND w.alive_until > now AND NOT w.passed
            AND (w.party IS NULL OR NOT holdfast.is_silent(w.party))
        ORDER BY w.ticket LIMIT 1 FOR UPDATE;
    END IF;
    DELETE FROM holdfast.waiter AS w
    WHERE w.lock = p_name AND w.ticket IN (
        SELECT d.ticket FROM holdfast.waiter AS d
        WHERE d.lock = p_name AND d.alive_until <= now
            AND (head.ticket IS NULL OR d.ticket < head.ticket)
        FOR UPDATE SKIP LOCKED);
    IF head.ticket IS NULL THEN
        UPDATE holdfast.lock AS l
        SET owner = NULL, handed = false,
            queued = EXISTS (SELECT FROM holdfast.waiter AS w WHERE w.lock = p_name)
        WHERE l.name = p_name;
        RETURN;
    END IF;
    UPDATE holdfast.waiter AS w SET passed = true WHERE w.lock = p_name AND w.ticket = head.ticket;
    UPDATE holdfast.lock AS l
    SET owner = head.owner, handed = true, ttl_ms = 1000, expires = now + interval '1 second'
    WHERE l.name = p_name;
    IF head.channel <> '' THEN
        PERFORM pg_notify(head.channel, '');
    END IF;
END
$$;

-- Takes a lock that nobody waits for and nobody holds, or nobody ever did; the common cases. NULL: it is not.
CREATE OR REPLACE FUNCTION holdfast.take_free(
    p_name bytea, p_owner bytea, p_ttl_ms integer, p_label bytea, p_detached boolean, p_attempt integer)
RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    now   timestamptz := clock_timestamp();
    taken bigint;
BEGIN
    UPDATE holdfast.lock AS l
    SET token = greatest(l.token + 1, (extract(epoch FROM now) * 1000000)::bigint),
        owner = p_owner, handed = false, detached = p_detached, ttl_ms = p_ttl_ms, taken = now,
        expires = now + p_ttl_ms * interval '1 millisecond', label = p_label, attempt = p_attempt
    WHERE l.name = p_name AND NOT l.queued
        AND (l.owner IS NULL OR l.expires <= clock_timestamp())
    RETURNING l.token INTO taken;
    IF NOT FOUND THEN
        INSERT INTO holdfast.lock AS l
            (name, token, owner, handed, queued, detached, ttl_ms, taken, expires, label, attempt)
        VALUES (p_name, extract(epoch FROM now) * 1000000, p_owner, false, false, p_detached, p_ttl_ms,
                now, now + p_ttl_ms * interval '1 millisecond', p_label, p_attempt)
        ON CONFLICT (name) DO NOTHING
        RETURNING l.token INTO taken;
    END IF;
    RETURN taken;
END
$$;

-- Gives the lock to p_owner, whose turn it is and who no longer waits. The caller has locked its row.
CREATE OR REPLACE FUNCTION holdfast.hold(
    p_name bytea, p_owner bytea, p_ttl_ms integer, p_label bytea, p_detached boolean, p_attempt integer)
RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    now   timestamptz := clock_timestamp();
    taken bigint;
BEGIN
    UPDATE holdfast.lock AS l
    SET token = greatest(l.token + 1, (extract(epoch FROM now) * 1000000)::bigint),
        owner = p_owner, handed = false,
        queued = EXISTS (SELECT FROM holdfast.waiter AS w WHERE w.lock = p_name),
        detached = p_detached, ttl_ms = p_ttl_ms, taken = now,
        expires = now + p_ttl_ms * interval '1 millisecond', label = p_label, attempt = p_attempt
    WHERE l.name = p_name
    RETURNING l.token INTO taken;
    RETURN taken;
END
$$;

-- The lock's time, after its row was locked. If the server's clock went back: nobody's time lasts longer than
-- its ttl.
CREATE OR REPLACE FUNCTION holdfast.set_right(p_lock holdfast.lock, p_now timestamptz)
RETURNS holdfast.lock
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    most timestamptz := p_now + p_lock.ttl_ms * interval '1 millisecond';
BEGIN
    IF p_lock.expires > most THEN
        p_lock.expires := most;
        UPDATE holdfast.lock AS l SET expires = most WHERE l.name = p_lock.name;
    END IF;
    RETURN p_lock;
END
$$;

-- Why it is not held any more, judged by what the lock's row says.
CREATE OR REPLACE FUNCTION holdfast.loss(p_lock holdfast.lock, p_token bigint) RETURNS text
LANGUAGE sql VOLATILE AS $$
    SELECT CASE
        WHEN p_lock.broken = p_token AND p_token > 0 THEN 'broken'
        WHEN p_lock.broken > p_token AND p_token > 0 AND holdfast.was_broken(p_lock.name, p_token)
            THEN 'broken'
        WHEN p_lock.token IS NULL OR p_lock.token < p_token THEN 'forgotten'
        WHEN p_lock.token > p_token AND p_token > 0 THEN 'taken'
        WHEN p_lock.owner IS NOT NULL AND p_lock.expires > clock_timestamp() THEN 'taken'
        ELSE 'expired'
    END
$$;

-- Takes the lock, or confirms a hand-over, or queues.
-- 'granted' with the token; 'busy' with when to look again and who holds it ('held', or 'handed' to
-- the next in line, or 'queued': free, but others came first); 'twice': another attempt of this owner holds
-- it; 'new' life; 'standby'.
CREATE OR REPLACE FUNCTION holdfast.acquire(
    p_name bytea, p_owner bytea, p_ttl_ms integer, p_label bytea, p_detached boolean, p_id text,
    p_channel text,        -- NULL: do not queue
    p_patience_ms integer, -- how long a lock of a row may keep us
    p_attempt integer DEFAULT 0,
    OUT verdict text, OUT token bigint, OUT look_ms bigint, OUT left_ms bigint, OUT holder text,
    OUT label text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    now  timestamptz;
    it   holdfast.lock;
    head holdfast.waiter;
    free boolean;
    done text;
BEGIN
    IF pg_is_in_recovery() THEN
        verdict := 'standby';
        RETURN;
    END IF;
    IF NOT holdfast.grants(p_id, p_ttl_ms) THEN
        verdict := 'new';
        RETURN;
    END IF;
    done := holdfast.set_up('on', p_patience_ms);

    token := holdfast.take_free(p_name, p_owner, p_ttl_ms, p_label, p_detached, p_attempt);
    IF token IS NOT NULL THEN
        verdict := 'granted';
        RETURN;
    END IF;

    SELECT * INTO it FROM holdfast.lock AS l WHERE l.name = p_name FOR UPDATE;
    IF NOT FOUND THEN
        -- It was made after our snapshot: with a new one we shall see it.
        RAISE EXCEPTION USING ERRCODE = 'serialization_failure',
            MESSAGE = 'could not serialize access: the lock was made just now';
    END IF;
    now := clock_timestamp();
    it := holdfast.set_right(it, now);
    head := holdfast.head(p_name, ARRAY[p_owner], now);
    free := it.owner IS NULL OR it.expires <= now;

    IF p_attempt <> 0 AND it.owner = p_owner AND NOT it.handed AND NOT free AND it.attempt <> p_attempt THEN
        verdict := 'twice';
        RETURN;
    END IF;
    IF it.owner = p_owner AND NOT it.handed AND NOT free AND it.broken <> it.token THEN
        -- One owner, one hold: the same token, and the time that this request asks for.
        UPDATE holdfast.lock AS l
        SET expires = now + p_ttl_ms * interval '1 millisecond', ttl_ms = p_ttl_ms
        WHERE l.name = p_name;
        token := it.token;
        verdict := 'granted';
        RETURN;
    END IF;
    IF (it.owner = p_owner AND it.handed)
            OR (free AND (head.owner IS NULL OR head.owner = p_owner)) THEN
        DELETE FROM holdfast.waiter AS w WHERE w.owner = p_owner;
        token := holdfast.hold(p_name, p_owner, p_ttl_ms, p_label, p_detached, p_attempt);
        verdict := 'granted';
        RETURN;
    END IF;

    -- Nothing below has to be durable: a queue that is lost is formed anew.
    done := set_config('synchronous_commit', 'off', true);
    IF p_channel IS NOT NULL THEN
        UPDATE holdfast.waiter AS w
        SET alive_until = now + interval '3 seconds', passed = false, channel = p_channel,
            attempts = CASE WHEN p_attempt = 0 OR p_attempt = ANY (w.attempts) THEN w.attempts
                            ELSE w.attempts || p_attempt END
        WHERE w.owner = p_owner;
        IF NOT FOUND THEN
            INSERT INTO holdfast.waiter (lock, owner, channel, passed, alive_until, label, attempts)
            VALUES (p_name, p_owner, p_channel, false, now + interval '3 seconds', p_label,
                    array_remove(ARRAY[p_attempt], 0));
            UPDATE holdfast.lock AS l SET queued = true WHERE l.name = p_name AND NOT l.queued;
        END IF;
    END IF;
    IF free THEN
        PERFORM holdfast.pass_on(p_name);
        SELECT * INTO it FROM holdfast.lock AS l WHERE l.name = p_name;
    END IF;
    verdict := 'busy';
    token := it.token;
    left_ms := greatest(0, ceil(extract(epoch FROM it.expires - now) * 1000));
    holder := CASE WHEN it.owner IS NULL THEN 'queued' WHEN it.handed THEN 'handed' ELSE 'held' END;
    label := encode(it.label, 'hex');
    -- The next in line looks when the holder's time is up, the others sleep on. Those whom nobody can
    -- wake look the more often the nearer their turn is.
    look_ms := 1000;
    IF p_channel = '' THEN
        look_ms := 100 * (
            SELECT count(*) FROM (
                SELECT FROM holdfast.waiter AS w
                WHERE w.lock = p_name AND w.ticket <= (
                    SELECT m.ticket FROM holdfast.waiter AS m WHERE m.owner = p_owner)
                LIMIT 10) AS ahead);
    END IF;
    IF head.owner IS NULL OR head.owner = p_owner THEN
        look_ms := least(look_ms, left_ms + 1);
    END IF;
END
$$;

-- Extends a hold; with a ttl of 0 only looks. Never creates.
-- 'held' (with what is left of it, if it was a look; 'revoked': it was broken since), or 'broken', 'taken',
-- 'expired', 'forgotten', 'standby'.
CREATE OR REPLACE FUNCTION holdfast.renew(
    p_name bytea, p_owner bytea, p_token bigint, p_ttl_ms integer, p_patience_ms integer,
    OUT verdict text, OUT left_ms bigint, OUT ttl_ms integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    it   holdfast.lock;
    done text;
BEGIN
    IF pg_is_in_recovery() THEN
        verdict := 'standby';
        RETURN;
    END IF;
    IF p_ttl_ms > 0 THEN
        done := holdfast.set_up('on', p_patience_ms);
        UPDATE holdfast.lock AS l
        SET expires = clock_timestamp() + p_ttl_ms * interval '1 millisecond', ttl_ms = p_ttl_ms
        WHERE l.name = p_name AND l.owner = p_owner AND l.token = p_token AND NOT l.handed
            AND l.broken <> p_token AND l.expires > clock_timestamp();
        IF FOUND THEN
            verdict := 'held';
            RETURN;
        END IF;
    END IF;
    SELECT * INTO it FROM holdfast.lock AS l WHERE l.name = p_name;
    IF p_ttl_ms = 0 AND it.owner = p_owner AND it.token = p_token AND NOT it.handed
            AND it.expires > clock_timestamp() THEN
        verdict := CASE WHEN it.broken = p_token THEN 'revoked' ELSE 'held' END;
        ttl_ms := it.ttl_ms;
        left_ms := least(it.ttl_ms,
                         floor(extract(epoch FROM it.expires - clock_timestamp()) * 1000));
        RETURN;
    END IF;
    verdict := holdfast.loss(it, p_token);
END
$$;

-- Extends many holds at once, the n-th of each array being one. A row that somebody else has locked is
-- passed over, so that one does not hold up the others. Rows in the order of the arrays: 'held', 'locked',
-- or why it is no longer held; or a single row, 'standby'.
CREATE OR REPLACE FUNCTION holdfast.renew_many(
    p_names bytea[], p_owners bytea[], p_tokens bigint[], p_ttls_ms integer[], p_patience_ms integer)
RETURNS TABLE (verdict text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    it   holdfast.lock;
    done text;
BEGIN
    IF pg_is_in_recovery() THEN
        verdict := 'standby';
        RETURN NEXT;
        RETURN;
    END IF;
    done := holdfast.set_up('on', p_patience_ms);
    FOR n IN 1 .. cardinality(p_names) LOOP
        SELECT * INTO it FROM holdfast.lock AS l WHERE l.name = p_names[n]
        FOR NO KEY UPDATE SKIP LOCKED;
        IF NOT FOUND AND EXISTS (SELECT FROM holdfast.lock AS l WHERE l.name = p_names[n]) THEN
            verdict := 'locked';
        ELSIF it.owner = p_owners[n] AND it.token = p_tokens[n] AND NOT it.handed
                AND it.broken <> p_tokens[n] AND it.expires > clock_timestamp() THEN
            UPDATE holdfast.lock AS l
            SET expires = clock_timestamp() + p_ttls_ms[n] * interval '1 millisecond',
                ttl_ms = p_ttls_ms[n]
            WHERE l.name = p_names[n];
            verdict := 'held';
        ELSE
            verdict := holdfast.loss(it, p_tokens[n]);
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;

-- Ends a hold and passes the lock on, unless this life of the server may have forgotten a holder. A token
-- of 0: whatever the owner has of it, its place in the line too. A hold that was broken is one as long as it
-- lasts. 'released', or 'broken', 'taken', 'expired', 'forgotten', 'standby'.
CREATE OR REPLACE FUNCTION holdfast.release(
    p_name bytea, p_owner bytea, p_token bigint, p_id text, p_patience_ms integer,
    OUT verdict text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    it   holdfast.lock;
    held boolean;
    done text;
BEGIN
    IF pg_is_in_recovery() THEN
        verdict := 'standby';
        RETURN;
    END IF;
    done := holdfast.set_up('on', p_patience_ms);
    UPDATE holdfast.lock AS l SET owner = NULL
    WHERE l.name = p_name AND l.owner = p_owner AND (l.token = p_token OR p_token = 0)
        AND NOT l.handed AND NOT l.queued
    RETURNING l.expires > clock_timestamp() INTO held;
    IF FOUND THEN
        verdict := CASE WHEN held THEN 'released' ELSE 'expired' END;
        RETURN;
    END IF;

    SELECT * INTO it FROM holdfast.lock AS l WHERE l.name = p_name FOR UPDATE;
    IF p_token = 0 THEN
        DELETE FROM holdfast.waiter AS w WHERE w.owner = p_owner;
    END IF;
    IF it.owner = p_owner AND (p_token = 0 OR (it.token = p_token AND NOT it.handed)) THEN
        held := it.expires > clock_timestamp() AND NOT it.handed;
        IF holdfast.grants(p_id, 0) THEN
            PERFORM holdfast.pass_on(p_name);
        ELSE
            UPDATE holdfast.lock AS l SET owner = NULL, handed = false WHERE l.name = p_name;
        END IF;
        verdict := CASE WHEN held THEN 'released' ELSE 'expired' END;
        RETURN;
    END IF;
    verdict := holdfast.loss(it, p_token);
END
$$;

-- What is held or waited for, by name, among the p_scan rows from p_after (exclusive) on: so a page costs
-- the same however many locks are free. The last of them is shown in any case; n tells how many there were.
CREATE OR REPLACE FUNCTION holdfast.list(
    p_prefix bytea, p_exact boolean, p_after bytea, p_scan integer)
RETURNS TABLE (name text, held boolean, token bigint, left_ms bigint, age_ms bigint,
               waiters bigint, detached boolean, label text, n bigint, broken_ms bigint,
               broken_by text, reason text, ttl_ms integer)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT encode(l.name, 'hex'), h.held, l.token,
        least(l.ttl_ms, greatest(0, (extract(epoch FROM l.expires - h.now) * 1000)::bigint)),
        greatest(0, (extract(epoch FROM h.now - l.taken) * 1000)::bigint),
        w.waiters, l.detached, encode(l.label, 'hex'), l.n,
        holdfast.to_ms(b.at), encode(b.label, 'hex'), encode(b.reason, 'hex'), l.ttl_ms
    FROM (
        SELECT r.*, row_number() OVER () AS n
        FROM (
            SELECT * FROM holdfast.lock AS l
            -- A range of the index. No name is longer than 200 bytes.
            WHERE l.name >= coalesce(p_after, p_prefix) AND l.name IS DISTINCT FROM p_after
                AND l.name <= CASE WHEN p_exact THEN p_prefix
                                   ELSE p_prefix || decode(repeat('ff', 200), 'hex') END
            ORDER BY l.name LIMIT p_scan) AS r) AS l
    CROSS JOIN LATERAL (
        SELECT clock_timestamp() AS now,
            l.owner IS NOT NULL AND NOT l.handed AND l.expires > clock_timestamp() AS held) AS h
    CROSS JOIN LATERAL (
        SELECT count(*) AS waiters FROM holdfast.waiter AS w
        WHERE l.queued AND w.lock = l.name AND w.alive_until > clock_timestamp()) AS w
    LEFT JOIN holdfast.broken AS b ON l.broken = l.token AND b.lock = l.name AND b.token = l.token
    WHERE h.held OR w.waiters > 0 OR l.n = p_scan
    ORDER BY l.name
$$;

-- Who waits for the lock, the next one first: its label, and for how long.
CREATE OR REPLACE FUNCTION holdfast.waiters(p_name bytea, p_max integer)
RETURNS TABLE (label text, waited_ms bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT encode(w.label, 'hex'),
        greatest(0, (extract(epoch FROM clock_timestamp() - w.since) * 1000)::bigint)
    FROM holdfast.waiter AS w
    WHERE w.lock = p_name AND w.alive_until > clock_timestamp()
    ORDER BY w.ticket LIMIT p_max
$$;

-- Forgets waiters that died in front of locks nobody asks for any more.
CREATE OR REPLACE FUNCTION holdfast.sweep() RETURNS bigint
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH dead AS (
        SELECT w.ctid FROM holdfast.waiter AS w
        WHERE w.alive_until < clock_timestamp() - interval '1 minute'
        LIMIT 1000 FOR UPDATE SKIP LOCKED),
    gone AS (
        DELETE FROM holdfast.waiter AS w USING dead WHERE w.ctid = dead.ctid RETURNING 1)
    SELECT count(*) FROM gone
$$;
