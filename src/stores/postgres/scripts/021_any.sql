-- Version 21: one of several locks. The n-th of each array is one lock and its owner. Whoever locks several rows
-- of holdfast.lock does so in the order of their names, and before rows of holdfast.waiter; whoever has locked
-- rows of holdfast.waiter waits for none but its own. So nobody waits in a circle.

DROP FUNCTION IF EXISTS holdfast.queue_any(bytea[], bytea[], text);

-- The client asks again, with a new transaction, which has nothing locked.
CREATE OR REPLACE FUNCTION holdfast.start_over() RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'serialization_failure',
        MESSAGE = 'could not serialize access: a lock changed just now';
END
$$;

-- The first of the locks from the second on that is free, in their order. token is NULL if none is.
CREATE OR REPLACE FUNCTION holdfast.take_any(
    p_names bytea[], p_owners bytea[], p_ttl_ms integer, p_label bytea, p_detached boolean,
    p_attempt integer, OUT which integer, OUT token bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    FOR which IN
        SELECT p.n FROM unnest(p_names) WITH ORDINALITY AS p (name, n)
        LEFT JOIN holdfast.lock AS l ON l.name = p.name
        WHERE p.n > 1 AND (l.name IS NULL OR (
            NOT l.queued AND (l.owner IS NULL OR l.expires <= clock_timestamp())))
        ORDER BY p.n
    LOOP
        token := holdfast.take_free(
            p_names[which], p_owners[which], p_ttl_ms, p_label, p_detached, p_attempt);
        EXIT WHEN token IS NOT NULL;
    END LOOP;
END
$$;

-- What was handed to one of p_owners, if anything was. The rows of the other locks are left alone: whoever
-- releases one of them does not wait for this commit. more: another was handed to us at the same moment.
CREATE OR REPLACE FUNCTION holdfast.confirm_any(
    p_names bytea[], p_owners bytea[], p_ttl_ms integer, p_label bytea, p_detached boolean,
    p_attempt integer, OUT which integer, OUT token bigint, OUT more boolean)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    one bytea;
    it  holdfast.lock;
BEGIN
    more := false;
    SELECT l.name INTO one FROM holdfast.lock AS l
    WHERE l.name = ANY (p_names) AND l.handed AND l.owner = ANY (p_owners)
    ORDER BY array_position(p_names, l.name) LIMIT 1;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT * INTO it FROM holdfast.lock AS l WHERE l.name = one FOR UPDATE;
    which := array_position(p_names, one);
    IF NOT it.handed OR it.owner IS DISTINCT FROM p_owners[which] THEN
        PERFORM holdfast.start_over(); -- too late
    END IF;
    more := holdfast.leave_others(p_owners, one);
    token := holdfast.hold(one, it.owner, p_ttl_ms, p_label, p_detached, p_attempt);
END
$$;

-- Removes all waiters with these owners. True: a lock other than p_name was handed to one of them.
CREATE OR REPLACE FUNCTION holdfast.leave_others(p_owners bytea[], p_name bytea) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    handed boolean;
BEGIN
    WITH gone AS (
        DELETE FROM holdfast.waiter AS w WHERE w.owner = ANY (p_owners)
        RETURNING w.passed AND w.lock <> p_name AS handed)
    SELECT coalesce(bool_or(g.handed), false) INTO handed FROM gone AS g;
    RETURN handed;
END
$$;

-- Joins every queue, or notes that we are alive. The caller has locked the rows of locks that do not show yet
-- that somebody waits.
CREATE OR REPLACE FUNCTION holdfast.queue_any(
    p_names bytea[], p_owners bytea[], p_channel text, p_label bytea, p_attempt integer)
RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    until   timestamptz := clock_timestamp() + interval '3 seconds';
    waiting integer;
BEGIN
    UPDATE holdfast.waiter AS w
    SET alive_until = until, passed = false, channel = p_channel,
        attempts = CASE WHEN p_attempt = 0 OR p_attempt = ANY (w.attempts) THEN w.attempts
                        ELSE w.attempts || p_attempt END
    WHERE w.owner = ANY (p_owners);
    GET DIAGNOSTICS waiting = ROW_COUNT;
    IF waiting < cardinality(p_names) THEN
        INSERT INTO holdfast.waiter (lock, owner, channel, passed, alive_until, party, label, attempts)
        SELECT p.name, p.owner, p_channel, false, until, p_owners[1], p_label,
            array_remove(ARRAY[p_attempt], 0)
        FROM unnest(p_names, p_owners) AS p (name, owner)
        WHERE NOT EXISTS (SELECT FROM holdfast.waiter AS w WHERE w.owner = p.owner);
    END IF;
END
$$;

-- Whether nobody frees one of the locks now without seeing that these wait: there are others before them to give
-- it to, or nobody is in the middle of changing it.
CREATE OR REPLACE FUNCTION holdfast.is_settled(p_owners bytea[]) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    alone bytea[];
    calm  integer;
BEGIN
    alone := ARRAY (
        SELECT m.lock FROM holdfast.waiter AS m
        WHERE m.owner = ANY (p_owners) AND 2 > (
            SELECT count(*) FROM (
                SELECT FROM holdfast.waiter AS w
                WHERE w.lock = m.lock AND w.ticket < m.ticket AND NOT w.passed
                    AND w.alive_until > clock_timestamp() LIMIT 2) AS before));
    SELECT count(*) INTO calm FROM (
        SELECT FROM holdfast.lock AS l WHERE l.name = ANY (alone) ORDER BY l.name
        FOR SHARE SKIP LOCKED) AS l;
    RETURN calm = cardinality(alone);
END
$$;

-- Which of the locks another attempt of the same owners holds; NULL: none.
CREATE OR REPLACE FUNCTION holdfast.held_by_another(
    p_names bytea[], p_owners bytea[], p_attempt integer) RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (
        SELECT array_position(p_names, l.name) FROM holdfast.lock AS l
        WHERE l.name = ANY (p_names) AND l.owner = ANY (p_owners) AND NOT l.handed
            AND l.attempt <> p_attempt AND l.expires > clock_timestamp()
        LIMIT 1);
END
$$;

-- Takes one of the locks, or confirms a hand-over, or queues for all of them: see holdfast.acquire, whose
-- answers it gives, about number `which`. more: another was handed to us at the same moment, and
-- holdfast.leave_any has to pass it on.
-- Who queues does not lock the rows of locks that others hold: with many who come and go, all of them would wait
-- for each other. So whoever frees one at that moment may not see the newcomer, who asks again until it is
-- settled.
CREATE OR REPLACE FUNCTION holdfast.acquire_any(
    p_names bytea[], p_owners bytea[], p_ttl_ms integer, p_label bytea, p_detached boolean, p_id text,
    p_channel text,        -- NULL: do not queue
    p_patience_ms integer, -- how long a lock of a row may keep us
    p_stage integer,       -- 0: a first request; 1: we are in the queues; 2: and settled
    p_attempt integer DEFAULT 0,
    OUT verdict text, OUT token bigint, OUT look_ms bigint, OUT left_ms bigint, OUT holder text,
    OUT label text, OUT which integer, OUT more boolean, OUT settled boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    now    timestamptz;
    wanted bytea[];
    idle   bytea[] := '{}';
    one    bytea;
    it     holdfast.lock;
    locks  holdfast.lock[];
    head   holdfast.waiter;
    free   boolean;
    n      integer;
    done   text;
BEGIN
    more := false;
    settled := false;
    IF pg_is_in_recovery() THEN
        verdict := 'standby';
        RETURN;
    END IF;
    IF NOT holdfast.grants(p_id, p_ttl_ms) THEN
        verdict := 'new';
        RETURN;
    END IF;
    done := holdfast.set_up('on', p_patience_ms);
    IF p_attempt <> 0 THEN
        which := holdfast.held_by_another(p_names, p_owners, p_attempt);
        IF which IS NOT NULL THEN
            verdict := 'twice';
            RETURN;
        END IF;
    END IF;
    verdict := 'granted';
    IF p_stage > 0 THEN
        SELECT c.which, c.token, c.more INTO which, token, more
        FROM holdfast.confirm_any(p_names, p_owners, p_ttl_ms, p_label, p_detached, p_attempt) AS c;
    ELSE
        which := 1;
        token := holdfast.take_free(
            p_names[1], p_owners[1], p_ttl_ms, p_label, p_detached, p_attempt);
        IF token IS NULL THEN
            SELECT t.which, t.token INTO which, token
            FROM holdfast.take_any(p_names, p_owners, p_ttl_ms, p_label, p_detached, p_attempt) AS t;
        END IF;
        IF token IS NULL AND txid_current_if_assigned() IS NOT NULL THEN
            PERFORM holdfast.start_over(); -- a row that was taken under our eyes is locked, out of order
        END IF;
    END IF;
    IF token IS NOT NULL THEN
        RETURN;
    END IF;

    -- There is something to do only where nobody is, or where it is not known yet that somebody waits.
    wanted := ARRAY (
        SELECT l.name FROM holdfast.lock AS l
        WHERE l.name = ANY (p_names) AND (
            l.owner IS NULL OR l.expires <= clock_timestamp()
            OR (p_channel IS NOT NULL AND NOT l.queued)
            OR l.expires > clock_timestamp() + l.ttl_ms * interval '1 millisecond'
            OR (l.owner = ANY (p_owners) AND NOT l.handed)));
    SELECT coalesce(array_agg(r), '{}') INTO locks FROM (
        SELECT * FROM holdfast.lock AS l WHERE l.name = ANY (wanted) ORDER BY l.name FOR UPDATE) AS r;
    now := clock_timestamp();
    which := NULL;
    FOREACH it IN ARRAY locks LOOP
        n := array_position(p_names, it.name);
        it := holdfast.set_right(it, now);
        head := holdfast.head(it.name, p_owners, now);
        free := it.owner IS NULL OR it.expires <= now;
        IF p_attempt <> 0 AND it.owner = p_owners[n] AND NOT it.handed AND NOT free
                AND it.attempt <> p_attempt THEN
            which := n;
            verdict := 'twice';
            RETURN;
        END IF;
        IF it.owner = p_owners[n] AND NOT it.handed AND NOT free AND it.broken <> it.token THEN
            -- One owner, one hold: the same token, and the time that this request asks for.
            UPDATE holdfast.lock AS l
            SET expires = now + p_ttl_ms * interval '1 millisecond', ttl_ms = p_ttl_ms
            WHERE l.name = it.name;
            which := n;
            token := it.token;
            RETURN;
        END IF;
        IF (it.owner = p_owners[n] AND it.handed)
                OR (free AND (head.owner IS NULL OR head.owner = p_owners[n])) THEN
            which := least(which, n);
        ELSIF free THEN
            idle := idle || it.name;
        END IF;
    END LOOP;
    IF which IS NOT NULL THEN
        more := holdfast.leave_others(p_owners, p_names[which]);
        token := holdfast.hold(
            p_names[which], p_owners[which], p_ttl_ms, p_label, p_detached, p_attempt);
        RETURN;
    END IF;

    -- Nothing below has to be durable: a queue that is lost is formed anew.
    verdict := 'busy';
    done := set_config('synchronous_commit', 'off', true);
    IF p_channel IS NOT NULL THEN
        UPDATE holdfast.lock AS l SET queued = true WHERE l.name = ANY (wanted) AND NOT l.queued;
        settled := p_stage = 2 OR (p_stage = 1 AND holdfast.is_settled(p_owners));
        PERFORM holdfast.queue_any(p_names, p_owners, p_channel, p_label, p_attempt);
    END IF;
    FOREACH one IN ARRAY idle LOOP
        PERFORM holdfast.pass_on(one);
    END LOOP;
    SELECT b.which, b.token, b.look_ms, b.left_ms, b.holder, b.label
    INTO which, token, look_ms, left_ms, holder, label
    FROM holdfast.busy_any(p_names, p_owners, p_channel) AS b;
    IF p_stage > 0 AND NOT settled THEN
        look_ms := least(look_ms, 10);
    END IF;
END
$$;

-- The answer to a party when none of its locks is to be had: about the one whose time is over first.
CREATE OR REPLACE FUNCTION holdfast.busy_any(
    p_names bytea[], p_owners bytea[], p_channel text,
    OUT which integer, OUT token bigint, OUT look_ms bigint, OUT left_ms bigint, OUT holder text,
    OUT label text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    now  timestamptz := clock_timestamp();
    it   holdfast.lock;
    head holdfast.waiter;
BEGIN
    SELECT * INTO it FROM holdfast.lock AS l WHERE l.name = ANY (p_names)
    ORDER BY l.owner IS NULL, l.expires LIMIT 1;
    which := array_position(p_names, it.name);
    token := it.token;
    left_ms := greatest(0, ceil(extract(epoch FROM it.expires - now) * 1000));
    holder := CASE WHEN it.owner IS NULL OR it.expires <= now THEN 'queued'
                   WHEN it.handed THEN 'handed' ELSE 'held' END;
    label := encode(it.label, 'hex');
    -- Where we are the next in line we look when the holder's time is up.
    look_ms := 1000;
    FOR it IN
        SELECT * FROM holdfast.lock AS l
        WHERE l.name = ANY (p_names) AND l.owner IS NOT NULL AND l.expires < now + interval '1 second'
        ORDER BY l.expires
    LOOP
        head := holdfast.head(it.name, p_owners, now);
        IF head.owner IS NULL OR head.owner = ANY (p_owners) THEN
            look_ms := greatest(1, ceil(extract(epoch FROM it.expires - now) * 1000) + 1);
            EXIT;
        END IF;
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
-- finds its next owner. Also what follows a request that was never answered. What another attempt of the same
-- owners holds stays, and so does a place in which another one stands.
CREATE OR REPLACE FUNCTION holdfast.leave_any(
    p_names bytea[], p_owners bytea[], p_id text, p_patience_ms integer, p_attempt integer DEFAULT 0,
    OUT verdict text)
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
    DELETE FROM holdfast.waiter AS w
    WHERE w.owner = ANY (p_owners) AND (p_attempt = 0 OR w.attempts <@ ARRAY[p_attempt]);
    IF p_attempt <> 0 THEN
        UPDATE holdfast.waiter AS w SET attempts = array_remove(w.attempts, p_attempt)
        WHERE w.owner = ANY (p_owners) AND p_attempt = ANY (w.attempts);
    END IF;
    now := clock_timestamp();
    open := holdfast.grants(p_id, 0);
    FOREACH it IN ARRAY coalesce(locks, '{}') LOOP
        ours := it.owner = ANY (p_owners) AND CASE
            WHEN it.handed THEN NOT EXISTS (SELECT FROM holdfast.waiter AS w WHERE w.owner = it.owner)
            ELSE p_attempt = 0 OR it.attempt = p_attempt
        END;
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

-- The same, of one lock.
CREATE OR REPLACE FUNCTION holdfast.leave(
    p_name bytea, p_owner bytea, p_id text, p_patience_ms integer, p_attempt integer DEFAULT 0,
    OUT verdict text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    verdict := holdfast.leave_any(ARRAY[p_name], ARRAY[p_owner], p_id, p_patience_ms, p_attempt);
END
$$;
