-- Version 23: who broke a lock last, also if that hold is over; for people to look at.

-- 'broken', or 'none'.
CREATE OR REPLACE FUNCTION holdfast.last_break(
    p_name bytea, OUT verdict text, OUT at_ms bigint, OUT label text, OUT reason text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    SELECT 'broken', holdfast.to_ms(b.at), encode(b.label, 'hex'), encode(b.reason, 'hex')
    INTO verdict, at_ms, label, reason
    FROM holdfast.broken AS b WHERE b.lock = p_name ORDER BY b.token DESC LIMIT 1;
    verdict := coalesce(verdict, 'none');
END
$$;
