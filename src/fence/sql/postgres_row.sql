-- @section row-up
-- holdfast fence per row for PostgreSQL: an UPDATE must say fence_token, and is refused when that is
-- below the row's.
--
--     UPDATE ... SET ..., fence_token = 34 WHERE ...;
--
-- Guards UPDATE of existing rows only: not INSERT, not DELETE, not TRUNCATE.
-- Errors: ZHF01 stale token, ZHF02 fence_token was not said, ZHF04 no token.

-- @section row-schema
CREATE SCHEMA IF NOT EXISTS holdfast_fence;

-- @section row-table
-- Fires only when the UPDATE names fence_token, and leaves a sign for the second trigger.
CREATE OR REPLACE FUNCTION holdfast_fence.row_check()
RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
BEGIN
    IF NEW.fence_token IS NULL OR NEW.fence_token < 1 THEN
        RAISE EXCEPTION '% is not a token', coalesce(NEW.fence_token::text, 'NULL')
            USING ERRCODE = 'ZHF04';
    ELSIF NEW.fence_token < OLD.fence_token THEN
        RAISE EXCEPTION 'token % is stale: this row of % has admitted %',
            NEW.fence_token, TG_TABLE_NAME, OLD.fence_token USING ERRCODE = 'ZHF01';
    END IF;
    NEW.fence_token := -NEW.fence_token;
    RETURN NEW;
END
$holdfast$;

CREATE OR REPLACE FUNCTION holdfast_fence.row_require()
RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $holdfast$
BEGIN
    IF NEW.fence_token >= 0 THEN
        RAISE EXCEPTION 'UPDATE of % does not say fence_token', TG_TABLE_NAME
            USING ERRCODE = 'ZHF02', HINT = 'UPDATE ... SET ..., fence_token = token';
    END IF;
    NEW.fence_token := -NEW.fence_token;
    RETURN NEW;
END
$holdfast$;

ALTER TABLE @TABLE@ ADD COLUMN fence_token bigint NOT NULL DEFAULT 0 CHECK (fence_token >= 0);

-- Triggers fire in the order of their names: these two last, and next to each other.
CREATE TRIGGER zz_holdfast_row_1 BEFORE UPDATE OF fence_token ON @TABLE@
    FOR EACH ROW EXECUTE FUNCTION holdfast_fence.row_check();

CREATE TRIGGER zz_holdfast_row_2 BEFORE UPDATE ON @TABLE@
    FOR EACH ROW EXECUTE FUNCTION holdfast_fence.row_require();

ALTER TABLE @TABLE@ ENABLE ALWAYS TRIGGER zz_holdfast_row_1;

ALTER TABLE @TABLE@ ENABLE ALWAYS TRIGGER zz_holdfast_row_2;

-- @section row-down
DROP TRIGGER zz_holdfast_row_2 ON @TABLE@;

DROP TRIGGER zz_holdfast_row_1 ON @TABLE@;

ALTER TABLE @TABLE@ DROP COLUMN fence_token;

-- @section row-down-shared
DROP FUNCTION holdfast_fence.row_require();

DROP FUNCTION holdfast_fence.row_check();
