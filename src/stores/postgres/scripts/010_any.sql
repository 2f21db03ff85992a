-- Version 10: one of several locks. The n-th of each array is one lock and its owner. Rows of holdfast.lock
-- are locked in the order of their names, and before those of holdfast.waiter; so nobody waits in a circle.

-- Takes one of the locks, or confirms a hand-over, or queues for all of them: see holdfast.acquire, whose
-- answers it gives, about number `which`. more: another was handed to us at the same moment, and
-- holdfast.leave_any has to pass it on.
CREATE OR REPLACE FUNCTION holdfast.acquire_any(
    p_names bytea[], p_owners bytea[], p_ttl_ms integer, p_label bytea, p_detached boolean, p_id text,
    p_channel text,        -- NULL: do not queue
    p_patience_ms integer, -- how long a lock of a row may keep us
    p_queued boolean,      -- we are in the queues, as far as we know
    OUT verdict text, OUT token bigint, OUT look_ms bigint, OUT left_ms bigint, OUT holder text,
    OUT label text, OUT which integer, OUT more boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    now      timestamptz;
    locks    holdfast.lock[];
    it       holdfast.lock;
    head     holdfast.waiter;
    free     boolean;
    n        integer;
    about    integer; -- which of them a busy answer is about
    its_left bigint;
    one      bytea;
    idle     bytea[] := '{}';
    done     text;
BEGIN
    more := false;
    IF pg_is_in_recovery() THEN
        verdict := 'standby';
        RETURN;
    END IF;
    IF NOT holdfast.grants(p_id, p_ttl_ms) THEN
        verdict := 'new';
        RETURN;
    END IF;
    done := holdfast.set_up('on', p_patience_ms);

    IF p_queued THEN
        -- Handed to us, as a rule, if we ask. The other locks' rows are let alone: who releases one of them
        -- does not wait for our commit.
        SELECT l.name INTO one FROM holdfast.lock AS l
        WHERE l.name = ANY (p_names) AND l.handed AND l.owner = ANY (p_owners)
        ORDER BY array_position(p_names, l.name) LIMIT 1;
        IF FOUND THEN
            SELECT * INTO it FROM holdfast.lock AS l WHERE l.name = one FOR UPDATE;
            which := array_position(p_names, it.name);
            IF it.handed AND it.owner = p_owners[which] THEN
                WITH gone AS (
                    DELETE FROM holdfast.waiter AS w WHERE w.owner = ANY (p_owners)
                    RETURNING w.passed AND w.lock <> it.name AS handed)
                SELECT coalesce(bool_or(g.handed), false) INTO more FROM gone AS g;
                token := holdfast.hold(it.name, it.owner, p_ttl_ms, p_label, p_detached);
                verdict := 'granted';
                RETURN;
            END IF;
        END IF;
    ELSE
        which := 1;
        token := holdfast.take_free(p_names[1], p_owners[1], p_ttl_ms, p_label, p_detached);
        IF token IS NULL THEN
            FOR which IN
                SELECT p.n FROM unnest(p_names) WITH ORDINALITY AS p (name, n)
                LEFT JOIN holdfast.lock AS l ON l.name = p.name
                WHERE p.n > 1 AND (l.name IS NULL OR (
                    NOT l.queued AND (l.owner IS NULL OR l.expires <= clock_timestamp())))
                ORDER BY p.n
            LOOP
                token := holdfast.take_free(p_names[which], p_owners[which], p_ttl_ms, p_label,
                                            p_detached);
                EXIT WHEN token IS NOT NULL;
            END LOOP;
        END IF;
        IF token IS NOT NULL THEN
            verdict := 'granted';
            RETURN;
        END IF;
    END IF;

    SELECT array_agg(r) INTO locks FROM (
        SELECT * FROM holdfast.lock AS l WHERE l.name = ANY (p_names) ORDER BY l.name FOR UPDATE) AS r;
    IF locks IS NULL OR cardinality(locks) < cardinality(p_names) THEN
        RAISE EXCEPTION USING ERRCODE = 'serialization_failure',
            MESSAGE = 'could not serialize access: a lock was made just now';
    END IF;
    now := clock_timestamp();
    which := NULL;
    look_ms := 1000;
    FOREACH it IN ARRAY locks LOOP
        n := array_position(p_names, it.name);
        it := holdfast.set_right(it, now);
        head := holdfast.head(it.name, p_owners, now);
        free := it.owner IS NULL OR it.expires <= now;
        IF it.owner = p_owners[n] AND NOT it.handed AND NOT free THEN
            -- One owner, one hold: the same token, and the time that this request asks for.
            UPDATE holdfast.lock AS l
            SET expires = now + p_ttl_ms * interval '1 millisecond', ttl_ms = p_ttl_ms
            WHERE l.name = it.name;
            which := n;
            token := it.token;
            verdict := 'granted';
            RETURN;
        END IF;
        IF (it.owner = p_owners[n] AND it.handed)
                OR (free AND (head.owner IS NULL OR head.owner = p_owners[n])) THEN
            which := least(which, n);
            CONTINUE;
        END IF;
        IF free THEN
            idle := idle || it.name;
        END IF;
        its_left := greatest(0, ceil(extract(epoch FROM it.expires - now) * 1000));
        -- Where we are the next in line we look when the holder's time is up.
        IF head.owner IS NULL OR head.owner = p_owners[n] THEN
            look_ms := least(look_ms, its_left + 1);
        END IF;
        -- The answer is about the one whose time is over first.
        IF left_ms IS NULL OR its_left < left_ms THEN
            about := n;
            left_ms := its_left;
            token := it.token;
            label := encode(it.label, 'hex');
            holder := CASE WHEN it.owner IS NULL OR free THEN 'queued'
                           WHEN it.handed THEN 'handed' ELSE 'held' END;
        END IF;
    END LOOP;

    IF which IS NOT NULL THEN
        DELETE FROM holdfast.waiter AS w WHERE w.owner = ANY (p_owners);
        token := holdfast.hold(p_names[which], p_owners[which], p_ttl_ms, p_label, p_detached);
        FOREACH it IN ARRAY locks LOOP
            IF it.handed AND it.owner = ANY (p_owners) AND it.name <> p_names[which] THEN
                PERFORM holdfast.pass_on(it.name);
            END IF;
        END LOOP;
        verdict := 'granted';
        RETURN;
    END IF;

    -- Nothing below has to be durable: a queue that is lost is formed anew.
    verdict := 'busy';
    which := about;
    done := set_config('synchronous_commit', 'off', true);
    IF p_channel IS NOT NULL THEN
        UPDATE holdfast.waiter AS w
        SET alive_until = now + interval '3 seconds', passed = false, channel = p_channel
        WHERE w.owner = ANY (p_owners);
        INSERT INTO holdfast.waiter (lock, owner, channel, passed, alive_until, party)
        SELECT p.name, p.owner, p_channel, false, now + interval '3 seconds', p_owners[1]
        FROM unnest(p_names, p_owners) AS p (name, owner)
        WHERE NOT EXISTS (SELECT FROM holdfast.waiter AS w WHERE w.owner = p.owner);
        UPDATE holdfast.lock AS l SET queued = true WHERE l.name = ANY (p_names) AND NOT l.queued;
    END IF;
    FOREACH one IN ARRAY idle LOOP
        PERFORM holdfast.pass_on(one);
    END LOOP;
    -- Those whom nobody can wake look the more often the nearer their turn is.
    IF p_channel = '' THEN
        look_ms := least(look_ms, (
            SELECT 100 * min(a.ahead) FROM holdfast.waiter AS m
            CROSS JOIN LATERAL (
                SELECT count(*) AS ahead FROM (
                    SELECT FROM holdfast.waiter AS w
                    WHERE w.lock = m.lock AND w.ticket <= m.ticket LIMIT 10) AS ten) AS a
            WHERE m.owner = ANY (p_owners)));
    END IF;
END
$$;

-- Leaves the queues, gives back what was handed over or granted meanwhile, and sees that a free lock
-- finds its next owner. Also what follows a request that was never answered.
CREATE OR REPLACE FUNCTION holdfast.leave_any(
    p_names bytea[], p_owners bytea[], p_id text, p_patience_ms integer, OUT verdict text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    it    holdfast.lock;
    locks holdfast.lock[];
    now   timestamptz;
    ours  boolean;
    open  boolean;
    done  text;
BEGIN
    IF pg_is_in_recovery() THEN
        verdict := 'standby';
        RETURN;
    END IF;
    verdict := 'left';
    done := holdfast.set_up('off', p_patience_ms);
    SELECT array_agg(r) INTO locks FROM (
        SELECT * FROM holdfast.lock AS l WHERE l.name = ANY (p_names) ORDER BY l.name FOR UPDATE) AS r;
    DELETE FROM holdfast.waiter AS w WHERE w.owner = ANY (p_owners);
    now := clock_timestamp();
    open := holdfast.grants(p_id, 0);
    FOREACH it IN ARRAY coalesce(locks, '{}') LOOP
        ours := it.owner = ANY (p_owners);
        IF ours THEN
            UPDATE holdfast.lock AS l SET owner = NULL, handed = false WHERE l.name = it.name;
        ELSIF it.owner IS NOT NULL AND it.expires > now THEN
            CONTINUE;
        END IF;
        IF it.queued AND open THEN
            PERFORM holdfast.pass_on(it.name);
        END IF;
    END LOOP;
END
$$;
