-- Version 6: the functions about the life of the server. A client calls one function per request, and
-- nothing else. They run with their creator's rights, so that a role that may use the schema can take
-- locks and cannot read owners. A change of one is a new version of its whole file.

DROP FUNCTION IF EXISTS holdfast.meet(bigint);

-- One life of the data: which cluster, and on which timeline it writes. A promoted standby and a
-- restored backup write on a new timeline. Fails on a standby. Written so that the planner puts the
-- expression in the place of the call.
CREATE OR REPLACE FUNCTION holdfast.incarnation() RETURNS text
LANGUAGE sql VOLATILE AS $$
    SELECT (pg_control_system()).system_identifier || '/'
        || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)
$$;

-- Whether this server, as its own record says, is the life p_id and grants holds of that ttl. What a
-- client remembers of a life is not enough: of two standbys of one primary, promoted one after the other,
-- each writes on a timeline of the same number. But neither has the other's record. In plpgsql, which keeps
-- the plan for the session; a function in SQL with a subquery would be parsed and planned at every call.
CREATE OR REPLACE FUNCTION holdfast.grants(p_id text, p_ttl_ms integer) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM holdfast.met AS m
        WHERE m.id = p_id AND m.id = holdfast.incarnation() AND m.open_at = '-infinity'
            AND m.max_ttl_ms >= p_ttl_ms);
END
$$;

-- What the record is to say at p_now, if it said p_met (NULL: nothing) and this is the life p_id. A life that
-- once was open stays so to its end, whatever its clock does: open_at is -infinity then.
CREATE OR REPLACE FUNCTION holdfast.meeting(
    p_met holdfast.met, p_id text, p_max_ttl_ms bigint, p_now timestamptz) RETURNS holdfast.met
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    met  holdfast.met := p_met;
    span interval := p_max_ttl_ms * interval '1 millisecond';
    last record;
BEGIN
    IF p_met.id IS DISTINCT FROM p_id THEN
        -- A life we have not met. It may have forgotten what was granted within max_ttl before it
        -- began. A timeline begins no later than its last checkpoint, whose time is cut to whole
        -- seconds; the first timeline follows upon nothing that could have been forgotten. Another
        -- cluster's data may have been in use elsewhere until now, however long this one has been up.
        SELECT c.timeline_id, c.checkpoint_time INTO last FROM pg_control_checkpoint() AS c;
        met.one := true;
        met.id := p_id;
        met.max_ttl_ms := p_max_ttl_ms;
        met.since := p_now;
        met.why := CASE
            WHEN p_met.id IS NULL THEN 'unmet'
            WHEN split_part(p_met.id, '/', 1) = split_part(p_id, '/', 1) THEN 'promoted'
            ELSE 'moved'
        END;
        IF right(p_id, 8) = lpad(upper(to_hex(last.timeline_id)), 8, '0') AND met.why <> 'moved' THEN
            met.since := least(p_now, last.checkpoint_time + interval '1 second');
        END IF;
        met.open_at := met.since + span;
        IF right(p_id, 8) = '00000001' AND p_met.id IS NULL THEN
            met.open_at := '-infinity';
        END IF;
    END IF;
    -- The server's clock went back. No grant lives longer than this.
    IF met.open_at > p_now + span THEN
        met.since := p_now;
        met.open_at := p_now + span;
    END IF;
    IF met.open_at <= p_now THEN
        met.open_at := '-infinity';
    END IF;
    RETURN met;
END
$$;

-- Meets the server: which life is it, and may it grant?
-- 'open'; 'quarantine' with left_ms and why; 'max_ttl' with the one agreed on; 'standby'.
CREATE OR REPLACE FUNCTION holdfast.meet(
    p_max_ttl_ms bigint,
    OUT version integer, OUT verdict text, OUT id text, OUT left_ms bigint, OUT agreed_ms bigint,
    OUT why text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    met  holdfast.met;
    next holdfast.met;
    now  timestamptz;
BEGIN
    SELECT v.version INTO version FROM holdfast.version AS v;
    IF pg_is_in_recovery() THEN
        verdict := 'standby';
        RETURN;
    END IF;
    id := holdfast.incarnation();
    SELECT * INTO met FROM holdfast.met;
    IF met.id = id AND met.max_ttl_ms = p_max_ttl_ms AND met.open_at = '-infinity' THEN
        verdict := 'open';
        RETURN;
    END IF;

    LOCK TABLE holdfast.met IN SHARE ROW EXCLUSIVE MODE;
    SELECT * INTO met FROM holdfast.met;
    now := clock_timestamp();
    IF met.max_ttl_ms <> p_max_ttl_ms THEN
        -- What was agreed on is not changed by whoever comes along, also not while nothing is granted.
        verdict := 'max_ttl';
        agreed_ms := met.max_ttl_ms;
        RETURN;
    END IF;
    next := holdfast.meeting(met, id, p_max_ttl_ms, now);
    IF next IS DISTINCT FROM met THEN
        PERFORM set_config('synchronous_commit', 'on', true);
        INSERT INTO holdfast.met VALUES (next.*)
        ON CONFLICT (one) DO UPDATE SET id = excluded.id, since = excluded.since,
            open_at = excluded.open_at, max_ttl_ms = excluded.max_ttl_ms, why = excluded.why;
    END IF;
    verdict := CASE WHEN next.open_at <= now THEN 'open' ELSE 'quarantine' END;
    left_ms := ceil(extract(epoch FROM nullif(next.open_at, '-infinity') - now) * 1000);
    why := next.why;
END
$$;

-- What a meeting would find, for those who only look: nothing is changed, and max_ttl is the one on record,
-- if there is one. 'open'; 'quarantine' with left_ms and why; 'standby'.
CREATE OR REPLACE FUNCTION holdfast.quarantine(
    p_max_ttl_ms bigint,
    OUT version integer, OUT verdict text, OUT id text, OUT left_ms bigint, OUT agreed_ms bigint,
    OUT why text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    met holdfast.met;
    now timestamptz := clock_timestamp();
BEGIN
    SELECT v.version INTO version FROM holdfast.version AS v;
    IF pg_is_in_recovery() THEN
        verdict := 'standby';
        RETURN;
    END IF;
    id := holdfast.incarnation();
    SELECT * INTO met FROM holdfast.met;
    agreed_ms := coalesce(met.max_ttl_ms, p_max_ttl_ms);
    met := holdfast.meeting(met, id, agreed_ms, now);
    verdict := CASE WHEN met.open_at <= now THEN 'open' ELSE 'quarantine' END;
    left_ms := ceil(extract(epoch FROM nullif(met.open_at, '-infinity') - now) * 1000);
    why := met.why;
END
$$;

-- Opens the life p_id before its time, on the word of a person, and keeps who said so and why: the last
-- hundred times. 'opened' with what was left; 'open' already; 'new': another life by now; 'standby'.
CREATE OR REPLACE FUNCTION holdfast.end_quarantine(
    p_id text, p_label bytea, p_reason bytea, OUT verdict text, OUT left_ms bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    met holdfast.met;
    now timestamptz;
BEGIN
    IF pg_is_in_recovery() THEN
        verdict := 'standby';
        RETURN;
    END IF;
    LOCK TABLE holdfast.met IN SHARE ROW EXCLUSIVE MODE;
    SELECT * INTO met FROM holdfast.met;
    now := clock_timestamp();
    IF met.id IS DISTINCT FROM p_id OR p_id IS DISTINCT FROM holdfast.incarnation() THEN
        verdict := 'new';
        RETURN;
    END IF;
    IF met.open_at <= now THEN
        verdict := 'open';
        RETURN;
    END IF;
    PERFORM set_config('synchronous_commit', 'on', true);
    UPDATE holdfast.met AS m SET open_at = '-infinity';
    INSERT INTO holdfast.opened (id, at, open_at, role, label, reason)
    VALUES (p_id, now, met.open_at, session_user, p_label, p_reason);
    DELETE FROM holdfast.opened AS o
    WHERE o.number <= (SELECT max(n.number) FROM holdfast.opened AS n) - 100;
    verdict := 'opened';
    left_ms := ceil(extract(epoch FROM met.open_at - now) * 1000);
END
$$;
