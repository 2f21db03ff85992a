-- Version 2: the functions. A client calls one of them per request, and nothing else. They run with
-- their creator's rights, so that a role that may use the schema can take locks and cannot read owners.

-- One life of the data: which cluster, and on which timeline it writes. A promoted standby and a
-- restored backup write on a new timeline. Fails on a standby. Written so that the planner puts the
-- expression in the place of the call.
CREATE FUNCTION holdfast.incarnation() RETURNS text
LANGUAGE sql VOLATILE AS $$
    SELECT (pg_control_system()).system_identifier || '/'
        || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)
$$;

-- For this transaction: how durable it is to be, and how long the lock of a row may keep it. That the wait
-- for a standby was given up is said by a warning alone, which a role's settings may keep from us.
CREATE FUNCTION holdfast.set_up(p_synchronous text, p_patience_ms integer) RETURNS text
LANGUAGE sql VOLATILE AS $$
    SELECT set_config('synchronous_commit', p_synchronous, true)
        || set_config('lock_timeout', p_patience_ms::text, true)
        || set_config('client_min_messages', 'warning', true)
$$;

-- Meets the server: which life is it, and may it grant?
-- 'open'; 'quarantine' with left_ms; 'max_ttl' with the one agreed on; 'standby'.
CREATE FUNCTION holdfast.meet(
    p_max_ttl_ms bigint,
    OUT version integer, OUT verdict text, OUT id text, OUT left_ms bigint, OUT agreed_ms bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    met  holdfast.met;
    now  timestamptz;
    span interval := p_max_ttl_ms * interval '1 millisecond';
    last record;
    met_id text;
BEGIN
    SELECT v.version INTO version FROM holdfast.version AS v;
    IF pg_is_in_recovery() THEN
        verdict := 'standby';
        RETURN;
    END IF;
    id := holdfast.incarnation();
    SELECT * INTO met FROM holdfast.met;
    now := clock_timestamp();
    IF met.id = id AND met.max_ttl_ms = p_max_ttl_ms AND met.open_at <= now THEN
        verdict := 'open';
        RETURN;
    END IF;

    LOCK TABLE holdfast.met IN SHARE ROW EXCLUSIVE MODE;
    SELECT * INTO met FROM holdfast.met;
    now := clock_timestamp();
    IF met.id IS DISTINCT FROM id THEN
        -- A life we have not met. It may have forgotten what was granted within max_ttl before it
        -- began. A timeline begins no later than its last checkpoint, whose time is cut to whole
        -- seconds; the first timeline follows upon nothing that could have been forgotten. Another
        -- cluster's data may have been in use elsewhere until now, however long this one has been up.
        IF met.max_ttl_ms <> p_max_ttl_ms THEN
            verdict := 'max_ttl';
            agreed_ms := met.max_ttl_ms;
            RETURN;
        END IF;
        SELECT c.timeline_id, c.checkpoint_time INTO last FROM pg_control_checkpoint() AS c;
        met_id := met.id;
        met.id := id;
        met.since := now;
        IF right(id, 8) = lpad(upper(to_hex(last.timeline_id)), 8, '0')
                AND coalesce(split_part(met_id, '/', 1) = split_part(id, '/', 1), true) THEN
            met.since := least(now, last.checkpoint_time + interval '1 second');
        END IF;
        met.open_at := met.since + span;
        IF right(id, 8) = '00000001' AND met.max_ttl_ms IS NULL THEN
            met.open_at := met.since;
        END IF;
    ELSIF met.max_ttl_ms <> p_max_ttl_ms THEN
        -- Until the server opens, the longest ttl counts; after that, all have to agree.
        IF met.open_at <= now OR p_max_ttl_ms < met.max_ttl_ms THEN
            verdict := 'max_ttl';
            agreed_ms := met.max_ttl_ms;
            RETURN;
        END IF;
        met.open_at := met.since + span;
    END IF;
    -- The server's clock went back. No grant lives longer than this.
    IF met.open_at > now + span THEN
        met.since := now;
        met.open_at := now + span;
    END IF;
    PERFORM set_config('synchronous_commit', 'on', true);
    INSERT INTO holdfast.met VALUES (true, met.id, met.since, met.open_at, p_max_ttl_ms)
    ON CONFLICT (one) DO UPDATE SET id = excluded.id, since = excluded.since,
        open_at = excluded.open_at, max_ttl_ms = excluded.max_ttl_ms;
    left_ms := ceil(extract(epoch FROM met.open_at - now) * 1000);
    verdict := CASE WHEN met.open_at > now THEN 'quarantine' ELSE 'open' END;
END
$$;

-- Gives a free lock to the first live waiter, for a second in which it has to confirm, and wakes
-- that one alone; or makes it free. The caller has locked the lock's row.
CREATE FUNCTION holdfast.pass_on(p_name bytea) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    now  timestamptz := clock_timestamp();
    head holdfast.waiter;
BEGIN
    SELECT * INTO head FROM holdfast.waiter AS w
    WHERE w.lock = p_name AND NOT w.passed AND w.alive_until > now ORDER BY w.ticket LIMIT 1;
    DELETE FROM holdfast.waiter AS w
    WHERE w.lock = p_name AND w.alive_until <= now AND (head.ticket IS NULL OR w.ticket < head.ticket);
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

-- Why a hold is none: judged by what the lock's row says.
CREATE FUNCTION holdfast.loss(p_lock holdfast.lock, p_token bigint) RETURNS text
LANGUAGE sql VOLATILE AS $$
    SELECT CASE
        WHEN p_lock.token IS NULL OR p_lock.token < p_token THEN 'forgotten'
        WHEN p_lock.token > p_token THEN 'taken'
        WHEN p_lock.owner IS NOT NULL AND p_lock.expires > clock_timestamp() THEN 'taken'
        ELSE 'expired'
    END
$$;

-- Takes the lock, or confirms a hand-over, or queues.
-- 'granted' with the token; 'busy' with when to look again and who holds it ('held', or 'handed' to
-- the next in line, or 'queued': free, but others came first); 'new' life; 'standby'.
CREATE FUNCTION holdfast.acquire(
    p_name bytea, p_owner bytea, p_ttl_ms integer, p_label bytea, p_detached boolean, p_id text,
    p_channel text,        -- NULL: do not queue
    p_patience_ms integer, -- how long a lock of a row may keep us
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
    IF p_id IS DISTINCT FROM holdfast.incarnation() THEN
        verdict := 'new';
        RETURN;
    END IF;
    done := holdfast.set_up('on', p_patience_ms);

    -- The common cases first: nobody waits and nobody holds it, or nobody ever did.
    now := clock_timestamp();
    UPDATE holdfast.lock AS l
    SET token = greatest(l.token + 1, (extract(epoch FROM now) * 1000000)::bigint),
        owner = p_owner, handed = false, detached = p_detached, ttl_ms = p_ttl_ms, taken = now,
        expires = now + p_ttl_ms * interval '1 millisecond', label = p_label
    WHERE l.name = p_name AND NOT l.queued
        AND (l.owner IS NULL OR l.expires <= clock_timestamp())
    RETURNING l.token INTO token;
    IF NOT FOUND THEN
        INSERT INTO holdfast.lock AS l
        VALUES (p_name, extract(epoch FROM now) * 1000000, p_owner, false, false, p_detached,
                p_ttl_ms, now, now + p_ttl_ms * interval '1 millisecond', p_label)
        ON CONFLICT (name) DO NOTHING
        RETURNING l.token INTO token;
    END IF;
    IF FOUND THEN
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
    IF it.expires > now + it.ttl_ms * interval '1 millisecond' THEN
        -- The server's clock went back. Nobody's time lasts longer than its ttl.
        it.expires := now + it.ttl_ms * interval '1 millisecond';
        UPDATE holdfast.lock AS l SET expires = it.expires WHERE l.name = p_name;
    END IF;
    SELECT * INTO head FROM holdfast.waiter AS w
    WHERE w.lock = p_name AND w.alive_until > now AND (NOT w.passed OR w.owner = p_owner)
    ORDER BY w.ticket LIMIT 1;
    free := it.owner IS NULL OR it.expires <= now;

    IF it.owner = p_owner OR (free AND (head.owner IS NULL OR head.owner = p_owner)) THEN
        DELETE FROM holdfast.waiter AS w WHERE w.owner = p_owner;
        UPDATE holdfast.lock AS l
        SET token = greatest(l.token + 1, (extract(epoch FROM now) * 1000000)::bigint),
            owner = p_owner, handed = false,
            queued = EXISTS (SELECT FROM holdfast.waiter AS w WHERE w.lock = p_name),
            detached = p_detached, ttl_ms = p_ttl_ms, taken = now,
            expires = now + p_ttl_ms * interval '1 millisecond', label = p_label
        WHERE l.name = p_name
        RETURNING l.token INTO token;
        verdict := 'granted';
        RETURN;
    END IF;

    -- Nothing below has to be durable: a queue that is lost is formed anew.
    done := set_config('synchronous_commit', 'off', true);
    IF p_channel IS NOT NULL THEN
        UPDATE holdfast.waiter AS w
        SET alive_until = now + interval '3 seconds', passed = false, channel = p_channel
        WHERE w.owner = p_owner;
        IF NOT FOUND THEN
            INSERT INTO holdfast.waiter (lock, owner, channel, passed, alive_until)
            VALUES (p_name, p_owner, p_channel, false, now + interval '3 seconds');
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
-- 'held' (with what is left of it, if it was a look), or 'taken', 'expired', 'forgotten', 'standby'.
CREATE FUNCTION holdfast.renew(
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
            AND l.expires > clock_timestamp();
        IF FOUND THEN
            verdict := 'held';
            RETURN;
        END IF;
    END IF;
    SELECT * INTO it FROM holdfast.lock AS l WHERE l.name = p_name;
    IF p_ttl_ms = 0 AND it.owner = p_owner AND it.token = p_token AND NOT it.handed
            AND it.expires > clock_timestamp() THEN
        verdict := 'held';
        ttl_ms := it.ttl_ms;
        left_ms := least(it.ttl_ms,
                         floor(extract(epoch FROM it.expires - clock_timestamp()) * 1000));
        RETURN;
    END IF;
    verdict := holdfast.loss(it, p_token);
END
$$;

-- Ends a hold and passes the lock on, unless this life of the server may have forgotten a holder.
-- 'released', or 'taken', 'expired', 'forgotten', 'standby'.
CREATE FUNCTION holdfast.release(
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
    WHERE l.name = p_name AND l.owner = p_owner AND NOT l.handed AND NOT l.queued
    RETURNING l.expires > clock_timestamp() INTO held;
    IF FOUND THEN
        verdict := CASE WHEN held THEN 'released' ELSE 'expired' END;
        RETURN;
    END IF;

    SELECT * INTO it FROM holdfast.lock AS l WHERE l.name = p_name FOR UPDATE;
    IF it.owner = p_owner AND NOT it.handed THEN
        held := it.expires > clock_timestamp();
        IF p_id = holdfast.incarnation() THEN
            PERFORM holdfast.pass_on(p_name);
        ELSE
            UPDATE holdfast.lock AS l SET owner = NULL WHERE l.name = p_name;
        END IF;
        verdict := CASE WHEN held THEN 'released' ELSE 'expired' END;
        RETURN;
    END IF;
    verdict := holdfast.loss(it, p_token);
END
$$;

-- Leaves the queue, gives back what was handed over or granted meanwhile, and sees that a free lock
-- finds its next owner. Also what follows a request that was never answered.
CREATE FUNCTION holdfast.leave(
    p_name bytea, p_owner bytea, p_id text, p_patience_ms integer, OUT verdict text)
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
    verdict := 'left';
    done := holdfast.set_up('off', p_patience_ms);
    SELECT * INTO it FROM holdfast.lock AS l WHERE l.name = p_name FOR UPDATE;
    DELETE FROM holdfast.waiter AS w WHERE w.owner = p_owner;
    IF it.owner = p_owner THEN
        UPDATE holdfast.lock AS l SET owner = NULL, handed = false WHERE l.name = p_name;
    ELSIF it.owner IS NOT NULL AND it.expires > clock_timestamp() THEN
        RETURN;
    END IF;
    IF it.queued AND p_id = holdfast.incarnation() THEN
        PERFORM holdfast.pass_on(p_name);
    END IF;
END
$$;

-- What is held or waited for, by name, from p_after (exclusive) on, at most p_limit rows.
CREATE FUNCTION holdfast.list(p_prefix bytea, p_exact boolean, p_after bytea, p_limit integer)
RETURNS TABLE (name text, held boolean, token bigint, left_ms bigint, age_ms bigint,
               waiters bigint, detached boolean, label text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT encode(l.name, 'hex'), h.held, l.token,
        least(l.ttl_ms, greatest(0, (extract(epoch FROM l.expires - h.now) * 1000)::bigint)),
        greatest(0, (extract(epoch FROM h.now - l.taken) * 1000)::bigint),
        w.waiters, l.detached, encode(l.label, 'hex')
    FROM holdfast.lock AS l
    CROSS JOIN LATERAL (
        SELECT clock_timestamp() AS now,
            l.owner IS NOT NULL AND NOT l.handed AND l.expires > clock_timestamp() AS held) AS h
    CROSS JOIN LATERAL (
        SELECT count(*) AS waiters FROM holdfast.waiter AS w
        WHERE l.queued AND w.lock = l.name AND w.alive_until > clock_timestamp()) AS w
    -- A range of the index. No name is longer than 200 bytes.
    WHERE l.name >= coalesce(p_after, p_prefix) AND l.name IS DISTINCT FROM p_after
        AND l.name <= CASE WHEN p_exact THEN p_prefix
                           ELSE p_prefix || decode(repeat('ff', 200), 'hex') END
        AND (h.held OR w.waiters > 0)
    ORDER BY l.name LIMIT p_limit
$$;

-- Forgets waiters that died in front of locks nobody asks for any more.
CREATE FUNCTION holdfast.sweep() RETURNS bigint
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH dead AS (
        SELECT w.ctid FROM holdfast.waiter AS w
        WHERE w.alive_until < clock_timestamp() - interval '1 minute'
        LIMIT 1000 FOR UPDATE SKIP LOCKED),
    gone AS (
        DELETE FROM holdfast.waiter AS w USING dead WHERE w.ctid = dead.ctid RETURNING 1)
    SELECT count(*) FROM gone
$$;
